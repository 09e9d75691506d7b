# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Jobs by the site's own launcher, each bounded in time.

Settings go by `env` in front of the program, which any launcher can start, so that what a launcher
passes on by itself does not matter; they precede its own --mca.
"""

import os
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass

END_GRACE_S = 10.0      # for a launcher to end its ranks after SIGTERM
TOLD_LINES = 6          # of a job that failed


class SiteError(Exception):
    """Nothing can be measured; the text is for the user."""


@dataclass
class Output:
    """What a job said."""

    out: str
    err: str
    status: int         # 124: it was ended after its time
    seconds: float

    def all(self):
        return self.out + "\n" + self.err

    def last_lines(self):
        """Its last words, in one line: of standard error, if there are any but information; the
        benchmark's, if there are any but the launcher's."""
        for text in (self.err, self.out):
            lines = [line.strip() for line in text.splitlines() if line.strip("-= ")
                     and " in use on " not in line and ": info: " not in line]
            lines = [line for line in lines if line.startswith("r2_bench ")] or lines
            if lines:
                return " | ".join(lines[-TOLD_LINES:])
        return "it said nothing"


@dataclass(frozen=True)
class Programs:
    """Paths that must hold on all hosts, and what a build tree needs to be found."""

    bench: str
    info: str
    site: str
    variables: tuple    # (name, value)


def find_programs(site, build=None):
    """@param site path of r2_site. @param build tree, or None: $R2_BUILDDIR, or the one that
    r2_site lies in, or else it is installed."""
    here = os.path.dirname(site)
    if os.path.isdir(os.path.join(here, "sitekit")) or build:
        top = os.path.dirname(os.path.dirname(here))
        build = os.path.abspath(build or os.environ.get("R2_BUILDDIR", top + "/build"))
        found = Programs(build + "/bench/osu/r2_bench", build + "/tools/r2_info", site,
                         (("OMPI_MCA_mca_base_component_path",
                           "SYSTEM_DEFAULT:" + build + "/mca"),))
    else:
        found = Programs(here + "/r2_bench", here + "/r2_info", site, ())
    for path in (found.bench, found.info):
        if not os.access(path, os.X_OK):
            raise SiteError("no program %s: build or install r2 first, or give --build" % path)
    return found


def settings(text):
    """"pml=ucx UCX_TLS=rc": variables by name. Names in lower case are MCA parameters."""
    found = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise SiteError("'%s' is no NAME=VALUE" % word)
        found[name if name[0].isupper() else "OMPI_MCA_" + name] = value
    return found


class Launcher:
    """Starts jobs and sees that they end."""

    def __init__(self, template, programs, limit_s):
        self.words = shlex.split(template)
        if not self.words:
            raise SiteError("--launch is empty")
        self.programs = programs
        self.limit_s = limit_s      # of one job
        self.deadline = None        # CLOCK_MONOTONIC s: of all of them
        self.takes_count = any("{n}" in word for word in self.words)

    def left_s(self):
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()

    def command(self, ranks, variables, words):
        """The command line of a job."""
        given = {**dict(self.programs.variables), **variables}
        return [*(word.replace("{n}", str(ranks)) for word in self.words), "env",
                *("%s=%s" % item for item in given.items()), *words]

    def run(self, ranks, variables, words):
        """@param words program and arguments. @return Output."""
        command = self.command(ranks, variables, words)
        begin = time.monotonic()
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, errors="replace",
                                     start_new_session=True)
        except OSError as why:
            raise SiteError("%s cannot be started: %s" % (command[0], why.strerror)) from why
        try:
            out, err = child.communicate(timeout=max(1.0, min(self.limit_s, self.left_s())))
            status = child.returncode
        except subprocess.TimeoutExpired:
            out, err = end(child)
            status = 124
        except BaseException:
            end(child)
            raise
        return Output(out, err, status, time.monotonic() - begin)


def end(child):
    """Ends a launcher and what it started here; returns what it said."""
    for signo in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, signo)
        except ProcessLookupError:
            pass
        try:
            return child.communicate(timeout=END_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
    return "", "the launcher could not be ended"
