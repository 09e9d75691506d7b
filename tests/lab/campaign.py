#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Random jobs with random faults on the lab: campaign.py [--seed S] [--runs N]
            [--rdma | --ud | --put | --ib] [--print]

Each seed draws a layout, sizes, collectives, parameters and faults. Checked are every byte of every
result (fault_driver.c), that the job ends, what memory it took, that no verdict blames a part that
nothing was done to, and that no RDMA NIC writes to memory that was given back. The draw is the same
for equal seeds; when exactly a fault hits is up to the machine.
"""

import argparse
import contextlib
import glob
import json
import os
import random
import signal
import sys
import time

sys.dont_write_bytecode = True
import faultlab
from faultlab import (LAB, LAB_HOSTS, PUT, RAILS, RDMA, WORK, Job, down, fault, heal_all, nic,
                      nic_counters)
from labtest import UP_RDMA, r2lab

KINDS = ("float", "int", "gather,", "gatherv", "scatter", "bcast", "barrier", "mixed", "comms")
RATES = ("1%", "5%", "10%", "30%", "60%")
LOSSES = ("0.1%", "1%", "5%", "10%")
# of a process with MPI and r2's bounds (docs/protocol.md), without its buffers
MEMORY_BYTES = 128 << 20
# over RDMA: buffers of three generations of workers on each rail (docs/ucx.md)
RDMA_BYTES = 3 * RAILS * (18 << 20) if RDMA else 0
BUFFERS = 20                # vectors that the job itself holds, at most
PARKING_BYTES = 256 << 10   # what calls have of unexpected_bytes, for each peer
CREDIT_BYTES = 32 << 20     # default of credit_bytes
CHUNKS_BYTES = 2 * 131072   # for each peer
HARMLESS = ("healthy", "peer_busy", "peer_silent")


def wide(dice, low, high):
    """A number whose logarithm is evenly distributed."""
    return round(low * (high / low) ** dice.random())


class Draw:
    """What one seed stands for."""

    def __init__(self, seed):
        dice = random.Random("r2 campaign %d" % seed)
        self.seed = seed
        self.hosts = dice.choice((2, 3, 4, 4, 4))
        self.ppn = dice.choice((1, 1, 1, 2))
        self.bytes = wide(dice, 64, 4 << 20) // 64 * 64
        self.kinds = dice.sample(KINDS, dice.randint(1, 4))
        self.params = self.draw_params(dice, bool({"float", "mixed"} & set(self.kinds)))
        self.events = []    # (seconds, words of r2lab fault) or (seconds, signal, rank)
        self.faulted = set()
        self.faults = 0     # a flap's are counted one by one
        for _ in range(dice.choice((0, 1, 1, 2, 2, 3, 4))):
            self.draw_fault(dice)
        if PUT:
            self.draw_delay(random.Random("r2 campaign, delay %d" % seed))
        self.events.sort(key=lambda event: event[0])

    @staticmethod
    def draw_params(dice, floats):
        """Parameters that differ from the defaults. Sums of floats have equal bits all through the
        job, so with them no algorithm by name whose order of reduction depends on the rails."""
        algorithms = ("direct", "exchange", "linear", "weighted", "recursive-doubling", "ring",
                      *(() if floats else ("r2",)))
        choices = {
            "chunk_max_bytes": (8192, 32768), "heal_min_ms": (20, 100, 500),
            "failure_timeout_ms": (30, 100), "async_progress": (1,),
            "scratch_bytes": (65536, 1 << 20), "copy_max_bytes": (0, 1000),
            "retransmit_bytes": (0, 20000), "allreduce_algorithm": algorithms,
            "allgather_algorithm": ("bruck", "ring", "direct"),
            "bcast_algorithm": ("binomial", "scatter-allgather"), "oob_nics": ("rail0", "mgmt0"),
            "flap_max_ms": (1000,),
        }
        return {name: dice.choice(values) for name, values in choices.items()
                if dice.random() < 0.2}

    def draw_fault(self, dice):
        """One fault with its end, or several."""
        begin, length = dice.uniform(0, 1.5), 0.01 * 150 ** dice.random()
        kind = dice.choice(("down", "down", "switch", "drop", "drop", "drop-in", "drop-out", "rate",
                            "loss", "stop", "flap", "host"))
        host, rail = dice.randrange(self.hosts), dice.randrange(RAILS)
        if kind == "stop":
            rank = dice.randrange(self.hosts * self.ppn)
            self.events += [(begin, signal.SIGSTOP, rank), (begin + length, signal.SIGCONT, rank)]
            self.faults += 1
            return
        rails = range(RAILS) if kind == "host" else dice.sample(range(RAILS),
                                                                dice.choice((1, 1, 1, 2)))
        hosts = [host] if dice.random() < 0.8 else sorted({host, dice.randrange(self.hosts)})
        what = {"switch": ("--at", "switch", "down"), "rate": ("rate=" + dice.choice(RATES),),
                "loss": ("loss=" + dice.choice(LOSSES),), "flap": (dice.choice(("down", "drop")),),
                "host": (dice.choice(("down", "drop")),)}.get(kind, (kind,))
        where = (",".join("h%d" % h for h in hosts), ",".join("rail%d" % r for r in rails))
        self.faulted |= {(h, r) for h in hosts for r in rails}
        for turn in range(dice.randint(2, 6) if kind == "flap" else 1):
            at = begin + turn * length / 3
            self.faults += 1
            self.events += [(at, (*what, *where)),
                            (at + length / (6 if kind == "flap" else 1), ("heal", *where))]

    def draw_delay(self, dice):
        """Every other time a NIC keeps what comes, longer than its sender has patience: what was
        put lands late, or not any more."""
        if dice.random() < 0.5:
            return
        begin, host, rail = dice.uniform(0, 1.5), dice.randrange(self.hosts), dice.randrange(RAILS)
        self.events += [(begin, ("nic", host, rail, "delay", "1", dice.choice((200, 700, 1500)))),
                        (begin + dice.uniform(0.05, 0.7), ("nic", host, rail, "heal"))]
        self.faulted.add((host, rail))
        self.faults += 1

    def text(self):
        """For people."""
        lines = ["seed %d: %d hosts x %d ranks, %d bytes, %s, %s" % (
            self.seed, self.hosts, self.ppn, self.bytes, " ".join(k.strip(",") for k in self.kinds),
            " ".join("%s=%s" % pair for pair in self.params.items()) or "default parameters")]
        for at, *what in self.events:
            words = what[0] if isinstance(what[0], tuple) else (what[0].name, "rank", what[1])
            lines.append("  %.3f s %s" % (at, " ".join(map(str, words))))
        return "\n".join(lines)


class Run:
    """One draw under way."""

    def __init__(self, draw):
        self.draw, self.written = draw, 0
        self.events = "%s/seed%d.%%h.%%r" % (WORK, draw.seed)
        faultlab.HOSTS = draw.hosts * draw.ppn
        words = ["--mca", "coll_r2_event_file", self.events, "--map-by", "slot", "--host",
                 ",".join("%s-h%d:%d" % (LAB, h, draw.ppn) for h in range(draw.hosts))]
        for name, value in draw.params.items():
            words += ["--mca", "coll_r2_" + name, str(value)]
        self.job = Job("--mix", ",".join(k.strip(",") for k in draw.kinds) + ",", "--bytes",
                       max(64, draw.bytes), mpirun=words, expect=False)

    def go(self):
        """The whole draw; raises AssertionError."""
        job = self.job
        self.written = nic_counters()["given_back"] if RDMA else 0
        job.begin()
        pids = job.pids()
        start = time.monotonic()
        for at, *what in self.draw.events:
            time.sleep(max(0, start + at - time.monotonic()))
            if not isinstance(what[0], tuple):
                os.kill(pids[what[1]], what[0])
            elif what[0][0] == "nic":
                nic(*what[0][1:])
            else:
                fault(*what[0])
        heal_all()
        job.iterations(2)
        job.open("stop")
        job.wait("gate finalize")
        self.memory(pids)
        job.finish()
        self.blames()
        self.late_writes()

    def memory(self, pids):
        """Bounds of what a process takes, and of what waits in it."""
        parked = self.job.status["unexpected_bytes_max"]
        bound = len(pids) * (PARKING_BYTES + CHUNKS_BYTES) + CREDIT_BYTES
        assert parked <= bound, "%d bytes parked, bound %d" % (parked, bound)
        for rank, pid in pids.items():
            with open("/proc/%d/status" % pid, encoding="ascii") as file:
                peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) << 10
            bound = MEMORY_BYTES + RDMA_BYTES + BUFFERS * self.draw.bytes
            assert peak <= bound, "rank %d took %d bytes, bound %d" % (rank, peak, bound)

    def late_writes(self):
        """No NIC has written to results that the job had, nor to what it sends."""
        wrote = nic_counters()["given_back"] - self.written if RDMA else 0
        assert wrote == 0, "%d late writes into memory that was given back" % wrote

    def lines(self):
        """All events of all ranks."""
        found = []
        for name in glob.glob(self.events.replace("%h", "*").replace("%r", "*")):
            with open(name, encoding="utf8") as file:
                found += [json.loads(line) for line in file]
        return found

    def blames(self):
        """No verdict names a part that nothing was done to."""
        for e in self.lines():
            assert e["event"] != "lost", "events were lost: %s" % e
            if e["event"] != "verdict" or e["verdict"] in HARMLESS:
                continue
            named = {(int(e[key][-1]), e.get("rail")) for key in ("blamed", "other") if e.get(key)}
            # One host that hears none of the others over a rail cannot tell a dead plane from their
            # dead NICs.
            hit = [h for h in range(self.draw.hosts) if (h, e.get("rail")) in self.draw.faulted]
            alone = e["verdict"] == "plane" and len(hit) >= self.draw.hosts - 1
            assert alone or named & self.draw.faulted, "a healthy part is blamed: %s" % e

    def close(self):
        """Nothing is left of it."""
        for pid in self.job.ranks().values() if self.job.child.poll() is None else ():
            with contextlib.suppress(ProcessLookupError):   # a rank that has died
                os.kill(pid, signal.SIGCONT)
        self.job.kill()
        heal_all()
        for _, what, *_ in self.draw.events:
            if isinstance(what, tuple) and what[0] == "nic":
                nic(what[1], what[2], "heal")
        Job.all.remove(self.job)


def run_one(draw, sums):
    """One draw. @return why it failed, or None."""
    run = Run(draw)
    try:
        run.go()
        return None
    except (AssertionError, OSError, RuntimeError) as why:
        return "%s: %s" % (type(why).__name__, why)
    finally:
        for name in ("iteration", "lanes_failed", "resent_chunks", "relayed_packets",
                     "placed_bytes"):
            sums[name] = sums.get(name, 0) + run.job.status.get(name, 0)
        sums["verdicts"] = sums.get("verdicts", 0) + sum(e["event"] == "verdict"
                                                         for e in run.lines())
        run.close()


def campaign(options):
    """All draws on one lab. @return number of those that failed."""
    failed, sums, start = 0, {}, time.monotonic()
    r2lab("up", "--name", LAB, "--hosts", LAB_HOSTS, "--rails", RAILS, "--rate", "100mbit",
          *UP_RDMA)
    for seed in range(options.seed, options.seed + options.runs):
        draw = Draw(seed)
        why = run_one(draw, sums)
        sums["faults"] = sums.get("faults", 0) + draw.faults
        if why is not None:
            failed += 1
            print("seed %d failed: %s\n%s" % (seed, why, draw.text()), flush=True)
        elif options.verbose:
            print(draw.text(), flush=True)
        if why is None or not options.keep:
            for name in glob.glob("%s/seed%d.*" % (WORK, seed)):
                os.unlink(name)
    for name in ("late_refused", "unmapped", "given_back") if RDMA else ():
        sums[name] = nic_counters()[name]
    print("# %d draws from seed %d, %d failed, %.0f s; %s" % (
        options.runs, options.seed, failed, time.monotonic() - start,
        ", ".join("%s %d" % pair for pair in sums.items())))
    print("%d passed, %d failed" % (options.runs - failed, failed))
    return failed


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rdma", action="store_true", help="rails are RDMA devices")
    parser.add_argument("--ud", action="store_true", help="the same, by datagrams")
    parser.add_argument("--ib", action="store_true", help="InfiniBand ports without IP")
    parser.add_argument("--put", action="store_true", help="the same, and messages are put")
    parser.add_argument("--print", action="store_true", help="show the draws, run nothing")
    parser.add_argument("--verbose", action="store_true", help="show the draws that passed, too")
    parser.add_argument("--keep", action="store_true",
                        help="keep the files of draws that failed (R2_KEEP=1 as well)")
    options = parser.parse_args()
    if options.print:
        for seed in range(options.seed, options.seed + options.runs):
            print(Draw(seed).text())
        return 0
    if os.geteuid() != 0:
        print("the campaign on the lab needs root")
        return 77
    try:
        return 1 if campaign(options) else 0
    finally:
        down()


if __name__ == "__main__":
    sys.exit(main())
