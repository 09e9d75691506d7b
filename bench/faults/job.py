# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""One run of fault_job on the lab, and what it and r2 wrote."""

import glob
import json
import os
import signal
import subprocess
import tempfile
import time

from labtest import R2LAB, until
from rows import HOSTS

LIVE_S = 60     # nothing that is waited for may take longer


class Job:
    """Runs until it is told to stop. Files lie in a folder that all hosts share."""

    def __init__(self, lab, build, work, size, limit_s, mpirun):
        self.folder, self.build = tempfile.mkdtemp(dir=work), build
        self.log = open(self.folder + "/log", "w+", encoding="utf8")
        self.child = subprocess.Popen(
            [R2LAB, "run", "--name", lab, "--build", build, "--timeout", str(limit_s), "-n",
             str(HOSTS), "--mca", "coll", "r2", "--mca", "coll_r2_event_file",
             self.folder + "/events.%r", *mpirun, build + "/bench/faults/fault_job", self.folder,
             str(size)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def lines(self, rank):
        """What one rank has written; a line that is being written is left for the next time."""
        try:
            with open("%s/rank.%d" % (self.folder, rank), encoding="ascii") as file:
                return [line.split() for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def iterations(self, rank=0):
        """(from, to, wrong elements) of each iteration, seconds."""
        return [(float(w[1]), float(w[2]), int(w[3])) for w in self.lines(rank)[1:]]

    def pid(self, rank):
        """Process id of a rank."""
        return int(self.lines(rank)[0][1])

    def await_iterations(self, count, what):
        """Waits until all ranks have done so many more."""
        goals = [len(self.iterations(rank)) + count for rank in range(HOSTS)]
        self.await_true(lambda: all(len(self.iterations(rank)) >= goals[rank]
                                    for rank in range(HOSTS)), what)

    def await_true(self, condition, what):
        """Waits for a condition, as long as the job lives."""
        until(lambda: self.child.poll() is not None or condition(), LIVE_S)
        if self.child.poll() is not None or not condition():
            raise RuntimeError("%s: the job %s\n%s" % (
                what, "is stuck" if self.child.poll() is None else "has ended", self.tail()))

    def events(self):
        """All events of all ranks so far, oldest first."""
        found = []
        for name in glob.glob(self.folder + "/events.*"):
            with open(name, encoding="utf8") as file:
                found += [json.loads(line) for line in file if line.endswith("\n")]
        return sorted(found, key=lambda event: event["mono_ns"])

    def stop_rank(self, rank, seconds):
        """A rank is not scheduled for a while."""
        os.kill(self.pid(rank), signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.pid(rank), signal.SIGCONT)

    def busy_rank(self, rank, seconds):
        """A rank computes for a while, from its next iteration on."""
        with open(self.folder + "/busy.new", "w", encoding="ascii") as file:
            file.write("%d %d\n" % (rank, round(seconds)))
        os.rename(self.folder + "/busy.new", self.folder + "/busy")
        self.await_true(lambda: not os.path.exists(self.folder + "/busy"), "computing begins")
        time.sleep(seconds)

    def finish(self):
        """Ends the job in good order; returns the number of wrong elements."""
        with open(self.folder + "/stop", "w", encoding="ascii"):
            pass
        self.await_end()
        return sum(wrong for rank in range(HOSTS) for _, _, wrong in self.iterations(rank))

    def await_end(self):
        """Waits for the end and its exit status."""
        try:
            status = self.child.wait(LIVE_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError("the job does not end\n" + self.tail()) from None
        if status != 0:
            raise RuntimeError("the job ended with status %d\n%s" % (status, self.tail()))

    def kill(self):
        """Ends the job somehow."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(20)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()

    def tail(self):
        """The end of what the job said."""
        self.log.flush()
        with open(self.log.name, encoding="utf8", errors="replace") as log:
            return log.read()[-3000:]
