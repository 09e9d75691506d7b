# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/link: part of libr2core.
libr2core_la_SOURCES += \
    r2core/link/ack.c \
    r2core/link/call.c \
    r2core/link/control.c \
    r2core/link/credit.c \
    r2core/link/evidence.c \
    r2core/link/give_up.c \
    r2core/link/grant.c \
    r2core/link/hedge.c \
    r2core/link/hello.c \
    r2core/link/idle.c \
    r2core/link/idle.h \
    r2core/link/item.c \
    r2core/link/limits.c \
    r2core/link/room.c \
    r2core/link/lane.c \
    r2core/link/lane.h \
    r2core/link/leave.c \
    r2core/link/link.c \
    r2core/link/link.h \
    r2core/link/match.h \
    r2core/link/message.c \
    r2core/link/net.c \
    r2core/link/net.h \
    r2core/link/peer_info.c \
    r2core/link/peer_info.h \
    r2core/link/pool.h \
    r2core/link/net_health.c \
    r2core/link/offer.c \
    r2core/link/offer.h \
    r2core/link/pace.c \
    r2core/link/packet.h \
    r2core/link/presence.c \
    r2core/link/rates.c \
    r2core/link/relay.c \
    r2core/link/relay.h \
    r2core/link/relay_forward.c \
    r2core/link/relay_way.c \
    r2core/link/rtt.c \
    r2core/link/runs.c \
    r2core/link/runs.h \
    r2core/link/rx.c \
    r2core/link/rx.h \
    r2core/link/rx_data.c \
    r2core/link/rx_match.c \
    r2core/link/state.h \
    r2core/link/lane_timer.c \
    r2core/link/timer.c \
    r2core/link/tx.c \
    r2core/link/tx.h \
    r2core/link/tx_packet.c \
    r2core/link/unread.c \
    r2core/link/waits.c \
    r2core/link/wire.c \
    r2core/link/wire.h
