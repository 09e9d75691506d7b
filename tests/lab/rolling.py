#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Mixed traffic while each rail of each host fails and comes back in turn: rolling.py MINUTES
[PROGRAM...]

Programs of tests/functional, which check every byte, run again and again in layouts of ranks on
hosts, with the two command lines that the documentation gives: `mpirun --mca coll r2` and `mpirun
--mca pml ob1 --mca btl r2,self --mca coll r2`. Goes on after a failure; prints what failed.
"""

import itertools
import os
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, r2lab

BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
HOSTS, RAILS = 4, 4
LIMIT_S = 300       # for one job
KINDS = (("down",), ("drop",), ("--at", "switch", "down"), ("drop-in",), ("drop-out",))
# With collectives only, the rest stays on the management network: stock transports hang with a
# rail.
COLL = ("--p2p", "mgmt"), ("--mca", "coll", "r2")
ALL = (), ("--mca", "pml", "ob1", "--mca", "btl", "r2,self", "--mca", "coll", "r2")


def layouts(lab):
    """name -> (r2lab's words, mpirun's words)"""
    uneven = ",".join("%s-h%d:%d" % (lab, h, 3 - h) for h in range(3))
    return {
        "4x1": (("--ppn", "1"), ("-n", "4")),
        "2x2": (("--ppn", "2"), ("-n", "4")),
        "1x4": (("--ppn", "4"), ("-n", "4")),
        "3+2+1": ((), ("-n", "6", "--host", uneven, "--map-by", "slot")),
    }


# program -> (stacks, words)
PROGRAMS = {
    "all_collectives": ((COLL, ALL), ()),
    "p2p": ((ALL,), ()),
    "mixed": ((COLL, ALL), ("--seconds", "12")),
    "onesided": ((ALL,), ()),
    "io": ((ALL,), (BUILD + "/rolling.%d.dat" % os.getpid(),)),
    "threads": ((ALL,), ("20", "4")),
}


class Rolling:
    """One rail after the other fails and comes back until the end."""

    def __init__(self, lab, down_s, up_s, kinds=(("down",),)):
        self.lab, self.down_s, self.up_s, self.kinds = lab, down_s, up_s, kinds
        self.over, self.count, self.broken = threading.Event(), 0, None
        self.thread = threading.Thread(target=self._roll)
        self.thread.start()

    def _roll(self):
        try:
            self._faults()
        except BaseException as error:  # told by end()
            self.broken = error

    def _faults(self):
        while not self.over.is_set():
            turn, where = divmod(self.count, HOSTS * RAILS)
            where = "h%d" % (where % HOSTS), "rail%d" % (where // HOSTS)
            r2lab("fault", "--name", self.lab, *self.kinds[(self.count + turn) % len(self.kinds)],
                  *where)
            self.over.wait(self.down_s)
            r2lab("fault", "--name", self.lab, "heal", *where)
            self.over.wait(self.up_s)
            self.count += 1

    def end(self):
        """Stops; all rails are up. @return number of faults. Raises what kept faults from going
        on."""
        self.over.set()
        self.thread.join()
        if self.broken:
            raise self.broken
        return self.count


def command(lab, layout, stack, program, *words):
    """The command line of one job; layout and stack as in the tables above."""
    return [R2LAB, "run", "--name", lab, "--build", BUILD, "--timeout", str(LIMIT_S), *layout[0],
            *stack[0], *layout[1], *stack[1], "%s/tests/functional/%s" % (BUILD, program),
            *map(str, words)]


def job(words):
    """Runs one job. @return what went wrong, or None."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0 and "ok 1 " in done.stdout and "not ok" not in done.stdout:
        return None
    return "%s\nstatus %d\n%s\n%s" % (" ".join(words), done.returncode, done.stdout[-3000:],
                                      done.stderr[-6000:])


def jobs(lab, wanted):
    """(name, command line) of all jobs, so ordered that layouts and programs change from one to the
    next."""
    where = list(layouts(lab).items())
    what = [(p, s) for p in wanted for s in PROGRAMS[p][0]]
    for shift, (at, (program, stack)) in itertools.product(range(len(where)), enumerate(what)):
        layout, words = where[(at + shift) % len(where)]
        name = "%s, %s, %s" % (program, layout,
                               "coll r2" if stack is COLL else "coll r2 and btl r2")
        yield name, command(lab, words, stack, program, *PROGRAMS[program][1])


def run(lab, minutes, wanted):
    """All jobs again and again until the time is over. @return number of failures."""
    end, count, failures = time.monotonic() + 60 * minutes, 0, 0
    rolling = Rolling(lab, 2, 2, KINDS)
    try:
        for name, words in itertools.cycle(jobs(lab, wanted)):
            before, start = rolling.count, time.monotonic()
            wrong = job(words)
            count, failures = count + 1, failures + (wrong is not None)
            print("# %d: %s: %s, %.1f s, %d faults" % (count, name, "FAILED" if wrong else "right",
                                                       time.monotonic() - start,
                                                       rolling.count - before), flush=True)
            if wrong:
                print("".join("#   %s\n" % line for line in wrong.splitlines()), end="", flush=True)
            if time.monotonic() > end:
                break
    finally:
        faults = rolling.end()
    print("%sok 1 - rolling faults: %d jobs, %d faults, %d failed\n1..1" % (
        "not " if failures else "", count, faults, failures))
    return failures


def main():
    """Raises the lab and runs."""
    lab = "ro%d" % os.getpid()
    r2lab("up", "--name", lab, "--hosts", HOSTS, "--rails", RAILS, "--rate", "100mbit")
    try:
        return 1 if run(lab, float(sys.argv[1]), sys.argv[2:] or list(PROGRAMS)) else 0
    finally:
        r2lab("down", "--name", lab)


if __name__ == "__main__":
    sys.exit(main())
