#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""All 66 forms of collectives on memory of GPUs (the stand-in of tests/fakecuda): every two values
of form, place, kinds that are mixed, kind of memory, type, operation, class of datatype, length,
layout of the job, who moves it (TCP and the driver, or NICs by RDMA) and fault meet in a call. All
bytes are those of a call on the host's memory, and the driver is used well: no touch by the CPU, no
missing wait, no other mistake.

Needs tests/functional/gpu_cover of the build directory ($R2_BUILDDIR). --seed N: other calls.
--drawn N: so many calls, drawn at random, in jobs of 12, with more types and operations, and rails
that break and heal between any two calls (make check-gpu-campaign).
"""

import os
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, follow, r2lab, run_all
from pairwise import all_pairs, cover, pairs_of

LAB = "gc%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")


def option(name, usual):
    """The number behind a word of the command line."""
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else usual


SEED = option("--seed", 1)
DRAWN = option("--drawn", 0)
FORMS = ("allgather allgatherv allreduce alltoall alltoallv alltoallw barrier bcast exscan gather "
         "gatherv reduce reduce_scatter reduce_scatter_block scan scatter scatterv "
         "neighbor_allgather neighbor_allgatherv neighbor_alltoall neighbor_alltoallv "
         "neighbor_alltoallw").split()
AXES = {
    "form": [f + " " + way for f in FORMS for way in ("blocking", "nonblocking", "persistent")],
    "place": ["apart", "in-place"],
    "mixed": ["all-gpus", "receive-on-host", "send-on-host", "odd-on-host"],
    "kind": ["device", "managed", "pool", "chunks", "pinned", "registered"],
    "type": ["int", "double", "float", "byte"],
    "op": ["sum", "prod", "max", "user"],
    "class": ["plain", "vector", "indexed", "spaced"],
    "length": ["5", "2500"],
    "layout": ["1", "2", "4"],          # ranks on each host, of four
    "nics": ["tcp", "rdma"],            # which read and write memory of GPUs
    "fault": ["none", "down", "drop", "slow"],
}
# Long ones are of so many elements, so that NICs put plain ones.
LONG = {"plain": "20000", "spaced": "6000", "vector": "4000", "indexed": "2500"}
# Drawn calls: what NICs read and write is contiguous memory of devices, so there is more of that.
MORE = {"type": ["int", "double", "float", "byte", "short", "long"],
        "op": ["sum", "prod", "max", "min", "user"],
        "kind": ["device"] * 4 + AXES["kind"],
        "class": ["plain"] * 2 + AXES["class"],
        "length": ["5", "2500", "long"]}
ORDER = ("form", "place", "mixed", "kind", "type", "op", "class", "length")
FAULTS = {"none": (), "down": ("down", "h0", "rail1"), "drop": ("drop", "h0", "rail0"),
          "slow": ("rate=50mbit", "h0", "rail0")}
CALLS_OF_JOB, CALLS_MAX = 12, 20     # drawn; of the covering
FEW_CALLS = 120     # of fewer that are drawn none may be for NICs, or for a kernel
# Messages that NICs put to GPUs, with each fault: beyond all pairs, since that takes five values.
PUT = [{"form": form, "place": "apart", "mixed": "all-gpus", "kind": "device", "type": "double",
        "op": "sum", "class": "plain", "length": "long", "layout": "1", "nics": "rdma",
        "fault": fault}
       for form in ("alltoall blocking", "bcast nonblocking", "allgather persistent")
       for fault in AXES["fault"]]
ROWS = [] if DRAWN else cover(AXES, SEED) + PUT
NICS = {"tcp": ("coll_r2_tls", "tcp"), "rdma": ("coll_r2_put", "1")}
TOTALS = [0, 0, 0, 0, 0, 0]   # calls, copies, launches, jobs, messages that NICs read, bytes put


def line_of(row):
    """A call, as the program reads it."""
    length = LONG[row["class"]] if row["length"] == "long" else row["length"]
    return " ".join([*(row[axis] for axis in ORDER[:-1]), length]) + "\n"


def job(rows, layout, nics, faults):
    """One job with these calls. faults: with which of them, from 1 on, does what come."""
    with tempfile.NamedTemporaryFile("w", suffix=".cases") as cases:
        cases.writelines(map(line_of, rows))
        cases.flush()
        os.chmod(cases.name, 0o644)
        child = subprocess.Popen(
            [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", "160", "--ppn", layout,
             "-n", "4", "-x", "LD_LIBRARY_PATH=" + BUILD + "/tests/fakecuda/.libs",
             "-x", "FAKECUDA_KERNELS=" + BUILD + "/tests/doubles/.libs/kernels_c.so",
             "-x", "FAKECUDA_DEVICES=2", "-x", "FAKECUDA_DELAY_US=30",
             "-x", "FAKECUDA_SEED=%d" % SEED, "-x", "SOFTVERBS_PEER_MEMORY=1",
             "--mca", *NICS[nics], "--mca", "coll_r2_gpu_nic_bytes", "4096",
             "--mca", "coll", "r2", "--mca", "coll_r2_gpu", "auto",
             "--mca", "coll_r2_gpu_reduce_bytes", "256",
             "--mca", "coll_r2_gpu_ipc_bytes", "16384",
             BUILD + "/tests/functional/gpu_cover", cases.name],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said, _ = follow(child, LAB, "case ", faults)
        assert child.wait() == 0, said
    r2lab("fault", "--name", LAB, "heal", "all", "all")
    ends = re.findall(r"rank \d: (\d+) cases, (\d+) wrong, (\d+) mistakes, (\d+) touches, "
                      r"(\d+) copies, (\d+) launches", said)
    assert len(ends) == 4 and "MISTAKE" not in said, said
    for count, wrong, mistakes, touches, copies, launches in ends:
        assert int(count) == len(rows) and wrong == mistakes == touches == "0", said
        TOTALS[1] += int(copies)
        TOTALS[2] += int(launches)
    counts = re.findall(r"# rank \d: (\d+) messages for NICs to read, (\d+) bytes put", said)
    assert len(counts) == 4 and (nics == "rdma" or set(counts) == {("0", "0")}), said
    for messages, placed in counts:
        TOTALS[4] += int(messages)
        TOTALS[5] += int(placed)
    TOTALS[0] += len(rows)
    TOTALS[3] += 1


def test_pairs():
    """every pair is in a call"""
    met = set().union(*(pairs_of(row) for row in ROWS))
    assert met >= all_pairs(AXES) and len(AXES["form"]) == 66
    print("# seed %d: %d calls, %d pairs" % (SEED, len(ROWS), len(met)))


def tests_of(layout, nics, fault):
    """Tests of calls of the covering, each of a job."""
    rows = [row for row in ROWS
            if (row["layout"], row["nics"], row["fault"]) == (layout, nics, fault)]
    jobs = -(-len(rows) // CALLS_MAX)
    return [test_of(rows[number::jobs], layout, nics, fault) for number in range(jobs)]


def test_of(rows, layout, nics, fault):
    """The test of a job."""
    when = min(5, (len(rows) + 1) // 2)  # with which call it comes

    def test():
        job(rows, layout, nics, ((when, *FAULTS[fault]),) if FAULTS[fault] else ())

    test.__name__ = "ppn%s_%s_%s" % (layout, nics, fault)
    test.__doc__ = "%s ranks on each host, %s, fault: %s: %d calls" % (layout, nics, fault,
                                                                        len(rows))
    return test


def drawn_faults(draw, calls):
    """What breaks and heals during a job of so many calls: one to three faults, each on a rail of
    any host; before a second one on another rail all heals, so that hosts have a rail in common."""
    faults, at = [], draw.randrange(1, 6)
    while at <= calls and len(faults) < 6:
        what = draw.choice(["down", "drop", "rate=50mbit", "loss=2%"])
        faults.append((at, what, "h%d" % draw.randrange(4), "rail%d" % draw.randrange(2)))
        at += draw.randrange(1, 6)
        faults.append((at, "heal", "all", "all"))
        at += draw.randrange(1, 4)
    return faults


def drawn_test(number):
    """A job of the campaign, of a seed of its own."""
    draw = random.Random("%d.%d" % (SEED, number))
    axes = AXES | MORE
    rows = [{name: draw.choice(values) for name, values in axes.items()}
            for _ in range(min(CALLS_OF_JOB, DRAWN - number * CALLS_OF_JOB))]
    nics = axes["nics"][(number + 1) % 2]
    layout = draw.choice(axes["layout"] if nics == "tcp" else ["1", "2"])   # NICs are between hosts
    faults = drawn_faults(draw, len(rows))
    ROWS.extend(rows)

    def test():
        job(rows, layout, nics, faults)

    test.__name__ = "drawn_%d_%d" % (SEED, number)
    test.__doc__ = "%s ranks on each host, %s, %d calls, %s" % (
        layout, nics, len(rows), ", ".join("%d: %s" % (f[0], " ".join(f[1:])) for f in faults))
    return test


def test_totals():
    """all calls were made, with copies and launches, and by NICs"""
    calls, copies, launches, jobs, messages, placed = TOTALS
    print("# %d calls in %d jobs, %d copies, %d launches, %d messages read by NICs, %d bytes put" %
          (calls, jobs, copies, launches, messages, placed))
    assert calls == len(ROWS) and copies > 0
    if DRAWN in range(1, FEW_CALLS):
        return
    assert messages > 0 and placed > 0
    assert launches > 0 or not os.path.exists(BUILD + "/r2core/mem/kernels.ptx")


def heal():
    """All rails as new."""
    r2lab("fault", "--name", LAB, "heal", "all", "all")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", 4, "--rails", 2, "--rate", "400mbit", "--rdma")
    if DRAWN:
        jobs = [drawn_test(n) for n in range((DRAWN + CALLS_OF_JOB - 1) // CALLS_OF_JOB)]
        return run_all([*jobs, test_totals], heal, down)
    jobs = [test for layout in AXES["layout"] for nics in AXES["nics"] for fault in AXES["fault"]
            for test in tests_of(layout, nics, fault)]
    return run_all([test_pairs, *jobs, test_totals], heal, down)


if __name__ == "__main__":
    sys.exit(main())
