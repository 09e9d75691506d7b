# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/mem: part of libr2core.
libr2core_la_SOURCES += \
    r2core/mem/cuda_api.def \
    r2core/mem/cuda_copy2d.h \
    r2core/mem/cuda_driver.c \
    r2core/mem/cuda_driver.h \
    r2core/mem/cuda_ipc.h \
    r2core/mem/cuda_start.def \
    r2core/mem/functions.c \
    r2core/mem/gpu.c \
    r2core/mem/kernels.c \
    r2core/mem/kernels.h \
    r2core/mem/measure.c \
    r2core/mem/mem.c \
    r2core/mem/mem.h \
    r2core/mem/queue.c \
    r2core/mem/queue.h \
    r2core/mem/rates.c \
    r2core/mem/rates.h \
    r2core/mem/share.c \
    r2core/mem/share.h

# Kernels for GPUs: as text for the driver, which compiles it for the GPU that there is. No FMA:
# sums and products have the bits of the host's. No part of CUDA is looked for.
R2_KERNEL_PARTS = \
    r2core/base/kernels.def \
    r2core/mem/ptx/copy.h \
    r2core/mem/ptx/elements.h \
    r2core/mem/ptx/reduce.cu \
    r2core/mem/ptx/reduce.h
EXTRA_DIST += $(R2_KERNEL_PARTS)
if R2_KERNELS
r2core/mem/kernels.ptx: $(R2_KERNEL_PARTS)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CLANG) $(R2_KERNEL_FLAGS) -I$(top_srcdir)/r2core -S -o $@ \
	    $(top_srcdir)/r2core/mem/ptx/reduce.cu
r2core/mem/kernels_ptx.h: r2core/mem/kernels.ptx
	$(AM_V_GEN)(echo 'static const char r2_kernels_ptx[] =' && \
	    sed -e '/^\/\//d;/^$$/d;s/"/\\"/g;s/^/"/;s/$$/\\n"/' r2core/mem/kernels.ptx && echo ';') \
	    >$@.new && mv $@.new $@
r2core/mem/kernels.lo: r2core/mem/kernels_ptx.h
CLEANFILES += r2core/mem/kernels.ptx r2core/mem/kernels_ptx.h
endif
