#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What r2 says is broken, on a lab of 4 hosts with 4 rails: test_verdicts.py [NAME...]

Every rank's event file must name the right part, and nothing else, for each fault; and must say
that it is well again after the heal. Times are diagnostics: only liveness has limits. With --put as
the first word probes are puts, over TCP (docs/faults.md).
"""

import glob
import json
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
from faultlab import HOSTS, LAB, RAILS, WORK, Job, down, fault, heal_all, recover, up
from labtest import run_all, until

FILES = WORK + "/events.%h.%r"
LIMIT_S = 40
PUT = ("--mca", "coll_r2_probe", "put", "--mca", "coll_r2_verbose",
       "2") if "--put" in sys.argv else ()
state = {"job": None}


def lines():
    """All events of all ranks so far; a line that is being written is left for the next time."""
    found = []
    for name in glob.glob(FILES.replace("%h", "*").replace("%r", "*")):
        with open(name, encoding="utf8") as file:
            found += [json.loads(line) for line in file if line.endswith("\n")]
    return found


def verdicts(since_ns):
    """Verdicts from then on, oldest first."""
    return sorted((e for e in lines() if e["event"] == "verdict" and e["mono_ns"] >= since_ns),
                  key=lambda e: e["mono_ns"])


def text(events):
    """Verdicts for a failure report."""
    return "".join("\n  rank %s: %s" % (e["rank"], {k: e.get(k) for k in (
        "verdict", "blamed", "other", "rail", "direction", "capacity", "map_version", "own",
        "evidence")})
        for e in events)


def names(host):
    """Host name in the lab."""
    return "h%d" % host


def job():
    """The job of all tests."""
    if state["job"] is None or state["job"].child.poll() is not None:
        for name in glob.glob(WORK + "/events.*"):
            os.unlink(name)
        state["job"] = Job(mpirun=("--mca", "coll_r2_event_file", FILES, *PUT)).begin()
        state["job"].whole()
        if PUT:
            said = state["job"].error_text().count(": probes put")
            assert said == HOSTS * RAILS, "puts are in use on %d rails" % said
    return state["job"]


def settled(since_ns, match):
    """Waits until every rank has a verdict that matches."""
    def all_ranks():
        return {e["rank"] for e in verdicts(since_ns) if match(e)} == set(range(HOSTS))
    assert until(all_ranks, LIMIT_S), "not on every rank:" + text(verdicts(since_ns))


def blames_only(since_ns, host, rail, kinds):
    """No verdict may name anything else, or call it something else."""
    wrong = [e for e in verdicts(since_ns) if e["verdict"] != "healthy" and not (
        e["blamed"].endswith(names(host)) and e.get("rail") == rail and e["verdict"] in kinds)]
    assert not wrong, "a healthy part is blamed:" + text(wrong)


def nic_fault(words, host, rail, direction=None):
    """A fault of one NIC: every rank learns which, and later that it is well."""
    running = job()
    running.now_in("float")
    start = time.monotonic_ns()
    fault(*words)
    settled(start, lambda e: e["verdict"] == "nic" and e["blamed"].endswith(names(host))
            and e.get("rail") == rail)
    assert until(lambda: [e for e in verdicts(start) if e["capacity"] == 0
                          and e["map_version"] > 0],
                 LIMIT_S), "not in any map:" + text(verdicts(start))
    known = known_ms(start, lambda e: True)
    running.iterations(1)
    blames_only(start, host, rail, ("nic",))
    told = {e["direction"] for e in verdicts(start) if e["verdict"] == "nic" and e["own"]}
    healed = time.monotonic_ns()
    heal_all()
    settled(healed, lambda e: e["blamed"].endswith(names(host)) and e.get("rail") == rail
            and e["capacity"] == 16)
    running.whole()
    running.right()
    if direction is not None:
        assert direction in told, "direction told: %s" % told
    return ", known to all after %.0f ms, direction %s" % (known, "/".join(sorted(told)))


def test_down_host():
    """link down at the host: its NIC, on every rank"""
    return nic_fault(["down", "h1", "rail2"], 1, 2)


def test_down_switch():
    """link down at the switch port: the NIC of that host"""
    return nic_fault(["--at", "switch", "down", "h2", "rail0"], 2, 0)


def test_drop_both():
    """silent drop both ways: the NIC of that host"""
    return nic_fault(["drop", "h3", "rail1"], 3, 1)


def test_drop_in():
    """silent drop of what comes in"""
    return nic_fault(["drop-in", "h0", "rail3"], 0, 3, "in")


def test_drop_out():
    """silent drop of what goes out"""
    return nic_fault(["drop-out", "h2", "rail2"], 2, 2, "out")


def known_ms(since_ns, match):
    """Time until the last rank had a verdict that matches."""
    return max(min(e["mono_ns"] for e in verdicts(since_ns) if e["rank"] == rank and match(e))
               for rank in range(HOSTS)) / 1e6 - since_ns / 1e6


def test_slow():
    """a rail at 10 % of its rate: slow, with what it still gives, and later full again"""
    def measured(event):
        return (event["verdict"] == "slow" and event["blamed"].endswith(names(1))
                and event.get("rail") == 1 and 0 < event["capacity"] < 16)

    def well(event):
        return (event["blamed"].endswith(names(1)) and event.get("rail") == 1
                and event["capacity"] == 16 and event["map_version"] > 0)
    running = job()
    running.now_in("float")
    start = time.monotonic_ns()
    fault("rate=10%", "h1", "rail1")
    settled(start, measured)
    running.iterations(1)
    blames_only(start, 1, 1, ("slow",))
    capacities = [e["capacity"] for e in verdicts(start) if e["rank"] == 1
                  and e["verdict"] == "slow"]
    healed = time.monotonic_ns()
    heal_all()
    settled(healed, well)
    running.whole()
    running.right()
    return ", known to all after %.0f ms as %s/16, healed after %.0f ms" % (
        known_ms(start, measured), capacities, known_ms(healed, well))


def quiet(what):
    """Something that is no fault: nobody may say that a rail is broken, and no lane may fail."""
    running = job()
    failed = running.status["lanes_failed"]
    start = time.monotonic_ns()
    what(running)
    running.iterations(2)
    wrong = [e for e in verdicts(start)
             if e["verdict"] not in ("healthy", "peer_busy", "peer_silent")]
    assert not wrong, "a healthy part is blamed:" + text(wrong)
    assert running.status["lanes_failed"] == failed, "lanes failed over"
    running.right()


def test_stopped():
    """a rank stopped for 10 s: no failover, no verdict on a rail"""
    def stop(running):
        pid = running.pids()[2]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(10)
        os.kill(pid, signal.SIGCONT)
    quiet(stop)


def test_end():
    """the job ends with all results right"""
    job().finish()
    ends = [e for e in lines() if e["event"] == "end"]
    assert {e["rank"] for e in ends} == set(range(HOSTS)), "event files without an end"
    assert not [e for e in lines() if e["event"] == "lost"], "events were lost"


TESTS = [test_down_host, test_down_switch, test_drop_both, test_drop_in, test_drop_out, test_slow,
         test_stopped, test_end]


def main():
    """Raises the lab, runs all tests or those that are named."""
    chosen = [word for word in sys.argv[1:] if not word.startswith("-")]
    if os.geteuid() != 0:
        print("tests on the lab need root")
        return 77
    try:
        up()
        return run_all([globals()["test_" + name] for name in chosen] if chosen else TESTS, recover,
                       lambda: None)
    finally:
        down()


if __name__ == "__main__":
    sys.exit(main())
