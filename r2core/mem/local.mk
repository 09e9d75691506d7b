# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/mem: part of libr2core.
libr2core_la_SOURCES += \
    r2core/mem/cuda_api.def \
    r2core/mem/cuda_copy2d.h \
    r2core/mem/cuda_driver.c \
    r2core/mem/cuda_driver.h \
    r2core/mem/gpu.c \
    r2core/mem/mem.c \
    r2core/mem/mem.h \
    r2core/mem/queue.c \
    r2core/mem/queue.h
