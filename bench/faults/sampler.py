# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Bytes that each host of a lab has received on its rails, every 2 ms."""

import ctypes
import os
import threading
import time
from array import array

NETNS = "/run/netns"
CLONE_NEWNET = 0x40000000
PERIOD_S = 0.002
LIBC = ctypes.CDLL(None, use_errno=True)


def open_counters(lab, host):
    """A file that shows the counters of one host's devices, whoever reads it."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open("%s/%s-h%d" % (NETNS, lab, host), os.O_RDONLY)
    try:
        assert LIBC.setns(there, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            return os.open("/proc/thread-self/net/dev", os.O_RDONLY)
        finally:
            assert LIBC.setns(home, CLONE_NEWNET) == 0
    finally:
        os.close(home)
        os.close(there)


class Sampler:
    """Reads the counters in a thread of its own until it is closed."""

    def __init__(self, lab, hosts, rails):
        self.at_ns = array("Q")
        self.received = [array("Q") for _ in range(hosts)]  # host -> bytes, a number for each time
        self.files = [open_counters(lab, host) for host in range(hosts)]
        self.columns = [self.find(file, rails) for file in self.files]
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    @staticmethod
    def find(file, rails):
        """Where in the words of the file the received bytes of each rail are."""
        words = os.pread(file, 8192, 0).split()
        return [words.index(b"rail%d:" % rail) + 1 for rail in range(rails)]

    def work(self):
        """The thread."""
        while not self.ends.is_set():
            self.at_ns.append(time.monotonic_ns())
            for file, columns, received in zip(self.files, self.columns, self.received):
                words = os.pread(file, 8192, 0).split()
                received.append(sum(int(words[c]) for c in columns))
            time.sleep(PERIOD_S)

    def close(self):
        """Ends the thread; the numbers stay. Once more does nothing."""
        self.ends.set()
        self.thread.join()
        while self.files:
            os.close(self.files.pop())
