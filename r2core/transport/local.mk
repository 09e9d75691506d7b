# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/transport: part of libr2core.
libr2core_la_SOURCES += \
    r2core/transport/put.h \
    r2core/transport/real.c \
    r2core/transport/tcp.c \
    r2core/transport/tcp.h \
    r2core/transport/tcp_calls.h \
    r2core/transport/tcp_ep.c \
    r2core/transport/tcp_guest.c \
    r2core/transport/tcp_packet.c \
    r2core/transport/tcp_path.c \
    r2core/transport/tcp_receive.c \
    r2core/transport/tcp_send.c \
    r2core/transport/tcp_socket.c \
    r2core/transport/tcp_watch.c \
    r2core/transport/tcp_worker.c \
    r2core/transport/uct.c \
    r2core/transport/uct.h \
    r2core/transport/uct_address.c \
    r2core/transport/uct_ep.c \
    r2core/transport/uct_grant.c \
    r2core/transport/uct_log.c \
    r2core/transport/uct_memory.c \
    r2core/transport/uct_piece.c \
    r2core/transport/uct_port.c \
    r2core/transport/uct_put.c \
    r2core/transport/uct_record.c \
    r2core/transport/uct_sees.c \
    r2core/transport/uct_send.c \
    r2core/transport/uct_unmaps.c \
    r2core/transport/uct_worker.c
