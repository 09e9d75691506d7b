# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/plan: part of libr2plan, which links without UCX and PMIx.
libr2plan_la_SOURCES += \
    r2core/plan/allgather_bruck.c \
    r2core/plan/allgather_direct.c \
    r2core/plan/allgather_ring.c \
    r2core/plan/allreduce_direct.c \
    r2core/plan/allreduce_doubling.c \
    r2core/plan/allreduce_exchange.c \
    r2core/plan/allreduce_ring.c \
    r2core/plan/barrier.c \
    r2core/plan/bcast_binomial.c \
    r2core/plan/bcast_scatter.c \
    r2core/plan/builders.h \
    r2core/plan/fold.c \
    r2core/plan/fold.h \
    r2core/plan/layout.c \
    r2core/plan/layout.h \
    r2core/plan/plan.c \
    r2core/plan/plan.h \
    r2core/plan/reduce_scatter_direct.c \
    r2core/plan/rows.c \
    r2core/plan/rows.h \
    r2core/plan/thresholds.def
