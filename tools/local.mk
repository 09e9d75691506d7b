# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Command-line tools: bin_PROGRAMS and dist_bin_SCRIPTS.
