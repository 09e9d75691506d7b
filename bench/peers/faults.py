# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""A rail breaks while a 16 MiB allreduce runs on 4 hosts x 4 rails x 100 Mbit: what becomes of the
job, stack by stack. It breaks where the job has most traffic, since not every stack uses every
rail. Each job is bounded in time."""

import json
import subprocess
import threading
import time
from dataclasses import dataclass

from figures import median
from lab import R2LAB, Meter, Run, r2lab, reason, size_words, stop
from output import progress
from rows import KINDS, LAYOUTS, MIB, RAILS, Row

ROW = Row(LAYOUTS["4x1@100"], KINDS["allreduce"])
SIZE = 16 * MIB
HOST = "h1"
SETTLE_S = 1.0      # after the fault, until calls count as those of a job that has settled
START_S = 20        # until the first calls are done
SLACK_S = 8         # for the last call, and the end


@dataclass(frozen=True)
class Fault:
    """What happens to rails of one host."""

    name: str
    title: str
    word: str           # of r2lab fault
    lost: float         # part of the host's rate
    rails: int = 1


FAULTS = [
    Fault("down", "one rail down", "down", 1 / RAILS),
    Fault("drop", "one rail drops silently", "drop", 1 / RAILS),
    Fault("slow", "one rail at 10 % of its rate", "rate=10%", 0.9 / RAILS),
    Fault("half-rate", "one rail at half its rate", "rate=50%", 0.5 / RAILS),
    Fault("two-down", "two rails down", "down", 2 / RAILS, 2),
    Fault("three-down", "three rails down", "down", 3 / RAILS, 3),
]
BY_NAME = {fault.name: fault for fault in FAULTS}
TABLE = ("down", "drop", "slow")                                    # r2 and all peers
RETENTION = ("half-rate", "slow", "down", "two-down", "three-down")  # r2, over X


class Job:
    """One run, and the calls that it tells of while it goes on."""

    def __init__(self, run, lab, limit_s, benchmark):
        self.points, self.tail, self.news = [], "", threading.Condition()
        self.start_s = time.monotonic()
        self.child = subprocess.Popen(run.command(lab, limit_s, benchmark), text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, errors="replace",
                                      env=run.environment())
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        """Takes lines until the job ends."""
        for line in self.child.stdout:
            point = progress(line)
            with self.news:
                if point:
                    zero_s = time.monotonic() - self.start_s - point[0]
                    self.points.append((point[0], point[1], zero_s))
                elif line.strip():
                    self.tail = line
                self.news.notify_all()
        with self.news:
            self.news.notify_all()

    def reaches(self, seconds, limit_s):
        """Waits until calls have gone on so long; @return whether they did."""
        end_s = time.monotonic() + limit_s
        with self.news:
            while not (self.points and self.points[-1][0] >= seconds):
                if self.child.poll() is not None or time.monotonic() > end_s:
                    return False
                self.news.wait(0.2)
        return True

    def zero_s(self):
        """When its calls began: lines are late, none is early."""
        return min(point[2] for point in self.points)

    def end(self, limit_s):
        """Waits for the end, and makes one if it does not come."""
        try:
            self.child.wait(limit_s)
        except subprocess.TimeoutExpired:
            stop(self.child)
        self.reader.join(5)
        return self.child.returncode


def traffic(lab):
    """Rail of the host that is hit -> bytes, both ways."""
    said = subprocess.run([R2LAB, "counters", "--name", lab], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    return {device: numbers["tx_bytes"] + numbers["rx_bytes"]
            for device, numbers in json.loads(said)[HOST].items() if device.startswith("rail")}


def busiest(before, after, count):
    """The rails with most traffic in between, as r2lab takes them."""
    ordered = sorted(after, key=lambda rail: (before[rail] - after[rail], rail))
    return ",".join(sorted(ordered[:count]))


def play(labs, build, stack, fault, before_s, hold_s):
    """One job with one fault: what the record keeps of it. Times since its first call."""
    run = Run(build, ROW, stack, (SIZE,), before_s + hold_s)
    lab = labs.name(ROW.layout.rate)
    benchmark = [*run.benchmark()[:2], "-m", size_words((SIZE,)), "-x", "2", "--seconds",
                 "%g" % (before_s + hold_s), "--progress"]
    limit_s = START_S + before_s + hold_s + SLACK_S
    meter, made, rails = Meter(), {"points": [], "at_s": None}, None
    idle = traffic(lab)
    job = Job(run, lab, limit_s, benchmark)
    try:
        if job.reaches(before_s, START_S + before_s):
            rails = made["rails"] = busiest(idle, traffic(lab), fault.rails)
            r2lab("fault", "--name", lab, fault.word, HOST, rails)
            made["at_s"] = time.monotonic() - job.start_s - job.zero_s()
            made["status"] = job.end(hold_s + SLACK_S)
        else:
            made["status"] = job.end(0)
        made["points"] = [point[:2] for point in job.points]
        if job.points:
            made["end_s"] = time.monotonic() - job.start_s - job.zero_s()
        if made["status"]:
            made["error"] = reason(made["status"], job.tail)
    finally:
        job.end(0)
        if rails:
            r2lab("fault", "--name", lab, "heal", HOST, rails)
    return {**made, "others": meter.others()}


def rate(points):
    """Calls per second between the first and the last point; None if there are too few."""
    if len(points) < 2 or points[-1][0] <= points[0][0]:
        return None
    return (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])


@dataclass(frozen=True)
class Fate:
    """What became of a job."""

    what: str               # goes-on, hang, abort or failed: it never got that far
    slower: float = None    # times, if it goes on
    seconds: float = None   # until it was given up, or ended by itself

    def text(self):
        """As tables write it."""
        if self.what == "goes-on":
            return "%.2f x slower" % self.slower
        if self.what == "failed":
            return "did not run"
        return "%s %.0f s" % ({"hang": "hang: no call for", "abort": "abort after"}[self.what],
                              self.seconds)


def fate(played):
    """A job that has been killed for its time hangs, unless calls went on to the end."""
    at_s, points = played["at_s"], played["points"]
    if at_s is None:
        return Fate("failed")
    healthy = rate([(0.0, 0)] + [p for p in points if p[0] <= at_s])
    later = [p for p in points if p[0] >= at_s + SETTLE_S]
    since_s = played["end_s"] - at_s
    # A call that was under way may end after the fault; a second one shows that it goes on.
    degraded = rate(later)
    if degraded is None and later:
        degraded = rate([max((p for p in points if p[0] < at_s), default=(at_s, 0)), later[0]])
    if played["status"] == 0 or degraded and later[-1][0] > played["end_s"] - since_s / 3:
        return Fate("goes-on", healthy / degraded) if degraded else Fate("hang", None, since_s)
    killed = played["status"] in (124, 143, -15, -9)
    return Fate("hang" if killed else "abort", None, since_s)


def fates(record, fault, stack):
    """Of all rounds."""
    return [fate(run) for run in record.faults if run["fault"] == fault and run["stack"] == stack]


def summary(found):
    """What became of most, with the median of its number."""
    words = [each.what for each in found]
    word = max(dict.fromkeys(words), key=words.count)

    def middle(field):
        values = [getattr(each, field) for each in found if each.what == word]
        return None if None in values else median(values)

    return Fate(word, middle("slower"), middle("seconds"))


def retention(record, fault, stack="r2"):
    """Parts of the healthy rate that jobs kept; empty without any."""
    return [1 / each.slower for each in fates(record, fault, stack) if each.what == "goes-on"]


def ring_keeps(lost):
    """A ring, in which every host sends the same, goes as slowly as its slowest host."""
    return 1 - lost


def bound_keeps(lost, hosts=4):
    """What no schedule exceeds when one host has lost this part: every host hands its vector in and
    takes the result once, and every byte is sent 2 (n - 1) times."""
    healthy = max(1.0, 2 * (hosts - 1) / hosts)
    degraded = max(1 / (1 - lost), 2 * (hosts - 1) / (hosts - lost))
    return healthy / degraded
