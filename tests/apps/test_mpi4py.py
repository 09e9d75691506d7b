#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""mpi4py's own tests over r2 and over stock Open MPI: test_mpi4py.py [--only REGEX] SOURCE
[LAYOUT...]

SOURCE is a source tree of mpi4py of the version that is installed (its folder test/ is what
counts). Layouts: 1 to 5 (ranks on this machine), lab (2 hosts with 2 ranks each). --only takes the
files whose names match. What fails over r2 and not over stock Open MPI is a failure here; what
fails over stock Open MPI, with or without r2, is listed.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.dirname(HERE) + "/lab")
from labtest import R2LAB, TOP, r2lab

LAB = "py%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
LIMIT_S = int(os.environ.get("R2_MPI4PY_LIMIT_S", "600"))   # for one set of tests over one stack
RUN_MPI = TOP + "/tests/functional/run-mpi"
# (layout) -> the words in front of mpirun's, for stock Open MPI and for r2
LAYOUTS = {
    **{str(ranks): ((RUN_MPI, "-n", str(ranks)),) * 2 for ranks in range(1, 6)},
    "lab": tuple((R2LAB, "run", "--name", LAB, "--build", BUILD, "--p2p", p2p, "--ppn", "2", "-n",
                  "4")
                 for p2p in ("mgmt", "r2")),
}
STOCK = ("--mca", "coll", "^r2")
OVER_R2 = ("--mca", "pml", "ob1", "--mca", "btl", "r2,self", "--mca", "osc", "rdma,sm,pt2pt",
           "--mca", "coll", "r2")
# Processes that are spawned are another job, which r2 does not reach: tcp has to be there for them.
WITH_TCP = ("--mca", "pml", "ob1", "--mca", "btl", "r2,tcp,self", "--mca", "osc", "rdma,sm,pt2pt",
            "--mca", "coll", "r2")
SPAWNING = "test_spawn|test_dynproc"
# Runs of their own, so that one which ends at the time limit takes no other's tests along.
PARTS = ("test_cco_(buf|ngh|obj)", "test_cco_(nb|vec)", "test_p2p|test_msg|test_request|test_util",
         "test_rma|test_win")
SETS = (*((("-i", part, "-e", SPAWNING), OVER_R2) for part in PARTS),
        (("-e", "|".join((*PARTS, SPAWNING))), OVER_R2), (("-i", SPAWNING), WITH_TCP))
GOOD = {"ok", "skipped", "noisy"}
LINE = re.compile(r"^(\w+ \([\w.]+\)) \.\.\. ?(.*)$", re.MULTILINE)
FOOT = re.compile(r"^Ran \d+ tests? in ", re.MULTILINE)


def run(front, stack, which, source):
    """One run: verdict of each test, the worst of all ranks; a test that did not end is "hangs"."""
    verdicts = {}
    with tempfile.TemporaryDirectory(prefix="r2-mpi4py-") as folder:
        words = [*front, *stack, "sh", "-c", 'exec "$@" 2>%s/rank.$OMPI_COMM_WORLD_RANK' % folder,
                 "sh", "/usr/bin/python3", source + "/test/runtests.py", "-v", "--no-builddir",
                 *which]
        done = subprocess.run(["timeout", "-k", "10", str(LIMIT_S), *words],
                              stdin=subprocess.DEVNULL, cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        names = [n for n in os.listdir(folder) if n.startswith("rank.")]
        for name in names:
            with open("%s/%s" % (folder, name), encoding="utf8", errors="replace") as file:
                text = file.read()
            for test, verdict in LINE.findall(text):
                silent = "noisy" if FOOT.search(text) else "hangs"
                verdict = verdict.split()[0] if verdict else silent
                if verdicts.get(test, "ok") in ("ok", "skipped"):
                    verdicts[test] = verdict
    if done.returncode == 124 or not verdicts:
        print("# %s: status %d\n%s" % (" ".join(words), done.returncode, done.stdout[-3000:]),
              flush=True)
    return verdicts


def failed(verdicts):
    """The tests that did not end well."""
    return {test for test, verdict in verdicts.items() if verdict not in GOOD}


def compare(layout, source, sets):
    """All tests in one layout; returns the number of those that fail, or are not reached, over r2
    only."""
    only, sums = 0, Counter()
    for which, stack in sets:
        stock, ours = (run(front, s, which, source)
                       for front, s in zip(LAYOUTS[layout], (STOCK, stack)))
        for test in sorted(failed(ours) | failed(stock)):
            print("# %s: %s: %s over r2, %s over stock Open MPI" % (
                layout, test, ours.get(test, "not run"), stock.get(test, "not run")))
        lost = [test for test in stock if test not in ours]
        only += len(lost) + sum(stock.get(test, "not run") in GOOD
                                for test in failed(ours)) + (not ours)
        sums.update(ours=len(ours), stock=len(stock), ours_failed=len(failed(ours)),
                    stock_failed=len(failed(stock)),
                    ours_skipped=list(ours.values()).count("skipped"),
                    stock_skipped=list(stock.values()).count("skipped"))
        print("# %s: %s: %d tests over r2, %d over stock Open MPI, not reached over r2: %s" % (
            layout, " ".join(which), len(ours), len(stock), " ".join(lost[:5]) or "none"),
              flush=True)
    print("# %s: stock Open MPI: %d tests, %d skipped, %d failed; r2: %d tests, %d skipped, %d "
          "failed" % (
        layout, *(sums[of + what] for of in ("stock", "ours")
                  for what in ("", "_skipped", "_failed"))))
    return only


def main():
    """All layouts, as TAP."""
    words, sets = sys.argv[1:], SETS
    if words[:1] == ["--only"] and len(words) > 1:
        sets = ((("-i", words[1], "-e", SPAWNING), OVER_R2),)
        words = words[2:]
    if not words or not os.path.exists(words[0]
                                       + "/test/runtests.py") or set(words[1:]) - set(LAYOUTS):
        print(__doc__)
        return 2
    source, layouts = os.path.abspath(words[0]), words[1:] or list(LAYOUTS)
    failed = 0
    if "lab" in layouts:
        r2lab("up", "--name", LAB, "--hosts", 2, "--rails", 4, "--rate", "100mbit")
    try:
        print("1..%d" % len(layouts))
        for number, layout in enumerate(layouts, 1):
            only = compare(layout, source, sets)
            print("%sok %d - mpi4py's tests, layout %s: %d fail over r2 only" % (
                "not " if only else "", number, layout, only), flush=True)
            failed += only > 0
    finally:
        if "lab" in layouts:
            r2lab("down", "--name", LAB)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
