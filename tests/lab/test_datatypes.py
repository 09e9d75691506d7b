#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Every collective over datatypes and operations in layouts of ranks on hosts: 4 x 1, 2 x 2, 1 x 4,
and 3 + 2 + 1 ranks. With --long, all groups of calls in their long form.

Needs tests/functional/datatypes of the build directory ($R2_BUILDDIR).
"""

import os
import sys

sys.dont_write_bytecode = True
from labtest import TOP, r2lab, run_all

LAB = "dt%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
LONG = "--long" in sys.argv[1:]
QUICK = ("predefined", "movement", "user", "empty", "inflight", "comms", "freed", "threads")


def job(*where):
    """One job; every group must pass on all ranks."""
    what = ("--long", "--threads") if LONG else ("--threads",) + QUICK
    said = r2lab("run", "--name", LAB, "--build", BUILD, "--timeout", 3000 if LONG else 100, *where,
                 "--mca", "coll", "r2", BUILD + "/tests/functional/datatypes", *what)[0]
    assert "\n1.." in said and "not ok" not in said, said


def test_4_by_1():
    """four hosts with one rank each"""
    job("--ppn", 1, "-n", 4)


def test_2_by_2():
    """two hosts with two ranks each"""
    job("--ppn", 2, "-n", 4)


def test_1_by_4():
    """four ranks of one host"""
    job("--ppn", 4, "-n", 4)


def test_uneven():
    """three, two and one ranks"""
    hosts = ",".join("%s-h%d:%d" % (LAB, h, 3 - h) for h in range(3))
    job("-n", 6, "--host", hosts, "--map-by", "slot")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", 4, "--rails", 4, "--rate", "100mbit")
    return run_all([test_4_by_1, test_2_by_2, test_1_by_4, test_uneven], lambda: None, down)


sys.exit(main())
