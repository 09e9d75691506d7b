# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Latency and bandwidth, of each rail and of all of them: r2 and the site's stack in turn.

A round runs each job under each stack, and the stack that begins changes from round to round, so
that what else hosts and network do hits both.
"""

import statistics
from dataclasses import dataclass, field

from . import output

ALL = "all rails"
SHORT = 8                   # bytes
WARM = {"latency": "20", "bw": "2", "allreduce": "3"}
R2 = {"OMPI_MCA_coll_r2_enable": "1", "OMPI_MCA_coll_r2_verbose": "2", "OMPI_MCA_pml": "ob1",
      "OMPI_MCA_btl": "r2,self"}
STOCK = {"OMPI_MCA_coll_r2_enable": "0", "OMPI_MCA_coll_r2_verbose": "2"}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    place: str      # a rail, or ALL
    what: str
    unit: str
    column: str     # of r2_bench's table
    size: int       # bytes

    @property
    def is_rate(self):
        return self.unit == "MB/s"


@dataclass(frozen=True)
class Job:
    """One start of r2_bench: one or two rows."""

    place: str
    bench: str      # its name
    sizes: tuple
    two_only: bool  # two ranks
    rows: tuple

    def words(self, programs, seconds):
        words = [programs.bench, self.bench, "-m", exactly(*self.sizes), "-c",
                 "--seconds", "%g" % seconds, "-x", WARM[self.bench]]
        return words + (["-W", "8"] if self.bench == "bw" else [])


def exactly(*sizes):
    """r2_bench's -m for these sizes and no others."""
    return ",".join(map(str, sizes)) if len(sizes) > 1 else "%d:%d" % (sizes[0], sizes[0])


def text_of(size):
    """A size as people write it."""
    for unit, letter in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if size % unit == 0:
            return "%d %siB" % (size // unit, letter)
    return "%d B" % size


def jobs_of(place, long):
    """Point-to-point on each place; collectives on all rails."""
    def row(what, unit, column, size):
        return Row(place, "%s, %s" % (what, text_of(size)), unit, column, size)
    jobs = [Job(place, "latency", (SHORT,), True,
                (row("point-to-point", "us", "Avg Latency(us)", SHORT),)),
            Job(place, "bw", (long,), True,
                (row("point-to-point", "MB/s", "Bandwidth(MB/s)", long),))]
    if place == ALL:
        jobs.append(Job(place, "allreduce", (SHORT, long), False,
                        (row("allreduce", "us", "Avg Latency(us)", SHORT),
                         row("allreduce", "MB/s", "Bus BW(MB/s)", long))))
    return jobs


def variables(stack, place, hosts, given):
    """Of a stack on a rail, or on all of them. @param given stack -> the user's settings."""
    found = dict(R2 if stack == "r2" else STOCK)
    found.update(given.get(stack, {}))
    if place != ALL:
        rail = next(r for r in hosts[0]["rails"] if r["name"] == place)
        if stack == "r2":
            found["OMPI_MCA_coll_r2_rails"] = place
        else:       # each is for one of Open MPI's transports; the others do not read it
            found["OMPI_MCA_btl_tcp_if_include"] = place
            found["OMPI_MCA_btl_openib_if_include"] = rail["rdma"] or ""
            found["UCX_NET_DEVICES"] = rail["rdma"] or place
    return {name: value for name, value in found.items() if value != ""}


def why_bad(stack, place, said, ranks):
    """Why the figures of a job are none, or None. @param ranks 0: as many as there are."""
    text = said.all()
    where = output.hosts(said.out)
    if said.status == 124:
        return "it did not end within %.0f s" % said.seconds
    if stack == "stock" and output.in_use(text) is not None:
        return "the site's own settings use r2: name the other stack by --stock, such as " \
               "'coll=^r2 btl=^r2'"
    if output.wrong_results(said.out):
        return "%d results were wrong" % output.wrong_results(said.out)
    if said.status != 0:
        return "exit status %d: %s" % (said.status, said.last_lines())
    if where is None or where[0] < 2:
        return "the launcher started jobs of one process each (is it made for this MPI?)"
    if where[1] < 2:
        return "all ranks were on one host; r2 is for several: spread them (--map-by node, -N)"
    if ranks and where[0] != ranks:
        return "%d ranks were started and not %d" % (where[0], ranks)
    if stack == "r2" and output.in_use(text) is None:
        return output.why_not_in_use(text) or "r2 took no part: does Open MPI find its " \
            "components on all hosts (r2_info)?"
    if stack == "r2" and place != ALL and list(output.in_use(text)) != [place]:
        return "r2 used %s and not this rail alone" % ", ".join(output.in_use(text))
    return None


@dataclass
class Figures:
    """All that was measured."""

    stacks: tuple
    rows: list = field(default_factory=list)
    values: dict = field(default_factory=dict)      # (row, stack) -> round -> figure
    failed: dict = field(default_factory=dict)      # (place, bench, stack) -> why
    transports: dict = field(default_factory=dict)  # rail -> transport that r2 said
    rounds: int = 0         # whole ones
    jobs: int = 0

    def of(self, row, stack):
        return self.values.get((row, stack), {})

    def mid(self, row, stack):
        values = self.of(row, stack).values()
        return statistics.median(values) if values else None

    def ratio(self, row):
        """r2 / the other: the median of the rounds' ratios, or None."""
        ours, theirs = self.of(row, "r2"), self.of(row, "stock")
        both = [ours[r] / theirs[r] for r in set(ours) & set(theirs) if theirs[r] > 0]
        return statistics.median(both) if both else None

    def take(self, job, stack, turn, said, ranks):
        """Notes one job's figures, or why there are none."""
        self.jobs += 1
        why = why_bad(stack, job.place, said, ranks)
        found = output.table(said.out)
        if why is None and any(row.column not in found.get(row.size, {}) for row in job.rows):
            why = "r2_bench printed no such table: " + said.last_lines()
        if why is not None:
            self.failed[job.place, job.bench, stack] = why
            return
        for row in job.rows:
            self.values.setdefault((row, stack), {})[turn] = float(found[row.size][row.column])
        if stack == "r2" and job.place == ALL:
            self.transports.update(output.in_use(said.all()))


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    jobs: list
    hosts: list
    ranks: int
    given: dict         # stack -> settings
    stacks: tuple
    rounds: int
    seconds: float      # of each size


def measure(launcher, plan, say):
    """Runs the rounds; stops before a job that the time left would not do for."""
    figures = Figures(plan.stacks, [row for job in plan.jobs for row in job.rows])
    took = {}
    for turn in range(plan.rounds):
        stacks = plan.stacks if turn % 2 == 0 else plan.stacks[::-1]
        for job in plan.jobs:
            for stack in stacks:
                key = job.place, job.bench, stack
                if key in figures.failed:
                    continue
                if launcher.left_s() < took.get(key, max(took.values(), default=0)):
                    return figures
                say("round %d of %d: %s, %s, %s" % (turn + 1, plan.rounds, *key))
                said = launcher.run(2 if job.two_only else plan.ranks,
                                    variables(stack, job.place, plan.hosts, plan.given),
                                    job.words(launcher.programs, plan.seconds))
                if said.status == 124 and launcher.left_s() < 1:
                    return figures      # not its fault
                took[key] = said.seconds
                figures.take(job, stack, turn, said, 2 if job.two_only else 0)
        figures.rounds = turn + 1
    return figures
