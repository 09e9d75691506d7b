# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Lanes that close at the worst moment, between processes, on any transport (docs/tests.md).
check_PROGRAMS += tests/closing/closing
tests_closing_closing_SOURCES = \
    tests/closing/closing.c \
    tests/closing/closing.h \
    tests/closing/director.c \
    tests/closing/director.h \
    tests/closing/node.c \
    tests/closing/node.h \
    tests/closing/orders.c \
    tests/closing/scenarios.c \
    tests/open_files.h
tests_closing_closing_LDADD = $(R2_TEST_LIBS)

# The long form: make check-closing [ROUNDS=500] [CLOSING_OPTIONS="--transport NAME"]
ROUNDS = 500
check-closing: tests/closing/closing
	tests/closing/closing --rounds $(ROUNDS) $(CLOSING_OPTIONS)
.PHONY: check-closing

# The report to UCX (docs/ucx): built, and run to see whether this UCX is concerned.
EXTRA_PROGRAMS += docs/ucx/tcp_close
docs_ucx_tcp_close_SOURCES = docs/ucx/tcp_close.c
docs_ucx_tcp_close_CFLAGS = $(AM_CFLAGS) -Wno-unused-parameter
docs_ucx_tcp_close_LDADD = $(UCX_LIBS)
EXTRA_DIST += docs/ucx/README.md
check-ucx-report: docs/ucx/tcp_close
	-MALLOC_PERTURB_=165 docs/ucx/tcp_close lo
.PHONY: check-ucx-report
