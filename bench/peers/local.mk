# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# r2 against what people use today: make bench-peers [PEERS_OPTIONS="--quick --plots DIR"]
noinst_PROGRAMS += bench/peers/core_trip
bench_peers_core_trip_SOURCES = bench/peers/core_trip.c

EXTRA_DIST += \
    bench/peers/cores.py \
    bench/peers/faults.py \
    bench/peers/figures.py \
    bench/peers/gloo_bench.cc \
    bench/peers/lab.py \
    bench/peers/output.py \
    bench/peers/peers \
    bench/peers/pin \
    bench/peers/plots.py \
    bench/peers/record.py \
    bench/peers/report.py \
    bench/peers/rows.py \
    bench/peers/stacks.py

# The same benchmark on MPICH, and Gloo's, where Debian's packages of them are installed
# (tools/deps.sh peers). No part of r2 is built with another MPI's compiler.
MPICH_CC = mpicc.mpich
bench-peers-mpich:
	@if command -v $(MPICH_CC) >/dev/null; then \
	    $(MAKE) $(AM_MAKEFLAGS) bench/peers/r2_bench_mpich; \
	else \
	    echo "MPICH is left out: there is no $(MPICH_CC): tools/deps.sh peers"; \
	fi
# (Its MPI_STATUSES_IGNORE looks to gcc like an array that is too short.)
bench/peers/r2_bench_mpich: $(libr2bench_la_SOURCES) bench/osu/main.c
	@$(MKDIR_P) bench/peers
	$(MPICH_CC) -std=gnu11 -O2 -Wno-stringop-overflow -I. -I$(top_srcdir)/r2core \
	    -I$(top_srcdir)/r2core/include -o $@ \
	    `for file in $(libr2bench_la_SOURCES) bench/osu/main.c; do \
	        case $$file in *.c) echo $(top_srcdir)/$$file ;; esac; done`
bench-peers-gloo:
	@if echo '#include <gloo/context.h>' | $(GLOO_CXX) -E -x c++ - >/dev/null 2>&1; then \
	    $(MAKE) $(AM_MAKEFLAGS) bench/peers/gloo_bench; \
	else \
	    echo "Gloo is left out: no header of it, or no $(GLOO_CXX): tools/deps.sh peers"; \
	fi
GLOO_CXX = g++
bench/peers/gloo_bench: bench/peers/gloo_bench.cc
	@$(MKDIR_P) bench/peers
	$(GLOO_CXX) -std=c++14 -O2 -Wall -o $@ $(top_srcdir)/bench/peers/gloo_bench.cc -lgloo -pthread
CLEANFILES += bench/peers/gloo_bench bench/peers/r2_bench_mpich

bench-peers: all bench-peers-mpich bench-peers-gloo
	$(top_srcdir)/bench/peers/peers --build $(abs_top_builddir) $(PEERS_OPTIONS)
.PHONY: bench-peers bench-peers-gloo bench-peers-mpich
