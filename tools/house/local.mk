# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Tools that look at the sources: who includes and calls whom. Not installed.
EXTRA_DIST += \
    docs/history/house-before.md \
    tools/check-layers \
    tools/house/circles.py \
    tools/house-count \
    tools/house/source.py \
    tools/house/words.txt \
    tools/layers.txt
