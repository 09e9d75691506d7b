# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/health: part of libr2core.
libr2core_la_SOURCES += \
    r2core/health/agreement.c \
    r2core/health/agreement.h \
    r2core/health/capacity.c \
    r2core/health/describe.c \
    r2core/health/heal.c \
    r2core/health/health.c \
    r2core/health/health.h \
    r2core/health/investigation.c \
    r2core/health/machine.h \
    r2core/health/members.c \
    r2core/health/notice.c \
    r2core/health/notice.h \
    r2core/health/outage.c \
    r2core/health/outbox.c \
    r2core/health/probes.c \
    r2core/health/query.c \
    r2core/health/disseminate.c \
    r2core/health/suspicion.c \
    r2core/health/verdict_rules.c \
    r2core/health/verdict_rules.h \
    r2core/health/owner.c
