# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/transport: part of libr2core.
libr2core_la_SOURCES += \
    r2core/transport/put.h \
    r2core/transport/transport.h \
    r2core/transport/ucx.c \
    r2core/transport/ucx.h \
    r2core/transport/ucx_config.c \
    r2core/transport/ucx_ep.c \
    r2core/transport/ucx_fds.c \
    r2core/transport/ucx_log.c \
    r2core/transport/ucx_piece.c \
    r2core/transport/ucx_put.c \
    r2core/transport/ucx_send.c \
    r2core/transport/ucx_worker.c
