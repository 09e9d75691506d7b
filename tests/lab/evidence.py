# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What a job on a lab that stands still leaves behind: its output, r2's event files, and, by gdb,
the stacks of all threads of all its processes, twice, with r2's state in each rank."""

import os
import shutil
import signal
import subprocess
import tempfile
import time

from labtest import TOP, processes

STATE = TOP + "/tests/lab/evidence.gdb"
STACKS_LIMIT_S = 60     # of one process: its symbols are read first
APART_S = 2             # between the two stacks: who moves is seen
END_LIMIT_S = 30        # for a job that is told to end


class Hung(AssertionError):
    """A job has not ended in time; the text says where its evidence is."""


def variable(pid, name):
    """A variable of a process's environment as it was started; None: it has none, or is gone."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as environ:
            for entry in environ.read().split(b"\0"):
                if entry.startswith(name.encode() + b"="):
                    return entry.decode(errors="replace").partition("=")[2]
    except OSError:
        pass
    return None


def members(lab):
    """Processes on a lab's hosts that gdb is to look at: pid -> name of its files. Ranks come
    first; of others, launchers and their daemons."""
    ranks, others = {}, {}
    for pid in processes(lab):
        try:
            name = os.path.basename(os.readlink("/proc/%d/exe" % pid))
        except OSError:
            continue
        rank = variable(pid, "PMIX_RANK")
        if name.startswith(("prte", "ompi-prte", "mpirun", "orted")):
            others[pid] = "%s.%d" % (name, pid)
        elif rank is not None:
            ranks[pid] = "rank%s.%d" % (rank, pid)
    return {**ranks, **others}


def stacks(pid, path, state, shows=()):
    """Stacks of all threads of one process, and r2's state in it if it is wanted; appended."""
    command = ["gdb", "-p", str(pid), "-batch", "-nx", "-iex", "set debuginfod enabled off",
               "-ex", "set pagination off", "-ex", "set print elements 24",
               "-ex", "thread apply all backtrace"]
    for expression in shows:
        command += ["-ex", "output %s" % expression, "-ex", "echo \\n"]
    with open(path, "a", encoding="utf-8") as out:
        out.write("---- %.1f s\n" % time.monotonic())
        out.flush()
        try:
            subprocess.run(command + ["-x", STATE] * state, stdin=subprocess.DEVNULL, stdout=out,
                           stderr=subprocess.STDOUT, timeout=STACKS_LIMIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            out.write("no stacks: %s\n" % error)


def send(pids, signo):
    """Sends a signal to processes, some of which may be gone."""
    for pid in pids:
        try:
            os.kill(pid, signo)
        except ProcessLookupError:
            pass


def take(lab, folder, shows=()):
    """Takes it of all that a lab runs now. shows: what of the ranks' program gdb prints, too. Ranks
    are stopped meanwhile: it is of one moment, and those that poll leave gdb the processor."""
    for round_ in range(2):
        names = members(lab)
        ranks = [pid for pid in names if names[pid].startswith("rank")]
        send(ranks, signal.SIGSTOP)
        try:
            for pid, name in names.items():
                if pid in ranks or round_ == 0:
                    stacks(pid, "%s/%s.txt" % (folder, name), pid in ranks and round_ == 0,
                           shows if pid in ranks else ())
        finally:
            send(ranks, signal.SIGCONT)
        time.sleep(APART_S * (1 - round_))


class Job:
    """A command that runs a job on a lab, watched: one that has not ended in time leaves evidence
    in a folder of its own, and ends. The folder of one that was right goes (done()). Ranks are
    stopped for their stacks, so the second stacks, and events since the first ones, may show
    time-outs that the stopping made."""

    def __init__(self, lab, title, parent):
        os.makedirs(parent, exist_ok=True)
        self.lab, self.title = lab, title
        self.folder = tempfile.mkdtemp(prefix=title.replace(" ", "-") + ".", dir=parent)
        self.events = self.folder + "/events.%h.%r.json"

    def run(self, command, limit_s, shows=()):
        """Returns what it says. Raises Hung."""
        path = self.folder + "/output"
        with open(path, "w", encoding="utf-8") as out:
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT) as child:
                hung = not self.ends(child, limit_s)
                if hung:
                    take(self.lab, self.folder, shows)
                    child.send_signal(signal.SIGTERM)
                    if not self.ends(child, END_LIMIT_S):
                        child.kill()
                        send(members(self.lab), signal.SIGKILL)
        with open(path, encoding="utf-8", errors="replace") as said:
            text = said.read()
        if hung:
            raise Hung("%s: has not ended after %g s, evidence in %s\n%s" % (
                self.title, limit_s, self.folder, text))
        return text

    @staticmethod
    def ends(child, limit_s):
        """Whether it ends in that time."""
        try:
            child.wait(limit_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def done(self):
        """It was right: nothing of it is kept."""
        shutil.rmtree(self.folder, ignore_errors=True)
