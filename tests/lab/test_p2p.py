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
import sys

sys.dont_write_bytecode = True
from labtest import RDMA, UP_RDMA, counters, r2lab, rdma_sent, run_all
from parts import BUILD, App, on_mgmt

LAB = "pp%d" % os.getpid()
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


def play(name, *words, coll="r2", **options):
    """A run of one of the programs."""
    return App(LAB, *PROGRAMS[name], *words, mca=("coll", coll), **options)


def test_messages():
    """messages; a rail drops silently, another goes down, both come back"""
    before, packets = counters(LAB), rdma_sent(LAB, "h0") if RDMA else 0
    app = play("p2p")
    app.parts(1)
    fault("drop", "h1", "rail2")
    app.parts(2)
    fault("down", "h0", "rail0")
    app.parts(2)
    fault("heal", "all", "all")
    app.end()
    share = on_mgmt(LAB, before)
    assert share < 0.02, "%.1f %% of the bytes were on mgmt0" % (100 * share)
    assert not RDMA or rdma_sent(LAB, "h0") > packets + 1000, packets


def test_messages_alone():
    """messages without coll/r2, three rails of a host down"""
    app = play("p2p", coll="^r2")
    app.parts(1)
    for rail in range(3):
        fault("down", "h2", "rail%d" % rail)
    app.parts(4)
    fault("heal", "all", "all")
    app.end()


def test_shared_memory():
    """messages with two ranks on each of two hosts, within a host by Open MPI's shared memory"""
    app = play("p2p", where=("--ppn", "2", "-n", "4", "--mca", "btl", "r2,vader,self",
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
    app = play("onesided", where=("--ppn", "2", "-n", "4"))
    app.parts(1)
    fault("drop", "h1", "rail1")
    app.parts(5)
    fault("heal", "all", "all")
    app.end()


def test_one_sided_down():
    """one-sided on four hosts; a rail goes down for good"""
    app = play("onesided")
    app.parts(1)
    fault("down", "h3", "rail3")
    app.end(8)
    fault("heal", "all", "all")


def test_io():
    """MPI-IO; a rail drops and comes back"""
    app = play("io", "5")
    app.parts(1)
    fault("drop", "h2", "rail0")
    app.parts(6)
    fault("heal", "all", "all")
    app.end()


def test_threads():
    """MPI_THREAD_MULTIPLE; a rail goes down and comes back, another drops"""
    app = play("threads")
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
