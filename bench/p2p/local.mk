# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Point-to-point against btl/tcp: make bench-p2p [P2P_PAIRS=5]
check_PROGRAMS += bench/p2p/p2p_pair
bench_p2p_p2p_pair_SOURCES = bench/p2p/p2p_pair.c
bench_p2p_p2p_pair_CPPFLAGS = $(OMPI_CPPFLAGS)
bench_p2p_p2p_pair_LDADD = $(OMPI_LIBS)
EXTRA_DIST += bench/p2p/bench_p2p
P2P_PAIRS = 5
bench-p2p: bench/p2p/p2p_pair
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/bench/p2p/bench_p2p $(P2P_PAIRS)
