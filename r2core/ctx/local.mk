# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/ctx: part of libr2core.
libr2core_la_SOURCES += \
    r2core/ctx/coll.c \
    r2core/ctx/comm.c \
    r2core/ctx/ctx.c \
    r2core/ctx/parts.h \
    r2core/ctx/service.c \
    r2core/ctx/start.c \
    r2core/ctx/state.h \
    r2core/ctx/wait.c

libr2core_la_SOURCES += \
    r2core/ctx/version.c
