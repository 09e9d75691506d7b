# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Ratios of runs that took turns, and how sure they are.

A ratio is that of two runs of the same round, so that what else the machine did hits both. The
lower bound comes from order statistics and supposes nothing of how times are spread: the k-th
smallest of n ratios lies above the true median with the probability that fewer than k of n coins
show heads.
"""

import statistics
from dataclasses import dataclass, field
from math import comb

CONFIDENCE = 0.95


def median(values):
    return statistics.median(values)


def lower_bound(values, confidence=CONFIDENCE):
    """Of the median: the largest of the sorted values that is at most the median with this
    probability. None if there are too few: 0.95 needs five."""
    ordered, below, rank = sorted(values), 0.0, 0
    for k in range(len(ordered)):
        below += comb(len(ordered), k) / 2 ** len(ordered)
        if below > 1 - confidence:
            break
        rank = k + 1
    return ordered[rank - 1] if rank else None


@dataclass
class Ratio:
    """One stack against r2: above 1 r2 is faster."""

    values: list

    @property
    def mid(self):
        return median(self.values)

    @property
    def least(self):
        return min(self.values)

    @property
    def most(self):
        return max(self.values)

    @property
    def bound(self):
        return lower_bound(self.values)


@dataclass
class Cell:
    """A size of a row: r2, and each stack against it."""

    ours: float = None                              # median of r2; None: it has none
    theirs: dict = field(default_factory=dict)      # stack -> median
    ratios: dict = field(default_factory=dict)      # stack -> Ratio
    failed: list = field(default_factory=list)      # stacks, r2 among them, that had a run fail

    @property
    def best(self):
        """The stack that r2 has the least against."""
        return min(self.ratios, key=lambda name: self.ratios[name].mid) if self.ratios else None

    @property
    def ratio(self):
        return self.ratios[self.best] if self.ratios else None

    @property
    def is_behind(self):
        """Is r2 slower than one of them, or has it failed?"""
        return self.ours is None or bool(self.ratios) and self.ratio.mid < 1

    @property
    def is_sure(self):
        """Is the lower bound where it must be?"""
        return bool(self.ratios) and self.ratio.bound is not None and self.ratio.bound >= 0.95


def pair(ours, theirs, is_rate):
    """Ratios round by round, of two tables round -> figure."""
    rounds = sorted(set(ours) & set(theirs))
    return [ours[r] / theirs[r] if is_rate else theirs[r] / ours[r]
            for r in rounds if ours[r] > 0 and theirs[r] > 0]


def cell(figures, ours, is_rate, failed=()):
    """@param figures stack -> round -> figure, of one size. @param ours r2's name among them;
    other forms of r2 are left out by the caller."""
    made = Cell(failed=sorted(failed))
    mine = figures.get(ours, {})
    made.ours = median(mine.values()) if mine else None
    for name, rounds in figures.items():
        values = pair(mine, rounds, is_rate)
        if name != ours and values:
            made.theirs[name] = median(rounds.values())
            made.ratios[name] = Ratio(values)
    return made
