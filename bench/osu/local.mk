# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Benchmarks: MPI programs that link only with $(OMPI_LIBS).
