# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/ctx: part of libr2core.
libr2core_la_SOURCES += \
    r2core/ctx/agree.c \
    r2core/ctx/agree.h \
    r2core/ctx/plan_env.c \
    r2core/ctx/memory.c \
    r2core/ctx/msg_scope.c \
    r2core/ctx/plan_env.h \
    r2core/ctx/lane_asks.c \
    r2core/ctx/lane_asks.h \
    r2core/ctx/coll.c \
    r2core/ctx/coll_local.c \
    r2core/ctx/coll_local.h \
    r2core/ctx/coll_local_end.c \
    r2core/ctx/coll_local_meet.c \
    r2core/ctx/coll_pins.c \
    r2core/ctx/coll_plan.c \
    r2core/ctx/coll_pool.c \
    r2core/ctx/coll_post.c \
    r2core/ctx/comm.c \
    r2core/ctx/comm.h \
    r2core/ctx/consent.c \
    r2core/ctx/consent.h \
    r2core/ctx/core.h \
    r2core/ctx/cost_source.c \
    r2core/ctx/cost_source.h \
    r2core/ctx/ctx.c \
    r2core/ctx/drive.c \
    r2core/ctx/drive.h \
    r2core/ctx/files.c \
    r2core/ctx/files.h \
    r2core/ctx/crowded.c \
    r2core/ctx/crowded.h \
    r2core/ctx/estimator.c \
    r2core/ctx/estimator.h \
    r2core/ctx/notes.c \
    r2core/ctx/observer.c \
    r2core/ctx/observer.h \
    r2core/ctx/p2p.c \
    r2core/ctx/p2p_state.h \
    r2core/ctx/p2p_rma.c \
    r2core/ctx/p2p_am.c \
    r2core/ctx/p2p_direct.c \
    r2core/ctx/p2p_get.c \
    r2core/ctx/p2p_am_buf.c \
    r2core/ctx/p2p_inbound.c \
    r2core/ctx/p2p_requests.c \
    r2core/ctx/override.c \
    r2core/ctx/pair.c \
    r2core/ctx/detector.c \
    r2core/ctx/detector.h \
    r2core/ctx/health_ports.c \
    r2core/ctx/host_id.c \
    r2core/ctx/host_id.h \
    r2core/ctx/host_table.c \
    r2core/ctx/host_table.h \
    r2core/ctx/map_sync.c \
    r2core/ctx/map_sync.h \
    r2core/ctx/parts.h \
    r2core/ctx/plan_text.c \
    r2core/ctx/plan_text.h \
    r2core/ctx/posts.c \
    r2core/ctx/posts.h \
    r2core/ctx/programs.c \
    r2core/ctx/programs.h \
    r2core/ctx/rail_log.c \
    r2core/ctx/rail_log.h \
    r2core/ctx/record.c \
    r2core/ctx/record.h \
    r2core/ctx/remedy.c \
    r2core/ctx/remedy.h \
    r2core/ctx/sequence.c \
    r2core/ctx/service.c \
    r2core/ctx/shared.c \
    r2core/ctx/source.c \
    r2core/ctx/source.h \
    r2core/ctx/start.c \
    r2core/ctx/state.h \
    r2core/ctx/tell.c \
    r2core/ctx/upcalls.c \
    r2core/ctx/users.c \
    r2core/ctx/wait.c

libr2core_la_SOURCES += \
    r2core/ctx/version.c
