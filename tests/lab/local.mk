# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Jobs under mpirun on the lab while rails and ranks fail (docs/tests.md).
check_PROGRAMS += tests/lab/fault_driver
tests_lab_fault_driver_SOURCES = \
    tests/lab/fault_calls.c \
    tests/lab/fault_driver.c \
    tests/lab/fault_driver.h
tests_lab_fault_driver_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_lab_fault_driver_LDADD = $(OMPI_LIBS)
EXTRA_DIST += docs/tests.md tests/lab/faultlab.py tests/lab/test_faults.py

# The long forms: every kind of collective, stops and computing of 30 s, more rounds.
check-campaign-lab: check-programs
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/test_faults.py --long
check-campaign: check-campaign-lab
