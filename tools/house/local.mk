# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Tools that look at the sources: who includes and calls whom. Not installed.
EXTRA_DIST += \
    docs/architecture.dot \
    docs/architecture.svg \
    docs/history/house-before.md \
    tools/check-layers \
    tools/check-text \
    tools/format \
    tools/house/circles.py \
    tools/house-count \
    tools/house/source.py \
    tools/house/words.txt \
    tools/layers.txt
EXTRA_DIST += tools/house/behaviour

# What a change that only moves or renames code must leave as it was, recorded before and compared
# after it: make record-behaviour OUT=FILE; make compare-behaviour BEFORE=FILE AFTER=FILE
BEHAVIOUR_OPTIONS =
record-behaviour: check-programs
	$(top_srcdir)/tools/house/behaviour record $(abs_top_builddir) $(OUT) $(BEHAVIOUR_OPTIONS)
compare-behaviour:
	$(top_srcdir)/tools/house/behaviour compare $(BEFORE) $(AFTER)
.PHONY: record-behaviour compare-behaviour

# The picture of the layers, from tools/layers.txt (graphviz: tools/deps.sh analysis)
architecture-picture:
	$(top_srcdir)/tools/check-layers --dot > $(top_srcdir)/docs/architecture.dot
	dot -Tsvg $(top_srcdir)/docs/architecture.dot > $(top_srcdir)/docs/architecture.svg
.PHONY: architecture-picture
