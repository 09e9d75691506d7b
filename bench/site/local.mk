# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# r2_site: a script, the Python package beside it, and its manual page.
dist_bin_SCRIPTS += bench/site/r2_site
dist_man1_MANS += bench/site/r2_site.1

sitekitdir = $(datadir)/r2/sitekit
dist_sitekit_DATA = \
    bench/site/sitekit/__init__.py \
    bench/site/sitekit/cli.py \
    bench/site/sitekit/failover.py \
    bench/site/sitekit/gpu.py \
    bench/site/sitekit/jobs.py \
    bench/site/sitekit/look.py \
    bench/site/sitekit/measure.py \
    bench/site/sitekit/output.py \
    bench/site/sitekit/report.py

EXTRA_DIST += tests/lab/test_site.py
