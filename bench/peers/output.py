# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What benchmarks print: OSU's columns, and the lines of --progress."""

import re

HEAD = re.compile(r"^#.*(\(us\)|MB/s)")
SIZED = re.compile(r"^(\d+)\s+(\d+(?:\.\d+)?)(\s.*)?$")
PLAIN = re.compile(r"^\s+(\d+(?:\.\d+)?)\s*$")
PROGRESS = re.compile(r"bytes, (\d+\.\d+) s, iteration (\d+), ")


def table(text):
    """Size -> figure of the first column behind it (OSU's programs print the same). A barrier has
    no sizes: 0. Lines before the names of the columns, and what is no row, are others' words."""
    found, sized = {}, None
    for line in text.splitlines():
        if HEAD.match(line):
            sized = "Size" in line or sized is True
        elif sized is True and (row := SIZED.match(line)):
            found[int(row[1])] = float(row[2])
        elif sized is False and (row := PLAIN.match(line)):
            found[0] = float(row[1])
    return found


def progress(line):
    """(seconds, calls so far) of a line of --progress, or None."""
    found = PROGRESS.search(line)
    return (float(found[1]), int(found[2])) if found else None
