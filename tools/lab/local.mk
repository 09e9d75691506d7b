# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# r2lab: a script, the Python package beside it, and its manual page.
dist_bin_SCRIPTS += tools/lab/r2lab
dist_man1_MANS += tools/lab/r2lab.1

labkitdir = $(datadir)/r2/labkit
dist_labkit_SCRIPTS = tools/lab/labkit/enter tools/lab/labkit/inroot
dist_labkit_DATA = \
    tools/lab/labkit/__init__.py \
    tools/lab/labkit/build.py \
    tools/lab/labkit/cli.py \
    tools/lab/labkit/fault.py \
    tools/lab/labkit/lab.py \
    tools/lab/labkit/launch.py \
    tools/lab/labkit/mpich.py \
    tools/lab/labkit/net.py \
    tools/lab/labkit/openmpi.py \
    tools/lab/labkit/rdma.py \
    tools/lab/labkit/report.py \
    tools/lab/labkit/run.py \
    tools/lab/labkit/slurm.py \
    tools/lab/labkit/spawn.py \
    tools/lab/labkit/sweep.py

EXTRA_DIST += \
    docs/lab.md \
    tests/lab/allreduce.c \
    tests/lab/labtest.py \
    tests/lab/test_r2lab.py \
    tests/lab/test_r2lab_run.py

# The byte code that Python leaves beside the modules when root runs the installed r2lab.
uninstall-local:
	rm -rf $(DESTDIR)$(labkitdir)/__pycache__
