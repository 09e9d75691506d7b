# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What r2 does on this site's GPUs: kernels against copies, staging against what copies and rails
give, several ranks on one GPU, and a run under compute-sanitizer. One table, with r2's goals."""

import json
import shlex
import shutil
from dataclasses import dataclass

from . import measure, output
from .jobs import SiteError

KERNELS = 0.85      # of the rate of copies inside the device, in bytes read and written
STAGING = 0.90      # of the slower one of copies and rails
RANKS_MORE = 2      # times as many ranks as otherwise share a GPU


@dataclass
class Line:
    """One line of the table."""

    what: str
    found: str
    share: float = None     # of what it is measured against
    goal: float = None
    why: str = ""           # it was not measured, or went wrong
    is_left_out: bool = False

    def verdict(self):
        if self.why:
            return ("left out: " if self.is_left_out else "FAILED: ") + self.why
        if self.goal is None:
            return "right"
        return "reached" if self.share >= self.goal else "missed"

    def is_bad(self):
        return bool(self.why) and not self.is_left_out


def rates_of(launcher, variables, long):
    """What r2_info measures on a host, or why not."""
    said = launcher.run(1, variables, [launcher.programs.info, "--gpu-rates", "--json", "--bytes",
                                       str(long)])
    for begin in (at for at, letter in enumerate(said.out) if letter == "{"):
        try:
            found = json.JSONDecoder().raw_decode(said.out, begin)[0]
        except ValueError:
            continue
        if "copy_inside" in found:
            return found, ""
    return None, said.last_lines()


def kernels(rates, why):
    """Kernels against copies from the device to the device."""
    for what, key in (("sum of float, by r2's kernel", "sum_float"),
                      ("sum of bfloat16", "sum_bfloat16")):
        if rates is None or not rates[key]:
            yield Line(what, "-", goal=KERNELS, why=why or rates["kernels"] or "no kernels")
        else:
            yield Line(what, "%.1f GB/s read and written" % (rates[key] / 1e9),
                       rates[key] / rates["copy_inside"], KERNELS)


def allreduce(launcher, plan, variables, words=(), ranks=None, before=()):
    """us of an allreduce and "", or None and why."""
    ranks = ranks or plan.ranks
    said = launcher.run(ranks, {**measure.variables("r2", measure.ALL, plan.hosts, plan.given),
                                **variables},
                        [*before, launcher.programs.bench, "allreduce", "-m",
                         measure.exactly(plan.long), "-c", "--seconds", "%g" % plan.seconds,
                         "-x", measure.WARM["allreduce"], "-T", "mpi_float", *words])
    why = measure.why_bad("r2", measure.ALL, said, ranks if launcher.takes_count else 0)
    if why is None and plan.long not in output.table(said.out):
        why = "r2_bench printed no such table: " + said.last_lines()
    if why is not None:
        return None, why
    return float(output.table(said.out)[plan.long]["Avg Latency(us)"]), ""


def staging(launcher, plan, rates):
    """An allreduce on GPUs against the same in the host's memory, and the copies of its bytes."""
    what = "allreduce of %s in GPUs" % measure.text_of(plan.long)
    host_us, why = allreduce(launcher, plan, {})
    if not why:
        gpu_us, why = allreduce(launcher, plan, {}, ("-d", "cuda"))
    if why or rates is None:
        return Line(what, "-", goal=STAGING, why=why or "the GPU's copies were not measured")
    copies_us = plan.long / min(rates["copy_on"], rates["copy_off"]) * 1e6
    return Line(what, "%.0f us; by the rails %.0f, by copies %.0f" % (gpu_us, host_us, copies_us),
                max(host_us, copies_us) / gpu_us, STAGING)


def shared(launcher, plan):
    """Several ranks on one GPU of each host."""
    ranks = RANKS_MORE * plan.ranks
    what = "%d ranks, one GPU on each host" % ranks
    if not launcher.takes_count:
        return Line(what, "-", why="--launch has no {n}", is_left_out=True)
    took_us, why = allreduce(launcher, plan, {"CUDA_VISIBLE_DEVICES": "0"}, ("-d", "cuda"), ranks)
    return Line(what, "-" if why else "%.0f us" % took_us, why=why)


def sanitized(launcher, plan, sanitizer):
    """A run under compute-sanitizer."""
    words = shlex.split(sanitizer)
    what = "under %s" % (words[0] if words else "no sanitizer")
    if not words or shutil.which(words[0]) is None:
        return Line(what, "-", why="it is not here (--sanitizer)", is_left_out=True)
    took_us, why = allreduce(launcher, plan, {}, ("-d", "cuda"), before=words)
    return Line(what, "-" if why else "%.0f us, and nothing found" % took_us, why=why)


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    hosts: list
    ranks: int
    given: dict
    long: int           # bytes
    seconds: float


def run(launcher, plan, sanitizer, tell):
    """All lines of the table."""
    tell("rates of a GPU")
    rates, why = rates_of(launcher, plan.given["r2"], plan.long)
    lines = list(kernels(rates, why))
    tell("allreduces in GPUs")
    lines.append(staging(launcher, plan, rates))
    tell("several ranks on one GPU")
    lines.append(shared(launcher, plan))
    tell("a sanitizer")
    lines.append(sanitized(launcher, plan, sanitizer))
    if all(line.why for line in lines):
        raise SiteError("nothing could be measured on GPUs: " + lines[0].why)
    return rates, lines


def text(rates, lines):
    """The table."""
    rows = [("what", "measured", "share", "goal", "")]
    if rates:
        rows += [(name, "%.1f GB/s" % (rates[key] / 1e9), "", "", "") for name, key in
                 (("copies inside the device, read and written", "copy_inside"),
                  ("copies onto it from pinned memory", "copy_on"), ("copies off it", "copy_off"))]
    rows += [(line.what, line.found, "" if line.share is None else "%.2f" % line.share,
              "" if line.goal is None else "%.2f" % line.goal, line.verdict()) for line in lines]
    return rows
