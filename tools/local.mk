# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Command-line tools: bin_PROGRAMS and dist_bin_SCRIPTS.

# ---- r2_info
bin_PROGRAMS += tools/r2_info
tools_r2_info_SOURCES = \
    tools/info/collect.c \
    tools/info/gpu_rates.c \
    tools/info/info.h \
    tools/info/job.c \
    tools/info/job.h \
    tools/info/json.c \
    tools/info/params_md.c \
    tools/info/pmix_file.c \
    tools/info/plan.c \
    tools/info/plan.h \
    tools/info/plan_show.c \
    tools/info/problems.c \
    tools/info/text.c \
    tools/r2_info.c
tools_r2_info_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools -I$(top_srcdir)/tools/info \
    -DR2_MCA_DIR='"$(mcadir)"' \
    -DR2_OMPI_INFO='"$(OMPI_INFO)"' -DR2_OMPI_VERSION='"$(OMPI_VERSION)"'
tools_r2_info_LDFLAGS = $(AM_LDFLAGS) $(R2_RUNPATH)
tools_r2_info_LDADD = libr2flow.la libr2core.la
dist_man1_MANS += tools/r2_info.1
EXTRA_DIST += docs/events.md docs/parameters.md
include $(top_srcdir)/tools/lab/local.mk
include $(top_srcdir)/tools/sim/local.mk
include $(top_srcdir)/tools/timeline/local.mk
include $(top_srcdir)/tools/house/local.mk
