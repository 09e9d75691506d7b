# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/model: part of libr2plan, which links without UCX and PMIx.
libr2plan_la_SOURCES += \
    r2core/model/device_cost.c \
    r2core/model/health_map.c \
    r2core/model/health_map.h \
    r2core/model/hosts.h \
    r2core/model/near.c \
    r2core/model/schedule.c \
    r2core/model/topology.c \
    r2core/model/verdict_names.c
