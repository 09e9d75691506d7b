#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""How soon every rank knows of a dead NIC where little but the out-of-band path is left:
oob_verdicts.py [FAULTS] [WORD...]

A lab of 4 hosts with 4 rails, on h1 to h3 all rails but one down, and a job under way. Links of h0
go down, one by one, and all come back, until there were FAULTS (20); the time is from the verdict
of the first rank, whose NIC it is, to that of the last. With each value of coll_r2_oob that is
given (pmix mesh) a job of its own. Exit status 1: a rank did not know, or named something else.
"""

import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
import test_verdicts as verdicts
from faultlab import HOSTS, RAILS, Job, down, fault, heal_all, up


def one(rail):
    """One fault on h0; returns ms from the first rank that knew to the last."""
    start = time.monotonic_ns()
    fault("down", "h0", "rail%d" % rail)

    def right(event):
        return (event["verdict"] == "nic" and event["blamed"].endswith("-h0")
                and event.get("rail") == rail)
    verdicts.settled(start, right)
    verdicts.blames_only(start, 0, rail, ("nic",))
    seen = {}
    for event in verdicts.verdicts(start):
        if right(event):
            seen.setdefault(event["rank"], event["mono_ns"])
    return (max(seen.values()) - min(seen.values())) / 1e6


def round_of_faults(job):
    """All rails of h1 to h3 but the first go down, then those of h0, one by one; all come back."""
    start = time.monotonic_ns()
    for host in range(1, HOSTS):
        for rail in range(1, RAILS):
            fault("down", "h%d" % host, "rail%d" % rail)
    for host in range(1, HOSTS):
        for rail in range(1, RAILS):
            verdicts.settled(start, lambda e, h=host, r=rail: e["verdict"] == "nic"
                             and e["blamed"].endswith("-h%d" % h) and e.get("rail") == r)
    job.iterations(1)
    took = [one(rail) for rail in range(1, RAILS)]
    healed = time.monotonic_ns()
    heal_all()
    job.whole()
    for host in range(HOSTS):
        for rail in range(1, RAILS):
            verdicts.settled(healed, lambda e, h=host, r=rail: e["capacity"] == 16
                             and e["blamed"].endswith("-h%d" % h) and e.get("rail") == r)
    return took


def measure(oob, faults):
    """A job with one value of coll_r2_oob."""
    job = Job(mpirun=("--mca", "coll_r2_event_file", verdicts.FILES, "--mca", "coll_r2_oob", oob,
                      "--mca", "coll_r2_heal_min_ms", "200")).begin()
    verdicts.state["job"] = job
    job.whole()
    took = []
    while len(took) < faults:
        took += round_of_faults(job)
    job.finish()
    took.sort()
    print("%s, %d faults, ms until the last rank knew: median %.1f (%.1f .. %.1f)" % (
        oob, len(took), statistics.median(took), took[0], took[-1]), flush=True)


def main():
    """Raises the lab, measures each."""
    words = sys.argv[1:]
    faults = int(words.pop(0)) if words and words[0].isdigit() else 20
    if os.geteuid() != 0:
        print("tests on the lab need root")
        return 77
    try:
        up()
        for oob in words or ["pmix", "mesh"]:
            for name in verdicts.glob.glob(verdicts.WORK + "/events.*"):
                os.unlink(name)
            measure(oob, faults)
    finally:
        down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
