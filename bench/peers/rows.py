# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What is measured: layouts, kinds of calls, and the rows that are worth their time."""

import fnmatch
from dataclasses import dataclass

RAILS = 4
SHAPED = "100mbit"
LINE_MB = 50.0              # 10^6 bytes/s of four such rails, one way
KIB, MIB = 1 << 10, 1 << 20
LARGE = 2 * MIB             # from here on a run of its own, with fewer calls


@dataclass(frozen=True)
class Layout:
    """Hosts, ranks on each, and whether the rails are shaped."""

    name: str
    hosts: int
    ppn: int
    shaped: bool = False

    @property
    def ranks(self):
        return self.hosts * self.ppn

    @property
    def rate(self):
        return SHAPED if self.shaped else "none"

    def title(self):
        """In words."""
        ranks = "%d rank%s" % (self.ppn, "s" if self.ppn > 1 else "")
        if self.hosts == 1:
            return "1 host, %s" % ranks
        return "%d hosts x %s%s" % (self.hosts, ranks, ", 100 Mbit rails" if self.shaped else "")


@dataclass(frozen=True)
class Kind:
    """A benchmark of r2_bench."""

    name: str
    sizes: tuple            # bytes, of the default; (0,): it has none
    is_pairs: bool = False  # point-to-point
    is_rate: bool = False   # its figure is MB/s, and more is better; else microseconds
    warmup: int = 0         # of short sizes; 0: the benchmark's own, 200 up to 8 KiB, else 10


SHORT = (8, 128, KIB, 4 * KIB, 16 * KIB, 64 * KIB)
KINDS = {kind.name: kind for kind in (
    Kind("allreduce", (*SHORT, MIB, 16 * MIB)),
    Kind("reduce_scatter", (*SHORT, MIB, 16 * MIB)),
    Kind("bcast", (*SHORT, MIB)),
    Kind("allgather", (*SHORT, MIB)),
    Kind("alltoall", (*SHORT, MIB)),
    Kind("reduce", (*SHORT, MIB)),
    Kind("gather", (*SHORT, MIB)),
    Kind("scatter", (*SHORT, MIB)),
    Kind("barrier", (0,)),
    Kind("latency", (*SHORT, MIB), is_pairs=True),
    Kind("bw", (8, KIB, 16 * KIB, 64 * KIB, MIB), is_pairs=True, is_rate=True, warmup=10),
    Kind("mbw_mr", (8, KIB, 16 * KIB, 64 * KIB, MIB), is_pairs=True, is_rate=True, warmup=10),
)}


def layouts():
    """Name -> layout: 2x4 is two hosts of four ranks each, @100 has shaped rails."""
    made = [Layout("1x2", 1, 2), Layout("1x4", 1, 4)]
    for shaped in (False, True):
        for hosts in (2, 4):
            made += [Layout("%dx%d%s" % (hosts, ppn, "@100" if shaped else ""), hosts, ppn, shaped)
                     for ppn in (1, 2, 4)]
    return {layout.name: layout for layout in made}


LAYOUTS = layouts()


@dataclass(frozen=True)
class Row:
    """A kind of call in a layout."""

    layout: Layout
    kind: Kind

    @property
    def name(self):
        return "%s %s" % (self.layout.name, self.kind.name)

    def is_possible(self):
        """latency and bw are for two ranks, on one host or on two."""
        return self.kind.name not in ("latency", "bw") or self.layout.ranks == 2


def every():
    """All rows there are."""
    made = [Row(layout, kind) for kind in KINDS.values() for layout in LAYOUTS.values()]
    return [row for row in made if row.is_possible()]


# What `make bench-peers` measures, and what --quick does.
DEFAULT = ["* allreduce", "4x1 *", "4x4@100 *", "?x?* latency", "?x?* bw", "1x4 mbw_mr",
           "2x2* mbw_mr", "2x4@100 mbw_mr"]
NOT_DEFAULT = ["* reduce", "* gather", "* scatter", "4x* mbw_mr"]
QUICK = ["1x2 allreduce", "2x1 allreduce", "2x1@100 allreduce", "2x1 latency", "2x2 allreduce",
         "4x1 allreduce", "4x1 bcast", "4x1@100 allreduce"]
QUICK_SIZES = (8, KIB, 64 * KIB, MIB)


def chosen(patterns):
    """Rows whose names match one of the patterns; a pattern that matches none is an error."""
    for pattern in patterns:
        if not any(fnmatch.fnmatch(row.name, pattern) for row in every()):
            raise ValueError("no row matches '%s'; rows are 'LAYOUT KIND', with layouts %s and "
                             "kinds %s" % (pattern, " ".join(LAYOUTS), " ".join(KINDS)))
    return [row for row in every()
            if any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns)]


def default_rows():
    """The rows of DEFAULT."""
    return [row for row in chosen(DEFAULT)
            if not any(fnmatch.fnmatch(row.name, pattern) for pattern in NOT_DEFAULT)]


def bands(sizes):
    """Sizes that one run measures together: short ones, long ones."""
    short = tuple(size for size in sizes if size < LARGE)
    return [band for band in (short, tuple(size for size in sizes if size >= LARGE)) if band]


def size_text(size):
    """64 KiB, as tables write it."""
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return "%d %s" % (size // unit, name)
    return "%d B" % size if size else "-"


def parse_size(text):
    """64K -> 65536."""
    units = {"K": KIB, "M": MIB}
    number, unit = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    if not (number.isascii() and number.isdigit() and int(number) > 0):
        raise ValueError("'%s' is no size: a number of bytes, K or M behind it" % text)
    return int(number) * unit
