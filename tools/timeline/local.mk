# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# r2_timeline: a script, the Python package beside it, and its manual page.
dist_bin_SCRIPTS += tools/timeline/r2_timeline
timelinekitdir = $(datadir)/r2/timelinekit
dist_timelinekit_DATA = \
    tools/timeline/timelinekit/__init__.py \
    tools/timeline/timelinekit/simulation.py

# Beside r2_info and r2_sim, which look there for who draws.
noinst_SCRIPTS = tools/r2_timeline
tools/r2_timeline: $(top_srcdir)/tools/timeline/r2_timeline
	$(AM_V_GEN)$(MKDIR_P) tools && ln -sf $(abs_top_srcdir)/tools/timeline/r2_timeline $@
CLEANFILES += tools/r2_timeline

# The pictures of docs/ that a program draws: make pictures (quickstart.png: quickstart)
pictures: architecture-picture tools/r2_sim$(EXEEXT) tools/r2_timeline
	tools/r2_sim --hosts 64 --rails 8 --failures 1..10 --draws 1000 --seed 1 \
	    --plot $(top_srcdir)/docs/simulation.svg
.PHONY: pictures
dist_man1_MANS += tools/timeline/r2_timeline.1
EXTRA_DIST += \
    tests/functional/r2_timeline \
    tests/golden/events/h0.json \
    tests/golden/events/h1.json \
    tests/golden/events/h2.json
