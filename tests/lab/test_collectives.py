#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Random collectives of all kinds, many under way at once, in layouts of ranks on hosts: 4 x 1, 2 x
2, 1 x 4, 3 + 2 + 1, while each rail of each host goes down and up in turn. `make check-rolling`
does so for longer. And who runs which communicators.

Needs tests/functional/mixed and by_host of the build directory ($R2_BUILDDIR), which check every
byte.
"""

import os
import sys

sys.dont_write_bytecode = True
import rolling
from labtest import r2lab, run_all

LAB = "co%d" % os.getpid()
SECONDS = 5


def job(seed, layout, stack):
    """One job under rolling faults; all results must be right."""
    roller = rolling.Rolling(LAB, 0.5, 0.5)
    try:
        wrong = rolling.job(rolling.command(LAB, rolling.layouts(LAB)[layout], stack, "mixed",
                                            "--seed", seed, "--seconds", SECONDS))
    finally:
        faults = roller.end()
    assert not wrong, wrong
    assert faults > 0, "no fault came"
    return ", %d faults" % faults


def test_4_by_1():
    """four hosts with one rank each"""
    return job(1, "4x1", rolling.ALL)


def test_2_by_2():
    """two hosts with two ranks each"""
    return job(2, "2x2", rolling.COLL)


def test_1_by_4():
    """four ranks of one host"""
    return job(3, "1x4", rolling.ALL)


def test_uneven():
    """three, two and one ranks"""
    return job(4, "3+2+1", rolling.COLL)


def by_host(layout, param, *runs):
    """One job of by_host: who runs communicators of several hosts, who those of one."""
    words = rolling.command(LAB, rolling.layouts(LAB)[layout], rolling.COLL, "by_host", *runs)
    wrong = rolling.job(["env", "OMPI_MCA_coll_r2_single_host=" + param, *words])
    assert not wrong, wrong


def test_left_2_by_2():
    """two hosts with two ranks: communicators on one host are Open MPI's, others r2's"""
    by_host("2x2", "stock", "r2", "stock")


def test_left_uneven():
    """the same, three, two and one ranks"""
    by_host("3+2+1", "stock", "r2", "stock")


def test_not_left():
    """two hosts with two ranks: all are r2's where that is wanted"""
    by_host("2x2", "r2", "r2", "r2")


def recover():
    """All rails up."""
    r2lab("fault", "--name", LAB, "heal", "all", "all")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", rolling.HOSTS, "--rails", rolling.RAILS, "--rate",
          "100mbit")
    return run_all([test_4_by_1, test_2_by_2, test_1_by_4, test_uneven,
                     test_left_2_by_2, test_left_uneven, test_not_left], recover, down)


sys.exit(main())
