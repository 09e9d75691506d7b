# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What was found and measured: text, Markdown, JSON."""

import json
import time
from dataclasses import asdict, dataclass, field

from .measure import ALL

NOTHING = "-"


@dataclass
class Result:
    """All of a run."""

    hosts: list
    ranks: int
    figures: object
    shots: list = field(default_factory=list)
    notes: list = field(default_factory=list)       # what was left out, and why
    seconds: float = 0.0

    def failures(self):
        """What went wrong, one text each."""
        found = ["%s, %s, %s: %s" % (*key, why) for key, why in self.figures.failed.items()]
        return found + ["fail-over of %s: %s" % (s.rail, s.why) for s in self.shots if s.why]


def speed(bytes_per_s):
    return "%g Gbit/s" % (bytes_per_s * 8 / 1e9) if bytes_per_s else NOTHING


def known(value, form="%s"):
    return NOTHING if value is None else form % value


def found_table(result):
    """Rails of all hosts."""
    rows = [("host", "rail", "NIC", "port", "link", "speed", "GID (index)", "distance",
             "transport")]
    for host in result.hosts:
        for rail in host["rails"]:
            gid = NOTHING if not rail["gid"] else "%s (%s)" % (rail["gid"], rail["gid_index"])
            rows.append((host["host"], str(rail["idx"]), rail["name"], rail["rdma"] or NOTHING,
                         "%s%s" % (rail["link"] or "Ethernet", "" if rail["carrier"] else ", down"),
                         speed(rail["speed_bytes_per_s"]), gid, known(rail["distance"]),
                         result.figures.transports.get(rail["name"], rail["transport"])))
    return rows


def spread(values, digits):
    """Median, smallest and largest."""
    if not values:
        return NOTHING
    ordered = sorted(values)
    mid = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return "%.*f (%.*f .. %.*f)" % (digits, mid, digits, ordered[0], digits, ordered[-1])


def measured_table(result):
    """Latency and bandwidth."""
    figures = result.figures
    rows = [("over", "what", *figures.stacks, *(["r2 / stock"] if len(figures.stacks) > 1 else []),
             "rounds")]
    for row in figures.rows:
        cells = [list(figures.of(row, stack).values()) for stack in figures.stacks]
        ratio = [known(figures.ratio(row), "%.2f")] if len(figures.stacks) > 1 else []
        rows.append((row.place, "%s, %s" % (row.what, row.unit),
                     *(spread(values, 1) for values in cells), *ratio,
                     str(min(map(len, cells)))))
    return rows


def fault_table(result):
    """Fail-over."""
    rows = [("rail", "of", "pause, ms", "MB/s before", "during", "after", "wrong results",
             "r2 said")]
    for s in result.shots:
        rows.append((s.rail, s.host, known(s.pause_ms, "%.1f"), known(s.before, "%.1f"),
                     known(s.during, "%.1f"), known(s.after, "%.1f"), known(s.wrong),
                     ", ".join(s.said) or NOTHING))
    return rows


def head(result):
    """One line: what ran where."""
    first = result.hosts[0]
    libraries = ", ".join("%s %s" % item for item in first["libraries"].items() if item[1])
    return "r2 %s, Open MPI %s, %s; %d hosts, %d ranks; %d of these rounds; %.0f s; %s" % (
        first["r2"], first["open_mpi"], libraries, len(result.hosts), result.ranks,
        result.figures.rounds, result.seconds, time.strftime("%Y-%m-%d"))


def sections(result):
    """(title, table) of what there is."""
    yield "What r2 found", found_table(result)
    yield "Median (least .. most) of the rounds; us: half a round trip or a call, MB/s: 10^6 " \
        "bytes per second", measured_table(result)
    if result.shots:
        yield "A port down under an allreduce of r2", fault_table(result)


def remarks(result):
    """(title, lines) of what is no figure."""
    problems = ["%s: %s" % (h["host"], p) for h in result.hosts for p in h["problems"]]
    for title, lines in (("Failed", result.failures()), ("Left out", result.notes),
                         ("What r2_info says", problems)):
        if lines:
            yield title, lines


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                     for row in rows)


def piped(rows):
    lines = ["| %s |" % " | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def text(result):
    parts = [head(result)]
    parts += ["%s\n\n%s" % (title, aligned(rows)) for title, rows in sections(result)]
    parts += ["%s\n\n%s" % (title, "\n".join("  " + line for line in lines))
              for title, lines in remarks(result)]
    return "\n\n".join(parts) + "\n"


def markdown(result):
    parts = [head(result)]
    parts += ["**%s**\n\n%s" % (title, piped(rows)) for title, rows in sections(result)]
    parts += ["**%s**\n\n%s" % (title, "\n".join("- " + line for line in lines))
              for title, lines in remarks(result)]
    return "\n\n".join(parts) + "\n"


def as_json(result):
    """Every single figure; null: there is none."""
    figures = result.figures
    return json.dumps({
        "r2_site": 1, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "hosts": result.hosts, "ranks": result.ranks, "rounds": figures.rounds,
        "seconds": result.seconds, "transports": figures.transports,
        "figures": [{"over": None if row.place == ALL else row.place, "what": row.what,
                     "bytes": row.size, "unit": row.unit, "ratio": figures.ratio(row),
                     "stacks": {stack: {"median": figures.mid(row, stack),
                                        "rounds": figures.of(row, stack)}
                                for stack in figures.stacks}} for row in figures.rows],
        "fail_over": [asdict(shot) for shot in result.shots],
        "failed": result.failures(), "left_out": result.notes}, indent=2) + "\n"
