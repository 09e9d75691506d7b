# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# MPI programs of our own, run under mpirun by tests/suites.tsv.
