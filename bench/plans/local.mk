# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Degraded plans on the lab against their bound: make bench-plans [PLAN_ROWS="quarter slow"]
# [PLAN_PAIRS=5]
EXTRA_PROGRAMS += bench/plans/plan_calls
bench_plans_plan_calls_SOURCES = bench/plans/plan_calls.c
bench_plans_plan_calls_CPPFLAGS = -I$(top_builddir) $(OMPI_CPPFLAGS)
bench_plans_plan_calls_LDADD = $(OMPI_LIBS)
EXTRA_DIST += bench/plans/bench_plans

PLAN_ROWS =
PLAN_PAIRS = 5
bench-plans: all bench/plans/plan_calls
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/bench/plans/bench_plans --pairs $(PLAN_PAIRS) \
	    $(PLAN_ROWS)
.PHONY: bench-plans
