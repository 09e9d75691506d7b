# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# r2_timeline: a script and its manual page.
dist_bin_SCRIPTS += tools/timeline/r2_timeline
dist_man1_MANS += tools/timeline/r2_timeline.1
EXTRA_DIST += \
    tests/functional/r2_timeline \
    tests/golden/events/h0.json \
    tests/golden/events/h1.json \
    tests/golden/events/h2.json
