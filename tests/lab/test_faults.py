#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Jobs under mpirun --mca coll r2 on a lab of 4 hosts with 4 rails, while rails and ranks fail:
test_faults.py GROUP [--long] [--rdma | --ud | --put | --ib]

Every byte that a collective writes is checked, and floats have to be those of a healthy run to the
last bit (see fault_driver.c). Faults are timed by marks of the job, never by sleeping. The times
in the output are diagnostics: only liveness has limits.
"""

import os
import signal
import sys
import time

sys.dont_write_bytecode = True
from faultlab import (HOSTS, LAB, LANES, RAILS, RDMA, Job, device_bytes, down, fault, flows,
                      heal_all, killed, killed_errors, recover, running, up)
from labtest import counters, processes, run_all
import rail_faults
import rdma_faults
import rdma_refused
from rail_faults import LONG, test_end


# ---- group start: F9


def test_start_healthy():
    """bytes: all rails carry payload, mgmt0 at most 1 %; no lane fails"""
    before = counters(LAB)
    job = Job().begin()
    job.iterations(4)
    after = counters(LAB)
    sums = {}
    for host, there in after.items():
        for device, numbers in there.items():
            moved = numbers["tx_bytes"] - before[host][device]["tx_bytes"]
            sums[device] = sums.get(device, 0) + moved
            assert device == "mgmt0" or moved > 1e6, (host, device, moved)
    mgmt = sums.pop("mgmt0")
    assert mgmt <= 0.01 * sum(sums.values()), (mgmt, sums)
    assert job.status["lanes_failed"] == 0, job.tail()
    job.finish()
    return ", mgmt0 %.2f %%" % (100 * mgmt / sum(sums.values()))


def test_F9_start_dead():
    """F9 NICs that are down, lack carrier or drop from the start join when healed (defect 10)"""
    fault("down", "h1", "rail0")
    fault("--at", "switch", "down", "h2", "rail1")
    fault("drop", "h3", "rail2")
    job = Job().begin()
    before = [device_bytes(1, 0), device_bytes(2, 1)]
    job.iterations(1)
    assert before == [device_bytes(1, 0), device_bytes(2, 1)]
    job.whole(LANES - 3 * 6)
    heal_all()
    job.whole()
    for host in (1, 2, 3):
        flows(job, host, host - 1)
    job.finish()


def on_host(host, rails):
    """A wrapper that gives one host other rails than the rest."""
    script = 'case $(hostname) in *-h%d) export OMPI_MCA_coll_r2_rails=%s;; esac; exec "$@"'
    return ("sh", "-c", script % (host, rails), "sh")


def test_F9_start_fewer():
    """F9 a host with fewer rails than the others, in another order"""
    job = Job(wrapper=on_host(2, "rail3,rail1")).begin()
    job.whole(LANES - 2 * 3 * 2)
    job.iterations(1)
    flows(job, 2, 1)
    flows(job, 2, 3)
    job.finish()


def test_start_no_common_rail():
    """two ranks without a common rail: an error that says so, within a bounded time"""
    script = ('case $(hostname) in *-h1) export OMPI_MCA_coll_r2_rails=rail2,rail3;; '
              '*) export OMPI_MCA_coll_r2_rails=rail0,rail1;; esac; exec "$@"')
    job = Job(mpirun=("--mca", "coll_r2_no_path_timeout_ms", "2000"), expect=False,
              wrapper=("sh", "-c", script, "sh"))
    job.open("init", "first")
    status = job.ended()
    said = job.error_text()
    assert status not in (0, 124), (status, said)
    assert "no rail of the two hosts is in a common network" in said, said
    assert "no path is left" in said and LAB + "-h1" in said, said


# ---- group process: F10


def test_F10_stopped():
    """F10 a rank is stopped for 1 s (long: 30 s): no lane fails, calls go on (defect 7)"""
    seconds = 30 if LONG else 1
    job = running()
    failed = job.status["lanes_failed"]
    for rank in (1, 0):
        pid = job.pids()[rank]
        job.now_in("float")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)     # the stop itself
        os.kill(pid, signal.SIGCONT)
        job.iterations(2)
        assert job.status["lanes_failed"] == failed, "lanes failed" + job.tail()
    job.right()
    return ", %d doubts, %d duplicates" % (job.status["ack_timeouts"], job.status["rx_duplicates"])


def test_F10_busy():
    """F10 a rank computes for 3 s (long: 30 s) without MPI: no lane fails (defect 7)"""
    seconds = 30 if LONG else 3
    job = Job("--busy", "2:%d" % seconds).begin()
    job.wait("busy 2")
    job.iterations(2)
    assert job.status["lanes_failed"] == 0, "lanes failed" + job.tail()
    job.finish()
    return ", %d doubts" % job.status["ack_timeouts"]


def test_F10_killed():
    """F10 a rank is killed, default launch: the job ends, nothing is left"""
    return killed(Job().begin())


def test_F10_killed_recovery():
    """F10 a rank is killed, --enable-recovery: all survivors get an error that names it"""
    job = Job("--errors", "return", mpirun=("--enable-recovery",)).begin()
    return killed_errors(job, at_once=True)


# ---- group nopath: F8 for ever


def no_path(kind):
    """All rails of a host fail for longer than the limit: every rank gets a named error."""
    job = Job("--errors", "return", mpirun=("--mca", "coll_r2_no_path_timeout_ms", "2000")).begin()
    job.now_in("float")
    start = time.monotonic()
    fault(kind, "h1", "all")
    job.said(r"error \d ", HOSTS)
    took = time.monotonic() - start
    job.said(r"poisoned \d ", HOSTS)
    job.open("after-error")
    status = job.ended()
    said = job.error_text()
    heal_all()
    assert status == 0, (status, said)
    assert len(job.matching("verdict ")) == HOSTS, job.tail()
    assert "no path is left" in said and "rail0" in said and LAB + "-h1" in said, said
    assert "rail 0 (rail0, " in said and " of %s-h1: " % LAB in said, said  # with its verdict
    return ", after %.1f s" % took


def test_F8_no_path_down():
    """F8 all rails of a host down for good: a named error on every rank, the job finalizes"""
    return no_path("down")


def test_F8_no_path_drop():
    """F8 all rails of a host drop for good: a named error on every rank, the job finalizes"""
    return no_path("drop")


def test_F8_no_path_fatal():
    """F8 the same with MPI's default error handler: the job ends and says why"""
    job = Job(mpirun=("--mca", "coll_r2_no_path_timeout_ms", "2000")).begin()
    job.now_in("float")
    fault("down", "h2", "all")
    status = job.ended()
    said = job.error_text()
    heal_all()
    assert status not in (0, 124) and "no path is left" in said, (status, said)


# ---- group comms


def test_comms():
    """communicators are made and freed while rails fail and heal (defects 3, 9, 11)"""
    job = Job("--mix", "comms,mixed,float,").begin()
    rounds = 12 if LONG else 4
    for number in range(rounds):
        host, rail = "h%d" % (number % HOSTS), "rail%d" % (number * 3 % RAILS)
        job.now_in("comms")
        fault(("down", "drop", "drop-in", "drop-out")[number % 4], host, rail)
        job.iterations(3)
        fault("heal", host, rail)
        job.iterations(1)
    job.whole()
    job.finish()
    return ", %d iterations, %d failed lanes" % (job.status["iteration"],
                                                 job.status["lanes_failed"])


def test_two_per_host():
    """the same with two ranks on each of two hosts"""
    job = Job("--mix", "comms,mixed,float,", "--bytes", 1 << 18, expect=False,
              mpirun=("--host", "%s-h0:2,%s-h1:2" % (LAB, LAB), "--map-by", "slot")).begin()
    for number in range(3):
        job.now_in("comms")
        fault(("down", "drop", "drop-in")[number % 3], "h1", "rail%d" % number)
        job.iterations(3)
        fault("heal", "h1", "rail%d" % number)
        job.iterations(1)
    job.finish()
    return ", %d iterations, %d failed lanes" % (job.status["iteration"],
                                                 job.status["lanes_failed"])


GROUPS = {
    "start": [test_start_healthy, test_F9_start_dead, test_F9_start_fewer,
              test_start_no_common_rail],
    "process": [test_F10_stopped, test_end, test_F10_busy, test_F10_killed,
                test_F10_killed_recovery],
    "nopath": [test_F8_no_path_down, test_F8_no_path_drop, test_F8_no_path_fatal],
    "comms": [test_comms, test_two_per_host],
}
GROUPS.update(rail_faults.GROUPS)
if RDMA:
    GROUPS.update(rdma_faults.GROUPS)
    GROUPS.update(rdma_refused.GROUPS)
ALL = {test.__name__: test for tests in GROUPS.values() for test in tests}


def main():
    """Raises the lab, runs the tests of a group, or those that are named."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    if os.geteuid() != 0:
        print("fault tests on the lab need root")
        return 77
    tests = []
    for name in names or GROUPS:
        tests += GROUPS[name] if name in GROUPS else [ALL["test_" + name]]
    try:
        up(shares=True)
        return run_all(tests, recover, lambda: None)
    finally:
        down()

if __name__ == "__main__":
    sys.exit(main())
