# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""A port goes down and comes back under an allreduce of r2, one rail after the other.

The site says how: a command that is called on rank 0's host as CMD KIND HOST NIC, with KIND "down"
(or what --fault-kind says) and "heal".
"""

import subprocess
from dataclasses import dataclass

from . import output
from .measure import ALL, exactly, variables, why_bad

DOWN_S = 2.5            # from the start of the measured loop
HEAL_S = 6.0
END_S = 12.0
START_S = 20.0          # for a launcher to start and end, at most
HEAL_LIMIT_S = 30.0     # of the site's command, called from here


@dataclass
class Shot:
    """One rail that went down and came back."""

    rail: str
    host: str
    why: str = None             # there are no figures
    pause_ms: float = None      # of a call, beyond the usual
    before: float = None        # MB/s
    during: float = None
    after: float = None
    wrong: int = None           # results
    said: tuple = ()            # ("dead", "back"): what r2 told of this rail


def words_of(programs, command, kind, host, rail, size):
    """r2_bench's arguments."""
    return [programs.bench, "allreduce", "-m", exactly(size), "-c", "-x", "3", "--seconds",
            "%g" % END_S, "--fault", "%gs %s %s %s" % (DOWN_S, kind, host, rail), "--fault",
            "%gs heal %s %s" % (HEAL_S, host, rail), "--fault-cmd", command]


def read(rail, host, said):
    """A job as a Shot."""
    shot = Shot(rail, host)
    shot.wrong = output.wrong_results(said.out)
    shot.said = tuple(state for nic, at, state in output.verdicts(said.all()) if nic == rail)
    phases = {}
    for phase in output.phases(said.out):
        phases.setdefault(phase.name, phase)
    shot.why = why_bad("r2", ALL, said, 0)
    if shot.why is None and set(phases) != {"before", "during", "after"}:
        shot.why = "the fault did not happen between the first call and the last"
    if shot.why is None:
        shot.pause_ms = phases["during"].extra_ms
        shot.before, shot.during, shot.after = (phases[name].rate for name in
                                                ("before", "during", "after"))
    return shot


@dataclass(frozen=True)
class Faults:
    """What the site said of faults."""

    command: str
    kind: str
    host: str           # whose ports go down
    rails: list
    size: int           # of the allreduce, bytes


def heal(faults, rail, say):
    """Brings a port back that a job may have left down: it was to do so, and did not get there."""
    command = "%s heal %s %s" % (faults.command, faults.host, rail)
    try:
        status = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                timeout=HEAL_LIMIT_S, check=False).returncode
    except (OSError, subprocess.TimeoutExpired):
        status = 1
    if status != 0:
        say("%s of %s may still be down: '%s' failed here, run it on rank 0's host"
            % (rail, faults.host, command))


def run(launcher, plan, faults, say):
    """All rails; stops where the time left would not do for one more."""
    shots = []
    for rail in faults.rails:
        if launcher.left_s() < END_S + 3:
            break
        say("fail-over: %s of %s" % (rail, faults.host))
        limit_s, launcher.limit_s = launcher.limit_s, max(launcher.limit_s, END_S + START_S)
        try:
            said = launcher.run(plan.ranks, variables("r2", ALL, plan.hosts, plan.given),
                                words_of(launcher.programs, faults.command, faults.kind,
                                         faults.host, rail, faults.size))
        except BaseException:
            heal(faults, rail, say)
            raise
        launcher.limit_s = limit_s
        shots.append(read(rail, faults.host, said))
        if shots[-1].why is not None:
            heal(faults, rail, say)
    return shots
