#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Many jobs in which processes die under ULFM: ulfm_matrix.py JOBS [FIRST [CASE..]]

JOBS of each case of tests/functional/ulfm, from number FIRST on. The number says the kind of
collective, 4, 8, 12 or 16 ranks, and whether a rail is down meanwhile: every other job. A job that
is not right is printed, and the rest goes on. What is checked is as in test_ulfm.py.
"""

import contextlib
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import r2lab
from ulfmlab import CALLS, HOSTS, LAB, RAILS, DownRail, play, raise_lab

CASES = ("before", "in", "after", "two", "shrink", "agree", "root", "revoke")
SIZES = (4, 8, 12, 16)


def one(case, number):
    """One job; returns (ms of each survivor, None) or ([], what was wrong)."""
    rail = DownRail("h%d" % (number % HOSTS), "rail%d" % (number // HOSTS % RAILS))
    with rail if number % 2 else contextlib.nullcontext():
        try:
            return play(case, CALLS[number % len(CALLS)], SIZES[number // 2 % len(SIZES)]), None
        except (AssertionError, subprocess.TimeoutExpired) as error:
            return [], str(error)


def main():
    """Raises the lab and plays all; one line for each case."""
    jobs, first = (int(word) for word in (sys.argv[1:3] + ["50", "0"][len(sys.argv[1:3]):]))
    cases, failed = sys.argv[3:] or CASES, 0
    why_not = raise_lab()
    if why_not:
        print(why_not)
        return 77
    print("1..%d" % len(cases))
    try:
        for place, case in enumerate(cases, 1):
            times, wrong = [], 0
            for number in range(first, first + jobs):
                found, why = one(case, number)
                times += found
                wrong += why is not None
                if why:
                    print("# job %d: %s" % (number, why.replace("\n", "\n# ")))
            print("%s %d - %s: %d of %d right, error after %.0f ms (median), %.0f ms (longest)" % (
                "not ok" if wrong else "ok", place, case, jobs - wrong, jobs,
                statistics.median(times or [0]), max(times or [0])), flush=True)
            failed += wrong
    finally:
        r2lab("down", "--name", LAB)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
