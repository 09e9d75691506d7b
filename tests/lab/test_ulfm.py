#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Processes die under mpirun --with-ft ulfm (Open MPI 5.0) on a lab of 4 hosts with 4 rails, and
the others go on without them: tests/functional/ulfm in all its cases.

Each survivor has to have the error within a second, and to reduce exactly, on r2, on what is left.
--long: every kind of collective, and more of everything. --stock: without r2, to compare with.
"""

import os
import re
import shutil
import statistics
import sys

sys.dont_write_bytecode = True
from evidence import Hung
from labtest import Skip, r2lab, run_all
from ulfmlab import CALLS, HOSTS, LAB, STARVED, UNHEARD, DownRail, play, raise_lab

LONG = "--long" in sys.argv
STAND_S = 8     # by then all ranks of the job that stands still are in their first call


def plays(case, calls, sizes=(HOSTS,), under=()):
    """Jobs of one case; returns a note."""
    times = []
    jobs = [(call, ranks) for ranks in sizes for call in calls]
    for call, ranks in jobs:
        times += play(case, call, ranks, under)
    return ", %d jobs, error after %.0f ms (median), %.0f ms (longest)" % (
        len(jobs), statistics.median(times), max(times))


def test_in():
    """a rank dies while a collective is under way (long: each kind)"""
    return plays("in", CALLS if LONG else ("allreduce", "bcast"))


def test_before():
    """a rank dies before it enters the collective"""
    return plays("before", CALLS if LONG else ("barrier",))


def test_after():
    """a rank dies after the collective"""
    return plays("after", CALLS if LONG else ("persistent",))


def test_two():
    """two ranks die at once"""
    return plays("two", CALLS[::3] if LONG else ("allgather",))


def test_shrink():
    """a rank dies, and another while the rest shrink"""
    return plays("shrink", CALLS[1::3] if LONG else ("iallreduce",))


def test_agree():
    """a rank dies, and another while the rest agree"""
    return plays("agree", CALLS[2::3] if LONG else ("alltoall",))


def test_root():
    """a rank dies, and rank 0, through whom Open MPI agrees, while the rest agree"""
    return plays("root", CALLS[2::3] if LONG else ("allreduce",), (HOSTS, 12))


def test_revoke():
    """nobody dies: MPIX_Comm_revoke ends calls of all, blocking, nonblocking and persistent"""
    return plays("revoke", CALLS if LONG else ("allreduce", "iallreduce", "persistent"))


def test_many():
    """8 and 12 ranks (long: 16, too), several on each host"""
    return plays("in", ("allreduce", "alltoall", "barrier") if LONG else ("reduce_scatter",),
                 (8, 12, 16) if LONG else (8, 12))


def test_dead_rail():
    """a rank dies while a rail of another host is down"""
    with DownRail("h1", "rail0"):
        return plays("in", CALLS[::4] if LONG else ("allreduce",))


def test_unheard():
    """the launcher's word of a death never comes: r2 tells Open MPI itself"""
    return plays("in", CALLS[::4] if LONG else ("allreduce", "ialltoall"), (4, 8), UNHEARD)


def test_absent():
    """nor does it, and rank 0, to whom nobody has anything left to send, dies before it agrees"""
    return plays("absent", CALLS[2::3] if LONG else ("allreduce",), (4, 8), UNHEARD)


def test_first():
    """nor does it, rank 0 dies before it agrees, and it is the first to die"""
    return plays("first", CALLS[2::3] if LONG else ("allreduce",), (4, 8), UNHEARD)


def test_starved():
    """nor does it, and who waits for it is not scheduled: the error comes with r2's word"""
    return plays("in", CALLS[::4] if LONG else ("allreduce", "ialltoall"), (4,), STARVED)


def test_evidence():
    """of a job that stands still all ranks' stacks, and what r2 knows, are kept, and are named"""
    if shutil.which("gdb") is None:
        raise Skip("there is no gdb")
    try:
        play("stand", "barrier", limit_s=STAND_S)
    except Hung as error:
        folder = re.search("evidence in (.*)", str(error)).group(1)
    else:
        raise AssertionError("a job one of whose ranks never comes has ended within %d s" % STAND_S)
    kept = {}
    for name in os.listdir(folder):
        with open(folder + "/" + name, encoding="utf-8", errors="replace") as file:
            kept[name.partition(".")[0]] = file.read()
    for rank in range(HOSTS):
        text = kept["rank%d" % rank]
        assert text.count('"the first call"') == 2, "rank %d: no step\n%s" % (rank, text)
        assert text.count(" main (argc") == 2, "rank %d: no stacks\n%s" % (rank, text)
        assert "core = {" in text and "that is all of r2" in text, "rank %d\n%s" % (rank, text)
        assert ("PMPI_Barrier" in text) == (rank > 0), text
        assert rank == 0 or "call: {" in text, "rank %d: no call of r2's\n%s" % (rank, text)
    assert kept["events"] and any("prte" in name for name in kept), sorted(kept)
    shutil.rmtree(folder)


def main():
    """Raises the lab, runs all tests, or those that are named."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    tests = [test_in, test_before, test_after, test_two, test_shrink, test_agree, test_root,
             test_revoke, test_many, test_dead_rail, test_unheard, test_absent, test_first,
             test_starved, test_evidence]
    tests = [globals()["test_" + name] for name in names] or tests
    why_not = raise_lab()
    if why_not:
        print(why_not)
        return 77
    return run_all(tests, lambda: None, lambda: r2lab("down", "--name", LAB))


if __name__ == "__main__":
    sys.exit(main())
