# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""How far apart the machine's cores are. The host of a virtual machine moves its cores: on one that
was measured a cache line took 50 ns from core to core and back, or 330, for seconds at a time and
mostly under load, and what processes of one machine hand to each other took six times as long. On
another one trips scatter, from 105 to 210 ns, and 65 at times: a quarter of all are near."""

import os
import subprocess
import time

PROGRAM = "bench/peers/core_trip"
TIMES = 2.0         # so many times a near trip is far
SCATTER = 2.5       # a near trip is no longer than so many times the least
PATIENCE_S = 10     # a run does not wait longer for cores that are near
PAUSE_S = 0.1       # an idle machine's cores come together again
FIRST = 8           # trips before the first run
TRIES = 4           # runs in all where cores were far at the end


def near_ns(trips):
    """What a trip takes when cores are near: a quarter of all take no longer. The least one bounds
    it, where most were far."""
    return min(sorted(trips)[(len(trips) - 1) // 4], SCATTER * min(trips))


def is_far(trip_ns, trips):
    """Does a trip take much longer than near ones?"""
    return trip_ns > TIMES * near_ns(trips)


class Cores:
    """The first two cores that this process may use."""

    def __init__(self, build, trips=(), sleep=time.sleep):
        self.program, self.sleep = os.path.join(build, PROGRAM), sleep
        self.pair = sorted(os.sched_getaffinity(0))[:2]
        self.trips = list(trips)
        for _ in range(FIRST):
            if self.trip_ns() is not None:
                self.sleep(PAUSE_S)

    def trip_ns(self):
        """Of a cache line, there and back; None: there is one core, no program, or no answer."""
        if len(self.pair) < 2 or not os.path.exists(self.program):
            return None
        try:
            said = subprocess.run([self.program, *map(str, self.pair)], check=True, text=True,
                                  stdout=subprocess.PIPE, timeout=PATIENCE_S).stdout
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return None
        self.trips.append(float(said))
        return self.trips[-1]

    def is_far(self, trip_ns):
        """Against the near ones so far."""
        return trip_ns is not None and is_far(trip_ns, self.trips)

    def settle(self):
        """Waits until cores are near, not for ever."""
        end_s = time.monotonic() + PATIENCE_S
        while self.is_far(self.trip_ns()) and time.monotonic() < end_s:
            self.sleep(PAUSE_S)

    def take(self, make):
        """The first of some runs whose cores are near after the last row, else the last; with how
        far they were. One that fails is not made again.
        @param make makes a run, and calls what it is given after the last row."""
        for _ in range(TRIES):
            seen = {}
            self.settle()
            taken = make(lambda seen=seen: seen.update(trip_ns=self.trip_ns()))
            if not self.is_far(seen.get("trip_ns")) or "error" in taken:
                break
        return {**taken, **seen} if seen.get("trip_ns") else taken
