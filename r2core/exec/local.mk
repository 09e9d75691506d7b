# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/exec: part of libr2core.
libr2core_la_SOURCES += \
    r2core/exec/device.c \
    r2core/exec/engine.c \
    r2core/exec/exec.c \
    r2core/exec/exec.h \
    r2core/exec/fuse.c \
    r2core/exec/fuse.h \
    r2core/exec/landing.c \
    r2core/exec/landing.h \
    r2core/exec/landing_step.c \
    r2core/exec/loan.c \
    r2core/exec/loan.h \
    r2core/exec/loan_host.c \
    r2core/exec/loan_read.c \
    r2core/exec/loan_step.c \
    r2core/exec/nic.c \
    r2core/exec/ops.c \
    r2core/exec/pins.c \
    r2core/exec/pins.h \
    r2core/exec/place.c \
    r2core/exec/program.c \
    r2core/exec/program.h \
    r2core/exec/stage.c \
    r2core/exec/stream.c \
    r2core/exec/staging.c \
    r2core/exec/staging.h \
    r2core/exec/touch.c \
    r2core/exec/touch.h \
    r2core/exec/wants.c
