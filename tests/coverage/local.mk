# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# What real jobs and the simulator call of ctx/, link/ and rail/ (docs/tests.md).
EXTRA_DIST += tests/coverage/reasons.txt tests/coverage/run

# A build of its own for gcov; about ten minutes where the lab works. COVERAGE="--only compare" and
# the like: tests/coverage/run --help
COVERAGE =
check-coverage:
	$(top_srcdir)/tests/coverage/run $(abs_top_builddir)/coverage $(COVERAGE)
.PHONY: check-coverage
