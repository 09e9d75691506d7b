#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Many jobs in which processes die under ULFM:
ulfm_matrix.py [--stock] [--unheard | --starved] [--ranks N] [--busy N] [JOBS [FIRST [CASE..]]]

JOBS of each case of tests/functional/ulfm, from number FIRST on. The number says the kind of
collective, 4, 8, 12 or 16 ranks (or N), and whether a rail is down meanwhile: every other job. A
job that is not right is printed, and the rest goes on; of what is kept of it see evidence.py. What
is checked is as in test_ulfm.py. --stock: without r2. --busy: beside N processes that only compute.
--unheard: the launcher tells of no death; --starved: nor is who waits for it scheduled.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import r2lab
from ulfmlab import CALLS, HOSTS, LAB, RAILS, STARVED, UNHEARD, DownRail, play, raise_lab

CASES = ("before", "in", "after", "two", "shrink", "agree", "root", "absent", "revoke")
SIZES = (4, 8, 12, 16)


BUSY = ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-c", "while True: pass"]


def one(case, number, ranks, under):
    """One job; returns (ms of each survivor, None) or ([], what was wrong)."""
    rail = DownRail("h%d" % (number % HOSTS), "rail%d" % (number // HOSTS % RAILS))
    with rail if number % 2 else contextlib.nullcontext():
        try:
            return play(case, CALLS[number % len(CALLS)],
                        ranks or SIZES[number // 2 % len(SIZES)], under), None
        except AssertionError as error:
            return [], str(error)


def many(case, numbers, ranks, under):
    """Jobs of one case; says what was found, and returns how many were not right."""
    times, wrong, loads = [], 0, []
    for number in numbers:
        found, why = one(case, number, ranks, under)
        times += found
        wrong += why is not None
        loads.append(os.getloadavg()[0])
        if why:
            print("# job %d: %s" % (number, why.replace("\n", "\n# ")))
    print("%s - %s: %d of %d right, error after %.0f ms (median), %.0f ms (longest), load %.0f to "
          "%.0f" % ("not ok" if wrong else "ok", case, len(numbers) - wrong, len(numbers),
                    statistics.median(times or [0]), max(times or [0]), min(loads), max(loads)),
          flush=True)
    return wrong


def main():
    """Raises the lab and plays all; one line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--unheard", dest="under", action="store_const", const=UNHEARD, default=())
    parser.add_argument("--starved", dest="under", action="store_const", const=STARVED)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("jobs", type=int, nargs="?", default=50)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("cases", nargs="*")
    given = parser.parse_args()
    why_not = raise_lab()
    if why_not:
        print(why_not)
        return 77
    cases, failed = given.cases or CASES, 0
    print("1..%d" % len(cases))
    with contextlib.ExitStack() as ends:
        ends.callback(r2lab, "down", "--name", LAB)
        for _ in range(given.busy):
            ends.callback(subprocess.Popen(BUSY).kill)
        for case in cases:
            numbers = range(given.first, given.first + given.jobs)
            failed += many(case, numbers, given.ranks, given.under)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
