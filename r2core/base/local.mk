# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/base: part of libr2plan, which links without UCX and PMIx.
libr2plan_la_SOURCES += \
    r2core/base/blocks.c \
    r2core/base/blocks.h \
    r2core/base/clock.c \
    r2core/base/clock.h \
    r2core/base/fds.c \
    r2core/base/coll_kinds.def \
    r2core/base/counters.c \
    r2core/base/counters.def \
    r2core/base/fork.c \
    r2core/base/fork.h \
    r2core/base/hash.c \
    r2core/base/hash.h \
    r2core/base/host_sums.c \
    r2core/base/host_sums.h \
    r2core/base/json.c \
    r2core/base/logger.c \
    r2core/base/logger.h \
    r2core/base/params.c \
    r2core/base/params.def \
    r2core/base/pool.h \
    r2core/base/status.c \
    r2core/base/status.def \
    r2core/base/table.c \
    r2core/base/table.h \
    r2core/base/thread.c \
    r2core/base/thread.h \
    r2core/base/units.c \
    r2core/base/util.h
