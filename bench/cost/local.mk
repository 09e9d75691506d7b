# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# What r2 costs while all is well. Built and run by: make bench-cost
EXTRA_PROGRAMS += bench/cost/cost
bench_cost_cost_SOURCES = bench/cost/bare.c bench/cost/bare.h bench/cost/cost.c
bench_cost_cost_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) $(UCX_CFLAGS) $(OMPI_CPPFLAGS)
bench_cost_cost_LDADD = libr2coretest.la $(OMPI_LIBS)
EXTRA_DIST += bench/cost/cost_pairs

bench-cost: all bench/cost/cost
	$(top_srcdir)/bench/cost/cost_pairs --build $(abs_top_builddir) $(COST_OPTIONS)
.PHONY: bench-cost
