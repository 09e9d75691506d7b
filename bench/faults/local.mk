# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Faults of the lab while an allreduce runs: make bench-faults [ROWS="NAME ..."] [FAULTS=20]
# [JSON=FILE] [RDMA=1 [PUT=1]] [HOLD=SECONDS]
noinst_PROGRAMS += bench/faults/fault_job
bench_faults_fault_job_SOURCES = bench/faults/fault_job.c
bench_faults_fault_job_CPPFLAGS = $(OMPI_CPPFLAGS)
bench_faults_fault_job_LDADD = $(OMPI_LIBS)

EXTRA_DIST += \
    bench/faults/bench_faults \
    bench/faults/figures.py \
    bench/faults/job.py \
    bench/faults/rows.py \
    bench/faults/sampler.py

FAULTS = 20
ROWS =
JSON =
bench-faults: all
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/bench/faults/bench_faults --faults $(FAULTS) \
	    $(if $(JSON),--json $(JSON)) $(if $(RDMA),--rdma) $(if $(PUT),--put) \
	    $(if $(HOLD),--hold $(HOLD)) $(ROWS)
.PHONY: bench-faults
