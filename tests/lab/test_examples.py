#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Training over r2, with mpi4py and as Horovod does it, also in memory of GPUs (the stand-in of
tests/fakecuda): the same losses, to the last bit, with a rail killed in the middle.

Needs examples/horovod_like of the build directory ($R2_BUILDDIR).
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, r2lab, run_all, same_mpi

LAB = "ex%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
STACK = ("-n", "4", "--mca", "pml", "ob1", "--mca", "btl", "r2,self", "--mca", "coll", "r2",
         "-x", "OPENBLAS_NUM_THREADS=1")
# The first mistake in the use of the driver ends the program.
GPUS = ("--mca", "coll_r2_gpu", "auto", "-x", "LD_LIBRARY_PATH=" + BUILD + "/tests/fakecuda/.libs",
        "-x", "FAKECUDA_DELAY_US=50", "-x", "FAKECUDA_ABORT=1")


def play(*command, faults=()):
    """Lines of a program that must succeed; faults: at which line to do what."""
    child = subprocess.Popen(
        [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", "80", *STACK, *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    lines = []
    for line in child.stdout:
        lines.append(line)
        for number, *fault in faults:
            if number == len(lines):
                r2lab("fault", "--name", LAB, *fault)
    assert child.wait() == 0, "".join(lines)
    return lines


def train(*words, faults=()):
    """Lines of a training."""
    lines = play(sys.executable, TOP + "/examples/sgd.py", *words, faults=faults)
    assert lines and lines[-1].startswith("weights") and "NOT" not in lines[-1], "".join(lines)
    return lines


FAULTS = ((4, "down", "h1", "rail2"), (8, "drop", "h0", "rail1"), (14, "heal", "all", "all"))


def compare(*words):
    """A healthy run against one with rails that die and come back."""
    same_mpi(sys.executable)
    healthy = train(*words)
    broken = train(*words, faults=FAULTS)
    assert healthy == broken, "".join(healthy + ["--\n"] + broken)
    losses = [float.fromhex(line.split()[3]) for line in healthy[:-1]]
    assert losses[-1] < losses[0], "nothing was learnt"
    return ", loss %.3f to %.3f" % (losses[0], losses[-1])


def test_floats():
    """gradients as floats"""
    return compare("--steps", "18")


def test_halves():
    """gradients as 16-bit floats with an operation of the program"""
    return compare("--steps", "18", "--half")


def test_horovod():
    """a thread that fuses tensors, bit vectors, 16-bit floats on a type of two bytes"""
    lines = play(BUILD + "/examples/horovod_like", "18", faults=FAULTS)
    assert lines == ["step %d: 0 wrong\n" % i for i in range(18)], "".join(lines)


def test_horovod_device():
    """the same with tensors and fused ones in the memory of a GPU"""
    lines = play(*GPUS, BUILD + "/examples/horovod_like", "--device", "18", faults=FAULTS)
    assert lines == ["step %d: 0 wrong\n" % i for i in range(18)], "".join(lines)


def heal():
    """All rails as new."""
    r2lab("fault", "--name", LAB, "heal", "all", "all")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    for module in ("mpi4py", "numpy"):
        if subprocess.run([sys.executable, "-c", "import " + module], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            print("python3-%s is not installed" % module)
            return 77
    r2lab("up", "--name", LAB, "--hosts", 4, "--rails", 4, "--rate", "100mbit")
    tests = [test_floats, test_halves, test_horovod, test_horovod_device]
    return run_all(tests, heal, down)


sys.exit(main())
