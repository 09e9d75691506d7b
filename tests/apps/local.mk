# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Real applications, and mpi4py's own tests, over r2 (docs/tests.md).
EXTRA_DIST += \
    tests/apps/apps.py \
    tests/apps/hpcc.in \
    tests/apps/lammps.in \
    tests/apps/pw.in \
    tests/apps/test_apps.py \
    tests/apps/test_mpi4py.py

# Applications of Debian on the lab, healthy and with rails that die: make check-apps [APPS="hpcc
# lammps"]
check-apps: all
	$(top_srcdir)/tools/deps.sh lab apps
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/apps/test_apps.py $(APPS)

# mpi4py's own tests: make check-mpi4py SRC=dir [LAYOUTS="1 2 3 4 5 lab"]; dir: its source, as old
# as the package
check-mpi4py: all
	$(top_srcdir)/tools/deps.sh lab examples
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/apps/test_mpi4py.py "$(SRC)" $(LAYOUTS)
.PHONY: check-apps check-mpi4py
