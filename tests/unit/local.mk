# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Unit tests (cmocka). A test is three lines:
#   check_PROGRAMS += tests/unit/test_NAME
#   tests_unit_test_NAME_SOURCES = tests/unit/test_NAME.c
#   tests_unit_test_NAME_LDADD = $(R2_TEST_LIBS)
# and one line in tests/suites.tsv. R2_TEST_LIBS gives all of r2core, hidden functions too;
# R2_PLAN_TEST_LIBS gives base, model and plan only.
