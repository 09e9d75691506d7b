# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Flow simulation: a pure library for r2_sim, r2_info and tests, and the program r2_sim.
noinst_LTLIBRARIES += libr2flow.la
libr2flow_la_SOURCES = \
    tools/sim/draw.c \
    tools/sim/draw.h \
    tools/sim/draws.c \
    tools/sim/draws.h \
    tools/sim/events.c \
    tools/sim/events.h \
    tools/sim/fair.c \
    tools/sim/fair.h \
    tools/sim/flow.c \
    tools/sim/flow.h \
    tools/sim/graph.c \
    tools/sim/graph.h \
    tools/sim/picture.c \
    tools/sim/picture.h \
    tools/sim/predict.c \
    tools/sim/predict.h \
    tools/sim/real.c \
    tools/sim/real.h \
    tools/sim/rings.c \
    tools/sim/rings.h \
    tools/sim/streams.c \
    tools/sim/streams.h \
    tools/topology.c \
    tools/topology.h \
    tools/topology_text.c
libr2flow_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools
libr2flow_la_LIBADD = libr2plan.la -lm

bin_PROGRAMS += tools/r2_sim
tools_r2_sim_SOURCES = \
    tools/r2_sim.c \
    tools/sim/report.c \
    tools/sim/report.h
tools_r2_sim_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools
tools_r2_sim_LDFLAGS = $(AM_LDFLAGS) $(R2_RUNPATH)
tools_r2_sim_LDADD = libr2flow.la libr2core.la
dist_man1_MANS += tools/r2_sim.1
