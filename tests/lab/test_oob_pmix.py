#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The PMIx exchange between hosts: with and without data in the launcher's fence, with a rank on
the first or the second host that takes no part; PMIx events, and deaths that the launcher tells;
and r2_info on a host of the lab.

Needs tests/functional/oob_pmix, oob_events, hello_mpi and ulfm, and tools/r2_info of the build
directory ($R2_BUILDDIR).
"""

import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import TOP, Skip, r2lab, run_all

LAB = "op%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
ULFM = BUILD + "/tests/functional/ulfm"
PRRTE = shutil.which("prterun") is not None     # Open MPI 5.0: its launcher carries events


def run(*arguments, status=0):
    """Four ranks on two hosts; returns what they say, on both outputs."""
    return "".join(r2lab("run", "--name", LAB, "--p2p", "mgmt", "--build", BUILD, "--timeout", 40,
                         "-n", 4, *arguments, status=status))


def exchange(silent, *arguments):
    """Rank `silent` does not publish (-1: all do)."""
    said = run(BUILD + "/tests/functional/oob_pmix", silent, *arguments)
    assert "oob_pmix: 4 ranks" in said, said


def enabled(hosts, collect, wait=1):
    """An MPI program with r2 enabled on the hosts that a pattern names; returns what it says.
    Without `wait`, and with nothing collected, the launcher has no fence."""
    script = "case $(hostname) in *-%s) export OMPI_MCA_coll_r2_enable=1 ;; esac; exec %s" % (
        hosts, BUILD + "/tests/functional/hello_mpi")
    said = run("--mca", "coll_r2_verbose", 2, "env",
               "OMPI_MCA_pmix_base_async_modex=%d" % (not wait),
               "OMPI_MCA_pmix_base_collect_data=%d" % collect, "sh", "-c", script)
    assert "4 ranks, sum 4" in said, said
    return said


def test_all():
    """every rank finds the key and every blob, with or without data in the launcher's fence"""
    exchange(-1)
    exchange(-1, "asks")


def test_silent():
    """a rank without r2 is found out at once, on either host, rank 0 too"""
    for silent in (0, 1, 2):
        exchange(silent)


def test_silent_asks():
    """the same when the launcher's fence brings no data along"""
    for silent in (0, 3):
        exchange(silent, "asks")


def test_enabled():
    """r2 enabled on one of two hosts: the job does without; on both: it is used"""
    for hosts in ("h0", "h1"):
        said = enabled(hosts, 1)
        assert "this job does without" in said and "in use on" not in said, said
    for collect in (0, 1):
        said = enabled("h?", collect)
        assert said.count("in use on") == 2, said


def test_enabled_asks():
    """r2 enabled on one of two hosts, and no data in the fence: the job does without"""
    for hosts in ("h0", "h1"):
        said = enabled(hosts, 0)
        assert "this job does without" in said and "in use on" not in said, said


def test_no_fence():
    """no fence: the job does without r2, whose word is not all that a process then publishes"""
    for _ in range(4):
        said = enabled("h?", 0, 0)
        assert "pmix_base_async_modex is set" in said and "in use on" not in said, said


def test_events():
    """what the launcher is; where it carries events, a burst of them, and one to and fro"""
    said = run(BUILD + "/tests/functional/oob_events", "carries" if PRRTE else "breaks")
    assert "oob_events: server" in said, said
    assert said.count("messages in") == (4 if PRRTE else 0), said
    return ", " + said[said.index("to and fro"):].strip() if PRRTE else ""


def test_deaths():
    """processes that are killed, or exit with an error: the others hear of both from a launcher
    that lets them live, and of nobody else"""
    if not PRRTE:
        raise Skip("this launcher carries no events")
    said = run("--with-ft", "ulfm", BUILD + "/tests/functional/oob_events", "carries", "deaths",
               status=3)    # that of the one that exits
    known = re.findall(r"rank (\d) knows after ([\d.]+) ms that rank (\d) is dead", said)
    assert sorted(line[::2] for line in known) == [(a, b) for a in "01" for b in "23"], said
    assert all(float(line[1]) < 1000 for line in known), said
    return ", known after %s ms" % " ".join(line[1] for line in known)


def test_deaths_in_job():
    """a rank of an MPI job is killed under ULFM: r2 has the launcher's word on every other rank"""
    if not PRRTE or subprocess.run([ULFM], stdout=subprocess.DEVNULL, check=False).returncode == 77:
        raise Skip("no ULFM")
    said = run("--with-ft", "ulfm", "--mca", "coll", "r2", "--mca", "coll_r2_verbose", 3,
               ULFM, "in", "allreduce")
    told = re.findall(r"(\S+) r2 \S+: debug: events: the launcher says that rank 3 is dead", said)
    assert len(set(told)) == 3, said
    assert len(re.findall(r"left 3, on r2, 0 wrong", said)) == 3, said


def test_events_forced():
    """coll_r2_oob = pmix: a launcher that does not survive events is told of and sent none, and
    one that carries them gets some; mesh: none"""
    for oob in ("auto", "pmix", "mesh"):
        said = run("--mca", "coll", "r2", "--mca", "coll_r2_verbose", 2, "--mca", "coll_r2_oob",
                   oob, BUILD + "/tests/functional/hello_mpi")
        assert "4 ranks, sum 4" in said, said
        told = said.count("does not survive an event")
        used = said.count("notices also go as PMIx events: success")
        assert told == (oob == "pmix" and not PRRTE), (oob, said)
        assert used == (oob != "mesh" and PRRTE), (oob, said)


def test_info():
    """r2_info on a host: its rails, and a rail that is down"""
    words = ["exec", "--name", LAB, "h1", "env", "OMPI_MCA_coll_r2_rails=rail*",
             "OMPI_MCA_mca_base_component_path=SYSTEM_DEFAULT:%s/mca" % BUILD,
             BUILD + "/tools/r2_info", "--json"]
    info = json.loads(r2lab(*words)[0])
    assert info["failover_chain"] == ["rail0", "rail1"], info["failover_chain"]
    assert [rail["address"] for rail in info["rails"]] == ["10.77.0.2/24", "10.77.1.2/24"]
    assert not info["problems"], info["problems"]
    r2lab("fault", "--name", LAB, "down", "h1", "rail1")
    info = json.loads(r2lab(*words)[0])
    assert [rail["carrier"] for rail in info["rails"]] == [True, False]
    assert "rail 1 (rail1) is down" in info["problems"][0]["what"], info["problems"]


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", 2, "--rails", 2, "--rate", "100mbit")
    return run_all([test_all, test_silent, test_silent_asks, test_enabled, test_enabled_asks,
                    test_no_fence, test_events, test_deaths, test_deaths_in_job,
                    test_events_forced, test_info],
                   lambda: None, down)


sys.exit(main())
