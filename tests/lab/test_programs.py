#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The functional programs of tests/suites.tsv on two hosts whose rails are RDMA NICs that are none:
test_programs.py [--ud | --put] [NAME...]

Taken are the suites that run-mpi starts with two ranks or more and r2 in them. Each program checks
its results itself; here NICs must have carried them. `make check-rdma` plays all.
"""

import os
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
sys.argv += [] if {"--ud", "--put"} & set(sys.argv) else ["--rdma"]
import labtest  # noqa: E402
from labtest import R2LAB, TOP, UD, UP_RDMA, r2lab, rdma_sent, run_all  # noqa: E402
from parts import BUILD  # noqa: E402

LAB = "fp%d" % os.getpid()
SETTINGS = {"OMPI_MCA_coll_r2_gpu": "ignore", "OMPI_MCA_coll_r2_tls": "ud" if UD else "rc"}
START = "$R2_SRCDIR/tests/functional/run-mpi"
LEAST = 20      # packets of a host: acknowledgements and data of one short call
MOST_S = 240    # for a program: twice what it may take where all ranks are on one host, or less
labtest.LIMIT_S = MOST_S + 20


def programs():
    """{name: (words for mpirun and the program, limit in s)} of all suites that can be played."""
    found = {}
    with open(TOP + "/tests/suites.tsv", encoding="utf8") as file:
        lines = file.read().replace("\\\n", " ").splitlines()
    for line in lines:
        if line.startswith("#"):
            continue
        name, _, command, limit_s = line.split("\t")
        first, *words = shlex.split(command)
        if first == START and words[:2] != ["-n", "1"] and ("^r2" not in words
                                                            or "r2,self" in words):
            found[name] = (words, min(2 * int(limit_s), MOST_S))
    return found


def play(words, limit_s):
    """One program; it must end well, and NICs must have carried it."""
    before = rdma_sent(LAB, "h0")
    done = subprocess.run(
        [R2LAB, "run", "--name", LAB, "--timeout", str(limit_s), *words], cwd=BUILD, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **SETTINGS})
    sent = rdma_sent(LAB, "h0") - before
    assert done.returncode == 0 and "not ok" not in done.stdout, "status %d\n%s" % (
        done.returncode, done.stdout[-3000:])
    assert sent >= LEAST, "%d packets\n%s" % (sent, done.stdout[-1000:])
    return ", %d packets" % sent


def test_of(name, words, limit_s):
    """A test that has the name of its suite."""
    def test():
        return play(words, limit_s)
    test.__doc__ = name
    return test


def main():
    """Raises the lab, runs the programs that are named, or all."""
    if os.geteuid() != 0:
        print("the lab needs root")
        return 77
    there = programs()
    names = [word for word in sys.argv[1:] if not word.startswith("-")] or list(there)
    assert names, "no suite starts run-mpi"
    r2lab("up", "--name", LAB, "--hosts", 2, "--rails", 2, "--rate", "none", *UP_RDMA)
    return run_all([test_of(name, *there[name]) for name in names], lambda: None,
                   lambda: r2lab("down", "--name", LAB))


sys.exit(main())
