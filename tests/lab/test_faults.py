#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Jobs under mpirun --mca coll r2 on a lab of 4 hosts with 4 rails, while rails and ranks fail:
test_faults.py GROUP [--long]

Every byte that a collective writes is checked, and floats have to be those of a healthy run to the
last bit (see fault_driver.c). Faults are timed by marks of the job, never by sleeping. The times
in the output are diagnostics: only liveness has limits.
"""

import os
import signal
import sys
import time

sys.dont_write_bytecode = True
from faultlab import (HOSTS, LAB, LANES, RAILS, Job, device_bytes, down, episode, fault, flows, recover,
                      heal_all, running, stop_running, up)
from labtest import counters, processes, run_all

LONG = "--long" in sys.argv


def test_end():
    """the job of the tests before ends with all results right and leaves nothing"""
    if Job.current is None:
        running()
    stop_running()


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
    """F9 NICs that are down, without carrier, and drop from the start join when healed (defect 10)"""
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
    job = Job().begin()
    job.now_in("float")
    os.kill(job.pids()[2], signal.SIGKILL)
    start = time.monotonic()
    assert job.ended() not in (0, 124)
    return ", ended after %.1f s" % (time.monotonic() - start)


def test_F10_killed_recovery():
    """F10 a rank is killed, --enable-recovery: all survivors get an error that names it"""
    job = Job("--errors", "return", mpirun=("--enable-recovery",)).begin()
    job.now_in("float")
    start = time.monotonic()
    os.kill(job.pids()[2], signal.SIGKILL)
    job.said("error [013] ", HOSTS - 1)
    took = time.monotonic() - start
    job.said("poisoned [013] ", HOSTS - 1)
    said = job.error_text()
    job.kill()
    assert "rank 2 on %s-h2" % LAB in said and "the peer process is gone" in said, said
    return ", after %.1f s" % took


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
    return ", %d iterations, %d failed lanes" % (job.status["iteration"], job.status["lanes_failed"])


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
    return ", %d iterations, %d failed lanes" % (job.status["iteration"], job.status["lanes_failed"])


GROUPS = {
    "down": [test_F1_down_host, test_F1_down_switch, test_F1_down_again, test_F1_down_each_kind, test_F1_down_idle,
             test_end, test_F1_down_init, test_F1_down_first, test_F1_down_finalize],
    "drop": [test_F2_drop_both, test_F2_drop_in, test_F2_drop_out, test_F2_drop_switch, test_F2_drop_idle, test_end,
             test_F2_drop_connect, test_F2_drop_connect_one_way, test_F2_drop_finalize],
    "slow": [test_F4_slow_50, test_F4_slow_10, test_F4_slow_1, test_end],
    "many": [test_F6_two_rails, test_F6_two_rails_drop, test_F6_same_rail, test_F6_plane, test_F6_all_but_one,
             test_F7_one_after_the_other, test_F7_failure_in_recovery, test_F8_outage_down, test_F8_outage_drop,
             test_end],
    "start": [test_start_healthy, test_F9_start_dead, test_F9_start_fewer, test_start_no_common_rail],
    "process": [test_F10_stopped, test_end, test_F10_busy, test_F10_killed, test_F10_killed_recovery],
    "nopath": [test_F8_no_path_down, test_F8_no_path_drop, test_F8_no_path_fatal],
    "comms": [test_comms, test_two_per_host],
}


def main():
    """Raises the lab, runs the tests of a group, or those that are named."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    if os.geteuid() != 0:
        print("fault tests on the lab need root")
        return 77
    tests = []
    for name in names or GROUPS:
        tests += GROUPS[name] if name in GROUPS else [globals()["test_" + name]]
    try:
        up()
        return run_all(tests, recover, lambda: None)
    finally:
        down()


if __name__ == "__main__":
    sys.exit(main())
