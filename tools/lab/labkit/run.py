# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The verbs `run` and `exec`: commands on the hosts of a lab.

A run is one mpirun on h0 and all that it starts anywhere. Every process of it carries
R2LAB_RUN_ID in its environment, and its files lie in runs/ID. When mpirun has ended, for
whatever reason, what is left of the run is ended and removed; when r2lab itself is killed,
the next `run` does that.
"""

import fcntl
import os
import shlex
import shutil
import signal
import sys
import time

from . import mpich, openmpi, sweep
from .launch import environment
from .spawn import LabError

ENTER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "enter")
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
STOP_GRACE_S = 3.0      # for mpirun to end its ranks after a signal
EXIT_GRACE_S = 1.0      # for the other hosts' daemons after mpirun has ended
TIMED_OUT = 124


def execute(lab, host, command):
    """The verb exec: becomes the command, on a host."""
    os.environ.update(R2LAB_NAME=lab.name, R2LAB_DIR=lab.dir, R2LAB_RUN_DIR=lab.dir + "/local")
    sys.stdout.flush()
    os.execv("/bin/sh", ["/bin/sh", ENTER, lab.host(host), *command])


def run(lab, arguments, peer=None, p2p=None, ppn=0, timeout_s=None, build=None, root=None,
        show=False):
    """The verb run: mpirun's arguments to mpirun's exit status."""
    if root is not None and not os.path.isdir(root):
        raise LabError("--root %s: no such folder" % root)
    run_id = "%s.%d" % (lab.name, os.getpid())
    run_dir = "%s/runs/%s" % (lab.dir, run_id)
    version = openmpi.major(root)
    added = environment(lab, run_id, run_dir, version, peer, p2p, ppn, build, root)
    mpirun = ["mpirun", *openmpi.options(version), *arguments]
    if peer == "mpich":
        mpirun = [*mpich.command(lab, run_dir, root), *arguments]
    if show:
        say_command(added, mpirun)
        return 0
    for crashed in list(sweep.crashed_runs(lab)):
        sweep.remove_run(lab, crashed)
    lock = make_run_dir(lab, run_id, run_dir, ppn)
    argv = openmpi.command(["/bin/sh", ENTER, lab.host(0), "setpriv", "--pdeathsig", "TERM", "--",
                            *mpirun], root, seen_in_root(added))
    try:
        return Supervisor(lab, run_id, timeout_s).watch(argv, {**os.environ, **added})
    finally:
        sweep.remove_run(lab, run_id, EXIT_GRACE_S)
        os.close(lock)


def say_command(added, argv):
    """--show: the variables, and the command."""
    for name in sorted(added):
        print("%s=%s" % (name, shlex.quote(added[name])))
    print(shlex.join(argv))


def seen_in_root(added):
    """What a run in a root needs of this system: /run, with the lab, what the variables point to,
    this package, and the folder it was started in."""
    there = [d for name in ("OMPI_MCA_mca_base_component_path", "LD_LIBRARY_PATH")
             for d in added.get(name, "").split(":") if d.startswith("/")]
    return ["/run", os.path.dirname(ENTER), *there, os.getcwd()]


def make_run_dir(lab, run_id, run_dir, ppn):
    """Makes the folder of a run; returns the lock that says that the run is alive."""
    fresh = "%s/runs/new.%d" % (lab.dir, os.getpid())
    shutil.rmtree(fresh, ignore_errors=True)
    os.mkdir(fresh)
    lock = os.open(fresh + "/lock", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with open(fresh + "/hostfile", "w", encoding="ascii") as out:
        for h in range(lab.hosts):
            out.write("%s slots=%d\n" % (lab.host(h), ppn or 1))
    with open(fresh + "/machines", "w", encoding="ascii") as out:
        out.write(mpich.machines(lab, ppn))
    os.rename(fresh, run_dir)
    return lock


class Supervisor:
    """Waits for mpirun, passes signals on once, and ends what does not end."""

    def __init__(self, lab, run_id, timeout_s):
        self.lab, self.run_id, self.timeout_s = lab, run_id, timeout_s
        self.status = None      # what to exit with instead of mpirun's status
        self.deadline = None    # when patience ends, CLOCK_MONOTONIC s

    def watch(self, argv, env):
        """Starts mpirun in a process group of its own, so that a Ctrl-C reaches it once, through
        here; returns the exit status."""
        signals = {s for s in STOPPING if signal.getsignal(s) != signal.SIG_IGN}
        signals.add(signal.SIGCHLD)
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        if self.timeout_s:
            self.deadline = time.monotonic() + self.timeout_s
        pid = os.posix_spawn(argv[0], argv, env, setpgroup=0, setsigmask=[])
        while (result := reap(pid)) is None:
            self.step(pid, signals)
        return result if self.status is None else self.status

    def step(self, pid, signals):
        """Waits for one event and acts on it."""
        if self.deadline is None:
            event = signal.sigwaitinfo(signals)
        else:
            left_s = max(0.0, self.deadline - time.monotonic())
            event = signal.sigtimedwait(signals, left_s)
        if event is None:
            self.overdue(pid)
        elif event.si_signo != signal.SIGCHLD and self.status is None:
            self.status = 128 + event.si_signo
            self.stop(pid, event.si_signo)

    def overdue(self, pid):
        """The time is up: of the run, or of its ending."""
        if self.status is None:
            say("run %s has not ended after %g s" % (self.run_id, self.timeout_s))
            self.status = TIMED_OUT
            self.stop(pid, signal.SIGTERM)
        else:
            self.deadline = None
            sweep.end(sweep.namespace_ids(self.lab.namespaces()), self.run_id)

    def stop(self, pid, signo):
        """Asks mpirun to end, and sets a limit to that."""
        self.deadline = time.monotonic() + STOP_GRACE_S
        os.kill(pid, signo)


def reap(pid):
    """The exit status of an own child, or None while it runs."""
    done, status = os.waitpid(pid, os.WNOHANG)
    if done == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def say(text):
    """A line to standard error."""
    print("r2lab: " + text, file=sys.stderr, flush=True)
