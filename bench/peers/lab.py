# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Labs and runs on them, bounded in time, and what others used of the machine meanwhile."""

import ctypes
import os
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass

from output import table
from rows import LARGE, RAILS, SHAPED
from stacks import PROGRAMS

HERE = os.path.dirname(os.path.realpath(__file__))
R2LAB = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools", "lab", "r2lab")
START_S = 15        # a job may take so long to start and to end
LIMIT_S = 120       # and all of it
LINGER_S = 5        # after its last row: MPICH's MPI_Finalize is stuck now and then
LARGE_TIMES = 4     # so many times as long for long vectors
PR_SET_CHILD_SUBREAPER = 36


class Labs:
    """Two labs at most, one with shaped rails and one without, raised when they are needed."""

    def __init__(self, prefix, hosts):
        self.prefix, self.hosts, self.names = prefix, hosts, {}

    def name(self, rate):
        """The lab with rails of this rate."""
        if rate not in self.names:
            name = self.prefix + ("s" if rate == SHAPED else "f")
            self.names[rate] = name     # first: what a signal leaves half built is removed, too
            r2lab("up", "--name", name, "--hosts", str(self.hosts), "--rails", str(RAILS),
                  "--rate", rate)
        return self.names[rate]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run([R2LAB, "down", "--name", name], check=False,
                           stdout=subprocess.DEVNULL)


def r2lab(*words):
    """r2lab, which must succeed."""
    subprocess.run([R2LAB, *words], check=True, stdout=subprocess.DEVNULL)


@dataclass(frozen=True)
class Run:
    """One run of the benchmark that is to be made."""

    build: str
    row: object
    stack: object
    sizes: tuple
    seconds: float          # measured for each short size
    warmup: int = 0         # calls before them; 0: the benchmark's own number

    def cores(self):
        """Cores to pin the ranks to; none where there is not one for each."""
        free = sorted(os.sched_getaffinity(0))
        return free[:self.row.layout.ranks] if self.row.layout.ranks <= len(free) else []

    def is_large(self):
        return max(self.sizes) >= LARGE

    def size_seconds(self):
        return self.seconds * (LARGE_TIMES if self.is_large() else 1)

    def limit_s(self):
        """A job that takes longer is ended."""
        each = 8 * self.size_seconds() + (10 if self.is_large() else 3)
        return min(LIMIT_S, START_S + each * len(self.sizes))

    def benchmark(self):
        """The program and what it measures."""
        kind = self.row.kind
        words = [os.path.join(self.build, PROGRAMS[self.stack.program]), kind.name]
        if self.sizes != (0,):
            words += ["-m", size_words(self.sizes)]
        if self.is_large():
            words += ["-x", "3"]
        elif self.warmup or kind.warmup:
            words += ["-x", str(self.warmup or kind.warmup)]
        return [*words, "--seconds", "%g" % self.size_seconds()]

    def command(self, lab, limit_s=None, benchmark=None):
        """The whole command line."""
        layout, cores = self.row.layout, self.cores()
        options, arguments = self.stack.words(layout, self.row.kind)
        words = [R2LAB, "run", "--name", lab, "--timeout", "%g" % (limit_s or self.limit_s())]
        if not options or "--peer" not in options:
            words += ["--build", self.build]
        words += options
        if layout.ppn > 1:
            words += ["--ppn", str(layout.ppn)]
        words += ["-n", str(layout.ranks), *arguments]
        if cores:
            words += [os.path.join(HERE, "pin"), ",".join(map(str, cores))]
        return words + (benchmark or self.benchmark())

    def environment(self):
        """Who has a core of its own need not give way."""
        yields = {"OMPI_MCA_mpi_yield_when_idle": "0"} if self.cores() else {}
        return {**os.environ, **yields}

    def take(self, labs, look=lambda: None):
        """Makes it: {"figures"} or {"error"}, and "others". @param look called after
        the last row: before that it would take the cores from what is measured."""
        lab, meter = labs.name(self.row.layout.rate), Meter()
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            child = subprocess.Popen(self.command(lab), stdin=subprocess.DEVNULL, text=True,
                                     stdout=subprocess.PIPE, stderr=said, errors="replace",
                                     env=self.environment())
            status, text = self.await_table(child, look)
            said.seek(0)
            error = reason(status, said.read() or text) if status else None
        found = table(text)
        if not error and not set(self.sizes) <= set(found):
            error = "its table lacks sizes"
        taken = {"figures": {str(size): found[size] for size in self.sizes if size in found},
                 "others": meter.others()}
        return {**taken, "error": error} if error else taken

    def await_table(self, child, look):
        """Reads until the table is whole, then waits a little for the end: (status, text)."""
        text = ""
        try:
            for line in child.stdout:
                text += line
                if set(self.sizes) <= set(table(text)):
                    look()
                    return child.wait(LINGER_S), text
            return child.wait(LIMIT_S), text
        except subprocess.TimeoutExpired:
            return "lingers", text
        finally:
            stop(child)


def size_words(sizes):
    """As -m takes them: one number alone would be the last of those that double."""
    return ",".join(map(str, sizes)) if len(sizes) > 1 else "%d:%d" % (sizes[0], sizes[0])


def stop(child):
    """Ends r2lab, which ends what it has started."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def reason(status, said):
    """One line about a run that failed."""
    if status == "lingers":
        return "did not end within %d s of its last row" % LINGER_S
    if status == 124:
        return "did not end in time"
    lines = [line.strip() for line in said.splitlines() if line.strip(" -")]
    return "exit status %d: %s" % (status, lines[-1][:160] if lines else "said nothing")


def adopt_orphans():
    """What outlives its parent becomes this process's child, so that its time counts as ours."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def bury():
    """Takes the exit statuses of adopted processes."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


class Meter:
    """Cores that others keep busy, from its making on. Time in interrupts is nobody's."""

    def __init__(self):
        bury()
        self.start = self.look()

    @staticmethod
    def look():
        """(now, all processes' seconds, ours)"""
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return (time.monotonic(), sum(ticks[:3]) / os.sysconf("SC_CLK_TCK"),
                sum(usage.ru_utime + usage.ru_stime for usage in ours))

    def others(self):
        """Only while no process of ours runs."""
        bury()
        now = self.look()
        wall_s, busy_s, ours_s = (b - a for a, b in zip(self.start, now))
        return round(max(0.0, busy_s - ours_s) / max(wall_s, 1e-3), 3)
