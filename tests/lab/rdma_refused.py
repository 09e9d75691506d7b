# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""RDMA devices that are listed, with active ports, and cannot be opened: the group refused of
test_faults.py --rdma."""

import re

from faultlab import HOSTS, LAB, LANES, LIVE_S, RAILS, Job, device_bytes, flows, nic, nic_counters
from labtest import IB, until
from rail_faults import LONG

CANNOT = r"rail \d \(\S+\) (?:goes by TCP, not|has no IP, and cannot go) by its RDMA device (\S+):"


def refuse(host, rail, chance="1", seed="1"):
    """The device cannot be opened from now on; who has it open keeps it."""
    nic(host, rail, "refuse", chance, "0", seed)


def counts(host, rail):
    """Counters of one device."""
    return nic_counters("h%d" % host, "soft%d" % rail)


def told(job):
    """The devices that the log says cannot be opened: a line for each time."""
    found = re.findall(CANNOT + " it cannot be opened", job.error_text())
    assert len(found) == len(re.findall(CANNOT, job.error_text())), job.tail()
    return found


def goes_without(job, host, rail):
    """A rail carries bytes by TCP, or none where its port has no IP; its device sends nothing."""
    sent = counts(host, rail)["sent"]
    if IB:
        before = device_bytes(host, rail)
        job.iterations(2)
        assert device_bytes(host, rail) == before, "a rail that was left out is used"
    else:
        flows(job, host, rail)
    assert counts(host, rail)["sent"] == sent, "a device that nobody could open has sent"


def test_refused_on_one_host():
    """one host's device cannot be opened: told once; its rail goes by TCP, the others by RDMA"""
    host, rail, other = 1, 2, 3
    before = counts(host, rail)["refused"]
    refuse(host, rail)
    job = Job().begin()
    assert counts(host, rail)["refused"] > before, "nobody tried"
    job.whole(LANES - 2 * (HOSTS - 1) * IB)
    sent = counts(other, rail)["sent"]
    goes_without(job, host, rail)
    assert until(lambda: counts(other, rail)["sent"] > sent + 100, LIVE_S), "TCP for all"
    nic(host, rail, "heal")
    job.iterations(2)
    assert job.status["lanes_failed"] == 0, "lanes failed" + job.tail()
    assert told(job) == ["soft%d:1" % rail], job.tail()
    job.finish()


def test_refused_on_all_hosts():
    """the same device of all hosts, two ranks on each of two: told once for each host"""
    rail = 1
    for host in range(HOSTS):
        refuse(host, rail)
    job = Job("--bytes", 1 << 18, expect=False,
              mpirun=("--host", "%s-h0:2,%s-h1:2" % (LAB, LAB), "--map-by", "slot")).begin()
    for host in range(2):
        goes_without(job, host, rail)
    assert job.status["lanes_failed"] == 0, "lanes failed" + job.tail()
    assert told(job) == 2 * ["soft%d:1" % rail], job.tail()
    job.finish()
    for host in range(HOSTS):
        nic(host, rail, "heal")


def test_refused_for_a_while():
    """every other opening of every device fails, by two seeds (long: eight), until the job runs; of
    ports without IP one of each host opens: a host that has none left has no path"""
    rails, seeds = 0, 8 if LONG else 2
    for seed in range(1, seeds + 1):
        for host in range(HOSTS):
            for rail in range(IB, RAILS):
                refuse(host, rail, "0.5", str(100 * seed + 10 * host + rail))
        job = Job().begin()
        job.iterations(2)
        for host in range(HOSTS):
            for rail in range(RAILS):
                nic(host, rail, "heal")
        if not IB:
            job.whole()
        job.iterations(2)
        names = told(job)
        assert len(names) <= HOSTS, job.tail()
        rails += len(names)
        job.finish()
    assert rails > 0, "no device was refused when it mattered"
    return ", %d hosts told it in %d jobs" % (rails, seeds)


def test_refused_after_the_start():
    """the device is there when the job starts, and cannot be opened when its lanes open"""
    host, rail = 2, 0
    job = Job()
    job.open("init")
    job.wait("gate first")
    before = counts(host, rail)["refused"]
    refuse(host, rail)
    job.open("first")
    job.iterations(3)
    assert counts(host, rail)["refused"] > before, "nobody asked for the device"
    nic(host, rail, "heal")
    job.whole()
    flows(job, host, rail)
    assert told(job) == [], job.tail()
    job.finish()


GROUPS = {
    "refused": [test_refused_on_one_host, test_refused_on_all_hosts, test_refused_for_a_while,
                test_refused_after_the_start],
}
