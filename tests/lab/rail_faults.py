# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Faults of rails on the lab, the groups down, drop, slow and many of test_faults.py."""

import sys
import time

from faultlab import (HOSTS, PUT, RAILS, Job, episode, fault, flows, heal_all, placed, running,
                      stop_running)

LONG = "--long" in sys.argv


def test_end():
    """the job of the tests before ends with all results right and leaves nothing"""
    if Job.current is None:
        running()
    job = Job.current
    stop_running()
    if not PUT:
        return ""
    return ", %.2f of the bytes put, %d receives held back" % (placed(job),
                                                               job.status["held_back"])


# ---- group down: F1


def test_F1_down_host():
    """F1 link down at the host in the middle of a collective, healed (defects 1, 11)"""
    return episode(["down", "h1", "rail2"], [(1, 2)])


def test_F1_down_switch():
    """F1 link down at the switch port in the middle of a collective, healed"""
    return episode(["--at", "switch", "down", "h2", "rail0"], [(2, 0)])


def test_F1_down_again():
    """F1 the same rail once more, while calls overlap (defects 1, 8)"""
    return episode(["down", "h1", "rail2"], [(1, 2)], kind="mixed")


def test_F1_down_each_kind():
    """F1 link down in a job of one kind of collective (long: of each kind)"""
    notes = []
    stop_running()
    kinds = ("int", "gather,", "gatherv", "scatter", "bcast", "barrier", "mixed", "comms")
    for i, kind in enumerate(kinds if LONG else ("gather,",)):
        Job.current = Job("--mix", kind).begin()
        Job.current.whole()
        host = i % HOSTS
        notes.append(episode(["down", "h%d" % host, "rail3"], [(host, 3)], kind.strip(",")))
        stop_running()
    return "".join(notes)


def idle_episode(*words):
    """A fault, and later a heal, while all ranks compute between two collectives."""
    job = running()
    job.open("pause")
    job.wait("gate go")
    fault(*words, "h3", "rail1")
    job.close("pause")
    job.open("go")
    job.iterations(2)
    job.close("go")
    job.open("pause")
    job.wait("gate go")
    fault("heal", "h3", "rail1")
    job.close("pause")
    job.open("go")
    job.iterations(1)
    job.close("go")
    job.whole()
    flows(job, 3, 1)
    job.right()


def test_F1_down_idle():
    """F1 link down and healed between two collectives"""
    idle_episode("down")


def test_F1_down_init():
    """F1 link down during MPI_Init, healed later: the rail joins"""
    job = Job()
    job.pids()
    job.open("init", "first")
    at = fault("down", "h2", "rail3")
    job.iterations(2)
    spans = [(float(m[1]), float(m[2])) for m in job.matching(r"init \d+ ([\d.]+) ([\d.]+)")]
    inside = sum(a < at < b for a, b in spans)
    fault("heal", "h2", "rail3")
    job.whole()
    flows(job, 2, 3)
    job.finish()
    return ", hit MPI_Init of %d ranks" % inside


def test_F1_down_first():
    """F1 link down in the first iteration, while lanes open"""
    job = Job()
    job.open("init")
    job.wait("gate first")
    job.open("first")
    fault("down", "h0", "rail1")
    job.iterations(2)
    fault("heal", "h0", "rail1")
    job.whole()
    flows(job, 0, 1)
    job.finish()


def finalize(*words):
    """A fault before, and one while the job is in MPI_Finalize."""
    job = Job().begin()
    job.open("stop")
    job.wait("gate finalize")
    fault(*words, "h0", "rail0")
    job.open("finalize")
    fault(*words, "h3", "rail0,rail1")
    job.finish()
    heal_all()


def test_F1_down_finalize():
    """F1 link down before and during MPI_Finalize"""
    finalize("down")


# ---- group drop: F2


def test_F2_drop_both():
    """F2 silent drop both ways in the middle of a collective, healed (defects 5, 6)"""
    return episode(["drop", "h1", "rail1"], [(1, 1)])


def test_F2_drop_in():
    """F2 silent drop of what comes in: only one side can notice (defect 2)"""
    return episode(["drop-in", "h2", "rail2"], [(2, 2)])


def test_F2_drop_out():
    """F2 silent drop of what goes out: only one side can notice (defect 2)"""
    return episode(["drop-out", "h0", "rail3"], [(0, 3)])


def test_F2_drop_switch():
    """F2 silent drop at the switch port, while calls overlap (defect 8)"""
    return episode(["--at", "switch", "drop", "h3", "rail0"], [(3, 0)], kind="mixed")


def test_F2_drop_idle():
    """F2 silent drop and heal between two collectives"""
    idle_episode("drop")


def connect_episode(*words):
    """A rail that drops while lanes open."""
    job = Job()
    job.open("init")
    job.wait("gate first")
    fault(*words)
    job.open("first")
    job.iterations(2)
    fault("heal", "all", words[-1])
    job.whole()
    flows(job, 1, int(words[-1][-1]))
    job.finish()


def test_F2_drop_connect():
    """F2 silent drop while lanes open, both ways (defect 10)"""
    connect_episode("drop", "h1", "rail2")


def test_F2_drop_connect_one_way():
    """F2 silent drop while lanes open, in on one host and out on another (defect 10)"""
    connect_episode("drop-in", "h1,h2", "rail0")
    connect_episode("drop-out", "h1,h3", "rail1")


def test_F2_drop_finalize():
    """F2 silent drop before and during MPI_Finalize"""
    finalize("drop")


# ---- group slow: F4


def slow(rate, host, rail, iterations=4):
    """A slow rail: nothing wrong, all lanes in the end; restored, bytes flow at full rate."""
    job = running()
    before = dict(job.status)
    job.now_in("float")
    fault("rate=" + rate, "h%d" % host, "rail%d" % rail)
    job.iterations(iterations)
    taken = (job.status["at"] - before["at"]) / (job.status["iteration"] - before["iteration"])
    failed = job.status["lanes_failed"] - before["lanes_failed"]
    fault("heal", "h%d" % host, "rail%d" % rail)
    job.whole()
    flows(job, host, rail)
    job.right()
    return ", %.2f s per iteration, lanes failed %d times" % (taken, failed)


def test_F4_slow_50():
    """F4 a rail at 50 % of its rate, restored"""
    return slow("50%", 1, 0)


def test_F4_slow_10():
    """F4 a rail at 10 % of its rate, restored"""
    return slow("10%", 2, 1)


def test_F4_slow_1():
    """F4 a rail at 1 % of its rate, restored"""
    return slow("1%", 3, 2, 2)


# ---- group many: F6, F7, F8


def test_F6_two_rails():
    """F6 two rails of one host at once"""
    return episode(["down", "h1", "rail0,rail1"], [(1, 0), (1, 1)])


def test_F6_two_rails_drop():
    """F6 two rails of one host drop silently at once"""
    return episode(["drop", "h2", "rail1,rail3"], [(2, 1), (2, 3)])


def test_F6_same_rail():
    """F6 the same rail of two hosts"""
    return episode(["down", "h0,h2", "rail2"], [(0, 2), (2, 2)])


def test_F6_plane():
    """F6 a whole plane drops silently"""
    return episode(["drop", "all", "rail3"], [(0, 3), (3, 3)], heals=["heal", "all", "rail3"])


def test_F6_all_but_one():
    """F6 all rails of a host but one"""
    return episode(["down", "h3", "rail0,rail1,rail2"], [(3, 0), (3, 2)],
                   heals=["heal", "h3", "all"])


def test_F7_one_after_the_other():
    """F7 one rail after the other until one is left: each backup fails, too (defects 1, 11)"""
    job = running()
    for number, kind in enumerate(("down", "drop", "drop-out")):
        job.now_in("float")
        fault(kind, "h1", "rail%d" % number)
        job.iterations(1)
    fault("heal", "h1", "all")
    job.whole()
    for rail in range(RAILS):
        flows(job, 1, rail)
    job.right()


def test_F7_failure_in_recovery():
    """F7 the backup fails during the recovery, the first comes back meanwhile"""
    job = running()
    job.now_in("float")
    fault("drop", "h2", "rail0")
    fault("drop", "h2", "rail1")
    fault("heal", "h2", "rail0")
    fault("down", "h2", "rail2,rail3")
    job.iterations(2)
    fault("heal", "h2", "all")
    job.whole()
    for rail in range(RAILS):
        flows(job, 2, rail)
    job.right()


def outage(kind, seconds):
    """No rail of a host works for a while."""
    job = running()
    job.now_in("float")
    at = fault(kind, "h1", "all")
    time.sleep(seconds)     # the length of the outage itself
    healed = fault("heal", "h1", "all")
    job.iterations(1)
    what, extra = job.extra_ms(at)
    job.whole()
    for rail in range(RAILS):
        flows(job, 1, rail)
    job.right()
    return ", hit %s: %+.0f ms for an outage of %.0f ms" % (what, extra, 1e3 * (healed - at))


def test_F8_outage_down():
    """F8 all rails of a host down for 2 s: calls wait and go on"""
    return outage("down", 2)


def test_F8_outage_drop():
    """F8 all rails of a host drop silently for 2 s: calls wait and go on"""
    return outage("drop", 2)


GROUPS = {
    "down": [test_F1_down_host, test_F1_down_switch, test_F1_down_again, test_F1_down_each_kind,
             test_F1_down_idle, test_end, test_F1_down_init, test_F1_down_first,
             test_F1_down_finalize],
    "drop": [test_F2_drop_both, test_F2_drop_in, test_F2_drop_out, test_F2_drop_switch,
             test_F2_drop_idle, test_end, test_F2_drop_connect, test_F2_drop_connect_one_way,
             test_F2_drop_finalize],
    "slow": [test_F4_slow_50, test_F4_slow_10, test_F4_slow_1, test_end],
    "many": [test_F6_two_rails, test_F6_two_rails_drop, test_F6_same_rail, test_F6_plane,
             test_F6_all_but_one, test_F7_one_after_the_other, test_F7_failure_in_recovery,
             test_F8_outage_down, test_F8_outage_drop, test_end],
}
