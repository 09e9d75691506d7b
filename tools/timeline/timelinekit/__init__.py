# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What r2_timeline consists of."""
