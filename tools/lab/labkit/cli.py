# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The command line: checked completely before anything is done."""

import os
import sys

from .lab import MAX_HOSTS, MAX_RAILS, Lab, UsageError, parse_name, parse_rate
from .spawn import LabError

USAGE = """\
usage: r2lab VERB [--name LAB] ...        LAB: $R2LAB_NAME, or r2

  up [--hosts N] [--rails R] [--rate RATE] [--rdma | --ib] [--force]
        build a lab: N hosts (4) with R rails (4) of RATE (100mbit; 'none' = not shaped);
        with --rdma rail0 is the RDMA device soft0, too, and so on (docs/softverbs.md);
        with --ib soft0 is an InfiniBand port, and no network device of the host
  run [--ppn K] [--p2p r2|mgmt] [--peer STACK] [--timeout S] [--build DIR] [--root DIR]
      [--show] MPIRUN_ARGUMENT...
        mpirun on h0, ranks over the hosts in turn, or K consecutive ranks for each host;
        point-to-point is r2's too, or Open MPI's on mgmt0;
        STACK ob1, ob1-ring, ucx or ucx-ring is Open MPI's own on the rails, without r2;
        mpich is MPICH's launcher, for a program that was built with it;
        DIR of --root is another system's root folder (see tests/debian13): mpirun and the
        ranks are that system's, and r2 what --build or $R2_BUILDDIR has built in it;
        after S seconds the run is ended (exit status 124); --show prints, runs nothing
  slurm up | down
        a Slurm of the lab's own (tools/deps.sh slurm): slurmctld on h0, slurmd on every host
  slurm run [--p2p r2|mgmt] [--timeout S] [--build DIR] [--show] SRUN_ARGUMENT...
        srun on h0, with r2 as in run: --mpi=pmix -N4 -n4 ./app
  fault [--at host|switch] KIND HOST RAIL
        KIND down, drop, drop-in, drop-out, loss=1%, rate=10mbit, rate=10%, heal;
        prints CLOCK_MONOTONIC of when it took effect; HOST and RAIL may be lists or 'all'
  exec HOST COMMAND...
        run a command on a host
  status [--json]
        hosts, rails, addresses, states, faults, rates and byte counters
  counters
        bytes and packets of each host and device, as JSON
  down
        end everything in the lab and remove it

Hosts are h0, h1 ..; rails are rail0, rail1 .. and mgmt0, which is never shaped.
"""

OPTIONS = {     # of each verb: option -> takes a value
    "up": {"--hosts": True, "--rails": True, "--rate": True, "--rdma": False,
           "--ib": False, "--force": False},
    "run": {"--ppn": True, "--p2p": True, "--peer": True, "--timeout": True, "--build": True,
            "--root": True, "--show": False},
    "slurm up": {},
    "slurm run": {"--p2p": True, "--timeout": True, "--build": True, "--show": False},
    "slurm down": {},
    "fault": {"--at": True},
    "exec": {},
    "status": {"--json": False},
    "counters": {},
    "down": {},
}
PASSES_ON = ("run", "slurm run", "exec")     # options end at the first word that is none of ours


def parse(args):
    """Words -> verb, options, rest. --name may come before the verb too."""
    early, args = split({"--name": True}, args, True)
    if args[:1] == ["slurm"]:
        args = [" ".join(args[:2]), *args[2:]]
    if not args or args[0] not in OPTIONS:
        raise UsageError("no verb %r" % args[0] if args else "no verb")
    verb = args[0]
    options, rest = split({"--name": True, **OPTIONS[verb]}, args[1:], verb in PASSES_ON)
    options = {"--name": os.environ.get("R2LAB_NAME") or "r2", **early, **options}
    options["--name"] = parse_name(options["--name"])
    if not rest and verb in (*PASSES_ON, "fault") or rest and verb not in (*PASSES_ON, "fault"):
        raise UsageError("%s: %s" % (verb, "unexpected %r" % rest[0] if rest else "what?"))
    return verb, options, rest


def split(known, args, stops):
    """Takes the known options out of args: (options, other words). With stops, only those
    in front, up to a '--'."""
    options, rest, at = {}, [], 0
    while at < len(args):
        word, is_joined, value = args[at].partition("=")
        if word not in known:
            if stops:
                return options, args[at + (args[at] == "--"):]
            if word.startswith("-"):
                raise UsageError("no option %r" % word)
            rest.append(args[at])
        elif not known[word]:
            if is_joined:
                raise UsageError("%s takes no value" % word)
            options[word] = True
        else:
            if not is_joined:
                at += 1
                if at == len(args):
                    raise UsageError("%s needs a value" % word)
                value = args[at]
            options[word] = value
        at += 1
    return options, rest


def whole(options, name, default, most):
    """A whole number from 1 to most."""
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise UsageError("%s %r: a whole number from 1 to %d" % (name, text, most))
    return int(text)


def seconds(text):
    """A positive number of seconds, or None."""
    if text is None:
        return None
    if not (text.isascii() and text.replace(".", "", 1).isdigit() and float(text) > 0):
        raise UsageError("--timeout %r: a number of seconds" % text)
    return float(text)


def point_to_point(options, peer=None):
    """Who carries it, or None for the default."""
    from . import launch
    p2p = options.get("--p2p")
    if p2p is not None and (p2p not in launch.POINT_TO_POINT or peer):
        raise UsageError("--p2p %r: one of %s, without --peer"
                         % (p2p, " ".join(launch.POINT_TO_POINT)))
    return p2p


def do_up(name, options, _):
    """r2lab up"""
    rate = options.get("--rate", "100mbit")
    lab = Lab(name, whole(options, "--hosts", 4, MAX_HOSTS),
              whole(options, "--rails", 4, MAX_RAILS),
              rate if rate == "none" else parse_rate(rate), options.get("--ib", False))
    from . import build
    return build.up(lab, options.get("--force", False), options.get("--rdma", lab.is_ib))


def do_down(name, _options, _rest):
    """r2lab down"""
    from . import build
    return build.down(name)


def do_run(name, options, rest):
    """r2lab run"""
    from . import launch, run
    peer = options.get("--peer")
    if peer is not None and peer not in launch.PEERS:
        raise UsageError("--peer %r: one of %s" % (peer, " ".join(launch.PEERS)))
    p2p = point_to_point(options, peer)
    ppn = whole(options, "--ppn", 1, 1024) if "--ppn" in options else 0
    timeout_s = seconds(options.get("--timeout"))
    return run.run(Lab.load(name), rest, peer, p2p, ppn, timeout_s, options.get("--build"),
                   options.get("--root"), options.get("--show", False))


def do_slurm_up(name, _options, _rest):
    """r2lab slurm up"""
    from . import slurm
    return slurm.up(Lab.load(name))


def do_slurm_run(name, options, rest):
    """r2lab slurm run"""
    from . import slurm
    return slurm.start(Lab.load(name), rest, point_to_point(options),
                       seconds(options.get("--timeout")), options.get("--build"),
                       options.get("--show", False))


def do_slurm_down(name, _options, _rest):
    """r2lab slurm down"""
    from . import slurm
    return slurm.down(Lab.load(name))


def do_fault(name, options, rest):
    """r2lab fault"""
    from . import fault
    end = options.get("--at", "host")
    if end not in fault.ENDS:
        raise UsageError("--at %r: host or switch" % end)
    fault.parse_kind(rest)
    return fault.run(Lab.load(name), end, rest)


def do_exec(name, _options, rest):
    """r2lab exec"""
    if len(rest) < 2:
        raise UsageError("exec: a host and a command")
    from . import run
    lab = Lab.load(name)
    return run.execute(lab, lab.parse_host(rest[0]), rest[1:])


def do_status(name, options, _):
    """r2lab status"""
    from . import report
    return report.status(Lab.load(name), options.get("--json", False))


def do_counters(name, _options, _rest):
    """r2lab counters"""
    from . import report
    return report.counters(Lab.load(name))


VERBS = {"up": do_up, "run": do_run, "slurm up": do_slurm_up, "slurm run": do_slurm_run,
         "slurm down": do_slurm_down, "fault": do_fault, "exec": do_exec, "status": do_status,
         "counters": do_counters, "down": do_down}


def main(args):
    """Returns the exit status: 2 for a wrong command line, 1 for what cannot be done."""
    if args and args[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    try:
        verb, options, rest = parse(args)
        return VERBS[verb](options["--name"], options, rest)
    except UsageError as error:
        sys.stderr.write("r2lab: %s\n%s" % (error, USAGE))
        return 2
    except (LabError, OSError) as error:
        sys.stderr.write("r2lab: %s\n" % error)
        return 1
