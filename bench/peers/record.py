# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The raw data of a measurement: one JSON file, complete after every run, so that one that was
interrupted goes on and tables are drawn again without measuring."""

import json
import os
import statistics

VERSION = 1
CALM_CORES = 0.2    # what others may use of the machine, in the median of all runs


class Record:
    """Runs in the order in which they were taken."""

    def __init__(self, path=None):
        self.path = path
        self.about = {}     # machine, commit, day
        self.runs = []      # {"row", "stack", "round", "sizes", "figures" or "error", "others",
                            #  "trip_ns"}
        self.faults = []    # {"fault", "stack", "round", "points", "at_s", "status", "end_s"}

    @classmethod
    def load(cls, path):
        """What a file holds; an empty record if there is none."""
        made = cls(path)
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
            if data.get("version") != VERSION:
                raise ValueError("%s: version %s, not %d" % (path, data.get("version"), VERSION))
            made.about, made.runs, made.faults = data["about"], data["runs"], data["faults"]
        return made

    def save(self):
        """Whole or not at all."""
        if not self.path:
            return
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump({"version": VERSION, "about": self.about, "runs": self.runs,
                       "faults": self.faults}, file, indent=0)
        os.replace(self.path + ".new", self.path)

    def add(self, **run):
        self.runs.append(run)
        self.save()

    def add_fault(self, **run):
        self.faults.append(run)
        self.save()

    def has(self, row, stack, number, sizes):
        """Was this run taken, or one that has all of its sizes? Failed ones count, too."""
        return any(run["row"] == row and run["stack"] == stack and run["round"] == number
                   and set(sizes) <= set(run["sizes"]) for run in self.runs)

    def has_fault(self, fault, stack, number):
        return any(run["fault"] == fault and run["stack"] == stack and run["round"] == number
                   for run in self.faults)

    def rows(self):
        """Names of the rows that have runs, in the order in which they came."""
        return list(dict.fromkeys(run["row"] for run in self.runs))

    def sizes(self, row=None):
        """All sizes that were measured."""
        return sorted({size for run in self.runs if row in (None, run["row"])
                       for size in run["sizes"]})

    def figures(self, row, size):
        """(stack -> round -> figure, stacks with a failed run) of a size of a row."""
        found, failed = {}, set()
        for run in self.runs:
            if run["row"] != row or size not in run["sizes"]:
                continue
            value = run.get("figures", {}).get(str(size))
            if value is None:
                failed.add(run["stack"])
            else:
                found.setdefault(run["stack"], {})[run["round"]] = value
        return found, failed

    def errors(self):
        """(row, stack, error) of the runs that failed, each once."""
        return list(dict.fromkeys((run["row"], run["stack"], run["error"]) for run in self.runs
                                  if "error" in run))

    def trips(self):
        """How far cores were apart in the runs that know, ns."""
        return [run["trip_ns"] for run in self.runs if "trip_ns" in run]

    def others(self):
        """(median, most) cores that others kept busy during the runs; None without runs."""
        cores = [run["others"] for run in self.runs + self.faults if "others" in run]
        return (statistics.median(cores), max(cores)) if cores else None

    def is_calm(self):
        """May these figures stand for the machine?"""
        others = self.others()
        return others is not None and others[0] <= CALM_CORES
