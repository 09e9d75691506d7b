# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The command line of r2_site."""

import argparse
import sys
import time

from . import failover, gpu, look, measure, report
from .jobs import Launcher, SiteError, find_programs, settings

PARTS = ("rails", "all", "fail-over")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SIZE_MOST = 1 << 30
ABOUT = """Measures r2 on this site's hosts against what the site uses now: latency and bandwidth
of each rail and of all rails, both stacks in turn, every result checked, and what a port that goes
down costs. Prints one table. Needs no root; sends traffic for --minutes at the most."""
EXAMPLES = """examples:
  r2_site --launch 'mpirun -n {n} --map-by node --hostfile nodes'
  r2_site --launch 'srun --mpi=pmix -N {n} -n {n}' --stock 'pml=ucx' --markdown >table.md
  r2_site --launch '..' --gpu --bytes 64M --markdown    # what r2 does on your GPUs
  r2_site --launch '..' --fault-cmd ./port    # './port down node2 ib1', './port heal node2 ib1'
"""


def size(text):
    """A number of bytes: 4M."""
    scale = UNITS.get(text[-1:].upper(), 1)
    digits = text[:-1] if scale > 1 else text
    if not digits.isdigit() or not 16 <= int(digits) * scale <= SIZE_MOST:
        raise argparse.ArgumentTypeError("'%s' is no size from 16 to 1G" % text)
    return int(digits) * scale


def parts(text):
    """A list of parts."""
    words = text.split(",")
    if not words or set(words) - set(PARTS):
        raise argparse.ArgumentTypeError("'%s' is no list of %s" % (text, ", ".join(PARTS)))
    return words


def within(kind, least, most):
    """A number in a range."""
    def read(text):
        try:
            value = kind(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError("'%s' is not from %g to %g" % (text, least, most))
        return value
    return read


def parser():
    made = argparse.ArgumentParser(
        prog="r2_site", description=ABOUT, epilog=EXAMPLES, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = made.add_argument
    add("--launch", default="mpirun -n {n} --map-by node", metavar="CMD",
        help="how this site starts a job on several hosts; {n} becomes the number of ranks "
             "(default: %(default)s)")
    add("-n", "--ranks", type=within(int, 2, 65536), default=2,
        help="of collectives (default: 2); point-to-point has two")
    add("--stock", default="", metavar="'NAME=VALUE ..'",
        help="settings of the other stack: MCA parameters, variables in capitals "
             "(default: the site's own, without r2)")
    add("--r2", default="", metavar="'NAME=VALUE ..'", help="settings of r2's jobs")
    add("--no-stock", action="store_true", help="r2 alone")
    add("--parts", type=parts, default=list(PARTS), metavar="PART,..",
        help="of rails (each by itself), all (together), fail-over (default: all three)")
    add("--rounds", type=within(int, 1, 100), default=5, help="(default: %(default)s)")
    add("--seconds", type=within(float, 0.05, 60), default=1.0,
        help="for each size (default: %(default)s)")
    add("--bytes", type=size, default=size("4M"), dest="long",
        help="of long messages (default: 4M)")
    add("--minutes", type=within(float, 0.2, 1440), default=15.0,
        help="most time for all (default: %(default)s)")
    add("--job-limit", type=within(float, 5, 3600), default=120.0, metavar="S",
        help="most time of one job (default: %(default)s)")
    add("--gpu", action="store_true",
        help="instead: GPUs. Kernels against copies, an allreduce in their memory against copies "
             "and rails, several ranks on one GPU, a run under --sanitizer")
    add("--sanitizer", default="compute-sanitizer --error-exitcode 9", metavar="CMD",
        help="what to put before r2_bench with --gpu (default: %(default)s)")
    add("--fault-cmd", metavar="CMD",
        help="takes a port down and up: called on rank 0's host as CMD KIND HOST NIC, KIND is "
             "'down' or 'heal'; without it there is no fail-over part")
    add("--fault-kind", default="down", metavar="KIND", help="instead of 'down'")
    add("--fault-host", metavar="HOST", help="whose ports (default: the second host)")
    add("--fault-rails", metavar="NIC,..", help="(default: all of that host)")
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="every single figure, as JSON")
    form.add_argument("--markdown", action="store_true", help="the table as Markdown")
    add("--build", metavar="DIR", help="the build tree to use (default: $R2_BUILDDIR, the tree "
                                       "that r2_site lies in, or what is installed beside it)")
    add("--quiet", action="store_true", help="nothing on standard error but errors")
    add("--look", metavar="R2_INFO", help=argparse.SUPPRESS)    # on each rank, by r2_site itself
    return made


def say_nothing(_):
    """--quiet."""


def say(text):
    print("r2_site: " + text, file=sys.stderr, flush=True)


def places(hosts, wanted, notes):
    """Each rail, and all of them. @param wanted parts."""
    together = [measure.ALL] if "all" in wanted else []
    rails = look.common_rails(hosts)
    if rails is None:
        notes.append("single rails: hosts have rails of different names; --r2 "
                     "'coll_r2_rails=..' names those that all have")
        return together
    if not rails:
        raise SiteError("r2 found no rail on %s: %s" % (
            hosts[0]["host"], "; ".join(hosts[0]["problems"]) or "r2_info says why"))
    return [*(rails if len(rails) > 1 and "rails" in wanted else []), *together]


def make_plan(options, hosts, ranks, given, notes):
    """What to run."""
    jobs = [job for place in places(hosts, options.parts, notes)
            for job in measure.jobs_of(place, options.long)]
    takes_count = any("{n}" in word for word in options.launch.split())
    if not takes_count and ranks != 2:
        notes.append("point-to-point: --launch always starts %d ranks, and it needs two; write "
                     "{n} for their number" % ranks)
        jobs = [job for job in jobs if not job.two_only]
    stacks = ("r2",) if options.no_stock else ("r2", "stock")
    return measure.Plan(jobs, hosts, ranks, given, stacks, options.rounds, options.seconds)


def make_faults(options, hosts, notes):
    """What goes down; None: nothing."""
    if "fail-over" not in options.parts:
        return None
    if not options.fault_cmd:
        notes.append("fail-over: no --fault-cmd says how a port goes down and up")
        return None
    other = hosts[1] if options.fault_host is None else next(
        (h for h in hosts if h["host"] == options.fault_host), None)
    if other is None:
        raise SiteError("--fault-host %s: the job is on %s" % (
            options.fault_host, ", ".join(h["host"] for h in hosts)))
    rails = [rail["name"] for rail in other["rails"]]
    if len(rails) < 2:
        notes.append("fail-over: %s has one rail, there is nothing to fail over to" %
                     other["host"])
        return None
    wanted = options.fault_rails.split(",") if options.fault_rails else rails
    missing = sorted(set(wanted) - set(rails))
    if missing:
        raise SiteError("--fault-rails: %s is no rail of %s (%s)" % (
            missing[0], other["host"], ", ".join(rails)))
    return failover.Faults(options.fault_cmd, options.fault_kind, other["host"], wanted,
                           options.long)


def start(options, site, tell):
    """The launcher, and what the user gave."""
    given = {"r2": settings(options.r2), "stock": settings(options.stock)}
    launcher = Launcher(options.launch, find_programs(site, options.build), options.job_limit)
    launcher.deadline = time.monotonic() + 60 * options.minutes
    tell("looking at the hosts")
    return launcher, given


def run_gpu(options, site):
    """--gpu: prints the table; returns the exit status."""
    tell = say_nothing if options.quiet else say
    launcher, given = start(options, site, tell)
    hosts, ranks = look.look(launcher, options.ranks, given["r2"])
    plan = gpu.Plan(hosts, ranks, given, options.long, options.seconds)
    rates, lines = gpu.run(launcher, plan, options.sanitizer, tell)
    rows = gpu.text(rates, lines)
    print((report.piped if options.markdown else report.aligned)(rows))
    return 1 if any(line.is_bad() for line in lines) else 0


def run(options, site):
    """Looks, measures, breaks; returns a Result."""
    begin = time.monotonic()
    tell = say_nothing if options.quiet else say
    launcher, given = start(options, site, tell)
    hosts, ranks = look.look(launcher, options.ranks, given["r2"])
    if len(hosts) < 2:
        raise SiteError("all %d ranks are on %s: r2 is for several hosts; spread them "
                        "(--map-by node, -N)" % (ranks, hosts[0]["host"]))
    notes = []
    plan = make_plan(options, hosts, ranks, given, notes)
    faults = make_faults(options, hosts, notes)
    reserve_s = len(faults.rails) * (failover.END_S + 5) if faults else 0
    launcher.deadline -= reserve_s
    figures = measure.measure(launcher, plan, tell)
    launcher.deadline += reserve_s
    if figures.rounds < plan.rounds and len(figures.failed) < len(plan.jobs) * len(plan.stacks):
        notes.append("%d of %d rounds: the time (--minutes %g) was up" % (
            plan.rounds - figures.rounds, plan.rounds, options.minutes))
    shots = failover.run(launcher, plan, faults, tell) if faults else []
    if faults and len(shots) < len(faults.rails):
        notes.append("fail-over of %s: the time (--minutes %g) was up" % (
            ", ".join(faults.rails[len(shots):]), options.minutes))
    return report.Result(hosts, ranks, figures, shots, notes, time.monotonic() - begin)


def main(arguments, site):
    """@param site path of r2_site. @return exit status: 0, 1 (something failed), 2 (nothing could
    be measured)."""
    options = parser().parse_args(arguments)
    if options.look:
        return look.here(options.look)
    if options.gpu and options.json:
        print("r2_site: --gpu has no --json", file=sys.stderr)
        return 2
    try:
        if options.gpu:
            return run_gpu(options, site)
        result = run(options, site)
    except SiteError as why:
        print("r2_site: %s" % why, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("r2_site: interrupted", file=sys.stderr)
        return 2
    form = report.as_json if options.json else report.markdown if options.markdown \
        else report.text
    sys.stdout.write(form(result))
    return 1 if result.failures() or any(shot.wrong for shot in result.shots) else 0
