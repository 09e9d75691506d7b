# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Tests on the virtual-time simulator: same form as in tests/unit/local.mk.
