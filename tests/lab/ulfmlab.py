# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What test_ulfm.py and ulfm_matrix.py share: one job of tests/functional/ulfm on a lab of 4 hosts
with 4 rails, and what has to be right in it."""

import os
import re
import subprocess
import sys

from evidence import Job
from labtest import R2LAB, TOP, r2lab

LAB = "ul%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
PROGRAM = BUILD + "/tests/functional/ulfm"
UNHEARD = ("env", "LD_PRELOAD=" + BUILD + "/tests/functional/.libs/unheard.so")
STARVED = UNHEARD + ("R2_UNHEARD_STARVED=1",)
STOCK = "--stock" in sys.argv
HOSTS, RAILS = 4, 4
LIMIT_S = 60         # of a job: before its ranks end themselves
CALLS = ("barrier bcast allreduce reduce allgather allgatherv alltoall alltoallv gather scatter "
         "reduce_scatter reduce_scatter_block scan exscan ialltoall iallreduce persistent").split()
LINE = re.compile(r"rank \d+: \w+ \w+: (-?[\d.]+) ms, left (\d+), (on r2|not on r2), (\d+) wrong")
OPTIONS = ("--peer", "ob1") if STOCK else ("--build", BUILD)
MCA = () if STOCK else ("--mca", "coll", "r2")


def play(case, call, ranks=HOSTS, under=(), limit_s=LIMIT_S):
    """One job, under other programs; returns ms from the death to the error, of each survivor. Of a
    job that is not right its output and r2's events are kept, and stacks if it does not end."""
    job = Job(LAB, "%s %s" % (case, call), BUILD + "/evidence")
    events = () if STOCK else ("--mca", "coll_r2_event_file", job.events)
    said = job.run([R2LAB, "run", "--name", LAB, *OPTIONS, "--ppn", str(ranks // HOSTS),
                    "--with-ft", "ulfm", "-n", str(ranks), *MCA, *events, *under, PROGRAM, case,
                    call], limit_s, ("(char *) 'ulfm.c'::step",))
    lines = LINE.findall(said)
    dead = {"revoke": 0, "two": 2, "shrink": 2, "agree": 2, "root": 2, "absent": 2}.get(case, 1)
    where = "%s %s, more in %s" % (case, call, job.folder)
    assert len(lines) == ranks - dead, "%s: %d lines\n%s" % (where, len(lines), said)
    for _, left, on_r2, wrong in lines:
        assert int(left) == ranks - dead and wrong == "0", "%s\n%s" % (where, said)
        assert STOCK or on_r2 == "on r2", "%s\n%s" % (where, said)
    job.done()
    return [float(line[0]) for line in lines]


class DownRail:
    """A rail is down while this lasts."""

    def __init__(self, host, rail):
        self.port = (host, rail)

    def __enter__(self):
        r2lab("fault", "--name", LAB, "down", *self.port)

    def __exit__(self, *_):
        r2lab("fault", "--name", LAB, "heal", *self.port)


def raise_lab():
    """Raises the lab; returns why it cannot be used here, or None."""
    if os.geteuid() != 0:
        return "tests on the lab need root"
    if subprocess.run([PROGRAM], stdout=subprocess.DEVNULL, check=False).returncode == 77:
        return "this Open MPI has no ULFM"
    r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", RAILS, "--rate", "100mbit")
    return None
