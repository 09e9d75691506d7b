#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Processes with children, and processes that end while others go on, on three hosts."""

import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, r2lab, run_all, same_mpi

LAB = "pr%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
PROGRAM = (BUILD + "/tests/functional/children",)
PYTHON = ("/usr/bin/python3", TOP + "/tests/functional/children.py")
ALL_R2 = ("--mca", "pml", "ob1", "--mca", "btl", "r2,self")


def run(*words, ranks=2):
    """A job. @return exit status and what it said."""
    child = subprocess.run(
        [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", "60", "-n", str(ranks),
         "--mca", "coll", "r2", *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    return child.returncode, child.stdout


def end(said):
    """Ends the child of a test, if it is still there."""
    for pid in re.findall(r"^child (\d+)$", said, re.M):
        with open("/proc/%s/cmdline" % pid, "rb") as file:
            if b"children" in file.read():
                os.kill(int(pid), signal.SIGKILL)


def die(*program):
    """Rank 1 is killed. The other has its error while the child, which nobody ends, lives."""
    _, said = run("--enable-recovery", *program, "--die")
    try:
        found = re.search(r"rank 0: error after ([0-9.]+) s, the child lives", said)
        assert found and "the peer process is gone" in said, said
        return ", after %s s" % found.group(1)
    finally:
        try:
            end(said)
        except OSError:
            pass


def test_die_alone():
    """a rank without children is killed"""
    return die(*PROGRAM, "none")


def test_die_fork():
    """a forked child lives on"""
    return die(*PROGRAM, "fork")


def test_die_spawn():
    """a child of posix_spawn lives on"""
    return die(*PROGRAM, "spawn")


def test_die_system():
    """a child of system() lives on"""
    return die(*PROGRAM, "system")


def test_die_python():
    """a worker of Python's multiprocessing lives on"""
    same_mpi(PYTHON[0])
    return die(*ALL_R2, *PYTHON)


def right(*words):
    """A job whose children end, or do not, and whose results are right."""
    status, said = run(*words)
    assert status == 0 and "not ok" not in said and "ok 1 " in said, said


def test_harmless():
    """children of all kinds, collectives and messages go on"""
    right(*ALL_R2, *PROGRAM)


def test_python():
    """pools of Python's multiprocessing, collectives and messages go on"""
    same_mpi(PYTHON[0])
    right(*ALL_R2, *PYTHON)


def leave(*words):
    """A job of which processes leave early. The others have it right, and nobody speaks of
    failures."""
    status, said = run("--mca", "async_mpi_finalize", "1", *ALL_R2, *words, ranks=3)
    assert status == 0 and said.count(": right") == 3 and said.count(": finalized") == 3, said
    assert not re.search(r"\] (r2|coll:r2|btl:r2)[: ].*(gone|fail)", said), said


def test_leave_bcasts():
    """the root of broadcasts leaves before the others call"""
    leave(BUILD + "/tests/functional/leave", "bcasts")


def test_leave_rail():
    """and a rail of its host is dead"""
    r2lab("fault", "--name", LAB, "drop", "h0", "rail1")
    try:
        leave(BUILD + "/tests/functional/leave", "bcasts")
    finally:
        r2lab("fault", "--name", LAB, "heal", "h0", "rail1")


def test_leave_others():
    """a rank leaves, the others go on"""
    leave(BUILD + "/tests/functional/leave", "others")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab and runs all tests, or those that are named."""
    if os.geteuid() != 0:
        print("tests on the lab need root")
        return 77
    if subprocess.run([PYTHON[0], "-c", "import mpi4py"], stderr=subprocess.DEVNULL,
                      check=False).returncode != 0:
        print("python3-mpi4py is not installed")
        return 77
    names = sys.argv[1:]
    tests = [test for name, test in globals().items()
             if name.startswith("test_") and (not names or name[5:] in names)]
    r2lab("up", "--name", LAB, "--hosts", "3", "--rails", "2")
    return run_all(tests, lambda: None, down)


if __name__ == "__main__":
    sys.exit(main())
