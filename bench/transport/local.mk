# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# The transport alone, beside UCT and UCP alone: make bench-transport [TRANSPORT_OPTIONS="--rounds
# 9"]
check_PROGRAMS += bench/transport/pair
bench_transport_pair_SOURCES = \
    bench/transport/pair.c \
    bench/transport/pair.h \
    bench/transport/stack_r2.c \
    bench/transport/stack_ucp.c \
    bench/transport/stack_uct.c
bench_transport_pair_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) $(UCX_CFLAGS)
bench_transport_pair_LDADD = libr2coretest.la $(UCX_LIBS)
EXTRA_DIST += bench/transport/bench_transport

bench-transport: bench/transport/pair
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/bench/transport/bench_transport $(TRANSPORT_OPTIONS)
.PHONY: bench-transport
