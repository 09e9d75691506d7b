# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Markdown tables of a record, and the place of docs/measurements.md that they belong to."""

import os

import faults
from cores import is_far
from figures import cell
from rows import KINDS, LAYOUTS, Row, size_text
from stacks import BY_NAME, STACKS

BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
OURS = [stack.name for stack in STACKS if stack.is_r2]


def parse_row(name):
    """The row of that name."""
    layout, kind = name.split()
    return Row(LAYOUTS[layout], KINDS[kind])


def cells(record, name, size):
    """r2's form -> cell, of a size of a row."""
    found, failed = record.figures(name, size)
    kind, made = parse_row(name).kind, {}
    for ours in OURS:
        if ours in found or ours in failed:
            chosen = {stack: rounds for stack, rounds in found.items()
                      if stack == ours or stack not in OURS}
            bad = [stack for stack in failed if stack == ours or stack not in OURS]
            made[ours] = cell(chosen, ours, kind.is_rate, bad)
    return made


def row_title(name, ours):
    """`allreduce, 2 hosts x 1 rank`, and r2's form where it is not what users have unasked."""
    row = parse_row(name)
    form = "" if ours == "r2" else ", " + BY_NAME[ours].title.split(", ", 1)[1]
    return "%s, %s%s" % (row.kind.name, row.layout.title(), form)


def cell_text(made):
    """0.97 (0.91 .. 1.02; 0.91) ucx: median, least and most, lower bound, the best stack. Bold:
    r2 is behind."""
    if made is None or not (made.ratios or made.failed):
        return ""
    if made.ours is None:
        return "**r2 failed**"
    if not made.ratios:
        return "the others failed"
    ratio = made.ratio
    bound = "-" if ratio.bound is None else "%.2f" % ratio.bound
    text = "%.2f (%.2f .. %.2f; %s) %s" % (ratio.mid, ratio.least, ratio.most, bound, made.best)
    return "**%s**" % text if made.is_behind else text


def columns(record):
    """Sizes of the table: all that were measured, but for that of calls without any."""
    return [size for size in record.sizes() if size > 0]


def speed_table(record):
    """Lines of the table of all rows; a call without sizes is in the first column."""
    sizes = columns(record) or [0]
    lines = ["| setting | %s |" % " | ".join(map(size_text, sizes)),
             "|---|%s" % ("---|" * len(sizes))]
    for name in record.rows():
        mine = record.sizes(name)
        shown = [0] + sizes[1:] if mine == [0] else sizes
        table = [cells(record, name, size) if size in mine else {} for size in shown]
        for ours in OURS:
            if any(ours in made for made in table):
                lines.append("| %s | %s |" % (row_title(name, ours), " | ".join(
                    cell_text(made.get(ours)) for made in table)))
    return lines


def all_cells(record):
    """(row, size, r2's form, cell) of everything."""
    return [(name, size, ours, made) for name in record.rows() for size in record.sizes(name)
            for ours, made in cells(record, name, size).items()]


def tally(record):
    """How many cells are behind, and how many are not sure to be ahead."""
    found = [made for *_, made in all_cells(record) if made.ratios or made.ours is None]
    behind = sum(made.is_behind for made in found)
    unsure = sum(not made.is_behind and not made.is_sure for made in found)
    return "%d cells: r2 is behind in %d; of the others %d have no lower bound of 0.95" % (
        len(found), behind, unsure)


def detail(record):
    """A line for each cell, with all stacks: what the table leaves out."""
    lines = []
    for name, size, ours, made in all_cells(record):
        unit = "MB/s" if parse_row(name).kind.is_rate else "us"
        parts = ["%s %.2f" % (ours, made.ours) if made.ours is not None else "%s failed" % ours]
        for stack in sorted(made.ratios, key=lambda each: made.ratios[each].mid):
            ratio = made.ratios[stack]
            parts.append("%s %.2f: %.2f (%.2f .. %.2f; %s)" % (
                stack, made.theirs[stack], ratio.mid, ratio.least, ratio.most,
                "-" if ratio.bound is None else "%.2f" % ratio.bound))
        parts += ["%s failed" % stack for stack in made.failed if stack != ours]
        lines.append("%s%s %s, %s: %s" % ("BEHIND " if made.is_behind else "", name,
                                          size_text(size), unit, ", ".join(parts)))
    return lines


def fault_table(record):
    """Lines of the table of faults, stack by stack; none without any."""
    taken = {run["fault"] for run in record.faults}
    shown = [name for name in faults.TABLE if name in taken]
    stacks = [stack for stack in STACKS if any(run["stack"] == stack.name and run["fault"] in shown
                                               for run in record.faults)]
    if not shown or not stacks:
        return []
    lines = ["| 16 MiB allreduce, 4 x 4 x 100 Mbit | %s |" % " | ".join(
        stack.title for stack in stacks), "|---|%s" % ("---|" * len(stacks))]
    for name in shown:
        found = [faults.fates(record, name, stack.name) for stack in stacks]
        lines.append("| %s | %s |" % (faults.BY_NAME[name].title, " | ".join(
            faults.summary(each).text() if each else "" for each in found)))
    return lines


def retention_table(record):
    """What r2 keeps of its rate, against the ring and the bound; none without any."""
    shown = [(faults.BY_NAME[name], faults.retention(record, name)) for name in faults.RETENTION]
    shown = sorted(((fault, kept) for fault, kept in shown if kept), key=lambda each: each[0].lost)
    if not shown:
        return []
    return ["| one host has lost | kept, % of healthy (runs) | ring | bound |", "|---|---|---|---|",
            *("| %.3f: %s | %s | %.1f | %.1f |" % (
                fault.lost, fault.title, " ".join("%.1f" % (100 * part) for part in sorted(kept)),
                100 * faults.ring_keeps(fault.lost), 100 * faults.bound_keeps(fault.lost))
              for fault, kept in shown)]


def head(record):
    """How the figures were taken."""
    about, others = record.about, record.others()
    used = "" if others is None else "; others used %.2f of %s cores (most: %.2f)" % (
        others[0], about.get("cores", "?"), others[1])
    return "%s, commit %s%s." % (about.get("day", "-"), about.get("commit", "-"), used)


def apart(record):
    """In how many runs cores were far apart: a line, or none where nobody looked."""
    trips = record.trips()
    far = sum(is_far(trip_ns, trips) for trip_ns in trips)
    return ["Cores were far apart in %d of %d runs." % (far, len(trips))] if trips else []


def document(record):
    """All that belongs between the markers."""
    speed, broken, kept = speed_table(record), fault_table(record), retention_table(record)
    lines = [head(record), *apart(record)]
    lines += [tally(record) + ".", "", *speed] if record.runs else []
    for table in (broken, kept):
        if table:
            lines += ["", *table]
    return "\n".join(lines)


def write(path, text):
    """Puts text between the markers of a document."""
    with open(path, encoding="utf-8") as file:
        old = file.read()
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        raise ValueError("%s: '%s' and '%s' must be there, once and in this order"
                         % (path, BEGIN, END))
    before, rest = old.split(BEGIN)
    after = rest.split(END)[1]
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write("%s%s\n%s\n%s%s" % (before, BEGIN, text, END, after))
    os.replace(path + ".new", path)
