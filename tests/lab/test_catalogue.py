#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Faults of the catalogue that need a kernel and a job that needs nothing but r2: test_catalogue.py
[--rdma | --ud | --ib] [NAME...]

The job is fault_job of bench/faults: allreduces with exact sums, rails only. What the ranks know is
read from their event files; only liveness has limits.
"""

import collections
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
                + "/bench/faults")
import figures
from job import Job
from labtest import R2LAB, RDMA, TOP, UD, UP_RDMA, r2lab, run_all, until
from rows import HOSTS, RAILS, RATE

LAB = "cat%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
WORK = tempfile.mkdtemp(prefix="r2-catalogue-")
BYTES = 1 << 21
LIMIT_S = 40
OOB_ON_MGMT = ("--mca", "coll_r2_oob_nics", "mgmt0", "--mca", "coll_r2_verbose", "0")
jobs = []


def fault(*words):
    """r2lab fault; returns when it took effect, ns."""
    return int(r2lab("fault", "--name", LAB, *words)[0].split()[-1].replace(".", ""))


def start(*mpirun):
    """A job that is under way."""
    tls = RDMA * ("--mca", "coll_r2_tls", "ud" if UD else "rc")
    jobs.append(Job(LAB, BUILD, WORK, BYTES, 120, (*tls, *mpirun)))
    jobs[-1].await_iterations(3, "start")
    return jobs[-1]


def finish(job):
    """The job ends in good order, with exact sums only."""
    wrong = job.finish()
    assert wrong == 0, "%d wrong elements" % wrong
    return len(job.iterations())


def verdicts(job, since_ns):
    """Verdicts from then on."""
    return [e for e in job.events() if e["event"] == "verdict" and e["mono_ns"] >= since_ns]


def told(job, since_ns, host, rail, verdict):
    """Waits until this is the newest that every rank knows of this NIC."""
    def known():
        newest = {e["rank"]: e for e in verdicts(job, since_ns) if figures.blames(e, host, rail)}
        return {r for r, e in newest.items() if e["verdict"] == verdict} == set(range(HOSTS))
    assert until(lambda: job.child.poll() is not None or known(), LIMIT_S) and known(), \
        "not known to all: h%d rail%d is %s%s" % (host, rail, verdict,
                                                  text(verdicts(job, since_ns)))


def text(events):
    """Verdicts for a failure report."""
    return "".join("\n  rank %s: %s" % (e["rank"], {k: e.get(k) for k in (
        "verdict", "blamed", "other", "rail", "capacity", "own", "evidence")})
                   for e in events[-20:])


def blames_only(job, since_ns, host, rail, kinds=("nic",)):
    """No verdict names anything else, or calls it something else."""
    wrong = [e for e in verdicts(job, since_ns) if e["verdict"] not in figures.HARMLESS
             and not (e["verdict"] in kinds and figures.blames(e, host, rail))]
    assert not wrong, "a healthy part is blamed:" + text(wrong)


def broken_and_healed(job, words, host, rail):
    """A fault of one NIC is known to all, and so is its end; nothing else is blamed."""
    since_ns = time.monotonic_ns()
    fault(*words, "h%d" % host, "rail%d" % rail)
    told(job, since_ns, host, rail, "nic")
    job.await_iterations(1, "with the fault")
    healed_ns = time.monotonic_ns()
    fault("heal", "h%d" % host, "rail%d" % rail)
    told(job, healed_ns, host, rail, "healthy")
    job.await_iterations(2, "after the heal")
    blames_only(job, since_ns, host, rail)


def test_F3_loss():
    """F3 random loss of 0.1 %, 1 %, 10 % on two rails: exact sums, the job goes on"""
    job, notes = start(), []
    for loss in ("0.1%", "1%", "10%"):
        before = len(job.iterations())
        fault("loss=" + loss, "h1", "rail2")
        fault("loss=" + loss, "h3", "rail0")
        time.sleep(1.5)
        job.await_iterations(2, "with loss")
        notes.append("%s: %d" % (loss, len(job.iterations()) - before))
        fault("heal", "all", "all")
    job.await_iterations(2, "after the loss")
    finish(job)
    return ", iterations with a loss of " + ", ".join(notes)


def lanes_opened(job, since_ns, rail):
    """How often each lane end over a rail came up, sorted."""
    ends = collections.Counter((e["rank"], e["peer"]) for e in job.events()
                               if e["event"] == "lane_up" and e["rail"] == rail
                               and e["mono_ns"] >= since_ns)
    return sorted(ends.values())


def flaps(job, host, rail, kind, rounds, half_s):
    """A rail goes and comes; nothing without it is blamed, and it is well in the end. A rail that
    comes back between two questions may be called a broken path: that names it, too."""
    since_ns = time.monotonic_ns()
    for _ in range(rounds):
        fault(kind, "h%d" % host, "rail%d" % rail)
        time.sleep(half_s)  # the flap itself
        fault("heal", "h%d" % host, "rail%d" % rail)
        time.sleep(half_s)
    job.await_iterations(1, "while a rail flaps")
    told(job, since_ns, host, rail, "healthy")
    wrong = [e for e in verdicts(job, since_ns) if e["verdict"] not in figures.HARMLESS
             and not (e["rail"] == rail and "-h%d" % host in e["blamed"] + e.get("other", ""))]
    assert not wrong, "a healthy part is blamed:" + text(wrong)
    return lanes_opened(job, since_ns, rail)


FLAP_MAX_S = 4.0


def heals_within(elapsed_s):
    """How many heals of a flapping rail quarantines leave room for: 0.2 s, doubled each time, up to
    FLAP_MAX_S."""
    heals, quarantine_s = 1, 0.2
    while elapsed_s >= quarantine_s:
        elapsed_s -= quarantine_s
        quarantine_s = min(2 * quarantine_s, FLAP_MAX_S)
        heals += 1
    return heals


def test_F5_flaps():
    """F5 a rail flaps 12 times by carrier and 5 times silently: it alone is blamed, and damped"""
    job = start("--mca", "coll_r2_flap_max_ms", str(int(1000 * FLAP_MAX_S)))
    ends = 2 * (HOSTS - 1)
    begun_s = time.monotonic()
    carrier = flaps(job, 1, 2, "down", 12, 0.12)
    # flaps take longer where the machine is loaded
    most = heals_within(time.monotonic() - begun_s)
    silent = flaps(job, 2, 0, "drop", 5, 0.4)
    finish(job)
    # the middle end: one whose call was late opens twice in a heal
    assert len(carrier) == ends and carrier[ends // 2] <= most, \
        "opened lane ends %s times in 12 flaps, quarantines allow %d: not damped" % (carrier, most)
    return ", lane ends opened: %d of %d, %d of %d" % (sum(carrier), 12 * ends, sum(silent),
                                                       5 * ends)


def test_F11_notices_lost():
    """F11 all out-of-band notices are lost: link down and silent drops, and their end, are known"""
    job = start(*OOB_ON_MGMT)
    fault("--at", "switch", "drop", "all", "mgmt0")
    broken_and_healed(job, ["down"], 1, 2)
    broken_and_healed(job, ["drop"], 2, 1)
    broken_and_healed(job, ["drop-in"], 3, 3)
    broken_and_healed(job, ["drop-out"], 0, 0)
    fault("heal", "all", "mgmt0")
    finish(job)


def test_F11_mgmt_down():
    """F11 mgmt0 of all hosts is down: the same"""
    job = start("--mca", "coll_r2_verbose", "0")
    fault("--at", "switch", "down", "all", "mgmt0")
    broken_and_healed(job, ["--at", "switch", "down"], 3, 1)
    broken_and_healed(job, ["drop"], 0, 2)
    fault("heal", "all", "mgmt0")
    finish(job)


def ip(host, *words):
    """ip inside a host."""
    subprocess.run(["ip", "-n", "%s-h%d" % (LAB, host), *words], check=True)


def test_F12_address_removed():
    """F12 a rail loses its address and gets it back"""
    job, since_ns = start(), time.monotonic_ns()
    ip(1, "addr", "del", "10.77.2.2/24", "dev", "rail2")
    told(job, since_ns, 1, 2, "nic")
    job.await_iterations(2, "without the address")
    back_ns = time.monotonic_ns()
    ip(1, "addr", "add", "10.77.2.2/24", "brd", "+", "dev", "rail2")
    told(job, back_ns, 1, 2, "healthy")
    job.await_iterations(2, "with the address again")
    assert until(lambda: sum(lanes_opened(job, back_ns, 2)) == 2 * (HOSTS - 1),
                 LIMIT_S), "lanes stay closed"
    blames_only(job, since_ns, 1, 2)
    finish(job)


def test_F12_address_changed():
    """F12 a rail gets another address: its lanes open again under it"""
    job, since_ns = start(), time.monotonic_ns()
    try:
        ip(1, "addr", "del", "10.77.2.2/24", "dev", "rail2")
        ip(1, "addr", "add", "10.77.2.102/24", "brd", "+", "dev", "rail2")
        told(job, since_ns, 1, 2, "healthy")
        assert until(lambda: sum(lanes_opened(job, since_ns, 2)) >= 2 * (HOSTS - 1), LIMIT_S), \
            "lanes stay closed: %d of 6 ends are open" % sum(lanes_opened(job, since_ns, 2))
        job.await_iterations(3, "with the new address")
        blames_only(job, since_ns, 1, 2)
        finish(job)
    finally:
        ip(1, "addr", "flush", "dev", "rail2")
        ip(1, "addr", "add", "10.77.2.2/24", "brd", "+", "dev", "rail2")


TESTS = [test_F3_loss, test_F5_flaps, test_F11_notices_lost, test_F11_mgmt_down,
         test_F12_address_removed, test_F12_address_changed]


def recover():
    """After a failed test: its job is gone, the lab is whole."""
    for job in jobs:
        job.kill()
    fault("heal", "all", "all")
    fault("heal", "all", "mgmt0")


def main():
    """Raises the lab, runs all tests or those that are named."""
    if os.geteuid() != 0:
        print("tests on the lab need root")
        return 77
    chosen = [globals()["test_" + name] for name in sys.argv[1:] if name[0] != "-"] or TESTS
    try:
        r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", RAILS, "--rate", RATE,
              *UP_RDMA)
        return run_all(chosen, recover, lambda: None)
    finally:
        for job in jobs:
            job.kill()
        subprocess.run([R2LAB, "down", "--name", LAB], check=False, stdout=subprocess.DEVNULL)
        if "R2_KEEP" not in os.environ:
            shutil.rmtree(WORK)


if __name__ == "__main__":
    sys.exit(main())
