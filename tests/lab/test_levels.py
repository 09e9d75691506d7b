#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Reductions in two levels on hosts of several ranks, while a rail dies and comes back.

Needs bench/osu/r2_bench of the build directory ($R2_BUILDDIR). It checks each result, and its
digest says whether sums of doubles, whose bits depend on their order, are those of a healthy job.
"""

import os
import re
import sys

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, counters, r2lab, run_all

LAB = "lv%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
HOSTS, RAILS = 4, 4
CALLS = 24
# Ranks for each host: equally many, and unequal, spread over the hosts in turn.
LAYOUTS = {
    "4x3": ("--ppn", "3", "-n", "12"),
    "in turn": ("--host", ",".join("%s-h%d:%d" % (LAB, h, n) for h, n in enumerate((3, 1, 2))),
                "--map-by", "node", "-n", "6"),
}
FAULTS = (("down", "switch"), ("drop", "host"))


def play(kind, layout, *faults):
    """{size: (digest)} of a run of calls, all of which must be right."""
    said = r2lab("run", "--name", LAB, "--build", BUILD, "--timeout", 100, *LAYOUTS[layout],
                 "--mca", "coll", "r2", BUILD + "/bench/osu/r2_bench", kind, "-m",
                 "131072,524288", "-i", CALLS, "-x", 1, "-c", "--digest", "-T", "mpi_double",
                 *faults)[0]
    assert ", 0 wrong results" in said, said
    rows = [line.split() for line in said.splitlines() if re.match(r"\d+ ", line)]
    assert len(rows) == 2, said
    return {int(row[0]): row[-1] for row in rows}


def payload(rail):
    """Bytes that left by a rail of all hosts."""
    count = counters(LAB)
    return sum(count["h%d" % h]["rail%d" % rail]["tx_bytes"] for h in range(HOSTS))


def broken(kind, layout):
    """A rail goes down, or drops silently, in the middle of the calls of each size."""
    healthy = play(kind, layout)
    for verb, at in FAULTS:
        before = payload(0)
        got = play(kind, layout, "--fault", "%d %s h1 rail2" % (CALLS // 3, verb),
                   "--fault", "%d heal h1 rail2" % (2 * CALLS // 3),
                   "--fault-cmd", "%s fault --name %s --at %s" % (R2LAB, LAB, at))
        assert got == healthy, (kind, layout, verb, got, healthy)
        assert payload(0) - before > 1 << 20
    return ""


def test_reduce():
    """reduce, 4 hosts of 3 ranks"""
    return broken("reduce", "4x3")


def test_reduce_unequal():
    """reduce, hosts of 3, 1 and 2 ranks that are not in blocks"""
    return broken("reduce", "in turn")


def test_reduce_scatter():
    """reduce_scatter, 4 hosts of 3 ranks"""
    return broken("reduce_scatter", "4x3")


def test_reduce_scatter_unequal():
    """reduce_scatter, hosts of 3, 1 and 2 ranks that are not in blocks"""
    return broken("reduce_scatter", "in turn")


def heal():
    """Undoes what a test left broken."""
    r2lab("fault", "--name", LAB, "heal", "all", "all")


def main():
    """Raises the lab, runs the tests, removes it."""
    r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", RAILS)
    return run_all([test_reduce, test_reduce_unequal, test_reduce_scatter,
                    test_reduce_scatter_unequal], heal, lambda: r2lab("down", "--name", LAB))


if __name__ == "__main__":
    sys.exit(main())
