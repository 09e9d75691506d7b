# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Public headers of r2core, installed in $(includedir)/r2.
r2include_HEADERS +=
