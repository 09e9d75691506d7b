#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Processes that live and look gone, on a lab of 4 hosts with 4 rails: test_presence.py
[--rdma | --ud | --ib]

A firewall refuses on one rail while the others flap; a process is stopped before lanes are opened;
it is stopped, its lanes are lost, and its accept queues are four places long. The limit for "no
path" is short:
who is given up ends the job with an error.
"""

import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from faultlab import HOSTS, LAB, Job, down, fault, heal_all, recover, up
from labtest import NETNS, RDMA, run_all

LIMIT_MS = 3000     # hosts ask for hardware addresses once a second, and rails are down for 0.5 s
STOP_S = 7          # more than twice that
LIMITED = ("--mca", "coll_r2_no_path_timeout_ms", str(LIMIT_MS))
TOLD = "does not pass"
OTHERS = "rail1,rail2,rail3"
LIAR = """table inet liar {
 chain in { type filter hook input priority 0;
  iifname "rail0" meta l4proto tcp reject with tcp reset
 }
 chain out { type filter hook output priority 0;
  oifname "rail0" meta l4proto tcp reject with tcp reset
 }
}
"""


def on_host(host, *words, text=None):
    """Runs a command on a host of the lab."""
    subprocess.run(["nsenter", "--net=%s/%s-h%d" % (NETNS, LAB, host), *words], input=text,
                   text=True, check=True, timeout=20, stdout=subprocess.DEVNULL)


def go_on(job, pid):
    """Lets a stopped process sleep on, then run."""
    time.sleep(STOP_S)      # the stop itself
    assert job.child.poll() is None, "it was given up" + job.error_text()
    os.kill(pid, signal.SIGCONT)


def calm():
    """The lab as it was."""
    recover()
    for host in range(HOSTS):
        subprocess.run(["nsenter", "--net=%s/%s-h%d" % (NETNS, LAB, host), "nft", "delete", "table",
                        "inet", "liar"], check=False, timeout=20, stderr=subprocess.DEVNULL)


def test_firewall():
    """a rail refuses connections for ever, and all others of that host go down and come back"""
    job = Job(mpirun=LIMITED).begin()
    job.whole()
    job.now_in("float")
    on_host(1, "nft", "-f", "-", text=LIAR)
    job.until("lanes of the rail fail", lambda s: s["lanes_failed"] >= 1)
    for _ in range(3):
        fault("down", "h1", OTHERS)
        time.sleep(0.6)     # the fault itself: longer than what makes refusals believed
        fault("heal", "h1", OTHERS)
        job.iterations(2)
    job.right()
    job.until("the rail is in the map", lambda s: TOLD in job.error_text())
    said = job.error_text().count(TOLD)
    assert said <= 2 * (HOSTS - 1), "told %d times%s" % (said, job.tail())
    on_host(1, "nft", "delete", "table", "inet", "liar")
    job.whole()
    job.finish()
    return ", told %d times" % said


def test_stopped_before():
    """a process is stopped before any lane was opened"""
    job = Job(mpirun=LIMITED)
    job.open("init")
    pid = job.pids()[2]
    job.wait("gate first")
    os.kill(pid, signal.SIGSTOP)
    job.open("first")
    go_on(job, pid)
    job.iterations(2)
    job.right()
    job.finish()
    return ", %d calls failed" % job.status["lanes_failed"]


def test_stopped_and_cut_off():
    """a process is stopped, all lanes to it are lost, and its accept queues are short"""
    for host in range(HOSTS):
        on_host(host, "sysctl", "-qw", "net.core.somaxconn=4")
    job = Job(mpirun=LIMITED).begin()
    job.whole()
    job.now_in("float")
    pid = job.pids()[1]
    os.kill(pid, signal.SIGSTOP)
    fault("down", "all", "all")
    time.sleep(0.3)         # the fault itself
    fault("heal", "all", "all")
    go_on(job, pid)
    job.iterations(2)
    job.right()
    job.whole()
    job.finish()
    for host in range(HOSTS):
        on_host(host, "sysctl", "-qw", "net.core.somaxconn=4096")


def main():
    """Raises the lab and runs all."""
    if os.geteuid() != 0:
        print("tests on the lab need root")
        return 77
    try:
        up()
        # A firewall that refuses connections is nothing to RDMA lanes that are up.
        return run_all([*([] if RDMA else [test_firewall]), test_stopped_before,
                        test_stopped_and_cut_off], calm, heal_all)
    finally:
        down()


if __name__ == "__main__":
    sys.exit(main())
