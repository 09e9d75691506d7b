#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What a job says about its rails at the default level: one line for a change, whatever the
ranks."""

import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, r2lab, run_all, until

LAB = "lg%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
PROGRAM = BUILD + "/" + LAB + "-allreduce"
PER_HOST = 4
LINE = re.compile(r"r2 (\S+):(\d+): (warning|error): (.*)")


class Job:
    """Allreduces of ranks on two hosts, until it is ended; keeps what it says."""

    def __init__(self, *words):
        self.path = PROGRAM + ".out"
        with open(self.path, "w", encoding="utf-8") as out:
            self.child = subprocess.Popen(
                [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", "120", "--ppn",
                 str(PER_HOST), "-n", str(2 * PER_HOST), "--mca", "coll", "r2", *words,
                 PROGRAM, "20000", "1000000"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

    def said(self):
        """All so far."""
        with open(self.path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def lines(self):
        """What r2 said, as (host, rank, level, text)."""
        return LINE.findall(self.said())

    def rounds(self):
        """Iterations so far."""
        done = re.findall(r"^iteration (\d+) done", self.said(), re.M)
        return int(done[-1]) if done else 0

    def goes_on(self, count=50):
        """Waits for some more iterations."""
        start = self.rounds()
        assert self.child.poll() is None, self.said()
        assert until(lambda: self.rounds() >= start + count, 40), self.said()[-2000:]

    def end(self):
        """Ends it."""
        self.child.terminate()
        self.child.wait(30)
        os.unlink(self.path)


def with_job(test, *words):
    """Runs a test on a job."""
    job = Job(*words)
    try:
        job.goes_on()
        return test(job)
    finally:
        job.end()


def flap(job):
    """A rail loses its carrier, and gets it back."""
    r2lab("fault", "down", "h1", "rail1", "--name", LAB)
    job.goes_on()
    until(lambda: "is dead (NIC, cable or switch port)" in job.said(), 10)
    r2lab("fault", "heal", "h1", "rail1", "--name", LAB)
    until(lambda: "is back after" in job.said(), 20)
    job.goes_on()


def test_one_flap():
    """a carrier is lost and found: two lines, of the first rank of its host"""
    def test(job):
        flap(job)
        lines = job.lines()
        assert len(lines) == 2, "%d lines:\n%s" % (len(lines), "\n".join(map(str, lines)))
        assert all(host.endswith("h1") for host, _, _, _ in lines), lines
        assert len({rank for _, rank, _, _ in lines}) == 1, lines
        assert re.fullmatch(r"rail1 of \S*h1 is dead \(NIC, cable or switch port\); the job goes "
                            r"on with 3 of 4 rails; since \d\d:\d\d:\d\d", lines[0][3]), lines
        assert re.fullmatch(r"rail1 of \S*h1 is back after \d+\.\d s; 4 of 4 rails work",
                            lines[1][3]), lines
        return ", %d lines" % len(lines)
    return with_job(test)


def test_ten_flaps():
    """ten times: two lines, and one for each interval"""
    def test(job):
        start = time.monotonic()
        for _ in range(10):
            r2lab("fault", "down", "h1", "rail1", "--name", LAB)
            job.goes_on(5)
            r2lab("fault", "heal", "h1", "rail1", "--name", LAB)
            job.goes_on(5)
        until(lambda: "it is well now" in job.said(), 30)
        most = 2 + 1 + (time.monotonic() - start) / 10
        lines = job.lines()
        assert 0 < len(lines) <= most, "%d lines:\n%s" % (len(lines), "\n".join(map(str, lines)))
        return ", %d lines" % len(lines)
    return with_job(test)


def test_drop():
    """a rail drops silently: who finds it out differs, one speaks"""
    def test(job):
        r2lab("fault", "drop", "h0", "rail2", "--name", LAB)
        assert until(lambda: re.search(r"rail2 .*(is dead|does not pass)", job.said()), 20)
        job.goes_on()
        lines = job.lines()
        assert len(lines) == 1, "%d lines:\n%s" % (len(lines), "\n".join(map(str, lines)))
        return ", %d line" % len(lines)
    return with_job(test)


def heal():
    """All rails work."""
    for host in ("h0", "h1"):
        for rail in range(4):
            r2lab("fault", "heal", host, "rail%d" % rail, "--name", LAB)


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)
    os.unlink(PROGRAM)


def main():
    """Raises the lab and runs all tests, or those that are named."""
    if os.geteuid() != 0:
        print("tests on the lab need root")
        return 77
    names = sys.argv[1:]
    tests = [test for name, test in globals().items()
             if name.startswith("test_") and (not names or name[5:] in names)]
    subprocess.run(["mpicc", "-O2", "-o", PROGRAM, TOP + "/tests/lab/allreduce.c"], check=True)
    r2lab("up", "--name", LAB, "--hosts", "2", "--rails", "4")
    return run_all(tests, heal, down)


if __name__ == "__main__":
    sys.exit(main())
