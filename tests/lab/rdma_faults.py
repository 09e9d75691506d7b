# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Faults of RDMA NICs themselves, while their network devices stay up: the group rdma of
test_faults.py --rdma (docs/softverbs.md has what the NICs can do)."""

import time

from faultlab import LAB, LIVE_S, fault, flows, nic, nic_counters, running
from labtest import IB, until
from rail_faults import test_end


def nic_episode(host, rail, *words, repair=("heal",)):
    """A fault of the NIC in the middle of a collective; calls go on; healed, the lanes use the NIC
    again. No other rail is touched."""
    job = running()
    failed = job.status["lanes_failed"]
    job.now_in("float")
    at = nic(host, rail, *words)
    job.iterations(2)
    job.until("a failed lane", lambda s: s["lanes_failed"] > failed)
    what, extra = job.extra_ms(at)
    start = time.monotonic()
    nic(host, rail, *repair)
    job.whole()
    back = time.monotonic() - start
    flows(job, host, rail)
    job.right()
    return ", hit %s: %+.0f ms, lanes back after %.1f s" % (what, extra, back)


def is_told(job, host, rail):
    """The log names the rail with its device and port."""
    what = "soft%d:1" % rail if IB else "rail%d (soft%d:1)" % (rail, rail)
    name = "%s of %s-h%d is dead" % (what, LAB, host)
    assert until(lambda: name in job.error_text(), LIVE_S), name + job.tail()


def test_rdma_port_down():
    """the port is down although its network device has carrier: told, with the port's name"""
    said = nic_episode(1, 2, "port-down")
    is_told(running(), 1, 2)
    return said


def test_rdma_device_dies():
    """the device dies: nothing that it was given is ever told; it is opened anew (DEVICE_FATAL)"""
    said = nic_episode(2, 1, "fatal")
    is_told(running(), 2, 1)
    return said


def test_rdma_device_dies_again():
    """the same device once more"""
    return nic_episode(2, 1, "fatal")


def rdma_sent(host, rail):
    """Packets that one device has sent."""
    return nic_counters("h%d" % host, "soft%d" % rail)["sent"]


def test_rdma_device_stays_dead():
    """a device that cannot be opened any more: its rail goes on over TCP, until it is back"""
    job, host, rail = running(), 1, 3
    job.now_in("float")
    nic(host, rail, "fatal")
    start = time.monotonic()
    job.iterations(1)
    job.whole()
    took = time.monotonic() - start
    sent = rdma_sent(host, rail)
    flows(job, host, rail)
    assert rdma_sent(host, rail) == sent, "a dead device has sent something"
    assert until(lambda: "soft%d:1 stays dead" % rail in job.error_text(), LIVE_S), job.tail()
    nic(host, rail, "heal")
    assert until(lambda: rdma_sent(host, rail) > sent + 100, LIVE_S), "TCP still" + job.tail()
    job.iterations(1)
    job.whole()
    flows(job, host, rail)
    job.right()
    return ", over TCP after %.1f s" % took


def test_rdma_address_moves():
    """a link goes down, and comes back with the address at another index of the table"""
    job = running()
    failed = job.status["lanes_failed"]
    for index in (3, 2, 1):
        job.now_in("float")
        fault("down", "h3", "rail0")
        nic(3, 0, "gid", "0", str(index))
        job.iterations(1)
        fault("heal", "h3", "rail0")
        job.whole()
        flows(job, 3, 0)
    assert job.status["lanes_failed"] > failed
    job.right()


def test_rdma_flaps():
    """a link that drops for less than the NICs' retries, five times"""
    job = running()
    job.now_in("float")
    for _ in range(5):
        fault("drop", "h0", "rail3")
        time.sleep(0.1)
        fault("heal", "h0", "rail3")
        time.sleep(0.1)
    job.iterations(2)
    job.whole()
    flows(job, 0, 3)
    job.right()


def test_rdma_losses():
    """the NIC loses, delays and repeats packets: results are right"""
    job = running()
    for words in (("drop", "0.01", "0", "7"), ("delay", "0.005", "2")):
        nic(1, 1, *words)
    job.iterations(3)
    nic(1, 1, "heal")
    job.whole()
    job.right()


def test_rdma_errors():
    """sends are done and told as failed; and done and never told"""
    job = running()
    for words in (("error", "0.002", "12"), ("no-completion", "0.002")):
        nic(3, 2, *words)
        job.iterations(2)
        nic(3, 2, "heal")
        job.whole()
    flows(job, 3, 2)
    job.right()


GROUPS = {
    "rdma": [test_rdma_port_down, test_rdma_device_dies, test_rdma_device_dies_again,
             *([] if IB else [test_rdma_device_stays_dead, test_rdma_address_moves]),
             test_rdma_flaps, test_rdma_losses, test_rdma_errors, test_end],
}
