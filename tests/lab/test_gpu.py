#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Collectives and point-to-point on memory of GPUs (the stand-in of tests/fakecuda) while rails die
and come back: all numbers right, and no mistake in the use of the driver.

Needs tests/functional/gpu_steps of the build directory ($R2_BUILDDIR).
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, Skip, follow, r2lab, run_all, same_mpi

LAB = "gp%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
STEPS = 16


def train(kind, faults, *where, count=200000):
    """A loop on buffers of a kind of memory; faults: at which step to do what."""
    preload = BUILD + "/tests/functional/.libs/gpu_buffers.so"
    child = subprocess.Popen(
        [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", "100", *map(str, where),
         "-x", "LD_LIBRARY_PATH=" + BUILD + "/tests/fakecuda/.libs", "-x", "R2_TEST_GPU=" + kind,
         "-x", "FAKECUDA_DELAY_US=200", "-x", "FAKECUDA_SEED=7", "-x", "LD_PRELOAD=" + preload,
         "--mca", "coll", "r2", "--mca", "coll_r2_gpu", "auto",
         BUILD + "/tests/functional/gpu_steps", str(count), str(STEPS)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    said, steps = follow(child, LAB, "step ", faults)
    assert child.wait() == 0 and len(steps) == STEPS, said
    assert said.count(": 0 wrong\n") == 4 and "MISTAKE" not in said, said
    assert " copies, 0 mistakes" in said and "\n# rank 0: 0 copies" not in said, said


FAULTS = ((3, "down", "h1", "rail1"), (6, "drop", "h0", "rail0"), (9, "heal", "all", "all"),
          (12, "down", "h1", "rail0"))


def test_device():
    """device memory, a rank on each host"""
    train("device", FAULTS, "--ppn", 1, "-n", 4)


def test_mixed():
    """another kind of memory for each buffer and rank, two ranks on each host"""
    train("mixed", FAULTS, "--ppn", 2, "-n", 4)


def test_arrays():
    """mpi4py with arrays of a GPU: edges by point-to-point, sums by an allreduce"""
    same_mpi(sys.executable)
    if subprocess.run([sys.executable, "-c", "import numpy"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("python3-numpy is not installed")
    child = subprocess.Popen(
        [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", "100", "--ppn", "1", "-n", "4",
         "--mca", "pml", "ob1", "--mca", "btl", "r2,self", "--mca", "coll", "r2",
         "--mca", "coll_r2_gpu", "auto", "-x", "FAKECUDA_DELAY_US=100",
         "-x", "LD_LIBRARY_PATH=" + BUILD + "/tests/fakecuda/.libs",
         "-x", "LD_PRELOAD=" + BUILD + "/.libs/libr2_cuda_support.so",
         sys.executable, TOP + "/examples/cuda_arrays.py", "--steps", str(STEPS)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said, steps = follow(child, LAB, "step ", FAULTS)
    assert child.wait() == 0 and "MISTAKE" not in said and " is dead " in said, said
    assert steps == ["step %d: 0 wrong\n" % i for i in range(STEPS)], said
    assert "MPIX_Query_cuda_support() says 1\n" in said, said


def heal():
    """All rails as new."""
    r2lab("fault", "--name", LAB, "heal", "all", "all")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", 4, "--rails", 3, "--rate", "200mbit")
    return run_all([test_device, test_mixed, test_arrays], heal, down)


sys.exit(main())
