#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Two hosts that lose their last common rail go on through a third: test_relay.py HOSTS

HOSTS is 3 or 4, with 4 rails each. As test_faults.py: every byte is checked, faults are timed by
marks.
"""

import os
import sys

sys.dont_write_bytecode = True
import faultlab
from faultlab import LAB, RAILS, Job, down, fault, heal_all, recover, up
from labtest import counters, run_all


def keep(host, rail):
    """One rail is all that a host keeps."""
    for other in set(range(RAILS)) - {rail}:
        fault("down", "h%d" % host, "rail%d" % other)


def carried(before):
    """Bytes that each host has sent over its rails since, least of all first."""
    now = counters(LAB)
    return {host: sum(now[host]["rail%d" % rail]["tx_bytes"] - before[host]["rail%d"
                                                                            % rail]["tx_bytes"]
                      for rail in range(RAILS)) for host in before}


def relays(job):
    """The job goes on, and what the third hosts forward can be seen on their rails."""
    job.until("a relay lane", lambda s: s["relay_lanes"] >= 2)
    before, status = counters(LAB), dict(job.status)
    job.iterations(2)
    job.until("relayed bytes", lambda s: s["relayed_bytes"] - status["relayed_bytes"] > 100000)
    sent = carried(before)
    relayed = job.status["relayed_bytes"] - status["relayed_bytes"]
    third = sum(bytes for host, bytes in sent.items() if host not in ("h0", "h1"))
    assert third > relayed > 0, (sent, relayed)
    job.right()
    return relayed, third


def direct(job):
    """The job goes on without relays. (One may have stepped in while processes paused.)"""
    for _ in range(10):
        before = job.status["relayed_bytes"]
        job.iterations(2)
        if job.status["relayed_bytes"] == before:
            return
    raise AssertionError("relayed although h0 and h1 share rail0")


def lost(kind):
    """h0 keeps only rail 0, and h1 loses rail 0 in the middle of an allreduce."""
    job = Job().begin()
    keep(0, 0)
    direct(job)
    job.now_in("float")
    at = fault(kind, "h1", "rail0")
    job.iterations(1)
    what, extra = job.extra_ms(at)
    relayed, third = relays(job)
    heal_all()
    job.until("direct lanes", lambda s: s["lanes_up"] - s["lanes_closed"] == faultlab.LANES)
    job.finish()
    return ", hit %s: %+.0f ms, %d bytes relayed of %d sent by third hosts" % (what, extra, relayed,
                                                                               third)


def test_lost():
    """the last common rail of two hosts goes down in the middle of an allreduce"""
    return lost("down")


def test_lost_drop():
    """the last common rail of two hosts drops silently in the middle of an allreduce"""
    return lost("drop")


def test_start():
    """two hosts share no rail when the job starts"""
    keep(0, 0)
    fault("down", "h1", "rail0")
    job = Job().begin()
    relayed, third = relays(job)
    heal_all()
    job.until("direct lanes", lambda s: s["lanes_up"] - s["lanes_closed"] == faultlab.LANES)
    job.finish()
    return ", %d bytes relayed of %d sent by third hosts" % (relayed, third)


def main():
    """Raises the lab and runs all tests, or those that are named."""
    if os.geteuid() != 0:
        print("fault tests on the lab need root")
        return 77
    words = sys.argv[1:]
    faultlab.HOSTS = int(words[0])
    faultlab.LANES = faultlab.HOSTS * (faultlab.HOSTS - 1) * RAILS
    tests = [globals()["test_" + word] for word in words[1:]] or [test_lost, test_lost_drop,
                                                                  test_start]
    try:
        up()
        return run_all(tests, recover, lambda: None)
    finally:
        down()


if __name__ == "__main__":
    sys.exit(main())
