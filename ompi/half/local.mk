# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# float16 and bfloat16 for MPI programs (r2_mpi.h): a library that knows nothing of r2.
lib_LTLIBRARIES += libr2_mpi.la
r2_half_sources = \
    ompi/half/half.c \
    ompi/half/half.h \
    ompi/half/half_avx2.c
libr2_mpi_la_SOURCES = $(r2_half_sources) ompi/half/half_mpi.c
libr2_mpi_la_CPPFLAGS = -D_GNU_SOURCE -I$(top_srcdir) -I$(top_builddir) $(OMPI_CPPFLAGS)
# It stays loaded: r2 knows its functions by their addresses.
libr2_mpi_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -Wl,-z,nodelete $(R2_NO_UNDEFINED)
libr2_mpi_la_LIBADD = $(OMPI_LIBS) -ldl -lm
