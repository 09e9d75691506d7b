# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/telemetry: part of libr2core.
libr2core_la_SOURCES += \
    r2core/telemetry/event_line.c \
    r2core/telemetry/event_line.h \
    r2core/telemetry/events.c \
    r2core/telemetry/events.def \
    r2core/telemetry/events.h \
    r2core/telemetry/gap.c \
    r2core/telemetry/gap.h \
    r2core/telemetry/path.c \
    r2core/telemetry/path.h \
    r2core/telemetry/snapshot.c \
    r2core/telemetry/snapshot.h
