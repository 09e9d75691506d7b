# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Jobs under mpirun on the lab while rails and ranks fail (docs/tests.md).
check_PROGRAMS += tests/lab/computing tests/lab/fault_driver
tests_lab_computing_SOURCES = tests/lab/computing.c tests/open_files.h
tests_lab_computing_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_lab_computing_LDADD = $(OMPI_LIBS)
tests_lab_fault_driver_SOURCES = \
    tests/lab/fault_calls.c \
    tests/lab/fault_driver.c \
    tests/lab/fault_driver.h
tests_lab_fault_driver_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_lab_fault_driver_LDADD = $(OMPI_LIBS)
EXTRA_DIST += docs/tests.md tests/lab/faultlab.py tests/lab/rail_faults.py \
    tests/lab/rdma_faults.py \
    tests/lab/rdma_refused.py \
    tests/lab/test_faults.py \
    tests/lab/rolling.py tests/lab/test_collectives.py tests/lab/test_p2p.py \
    tests/lab/test_direct.py \
    tests/lab/test_examples.py tests/lab/test_gpu.py tests/lab/test_gpu_cover.py \
    tests/lab/test_gpu_nic.py \
    tests/lab/pairwise.py tests/lab/test_computing.py \
    examples/cuda_arrays.py examples/sgd.py \
    tests/lab/test_peers.py tests/lab/test_slurm.py tests/lab/test_ulfm.py \
    tests/lab/oob_verdicts.py tests/lab/test_dynamic.py tests/lab/parts.py \
    tests/lab/ulfm_matrix.py tests/lab/ulfmlab.py tests/lab/evidence.py tests/lab/evidence.gdb \
    tests/lab/test_verdicts.py \
    tests/lab/test_relay.py tests/lab/test_plan.py tests/lab/test_catalogue.py \
    tests/lab/test_garbage.py tests/lab/test_levels.py tests/lab/test_processes.py \
    tests/lab/test_log.py tests/lab/test_waits.py \
    tests/lab/test_descriptors.py tests/functional/children.py tests/lab/test_presence.py \
    tests/lab/test_programs.py tests/lab/campaign.py

# The long forms: every kind of collective, stops and computing of 30 s, more rounds.
check-faults-long: check-programs
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/test_faults.py --long
.PHONY: check-faults-long

# Calls on memory of GPUs, drawn at random, while rails break: make check-gpu-campaign [SEED=1]
# [CALLS=400]
CALLS = 400
check-gpu-campaign: check-programs
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/test_gpu_cover.py --seed $(SEED) \
	    --drawn $(CALLS)
.PHONY: check-gpu-campaign

# Processes die under ULFM, many times in each way (Open MPI 5.0): make check-ulfm [JOBS=50]
JOBS = 50
check-ulfm: check-programs
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/ulfm_matrix.py $(JOBS)
.PHONY: check-ulfm

# All faults over RDMA NICs that are none (docs/softverbs.md), and random jobs: make check-rdma
# [SEED=1] [RUNS=100]
check-rdma: check-programs
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/test_faults.py --rdma --long
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/test_faults.py down --put
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/test_faults.py down --ud
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/test_faults.py drop refused --ib
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/test_direct.py --rdma --long
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/test_presence.py --rdma
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/test_programs.py
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/campaign.py --rdma \
	    --seed $(SEED) --runs $(or $(RUNS),100)
.PHONY: check-rdma

# All programs again and again while each rail of each host goes down and up: make check-rolling
# [MINUTES=30]
MINUTES = 30
check-rolling: check-programs
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/rolling.py $(MINUTES)
