#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Jobs whose processes may open few files: right results; r2 says what it lacks, never aborts."""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, r2lab, run_all

LAB = "fd%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
HOSTS, RAILS = 8, 2


def job(*words):
    """Runs the program on all hosts.
    @return (open after MPI_Init, most open, limit at the end, output)"""
    done = subprocess.run(
        [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", "100", "-n", str(HOSTS),
         "--mca", "coll", "r2", BUILD + "/tests/functional/descriptors", *map(str, words)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    found = re.search(r"right results on %d ranks, (\d+) after MPI_Init, at most (\d+), limit (\d+)"
                      % HOSTS, done.stdout)
    assert done.returncode == 0 and found, \
        "limits %s, status %d:\n%s" % (words, done.returncode, done.stdout)
    return (*map(int, found.groups()), done.stdout)


def test_enough():
    """with enough; r2 takes part"""
    start, most, _, _ = job()
    test_enough.start = start
    assert most > start + HOSTS, "no lanes"
    return ", %d after MPI_Init, at most %d" % (start, most)


def test_few():
    """with enough for some lanes at one time"""
    limit = test_enough.start + 32
    _, most, _, output = job(limit, limit)
    assert most <= limit and "without r2" not in output, output
    return ", limit %d, at most %d" % (limit, most)


def test_too_few():
    """with too few for r2 (ulimit -n 50): it says so, and the job goes on without it"""
    start, _, _, output = job(50, 50)
    assert start < test_enough.start, output
    assert re.search(r"without r2: .*: of the 50 files that a process may open \(ulimit -n\) \d+ "
                     r"are free, and r2 needs \d+; .* raise the limit, hard and soft, to \d+",
                     output), output
    return ""


def test_raised():
    """with a low soft limit and a higher hard one: raised to the need"""
    _, most, limit, output = job(50, 1000)
    assert 50 < limit < 300 and most < limit and "without r2" not in output, (most, limit, output)
    return ", limit %d" % limit


def test_eaten():
    """the application takes all that is left"""
    job(300, 300, "eat")
    return ""


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", RAILS, "--rate", "none")
    return run_all([test_enough, test_few, test_too_few, test_raised, test_eaten],
                   lambda: None, down)


sys.exit(main())
