#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""r2_info --plan on a lab: of the hosts that mpirun starts it on, and of a job that runs.

Needs tools/r2_info and bench/osu/r2_allreduce of the build directory ($R2_BUILDDIR).
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, namespaces, r2lab, run_all, until

LAB = "pl%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
INFO = BUILD + "/tools/r2_info"
HOSTS, RAILS = 4, 4
RATE = 12.5e6       # 100 Mbit/s
FOLDER = tempfile.TemporaryDirectory(prefix="r2-plan-")
PLAN_FILE = FOLDER.name + "/plan"


def plan_of_hosts(*words, ranks=HOSTS, status=0):
    """What a job of these hosts would do: standard output, and standard error."""
    return r2lab("run", "--name", LAB, "--build", BUILD, "--timeout", 60, "-n", ranks, INFO,
                 "--plan", "--job", *words, status=status)


def plan_of_file():
    """What the running job does; None while there is nothing to show."""
    done = subprocess.run([INFO, "--plan", PLAN_FILE, "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=30, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def dead(plan):
    """(host, rail) of all that is dead in a plan."""
    return [(h, r) for h, rails in enumerate(plan["rates"]) for r, rate in enumerate(rails)
            if rate == 0]


def shares(plan):
    """Shares in hundredths."""
    return [round(100 * share) for share in plan["shares"]]


def fault(kind, host, rail):
    """Breaks or heals."""
    r2lab("fault", "--name", LAB, kind, host, rail)


def test_healthy():
    """hosts as they are: equal shares, latency and rate measured"""
    def measured(plan):
        # veth devices tell 10 Gbit/s: what they give is 1/100 of it, less where the cores are busy
        step_s = plan["cost"]["step_seconds"]
        return 0.25 * RATE < plan["rates"][0][0] < 1.1 * RATE and 0 < step_s < 0.02

    # one may be spoilt by a pause
    plans = (json.loads(plan_of_hosts("--json")[0]) for _ in range(5))
    plan = next(filter(measured, plans), None)
    assert plan is not None, "rate and step of five runs were out of bounds"
    assert plan["names"] == ["%s-h%d" % (LAB, h) for h in range(HOSTS)], plan["names"]
    assert (plan["ranks"], plan["failures"], dead(plan)) == (4, 0, []), plan
    assert shares(plan) == [25, 25, 25, 25], plan["shares"]
    assert plan["choice"] == "direct", plan["choice"]
    return ", rails give %.1f MB/s, a step takes %.0f us" % (
        plan["rates"][0][0] / 1e6, 1e6 * plan["cost"]["step_seconds"])


def test_down():
    """a rail that is down has no capacity, its host a smaller share; table, JSON and picture"""
    fault("down", "h1", "rail2")
    picture = FOLDER.name + "/plan.svg"
    plan = json.loads(plan_of_hosts("--json", "--draw", picture)[0])
    said = plan_of_hosts("--bytes", "64M")[0]
    fault("heal", "h1", "rail2")
    assert dead(plan) == [(1, 2)] and plan["failures"] == 1, plan["rates"]
    assert shares(plan) == [30, 10, 30, 30], plan["shares"]
    assert plan["choice"] == "weighted(0.30,0.10,0.30,0.30)", plan["choice"]
    assert plan["cost"]["pace"] is not None, plan["cost"]
    assert os.path.getsize(picture) > 1000
    assert said.startswith("Allreduce of 67108864 bytes, 4 hosts x 4 rails"), said
    assert re.search(r"\n  h1 +\S+-h1 +1 +0.1000 +[0-9.]+ [0-9.]+ DEAD [0-9.]+\n", said), said


def test_silent():
    """a rail that drops everything in silence is found, too"""
    fault("drop", "h2", "rail0")
    plan = json.loads(plan_of_hosts("--json")[0])
    fault("heal", "h2", "rail0")
    assert dead(plan) == [(2, 0)], plan["rates"]
    assert shares(plan) == [30, 30, 10, 30], plan["shares"]


def test_ranks():
    """several ranks per host: planned and simulated"""
    plan = json.loads(plan_of_hosts("--json", ranks=8)[0])
    assert (plan["hosts"], plan["ranks"]) == (4, 8), plan
    assert plan["simulated_seconds"] >= plan["bound_seconds"] > 0, plan


def test_errors():
    """one host, a wrong parameter, no launcher: said, with an exit status"""
    said = plan_of_hosts(ranks=1, status=1)[1]
    assert "a plan needs 2 hosts or more: give mpirun more, " in said, said
    done = subprocess.run([INFO, "--plan", "--job"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "OMPI_MCA_coll_r2_rails": "lo"}, text=True,
                          timeout=30, check=False)
    assert done.returncode == 1 and "start the program with mpirun" in done.stderr, done.stderr
    said = r2lab("run", "--name", LAB, "--build", BUILD, "--timeout", 60, "-n", HOSTS, "--mca",
                 "coll_r2_rails", "nosuch0", INFO, "--plan", "--job", status=1)[1]
    assert 'no NIC matches "nosuch0"' in said, said


def test_running():
    """a running job: its plan file follows the map that all ranks agree on"""
    command = [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", 80, "-n", HOSTS, "--mca",
               "coll", "r2", "--mca", "coll_r2_plan_file", PLAN_FILE,
               BUILD + "/bench/osu/r2_allreduce", "-m", "262144:262144", "-i", 100000]
    with open(FOLDER.name + "/log", "w", encoding="utf8") as log, \
            subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log,
                             stderr=log) as job:
        try:
            assert until(lambda: os.path.exists(PLAN_FILE) and plan_of_file(), 20), "no plan file"
            assert shares(plan_of_file()) == [25, 25, 25, 25], plan_of_file()
            # calls of this length load no rail for long, but show round trips
            assert until(lambda: plan_of_file()["cost"]["step_seconds"], 20), plan_of_file()
            fault("down", "h1", "rail2")
            assert until(lambda: dead(plan_of_file()) == [(1, 2)], 20), plan_of_file()
            assert shares(plan_of_file()) == [30, 10, 30, 30], plan_of_file()
            fault("heal", "h1", "rail2")
            assert until(lambda: not dead(plan_of_file()), 30), plan_of_file()
        finally:
            job.send_signal(signal.SIGINT)


def recover():
    """All rails back."""
    fault("heal", "all", "all")


def down():
    """Takes the lab down."""
    if namespaces(LAB):
        r2lab("down", "--name", LAB)
    FOLDER.cleanup()


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", RAILS, "--rate", "100mbit")
    return run_all([test_healthy, test_down, test_silent, test_ranks, test_errors, test_running],
                   recover, down)


sys.exit(main())
