# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What r2_bench and r2 print."""

import re
from dataclasses import dataclass

HOSTS = re.compile(r"^# (\d+) ranks? on (\d+) hosts?\b", re.M)
ROW = re.compile(r"^\d+(\s+\S+)+$")
PHASE = re.compile(r"^  (before|during|after)\s")
WRONG = re.compile(r"^# validation: \d+ iterations on \d+ ranks?, (\d+) wrong results", re.M)
IN_USE = re.compile(r"(coll|btl):r2: in use on (\S+): (?:\d+ rails?: )?([^;]*)")
NOT_IN_USE = re.compile(r"(?:this job does without r2|not in use on).*")
RAIL = re.compile(r"(\S+) \(([^)]*)\)")
DEAD = re.compile(r"warning: (\S+)(?: \([^)]*\))? of (\S+) is (dead|back)[^;\n]*")


@dataclass
class Phase:
    """Of a run with faults: before, during, after."""

    name: str
    rate: float         # MB/s
    extra_ms: float     # longer than usual is the longest gap in the second after the fault


def table(text):
    """Size -> column -> figure; columns without their units."""
    found, columns = {}, []
    for line in text.splitlines():
        if line.startswith("# Size"):
            columns = re.split(r"\s{2,}", line[2:].strip())
        elif columns and ROW.match(line):
            cells = line.split()
            if len(cells) == len(columns):
                found[int(cells[0])] = dict(zip(columns[1:], cells[1:]))
    return found


def hosts(text):
    """(ranks, hosts) of a job, or None."""
    found = HOSTS.search(text)
    return (int(found[1]), int(found[2])) if found else None


def wrong_results(text):
    """Number of results that were wrong; None: nothing was checked."""
    found = WRONG.findall(text)
    return sum(map(int, found)) if found else None


def number(word):
    return None if word == "-" else float(word)


def phases(text):
    """The phases between faults, in order."""
    found = []
    for line in text.splitlines():
        if PHASE.match(line):
            cells = line.split()
            found.append(Phase(cells[0], float(cells[4]), number(cells[8])))
    return found


def in_use(text):
    """Rail -> transport, as r2 said that it used them; None: it took no part."""
    found = IN_USE.search(text)
    if not found:
        return None
    rails = {}
    for name, words in RAIL.findall(found[3]):
        parts = [part.strip() for part in words.split(",")]
        rails[name] = next((p for p in parts[1:] if p != "down"), "tcp")
    return rails


def why_not_in_use(text):
    """r2's own words on why it took no part, or None."""
    found = NOT_IN_USE.search(text)
    return found[0].strip() if found else None


def verdicts(text):
    """What r2 said of NICs: (NIC, host, "dead" or "back")."""
    return [(nic, host, state) for nic, host, state in DEAD.findall(text)]
