# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# What programs preload that ask whether MPI is CUDA-aware (docs/gpu.md).
lib_LTLIBRARIES += libr2_cuda_support.la
libr2_cuda_support_la_SOURCES = ompi/preload/cuda_support.c
libr2_cuda_support_la_CPPFLAGS = -D_GNU_SOURCE -I$(top_builddir) $(OMPI_CPPFLAGS)
libr2_cuda_support_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version $(R2_NO_UNDEFINED)
libr2_cuda_support_la_LIBADD = $(OMPI_LIBS) -ldl
