#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Memory of others, read and written by RDMA NICs alone (coll_r2_direct), while rails fail

tests/functional/direct counts what went so and compares every byte; what it looks at is marked as
given back, and the NICs count what is written there all the same. --long: all of it, 80 s.
"""

import os
import re
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from labtest import UP_RDMA, processes, r2lab, run_all, softverbs, until
from parts import App

os.environ["OMPI_MCA_coll_r2_direct"] = "1"

LAB = "dr%d" % os.getpid()
HOSTS, RAILS = 3, 2
LATE_MS = 700
MOST_FAULTS = 8     # of which one at least comes while pieces are under way


def fault(*words):
    """r2lab fault."""
    r2lab("fault", "--name", LAB, *words)


def heal():
    """All links."""
    fault("heal", "all", "all")


def nic(host, rail, *words):
    """A fault of a NIC itself, or its end."""
    softverbs(LAB, "h%d" % host, "fault", "soft%d" % rail, *words)


def nic_counter(name, hosts=range(HOSTS), device=""):
    """Sum over all NICs of hosts, or over one device of them."""
    total = 0
    for host in hosts:
        lines = softverbs(LAB, "h%d" % host, "counters").splitlines()
        total += sum(int(line.split()[2]) for line in lines
                     if line.split()[1] == name and line.split()[0].startswith(device))
    return total


def play(*words, program="direct", where=("-n", "3"), mca=()):
    """A run of a program."""
    return App(LAB, program, *words, where=where, mca=("coll", "r2", *mca))


def sums(text):
    """What all ranks of a run have counted: read, written, lost, fences."""
    rows = re.findall(r"(\d+) read, (\d+) written, (\d+) lost, (\d+) fences", text)
    assert len(rows) == 3, text
    return [sum(int(row[i]) for row in rows) for i in range(4)]


def end(app):
    """Waits for the end. Returns what was counted."""
    rest = app.child.stdout.read()
    status = app.child.wait()
    assert "not ok" not in rest and status == 0, "status %d\n%s%s" % (status, rest, app.said())
    for line in re.findall("# who .*", rest):
        print(line, flush=True)
    return sums(rest)


def rounds_with(count, begin, repair):
    """Rounds; a fault comes in the middle of one, and goes. Nothing is written late. Returns what
    was counted."""
    given_back = nic_counter("given_back")
    app = play(str(count))
    app.parts(2)
    begin()
    app.parts(count // 2)
    repair()
    counted = end(app)
    assert nic_counter("given_back") == given_back, "memory that was given back was written"
    return counted


def lost_in(app, count):
    """Waits for so many more rounds. Returns whether a piece was lost in one of all rounds."""
    lost = False
    while count > 0:
        line = app.child.stdout.readline()
        assert line and not line.startswith("not ok"), line + app.said()
        lost |= line.endswith("lost so far\n") and not line.startswith("# 0 ")
        count -= line.startswith("ok ")
    return lost


def rounds_hit_by(begin, repair, seen=lambda: True):
    """Rounds in which a fault comes and goes until it came while pieces were under way, and what it
    is for was seen; and some after it. Nothing is written late. Returns what was counted."""
    given_back = nic_counter("given_back")
    with tempfile.TemporaryDirectory() as folder:
        app = play(str(8 * MOST_FAULTS), folder + "/enough")
        hit, faults = lost_in(app, 2), 0
        while not (hit and until(seen, 1.5e-3 * LATE_MS)) and faults < MOST_FAULTS:
            begin()
            hit |= lost_in(app, 2)
            repair()
            hit |= lost_in(app, 1)
            faults += 1
        with open(folder + "/enough", "w", encoding="ascii"):
            counted = end(app)
    assert counted[2] > 0 and seen(), "%d faults in vain: %s" % (faults, counted)
    print("# after %d faults" % faults, flush=True)
    assert nic_counter("given_back") == given_back, "memory that was given back was written"
    return counted


def test_healthy():
    """windows and messages go by NICs, all of them; a target that computes is read and written"""
    app = play()
    app.parts(4)
    counted = end(app)
    assert counted[2] == 0 and counted[3] == 0, counted
    print("# %d MB read, %d MB written" % (counted[0] >> 20, counted[1] >> 20), flush=True)


def test_off():
    """without coll_r2_direct nothing does"""
    os.environ["OMPI_MCA_coll_r2_direct"] = "0"
    try:
        app = play("0", "none")
        app.parts(4)
        counted = end(app)
    finally:
        os.environ["OMPI_MCA_coll_r2_direct"] = "1"
    assert counted == [0, 0, 0, 0], counted


def test_tcp():
    """a job over TCP: handles without keys"""
    app = play("0", "none", mca=("coll_r2_tls", "tcp"))
    app.parts(4)
    assert end(app) == [0, 0, 0, 0]


def test_ud():
    """datagrams, which have neither reads nor writes"""
    app = play("0", "none", mca=("coll_r2_tls", "ud"))
    app.parts(4)
    assert end(app) == [0, 0, 0, 0]


def test_one_host():
    """one host has RDMA, the others' devices cannot be opened: as over TCP"""
    where = [(host, rail) for host in range(1, HOSTS) for rail in range(RAILS)]
    for host, rail in where:
        nic(host, rail, "refuse", "1", "0", "1")
    sent = nic_counter("sent")
    app = play("0", "none")
    app.parts(4)
    assert end(app) == [0, 0, 0, 0]
    assert nic_counter("sent") == sent, "a NIC has sent"
    for host, rail in where:
        nic(host, rail, "heal")


def test_fewer_rails():
    """a host has one rail less when the job begins: its handles have one key"""
    fault("down", "h2", "rail1")
    app = play()
    app.parts(4)
    heal()
    counted = end(app)
    assert counted[2] == 0, counted


def test_link_down():
    """a link goes down while its NIC has pieces under way, and comes back"""
    def goes_down():
        before = nic_counter("delayed", [1], "soft1")
        nic(1, 1, "delay", "1", str(LATE_MS))
        assert until(lambda: nic_counter("delayed", [1], "soft1") > before)
        fault("down", "h1", "rail1")

    def comes_back():
        nic(1, 1, "heal")
        heal()

    counted = rounds_hit_by(goes_down, comes_back)
    print("# %d KiB lost, %d fences" % (counted[2] >> 10, counted[3]), flush=True)


def test_silent_drop():
    """a rail drops silently, and comes back"""
    counted = rounds_hit_by(lambda: fault("drop", "h1", "rail0"), heal)
    print("# %d KiB lost, %d fences" % (counted[2] >> 10, counted[3]), flush=True)


def test_late_writes():
    """a NIC keeps packets for longer than its lanes live: what it handles then lands nowhere"""
    refused = nic_counter("late_refused")
    counted = rounds_hit_by(lambda: nic(1, 0, "delay", "1", str(LATE_MS)),
                            lambda: nic(1, 0, "heal"),
                            lambda: nic_counter("late_refused") > refused)
    print("# %d KiB lost, %d fences" % (counted[2] >> 10, counted[3]), flush=True)


def test_device_dies():
    """a device dies, and is back: its keys are stale, and the other rail has the work"""
    sent = {}

    def dies():
        nic(2, 1, "fatal")
        sent.update({rail: nic_counter("sent", [2], "soft%d" % rail) for rail in (0, 1)})

    def heals():
        sent.update({rail: nic_counter("sent", [2], "soft%d" % rail) - sent[rail]
                     for rail in (0, 1)})
        nic(2, 1, "heal")

    counted = rounds_with(10, dies, heals)
    assert sent[0] > 1000 and sent[1] == 0, "packets of each rail meanwhile: %s" % sent
    print("# %d KiB lost, %d fences" % (counted[2] >> 10, counted[3]), flush=True)


def test_stopped():
    """the target is stopped for a second: nothing is given up"""
    app = play("6")
    app.parts(2)
    pids = [p for p in processes(LAB) if runs_direct(p)]
    assert len(pids) >= 3, pids
    os.kill(pids[0], signal.SIGSTOP)
    time.sleep(1)
    os.kill(pids[0], signal.SIGCONT)
    counted = end(app)
    print("# %d KiB lost" % (counted[2] >> 10), flush=True)


def runs_direct(pid):
    """Is it a rank?"""
    try:
        with open("/proc/%d/comm" % pid, encoding="utf8") as file:
            return file.read().strip() == "direct"
    except OSError:
        return False


def test_one_sided():
    """all of one-sided communication, a rail goes down and comes back"""
    app = play(program="onesided")
    app.parts(1)
    fault("down", "h0", "rail1")
    app.parts(3)
    heal()
    app.end()


def test_messages():
    """messages of all kinds, a rail drops and comes back"""
    app = play(program="p2p")
    app.parts(1)
    fault("drop", "h2", "rail0")
    app.parts(2)
    heal()
    app.end()


def recover():
    """After a failed test."""
    heal()
    for host in range(HOSTS):
        for rail in range(RAILS):
            nic(host, rail, "heal")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", RAILS, "--rate", "800mbit", *UP_RDMA)
    tests = [test_healthy, test_off, test_one_host, test_link_down, test_late_writes,
             test_device_dies]
    if "--long" in sys.argv[1:]:
        tests += [test_tcp, test_ud, test_fewer_rails, test_silent_drop, test_stopped,
                  test_one_sided, test_messages]
    return run_all(tests, recover, down)


sys.exit(main())
