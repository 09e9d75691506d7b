#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""One rank computes in the middle of collectives of all kinds, with the shortest timers: nothing is
given up.

test_computing.py [MS] [--rdma | --ud | --ib]: for so long, with timers as they are
(tests/lab/computing.c).
"""

import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import R2LAB, RDMA, TOP, UP_RDMA, r2lab, rdma_sent, run_all

LAB = "cm%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
EVENTS = BUILD + "/computing.%d." % os.getpid()
HARMLESS = ("healthy", "peer_busy", "peer_silent", "slow")     # of nobody, or of rates
LONG = [word for word in sys.argv[1:] if word.isdigit()]
MS = int((LONG or ["2500"])[0])     # the job would end after 2 s without a path
TIMERS = [] if LONG else ["--mca", "coll_r2_failure_timeout_ms", "20", "--mca",
                          "coll_r2_no_path_timeout_ms", "2000", "--mca", "coll_r2_heal_min_ms",
                          "20", "--mca", "coll_r2_heal_max_ms", "200"]


def verdicts():
    """What the ranks of a job blamed."""
    blamed = []
    for name in glob.glob(EVENTS + "*"):
        with open(name, encoding="utf8") as file:
            events = [json.loads(line) for line in file]
        os.unlink(name)
        assert events, "no events in " + name
        blamed += [e for e in events if e["event"] == "verdict" and e["verdict"] not in HARMLESS]
    return blamed


def computes(ranks, *sizes):
    """One job: a line of zeros, and nothing is blamed."""
    done = subprocess.run(
        [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", str(90 + MS // 250), "-n",
         str(ranks), "--mca", "coll", "r2", *TIMERS, "--mca", "coll_r2_event_file", EVENTS + "%r",
         BUILD + "/tests/lab/computing", str(MS), *map(str, sizes)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        check=False)
    blamed = verdicts()
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert not RDMA or rdma_sent(LAB, "h0") > 100, "nothing went by RDMA"
    well = done.stdout.startswith("0 wrong, 0 lanes failed, 0 connect requests, 0 descriptors")
    assert well and not blamed, \
        "%s%s%s" % (done.stdout, done.stderr[-2000:], blamed)


def test_two():
    """two ranks, 8 bytes to 16 MiB"""
    computes(2, 8, 65536, 16 << 20)


def test_four():
    """four ranks, 8 bytes to 16 MiB"""
    computes(4, 8, 65536, 16 << 20)


def test_sixteen():
    """sixteen ranks on four hosts, 8 bytes to 1 MiB"""
    computes(16, 8, 65536, 1 << 20)


def recover():
    """Nothing is broken."""


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", 4, "--rails", 2, "--rate", "400mbit",
          *UP_RDMA)
    # Over NICs that are none sixteen ranks open lanes for longer than the limit without a path.
    return run_all([test_two, test_four, *([] if RDMA else [test_sixteen])], recover, down)


sys.exit(main())
