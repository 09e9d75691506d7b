#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Real MPI applications over r2 on the lab, healthy and with rails that die in the middle:
test_apps.py [APP...]

Each application of apps.py runs over stock Open MPI on the management network, over r2 (coll/r2,
pml/ob1 and btl/r2), over r2 with links that go down and over r2 with links that drop silently. The
numbers that it prints as results have to be the same, over r2 to the last digit; a fault that comes
when all is over is an error of the test.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE) + "/lab"]
import labtest
from apps import APPS
from labtest import R2LAB, TOP, Skip, counters, r2lab, run_all

LAB = "ap%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
HOSTS, RAILS = 4, 4
LIMIT_S = 600       # for one run: a machine may be busy
RANK_BYTES = 2 << 30
STOCK = ("--p2p", "mgmt"), ("--mca", "coll", "^r2")
OVER_R2 = (), ("--mca", "coll", "r2")
ENDED = 100000      # bytes on the rails after the last fault: fewer mean that it came too late


class Run:
    """A run of an application in a folder of its own."""

    def __init__(self, app, stack):
        self.app, self.folder = app, tempfile.mkdtemp(prefix="r2-app-")
        app.prepare(self.folder)
        self.output = "%s/%s" % (self.folder, app.output)
        layout = list(app.layout)
        ours = [layout.pop(0), layout.pop(0)] if "--ppn" in layout else []
        # r2's warnings would be in the middle of a program's lines.
        quiet = ("--mca", "coll_r2_verbose", "0") if app.output == "stderr" else ()
        command = [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", str(LIMIT_S), *ours,
                   *stack[0], *layout, *stack[1], *quiet, "-x", "OMP_NUM_THREADS=1", "-x",
                   "OPENBLAS_NUM_THREADS=1", *app.words]
        with open(self.folder + "/stdout", "w", encoding="utf8") as out, \
                open(self.folder + "/stderr", "w", encoding="utf8") as err:
            self.child = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                          stdout=out, stderr=err, preexec_fn=limit_memory)

    def text(self):
        """The output so far."""
        try:
            with open(self.output, encoding="utf8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def reach(self, mark):
        """Waits until the output has this text."""
        while mark not in self.text():
            assert self.child.poll() is None, "ended before it said %r\n%s" % (mark, self.said())
            time.sleep(0.02)

    def end(self):
        """Waits for the end; returns the results."""
        status = self.child.wait()
        assert status == 0, "status %d\n%s" % (status, self.said())
        found = self.app.results(self.text())
        assert len(found) >= self.app.least, "%d results: %s\n%s" % (len(found), found, self.said())
        shutil.rmtree(self.folder)
        return found

    def said(self):
        """Ends of output and standard error."""
        with open(self.folder + "/stderr", encoding="utf8", errors="replace") as file:
            return "%s\n--\n%s\n(%s)" % (self.text()[-2000:], file.read()[-4000:], self.folder)


def limit_memory():
    """No process of a run may take more than this."""
    resource.setrlimit(resource.RLIMIT_DATA, (RANK_BYTES, RANK_BYTES))


def fault(*words):
    """r2lab fault."""
    r2lab("fault", "--name", LAB, *words)


def sent():
    """Bytes that all hosts have sent: on rails, on mgmt0."""
    rails = mgmt = 0
    for devices in counters(LAB).values():
        for device, numbers in devices.items():
            rails += numbers["tx_bytes"] * (device != "mgmt0")
            mgmt += numbers["tx_bytes"] * (device == "mgmt0")
    return rails, mgmt


def over_r2(app, kind=None):
    """One run over r2; at each mark one more rail of another host fails. Returns the results."""
    before = after = sent()
    run = Run(app, OVER_R2)
    for number, mark in enumerate(app.marks if kind else ()):
        run.reach(mark)
        fault(kind, "h%d" % (1 - number), "rail%d" % (2 * number + 1))
        after = sent()
    found = run.end()
    now = sent()
    fault("heal", "all", "all")
    late = now[0] - after[0]
    assert late > ENDED, "the fault came too late: %d bytes after it" % late
    assert now[1] - before[1] < 0.1 * (now[0] - before[0]), \
        "bytes on rails and mgmt0: %s to %s" % (before, now)
    return found


def close(mine, other, tolerance):
    """Are results of another MPI the same but for the order of sums?"""
    if len(mine) != len(other):
        return False
    for (name, value), (other_name, other_value) in zip(mine, other):
        if name != other_name:
            return False
        for a, b in zip(value.split(), other_value.split(), strict=True):
            if a != b and (not tolerance
                           or abs(float(a) - float(b)) > tolerance * max(1.0, abs(float(b)))):
                return False
    return True


def compare(name):
    """All runs of one application."""
    app = APPS[name]
    if app.missing():
        raise Skip(app.missing())
    start = time.monotonic()
    stock = Run(app, STOCK).end()
    times = [time.monotonic() - start]
    found = []
    for kind in (None, "down", "drop"):
        start = time.monotonic()
        found.append(over_r2(app, kind))
        times.append(time.monotonic() - start)
    assert found[0] == found[1] == found[2], "healthy, down, drop:\n%s\n%s\n%s" % tuple(found)
    assert close(found[0], stock,
                 app.tolerance), "over r2, over stock Open MPI:\n%s\n%s" % (found[0], stock)
    return ", %d results; stock, r2, down, drop: %s s" % (len(stock),
                                                          " ".join("%.0f" % t for t in times))


def test_of(name):
    """The test of one application."""
    def test():
        return compare(name)
    test.__doc__ = name
    return test


def recover():
    """After a failed test."""
    fault("heal", "all", "all")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    unknown = set(sys.argv[1:]) - set(APPS)
    if unknown:
        print("no application %s; there are: %s" % (" ".join(unknown), " ".join(APPS)))
        return 2
    labtest.LIMIT_S = 5 * LIMIT_S
    r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", RAILS, "--rate", "100mbit")
    return run_all([test_of(name) for name in sys.argv[1:] or APPS], recover, down)


if __name__ == "__main__":
    sys.exit(main())
