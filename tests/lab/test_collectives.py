#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Random collectives of all kinds, many under way at once, in layouts of ranks on hosts: 4 x 1, 2 x 2, 1 x 4,
3 + 2 + 1, while each rail of each host goes down and up in turn: test_collectives.py [--rolling MINUTES]

Needs tests/functional/mixed of the build directory ($R2_BUILDDIR), which checks every byte.
"""

import os
import sys
import threading

sys.dont_write_bytecode = True
import labtest
from labtest import TOP, r2lab, run_all

LAB = "co%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
HOSTS, RAILS = 4, 4
MINUTES = float(sys.argv[2]) if sys.argv[1:2] == ["--rolling"] else 0
SECONDS = MINUTES * 60 / 4 if MINUTES else 5
DOWN_S, UP_S = (2, 3) if MINUTES else (0.5, 0.5)


def fault(*words):
    """r2lab fault."""
    r2lab("fault", "--name", LAB, *words)


class Rolling:
    """One rail after the other goes down and comes back until the end."""

    def __init__(self):
        self.over = threading.Event()
        self.count = 0
        self.thread = threading.Thread(target=self._roll)
        self.thread.start()

    def _roll(self):
        while not self.over.is_set():
            host, rail = self.count % HOSTS, self.count // HOSTS % RAILS
            fault("down", "h%d" % host, "rail%d" % rail)
            self.over.wait(DOWN_S)
            fault("heal", "h%d" % host, "rail%d" % rail)
            self.over.wait(UP_S)
            self.count += 1

    def end(self):
        """Stops; all rails are up. @return number of faults."""
        self.over.set()
        self.thread.join()
        return self.count


def job(seed, *where):
    """One job under rolling faults; all results must be right."""
    rolling = Rolling()
    try:
        said = r2lab("run", "--name", LAB, "--build", BUILD, "--timeout", int(SECONDS) + 90, *where,
                     "--mca", "coll", "r2", BUILD + "/tests/functional/mixed", "--seed", seed,
                     "--seconds", int(SECONDS))[0]
    finally:
        faults = rolling.end()
    assert "\n1..1" in said and "not ok" not in said, said
    assert faults > 0, "no fault came"
    print("# %d faults, %s" % (faults, said.strip().replace("\n", ", ")))


def test_4_by_1():
    """four hosts with one rank each"""
    job(1, "--ppn", 1, "-n", 4)


def test_2_by_2():
    """two hosts with two ranks each"""
    job(2, "--ppn", 2, "-n", 4)


def test_1_by_4():
    """four ranks of one host"""
    job(3, "--ppn", 4, "-n", 4)


def test_uneven():
    """three, two and one ranks"""
    hosts = ",".join("%s-h%d:%d" % (LAB, h, 3 - h) for h in range(3))
    job(4, "-n", 6, "--host", hosts, "--map-by", "slot")


def recover():
    """All rails up."""
    fault("heal", "all", "all")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    labtest.LIMIT_S = SECONDS + 95
    r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", RAILS, "--rate", "100mbit")
    return run_all([test_4_by_1, test_2_by_2, test_1_by_4, test_uneven], recover, down)


sys.exit(main())
