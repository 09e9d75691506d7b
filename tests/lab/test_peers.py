#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""bench/peers on a real lab: one cell, r2 against Open MPI's own, measured, gone on with, redrawn.
Times are not judged."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from labtest import TOP, Skip, processes, remains, run_all, until

BUILD = os.path.abspath(os.environ.get("R2_BUILDDIR", TOP + "/build"))
WORK = tempfile.mkdtemp(prefix="r2-peers-")
DATA = WORK + "/data.json"
WORDS = ("--rows", "2x1@100 allreduce", "--sizes", "8", "--seconds", "0.05", "--runs", "1",
         "--stacks", "r2", "ob1", "--data", DATA)


def peers(*words):
    """Runs the script; returns what it says, both streams."""
    child = subprocess.Popen([TOP + "/bench/peers/peers", "--build", BUILD, *words],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    out, err = child.communicate(timeout=90)
    assert child.returncode == 0, out + err
    assert not remains("peers%ds" % child.pid), remains("peers%ds" % child.pid)
    return out, err


def runs():
    with open(DATA, encoding="utf-8") as file:
        return json.load(file)["runs"]


def test_cell():
    """one cell has a ratio, and its lab is gone"""
    out, err = peers(*WORDS)
    assert "| allreduce, 2 hosts x 1 rank, 100 Mbit rails | " in out, out + err
    assert [run["stack"] for run in runs()] == ["r2", "ob1"] and "FAILED" not in out, out
    assert all(run["figures"]["8"] > 0 for run in runs())


def test_going_on():
    """a further stack is measured, what is there is not; MPICH where it is installed"""
    if not shutil.which("mpiexec.mpich") or not os.path.exists(
            BUILD + "/bench/peers/r2_bench_mpich"):
        raise Skip("MPICH, or the benchmark for it, is not there: make bench-peers-mpich")
    out, err = peers(*WORDS[:-4], "r2", "ob1", "mpich", "--data", DATA)
    assert err.count("round 1") == 1 and ", mpich" in err, out + err
    assert [run["stack"] for run in runs()] == ["r2", "ob1", "mpich"]
    assert runs()[2]["figures"]["8"] > 0, runs()[2]     # its end may be stuck in MPI_Finalize


def test_redrawing():
    """tables and plots come from the data alone"""
    out, _ = peers("--from", DATA)
    assert "| allreduce, 2 hosts x 1 rank, 100 Mbit rails | " in out


def test_stopped():
    """a signal takes the lab down, too"""
    child = subprocess.Popen([TOP + "/bench/peers/peers", "--build", BUILD, "--rows",
                              "2x1@100 allreduce", "--stacks", "r2", "ob1", "--seconds", "5"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, text=True)
    lab = "peers%ds" % child.pid
    assert until(lambda: processes(lab))
    child.terminate()
    assert child.wait(60) == 143
    assert not remains(lab), remains(lab)


def main():
    """All tests, or exit status 77 where there can be no lab."""
    if os.geteuid() != 0:
        print("the lab needs root")
        return 77
    return run_all([test_cell, test_going_on, test_redrawing, test_stopped], lambda: None,
                   lambda: shutil.rmtree(WORK))


if __name__ == "__main__":
    sys.exit(main())
