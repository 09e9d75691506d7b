# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Runs helper commands, several at once, without the cost of importing subprocess."""

import os


class LabError(Exception):
    """Something that cannot be done; the text says what and what to do. Exit status 1."""


class Command:
    """A started command. Its input and its output are memory files, so that neither
    it nor r2lab ever waits on a full pipe."""

    def __init__(self, argv, text=""):
        self.argv = argv
        source = os.memfd_create("in")
        os.write(source, text.encode())
        os.lseek(source, 0, os.SEEK_SET)
        self.sink = os.memfd_create("out")
        actions = [(os.POSIX_SPAWN_DUP2, source, 0),
                   (os.POSIX_SPAWN_DUP2, self.sink, 1),
                   (os.POSIX_SPAWN_DUP2, self.sink, 2)]
        try:
            self.pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
        except FileNotFoundError:
            os.close(self.sink)
            raise LabError("the command %s is not installed" % argv[0]) from None
        finally:
            os.close(source)

    def finish(self):
        """Waits; returns (exit status, output)."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        size = os.fstat(self.sink).st_size
        text = os.pread(self.sink, size, 0).decode(errors="replace")
        os.close(self.sink)
        return status, text


def attempt(jobs):
    """Runs all jobs at once, each an argv or a pair (argv, input), and returns their
    (exit status, output) in order. One that cannot start counts as status 127."""
    started = []
    for job in jobs:
        argv, text = job if isinstance(job, tuple) else (job, "")
        try:
            started.append(Command(argv, text))
        except LabError as error:
            started.append(error)
    return [(127, str(c)) if isinstance(c, LabError) else c.finish() for c in started]


def must(jobs):
    """As attempt(), but a job that fails is a LabError; returns the outputs."""
    results = attempt(jobs)
    for job, (status, text) in zip(jobs, results):
        if status != 0:
            argv = job[0] if isinstance(job, tuple) else job
            raise LabError("%s failed: %s" % (" ".join(argv), text.strip() or status))
    return [text for _, text in results]
