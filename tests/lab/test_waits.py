#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Who waits lets others have the processor where ranks share it, or the user wants so, and not
where each has one: whoever else works on the host would keep it for milliseconds."""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, Skip, r2lab, run_all

LAB = "wt%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
CORES = os.cpu_count() or 1
CORES_MAX = 16
ROUNDS = 50


def yields(ranks, *words):
    """How often rank 0 of a job on two hosts yielded, with settings."""
    out = subprocess.run(
        [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", "60", "--ppn",
         str((ranks + 1) // 2), "-n", str(ranks), "--mca", "coll", "r2", *words,
         "--mca", "coll_r2_spin_us", "500", BUILD + "/tests/functional/yields", str(ROUNDS)],
        capture_output=True, text=True, check=False)
    assert out.returncode == 0 and "gave" not in out.stdout, out.stdout + out.stderr
    return int(re.search(r"yields (\d+)", out.stdout).group(1))


def test_with_a_core_each():
    """ranks that have a core each keep it"""
    if CORES < 2:
        raise Skip("one core")
    # for the service thread they do, often where that waits for a core itself
    count = min(yields(2, "--mca", "mpi_yield_when_idle", "0") for _ in range(3))
    assert count < ROUNDS, "%d yields" % count
    return ", %d yields" % count


def test_as_the_user_says():
    """they yield if Open MPI is told so"""
    count = max(yields(2, "--mca", "mpi_yield_when_idle", "1") for _ in range(3))
    assert count > 2 * ROUNDS, "%d yields" % count
    return ", %d yields" % count


def test_where_ranks_share_cores():
    """more ranks than cores on a host yield, whatever Open MPI is told"""
    if CORES > CORES_MAX:
        raise Skip("%d cores would need %d ranks" % (CORES, 2 * CORES + 2))
    count = max(yields(2 * CORES + 2, "--mca", "mpi_yield_when_idle", "0") for _ in range(2))
    assert count > ROUNDS, "%d yields" % count
    return ", %d yields" % count


def main():
    """Raises the lab and runs all tests."""
    if os.geteuid() != 0:
        print("tests on the lab need root")
        return 77
    r2lab("up", "--name", LAB, "--hosts", "2", "--rails", "2", "--rate", "none")
    return run_all([test_with_a_core_each, test_as_the_user_says, test_where_ranks_share_cores],
                   lambda: None, lambda: r2lab("down", "--name", LAB))


if __name__ == "__main__":
    sys.exit(main())
