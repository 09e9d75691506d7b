# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Ending processes and removing what a lab or a crashed run left behind.

A process is only ever ended by its id, after looking that it is in a network namespace
of this lab (and, for one run, that it carries the run's mark); never by its name.
"""

import fcntl
import os
import signal
import time

from .lab import NETNS, ROOT
from .spawn import LabError, attempt, must

GIVE_UP_S = 5.0
MARK = "R2LAB_RUN_ID"


def namespace_ids(names):
    """Inodes of the named network namespaces that are there."""
    ids = set()
    for name in names:
        try:
            ids.add(os.stat("%s/%s" % (NETNS, name)).st_ino)
        except OSError:
            pass
    return ids


def is_in(pid, ids):
    """True if a process is in one of the namespaces and has not ended."""
    try:
        return os.stat("/proc/%d/ns/net" % pid).st_ino in ids
    except OSError:     # it is gone, a zombie, or another user's
        return False


def carries(pid, run_id):
    """True if the environment that a process was started with has the mark of a run."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as source:
            return b"%s=%s" % (MARK.encode(), run_id.encode()) in source.read().split(b"\0")
    except OSError:
        return False


def processes(ids, run_id=None):
    """Pids in the namespaces; with run_id only those that carry its mark."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [p for p in pids if p != os.getpid() and is_in(p, ids)
            and (run_id is None or carries(p, run_id))]


def end(ids, run_id=None, grace_s=0.0):
    """Waits up to grace_s for the processes to leave by themselves, then kills them, and
    returns when all are gone."""
    start = time.monotonic()
    while pids := processes(ids, run_id):
        passed_s = time.monotonic() - start
        if passed_s > grace_s + GIVE_UP_S:
            raise LabError("processes do not end: %s" % " ".join(map(str, pids)))
        if passed_s >= grace_s:
            for pid in pids:
                kill(pid, ids)
        time.sleep(0.01)


def kill(pid, ids):
    """Kills one process of the namespaces. The handle is taken before the look, so
    that a process that comes by the same id in between is safe."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if is_in(pid, ids):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def crashed_runs(lab):
    """Ids of the runs whose r2lab is gone: it holds a lock as long as it lives."""
    for run_id in sorted(os.listdir(lab.dir + "/runs")):
        try:
            lock = os.open("%s/runs/%s/lock" % (lab.dir, run_id), os.O_RDONLY)
        except FileNotFoundError:   # crashed before it had one, or is just being made
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield run_id
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


def remove_run(lab, run_id, grace_s=0.0):
    """Ends all processes of a run and removes its files."""
    end(namespace_ids(lab.namespaces()), run_id, grace_s)
    attempt([["rm", "-rf", "%s/runs/%s" % (lab.dir, run_id)]])


def remove(lab):
    """Removes all that there is of a lab, complete or not."""
    names = lab.leftovers()
    end(namespace_ids(names))
    if names:
        must([(["ip", "-batch", "-"], "".join("netns del %s\n" % n for n in names))])
    while os.path.ismount(lab.dir):
        must([["umount", "-l", lab.dir]])
    if os.path.isdir(lab.dir):
        os.rmdir(lab.dir)


class Turn:
    """One `up` or `down` at a time on this machine; a crash gives the turn back."""

    def __enter__(self):
        os.makedirs(ROOT, mode=0o755, exist_ok=True)
        self.folder = os.open(ROOT, os.O_RDONLY)
        fcntl.flock(self.folder, fcntl.LOCK_EX)

    def __exit__(self, *_):
        os.close(self.folder)
