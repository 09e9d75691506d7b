#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Processes of other jobs over several hosts of a lab (tests/functional/dynamic): they are spawned,
connect and talk, and every value is checked, with r2 for collectives alone and for everything,
what passes between jobs, too: no other transport is there then.

What Open MPI itself cannot do is left out (docs/tests.md): 4.1.4 cannot spawn on the last host of
a job and on another, 5.0.7 hangs when it spawns again. The daemons of 5.0.7's launcher spoil their
memory when jobs connect whose processes have published a value. Where one of them, or mpirun, dies
of it, a test is skipped if, and only if, it is then seen to die of the same case without r2.
"""

import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from labtest import R2LAB, Skip, counters, r2lab, run_all
from parts import BUILD, App, on_mgmt

LAB = "dy%d" % os.getpid()
HOSTS = 4
DYNAMIC = BUILD + "/tests/functional/dynamic"
IS_PRRTE = shutil.which("prterun") is not None      # Open MPI 5.0
ON_ALL_BUT_THE_LAST = "hosts=" + ",".join("%s-h%d:1" % (LAB, h) for h in range(HOSTS - 1))
ALL_R2 = ("pml", "ob1", "btl", "r2,self", "btl_r2_fallback", "",
          "btl_r2_other_jobs", "16", "coll", "r2")
# On 5.0 r2 reaches other jobs by name only (docs/decisions.md), here in test_rails.
WITH_ALL_R2 = [word for pair in zip(ALL_R2[::2], ALL_R2[1::2]) for word in ("--mca", *pair)]
BESIDE = ("pml", "ob1", "btl", "r2,self", "coll", "r2") if IS_PRRTE else ALL_R2
WAYS = (("--mca", "coll", "r2"),
        [word for pair in zip(BESIDE[::2], BESIDE[1::2]) for word in ("--mca", *pair)])


# What the C library says of spoilt memory, and mpirun of a daemon that is gone.
SIGNS = ("free(): ", "corrupted ", "malloc(): ", "realloc(): ", "munmap_chunk(): ", "double free",
         "lost communication with a remote daemon")
KILLED = (134, 139)     # mpirun itself: by SIGABRT, SIGSEGV
STOCK_RUNS = 4


class Failed(AssertionError):
    """A run that did not end well: what it said, and its exit status."""

    def __init__(self, text, status=None):
        super().__init__(text)
        self.status = status


def runs(*words, limit=40):
    """A run: (exit status, what it said)."""
    done = subprocess.run([R2LAB, "run", "--name", LAB, "--timeout", str(limit), *words],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=80,
                          check=False)
    return done.returncode, done.stdout


def plays(*words):
    """One case, in both ways."""
    for way in WAYS:
        status, said = runs("--build", BUILD, "-n", str(HOSTS), *way, DYNAMIC, *words)
        if status != 0 or "ok 1 - " + words[0] not in said:
            raise Failed("%s: status %d\n%s" % (way, status, said), status)


def launcher_died(said, status):
    """How, if the processes of the job themselves did well as long as it lived; else None."""
    if any(words in said for words in ("not ok", "is wrong", "exited on signal", "r2:")):
        return None
    signs = [line for line in said.splitlines() if any(sign in line for sign in SIGNS)]
    if signs:
        return signs[0].strip()
    return "mpirun was killed by signal %d" % (status - 128) if status in KILLED else None


def stock_dies(*words):
    """How the launcher dies of that case without r2, if it does."""
    for _ in range(STOCK_RUNS):
        status, said = runs("--peer", "ob1", "-n", str(HOSTS), "env",
                            "LD_PRELOAD=" + BUILD + "/tests/functional/.libs/publishes.so",
                            DYNAMIC, *words, limit=15)
        how = launcher_died(said, status)
        if how:
            return how
    return None


def unless_stock_dies(*words):
    """A test that is skipped where the launcher of 5.0 dies in it, and of the same case, which the
    words name, without r2."""
    def wraps(test):
        def tries():
            try:
                return test()
            except AssertionError as error:
                how = launcher_died(str(error), getattr(error, "status", None))
                stock = stock_dies(*words) if IS_PRRTE and how else None
                if not stock:
                    raise
                print("# %s" % str(error).replace("\n", "\n# "))
                raise Skip("PRRTE died (%s), and without r2, too (%s)" % (how, stock)) from error
        tries.__doc__ = test.__doc__
        return tries
    return wraps


def ended(child):
    """The status of a launcher that may be about to end by itself."""
    try:
        return child.wait(timeout=5)
    except subprocess.TimeoutExpired:
        child.terminate()
        return child.wait()


@unless_stock_dies("self")
def test_self():
    """one rank spawns one process"""
    plays("self")


@unless_stock_dies("connect")
def test_connect():
    """halves of a job connect by a port"""
    plays("connect")


def test_spawn():
    """a job spawns one process on each of three hosts, twice (4.1)"""
    plays("spawn", ON_ALL_BUT_THE_LAST)


@unless_stock_dies("rails", ON_ALL_BUT_THE_LAST)
def test_rails():
    """messages of a spawned job, while a rail drops silently, another goes down, both come back"""
    before = counters(LAB)
    app = App(LAB, "dynamic", "rails", ON_ALL_BUT_THE_LAST, mca=ALL_R2)
    try:
        app.parts(5)
        r2lab("fault", "--name", LAB, "drop", "h1", "rail2")
        app.parts(10)
        r2lab("fault", "--name", LAB, "down", "h0", "rail0")
        app.parts(10)
        r2lab("fault", "--name", LAB, "heal", "all", "all")
        app.end(10)
    except AssertionError as error:
        raise Failed(str(error), ended(app.child)) from error
    finally:
        r2lab("fault", "--name", LAB, "heal", "all", "all")
    share = on_mgmt(LAB, before)
    assert share < 0.02, "%.1f %% of the bytes were on mgmt0" % (100 * share)


@unless_stock_dies("siblings")
def test_siblings():
    """a job spawns two jobs, which connect (5.0)"""
    plays("siblings")


def test_untold():
    """a job that cannot tell one on another host what it does: both end"""
    start = time.monotonic()
    status, said = runs("--build", BUILD, "-n", "2", *WITH_ALL_R2, "env",
                        "LD_PRELOAD=" + BUILD + "/tests/functional/.libs/lookup_fails.so",
                        "R2_TEST_PUBLISHES=pair", DYNAMIC, "self", "hosts=%s-h2:1" % LAB)
    assert status != 0 and "another job waits for its word" in said, said
    assert time.monotonic() - start < 40, "it was waited for\n" + said


def main():
    """Raises the lab, runs all tests."""
    if os.geteuid() != 0:
        print("tests on the lab need root")
        return 77
    r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", 4)
    return run_all([test_self, test_connect, test_rails,
                    test_siblings if IS_PRRTE else test_spawn, test_untold],
                   lambda: None, lambda: r2lab("down", "--name", LAB))


if __name__ == "__main__":
    sys.exit(main())
