# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Time that the planner takes. Built by: make bench/plan/plan_time
EXTRA_PROGRAMS = bench/plan/plan_time
bench_plan_plan_time_SOURCES = bench/plan/plan_time.c
bench_plan_plan_time_LDADD = libr2plan.la
