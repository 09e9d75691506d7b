# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""UCX's own measuring tool between two hosts of a lab, over RDMA NICs that are none."""

import os
import shutil
import subprocess

from labtest import R2LAB, TOP, Skip, until

LAB = "sv%d" % os.getpid()
BUILD = os.environ.setdefault("R2_BUILDDIR", TOP + "/build")
UTILS = BUILD + "/tests/softverbs/ucx-utils"
SERVER = "10.77.255.1"      # of h0, on mgmt0
RC, UD = "rc_v,self", "ud_v,self"


def tool(name):
    """Path of one of UCX's tools; where there is none, Debian's package is unpacked beside us."""
    found = shutil.which(name)
    if not found and not os.path.exists(UTILS):
        os.makedirs(UTILS)
        script = "apt-get -q download ucx-utils && dpkg -x ucx-utils_*.deb ."
        subprocess.run(["sh", "-c", script], cwd=UTILS, check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60)
    found = found or shutil.which(name, path=UTILS + "/usr/bin")
    if not found:
        raise Skip("no %s: neither installed nor to be had from Debian (ucx-utils)" % name)
    return found


class Perftest:
    """ucx_perftest between h0, its server, and h1. Its input is a terminal: one that was built with
    MPI (Debian 13's) takes itself for an MPI job else."""

    number = 0
    terminal = os.openpty()[1]

    def __init__(self, test, count, size=8, tls=RC, **env):
        Perftest.number += 1
        where = ["-p", 20000 + Perftest.number]
        self.env = {**os.environ, "UCX_TLS": tls, "UCX_NET_DEVICES": "soft0:1",
                    "UCX_WARN_UNUSED_ENV_VARS": "n", "UCX_HANDLE_ERRORS": "none", **env}
        self.server = self.start("h0", where)
        assert until(lambda: b"Waiting" in self.peek(self.server)), self.peek(self.server)
        self.client = self.start("h1", [SERVER, *where, "-t", test, "-n", count, "-s", size])

    def start(self, host, words):
        argv = [R2LAB, "exec", "--name", LAB, host, "stdbuf", "-oL", tool("ucx_perftest"), *words]
        out = os.memfd_create("out")
        done = subprocess.Popen(list(map(str, argv)), stdin=self.terminal, stdout=out,
                                stderr=out, env=self.env)
        done.out = out
        return done

    @staticmethod
    def peek(process):
        """What a process has said so far."""
        return os.pread(process.out, 1 << 20, 0)

    def has_failed(self):
        """True once either side's retries are exceeded: the one that had something in flight."""
        return any(b"retry counter exceeded" in self.peek(p) for p in (self.client, self.server))

    def is_busy(self):
        """True once measurements come: before them the two wait for each other now and then."""
        return b"[thread 0]" in self.peek(self.client)

    def ends(self, limit_s=30.0):
        """Waits for both; their exit statuses."""
        try:
            return [p.wait(limit_s) for p in (self.client, self.server)]
        except subprocess.TimeoutExpired as error:
            raise AssertionError(self.peek(self.client) + self.peek(self.server)) from error
        finally:
            self.kill()

    def kill(self):
        """Ends what is left."""
        for process in (self.client, self.server):
            if process.poll() is None:
                process.kill()
                process.wait()

    def result(self):
        """Runs to its end: median latency in microseconds and MB/s."""
        statuses = self.ends()
        final = [line for line in self.peek(self.client).decode().splitlines()
                 if line.startswith("Final:")]
        assert statuses == [0, 0] and final, (statuses, self.peek(self.client).decode(),
                                              self.peek(self.server).decode())
        words = final[0].split()
        return float(words[2]), float(words[6])
