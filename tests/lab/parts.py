# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Jobs that print a line "ok N - .." for each part that was right: faults come and go at such
lines, so that they hit what follows."""

import os
import subprocess

from labtest import R2LAB, TOP, counters

BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")


class App:
    """A run of a program of tests/functional; its lines are given out one by one."""

    def __init__(self, lab, program, *words, where=("-n", "4"), mca=("coll", "r2")):
        program = BUILD + "/tests/functional/" + program
        self.log = open(BUILD + "/parts.%d.log" % os.getpid(), "w+", encoding="utf8")
        os.unlink(self.log.name)
        self.child = subprocess.Popen(
            [R2LAB, "run", "--name", lab, "--build", BUILD, "--timeout", "90", *where,
             *(word for pair in zip(mca[::2], mca[1::2]) for word in ("--mca", *pair)), program,
             *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True)

    def parts(self, count):
        """Waits for so many more parts, which have to be right. A plan line ends the run."""
        done = 0
        for line in self.child.stdout:
            assert not line.startswith("not ok"), line + self.said()
            if line.startswith("ok "):
                done += 1
            if line.startswith("1..") or done == count:
                break
        assert done == count, "%d parts, not %d\n%s" % (done, count, self.said())

    def end(self, least=1):
        """Waits for the end; at least so many parts must have been to come."""
        rest = self.child.stdout.read()
        status = self.child.wait()
        assert "not ok" not in rest and status == 0, "status %d\n%s%s" % (status, rest, self.said())
        assert rest.count("\nok ") + rest.startswith("ok ") >= least, \
            "the fault came too late\n" + rest

    def said(self):
        """Standard error so far."""
        self.log.seek(0)
        return self.log.read()


def on_mgmt(lab, before):
    """Share of all bytes sent since that left on the management network."""
    rails = mgmt = 0
    for host, devices in counters(lab).items():
        for device, numbers in devices.items():
            sent = numbers["tx_bytes"] - before[host][device]["tx_bytes"]
            rails, mgmt = rails + sent * (device != "mgmt0"), mgmt + sent * (device == "mgmt0")
    return mgmt / (rails + mgmt)
