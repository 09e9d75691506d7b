# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Benchmarks: MPI programs that link only with $(OMPI_LIBS).
bin_PROGRAMS += \
    bench/osu/r2_allgather \
    bench/osu/r2_allreduce \
    bench/osu/r2_bench \
    bench/osu/r2_reduce_scatter

noinst_LTLIBRARIES += libr2bench.la
libr2bench_la_SOURCES = \
    bench/osu/bench.c \
    bench/osu/bench.h \
    bench/osu/calls.c \
    bench/osu/calls.def \
    bench/osu/calls.h \
    bench/osu/clock.c \
    bench/osu/clock.h \
    bench/osu/cuda.def \
    bench/osu/data.c \
    bench/osu/data.h \
    bench/osu/fault_words.c \
    bench/osu/give_up.c \
    bench/osu/injector.c \
    bench/osu/injector.h \
    bench/osu/kinds.c \
    bench/osu/kinds.h \
    bench/osu/measure.c \
    bench/osu/options.c \
    bench/osu/options.h \
    bench/osu/overlap.c \
    bench/osu/overlap.h \
    bench/osu/pairs.c \
    bench/osu/pairs.h \
    bench/osu/payload.c \
    bench/osu/payload.h \
    bench/osu/place.c \
    bench/osu/place.h \
    bench/osu/pvar.c \
    bench/osu/pvar.h \
    bench/osu/report.c \
    bench/osu/report.h \
    bench/osu/run.h \
    bench/osu/series.c \
    bench/osu/series.h \
    bench/osu/size.c \
    bench/osu/table.c \
    bench/osu/task.c \
    bench/osu/task.h \
    bench/osu/usage.c \
    r2core/base/units.c
libr2bench_la_CPPFLAGS = -I$(top_builddir) -I$(top_srcdir)/r2core -I$(top_srcdir)/r2core/include \
    $(OMPI_CPPFLAGS)
libr2bench_la_LIBADD = $(OMPI_LIBS)

# One program under several names: that of a benchmark in its own name, or as its first argument.
bench_osu_r2_allgather_SOURCES = bench/osu/main.c
bench_osu_r2_allgather_CPPFLAGS = $(libr2bench_la_CPPFLAGS)
bench_osu_r2_allgather_LDADD = libr2bench.la
bench_osu_r2_allreduce_SOURCES = bench/osu/main.c
bench_osu_r2_allreduce_CPPFLAGS = $(libr2bench_la_CPPFLAGS)
bench_osu_r2_allreduce_LDADD = libr2bench.la
bench_osu_r2_bench_SOURCES = bench/osu/main.c
bench_osu_r2_bench_CPPFLAGS = $(libr2bench_la_CPPFLAGS)
bench_osu_r2_bench_LDADD = libr2bench.la
bench_osu_r2_reduce_scatter_SOURCES = bench/osu/main.c
bench_osu_r2_reduce_scatter_CPPFLAGS = $(libr2bench_la_CPPFLAGS)
bench_osu_r2_reduce_scatter_LDADD = libr2bench.la

dist_man1_MANS += \
    bench/osu/r2_allgather.1 \
    bench/osu/r2_allreduce.1 \
    bench/osu/r2_bench.1 \
    bench/osu/r2_reduce_scatter.1

EXTRA_DIST += \
    bench/osu/latency_pair \
    bench/osu/plot_fault \
    bench/osu/plot_fault.gp \
    bench/osu/run
