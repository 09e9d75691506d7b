# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# MPI programs of our own, run under mpirun by tests/suites.tsv.
EXTRA_DIST += \
    tests/functional/install \
    tests/functional/r2_info \
    tests/functional/run-mpi \
    tests/functional/selection \
    tests/functional/tap.sh \
    tests/functional/test_bench.sh

check_PROGRAMS += tests/functional/hello_mpi
tests_functional_hello_mpi_SOURCES = tests/functional/hello_mpi.c
tests_functional_hello_mpi_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_hello_mpi_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/all_collectives
tests_functional_all_collectives_SOURCES = \
    tests/functional/all_collectives.c \
    tests/functional/cases_neighbor.c \
    tests/functional/cases_rooted.c \
    tests/functional/cases_unrooted.c \
    tests/functional/job.c \
    tests/functional/job.h
tests_functional_all_collectives_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_all_collectives_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/oob_pmix
tests_functional_oob_pmix_SOURCES = tests/functional/oob_pmix.c
tests_functional_oob_pmix_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS)
tests_functional_oob_pmix_LDADD = $(R2_TEST_LIBS) $(OMPI_LIBS)
EXTRA_DIST += tests/lab/test_oob_pmix.py

check_PROGRAMS += tests/functional/datatypes
tests_functional_datatypes_SOURCES = \
    tests/functional/datatypes.c \
    tests/functional/datatypes.h \
    tests/functional/datatypes_call.c \
    tests/functional/datatypes_errors.c \
    tests/functional/datatypes_flight.c \
    tests/functional/datatypes_groups.c \
    tests/functional/datatypes_groups.h \
    tests/functional/datatypes_types.c \
    tests/functional/datatypes_userops.c \
    tests/functional/datatypes_values.c
tests_functional_datatypes_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_datatypes_LDADD = $(OMPI_LIBS)
EXTRA_DIST += tests/lab/test_datatypes.py
