# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Rows in which every two values of two axes meet."""

import itertools
import random


def pairs_of(row):
    """What meets in a row: (axis, value, axis, value)."""
    names = sorted(row)
    return {(a, row[a], b, row[b]) for a, b in itertools.combinations(names, 2)}


def all_pairs(axes):
    """What has to meet. axes: name -> values."""
    return {(a, x, b, y) for a, b in itertools.combinations(sorted(axes), 2)
            for x in axes[a] for y in axes[b]}


def cover(axes, seed, tries=12):
    """Rows that cover all pairs: each begins with a pair that is missing, and of several drawn the
    one with most of them is taken."""
    draw = random.Random(seed)
    missing, rows = all_pairs(axes), []
    order = sorted(missing)
    draw.shuffle(order)
    while missing:
        while order[-1] not in missing:
            order.pop()
        a, x, b, y = order[-1]
        drawn = [{name: draw.choice(values) for name, values in axes.items()} | {a: x, b: y}
                 for _ in range(tries)]
        best = max(drawn, key=lambda row: len(pairs_of(row) & missing))
        missing -= pairs_of(best)
        rows.append(best)
    return rows
