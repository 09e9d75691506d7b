#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Point-to-point, one-sided, MPI-IO and threads over btl/r2 while rails fail

Each program checks every byte and prints a line per part; faults come and go at such lines, so that
they hit what follows. Without r2 as the transport these runs would hang: nothing else is on the
rails.
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import R2LAB, RDMA, TOP, UP_RDMA, counters, r2lab, rdma_sent, run_all

LAB = "pp%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
HOSTS, RAILS = 4, 4
PROGRAMS = {
    "p2p": ("p2p",),
    "onesided": ("onesided",),
    "io": ("io", BUILD + "/test_p2p.%d.dat" % os.getpid()),
    "threads": ("threads", "20", "4"),
}


def fault(*words):
    """r2lab fault."""
    r2lab("fault", "--name", LAB, *words)


class App:
    """A run of one of the programs; its lines are given out one by one."""

    def __init__(self, name, *words, where=("-n", "4"), coll="r2"):
        program = list(PROGRAMS[name])
        program[0] = BUILD + "/tests/functional/" + program[0]
        self.log = open(BUILD + "/test_p2p.%d.log" % os.getpid(), "w+", encoding="utf8")
        os.unlink(self.log.name)
        self.child = subprocess.Popen(
            [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", "90", *where, "--mca",
             "coll", coll, *program, *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True)

    def parts(self, count):
        """Waits for so many more parts, which have to be right. A plan line ends the run."""
        done = 0
        for line in self.child.stdout:
            assert not line.startswith("not ok"), line + self.said()
            if line.startswith("ok "):
                done += 1
            if line.startswith("1..") or done == count:
                break
        assert done == count, "%d parts, not %d\n%s" % (done, count, self.said())

    def end(self, least=1):
        """Waits for the end; at least so many parts must have been to come."""
        rest = self.child.stdout.read()
        status = self.child.wait()
        assert "not ok" not in rest and status == 0, "status %d\n%s%s" % (status, rest, self.said())
        assert rest.count("\nok ") + rest.startswith("ok ") >= least, \
            "the fault came too late\n" + rest

    def said(self):
        """Standard error so far."""
        self.log.seek(0)
        return self.log.read()


def on_mgmt(before):
    """Share of all bytes sent since that left on the management network."""
    rails = mgmt = 0
    for host, devices in counters(LAB).items():
        for device, numbers in devices.items():
            sent = numbers["tx_bytes"] - before[host][device]["tx_bytes"]
            rails, mgmt = rails + sent * (device != "mgmt0"), mgmt + sent * (device == "mgmt0")
    return mgmt / (rails + mgmt)


def test_messages():
    """messages; a rail drops silently, another goes down, both come back"""
    before, packets = counters(LAB), rdma_sent(LAB, "h0") if RDMA else 0
    app = App("p2p")
    app.parts(1)
    fault("drop", "h1", "rail2")
    app.parts(2)
    fault("down", "h0", "rail0")
    app.parts(2)
    fault("heal", "all", "all")
    app.end()
    share = on_mgmt(before)
    assert share < 0.02, "%.1f %% of the bytes were on mgmt0" % (100 * share)
    assert not RDMA or rdma_sent(LAB, "h0") > packets + 1000, packets


def test_messages_alone():
    """messages without coll/r2, three rails of a host down"""
    app = App("p2p", coll="^r2")
    app.parts(1)
    for rail in range(3):
        fault("down", "h2", "rail%d" % rail)
    app.parts(4)
    fault("heal", "all", "all")
    app.end()


def test_shared_memory():
    """messages with two ranks on each of two hosts, within a host by Open MPI's shared memory"""
    app = App("p2p", where=("--ppn", "2", "-n", "4", "--mca", "btl", "r2,vader,self",
                            "--mca", "btl_base_verbose", "1"))
    app.parts(1)
    fault("drop", "h1", "rail1")
    app.parts(2)
    fault("heal", "all", "all")
    app.end()
    used = set(re.findall(r"Using (\w+) btl for send", app.said()))
    assert used in ({"self", "r2", "vader"}, {"self", "r2", "sm"}), used


def test_one_sided():
    """one-sided with two ranks on each of two hosts; a rail drops and comes back"""
    app = App("onesided", where=("--ppn", "2", "-n", "4"))
    app.parts(1)
    fault("drop", "h1", "rail1")
    app.parts(5)
    fault("heal", "all", "all")
    app.end()


def test_one_sided_down():
    """one-sided on four hosts; a rail goes down for good"""
    app = App("onesided")
    app.parts(1)
    fault("down", "h3", "rail3")
    app.end(8)
    fault("heal", "all", "all")


def test_io():
    """MPI-IO; a rail drops and comes back"""
    app = App("io", "5")
    app.parts(1)
    fault("drop", "h2", "rail0")
    app.parts(6)
    fault("heal", "all", "all")
    app.end()


def test_threads():
    """MPI_THREAD_MULTIPLE; a rail goes down and comes back, another drops"""
    app = App("threads")
    app.parts(1)
    fault("down", "h1", "rail0")
    app.parts(1)
    fault("heal", "all", "all")
    fault("drop", "h2", "rail1")
    app.end()
    fault("heal", "all", "all")


def recover():
    """After a failed test."""
    fault("heal", "all", "all")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", RAILS, "--rate", "100mbit",
          *UP_RDMA)
    return run_all([test_messages, test_messages_alone, test_shared_memory, test_one_sided,
                    test_one_sided_down, test_io, test_threads], recover, down)


sys.exit(main())
