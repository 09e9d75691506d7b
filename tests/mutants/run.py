#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Plants one defect at a time in a copy of r2core and expects the simulator's tests to notice.

run.py BUILD_DIR [NAME...]: BUILD_DIR is a configured build with tests/sim built; NAME picks
mutants.
Exit status 0: every mutant was caught, and the tree without a defect passes.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

from mutants import MUTANTS

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CORE = ["base", "model", "plan", "rail", "link", "exec", "ctx", "oob", "transport", "health",
        "telemetry", "mem"]
STUB = ["stub_net", "stub_tp"]
SIM = ["generate", "generate_unhelpful", "harness", "harness_dump", "harness_end", "harness_faults",
       "harness_health", "harness_rank", "harness_requests", "interpret", "p2p_world", "payload",
       "payload_kinds", "scenario", "scenario_faults", "scenario_words", "sim_memory"]
CFLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=address,undefined",
          "-fno-sanitize-recover=undefined", "-DR2_ENABLE_DEBUG=1", "-pthread"]
RUNS = [["test_sim_coll"], ["test_sim_relay"], ["campaign", "--seed", "1274", "--runs", "2"],
        ["campaign", "--seed", "1", "--runs", "250"]]
# Planner's defects: its unit tests notice them, without a simulated network.
UNIT_RUNS = [["test_shares"], ["test_shares_random"], ["test_weighted"], ["test_recursive"],
             ["test_plan_memo"], ["test_programs"]]
UNIT_PARTS = ["thread_net", "checker", "checker_moves", "checker_race", "checker_run",
              "checker_values", "schedule_cases"]
UNIT_FOLDERS = ("plan/", "model/topology")
# Defects of health are caught by unit tests that stand alone: (test, sources beside it).
HEALTH = {"test_agreement": [], "test_disseminate": [], "test_describe": ["health_world"],
          "test_health_map": [], "test_verdict": [], "test_health": ["health_world"],
          "test_notices": ["health_world"], "test_probers": ["health_world"]}
HEALTH_FOLDERS = ("health/", "model/health_map")
# Plans that change: short runs that fail soon where ranks do not agree.
AGREE_RUNS = [["test_sim_health"]]
AGREE_FOLDERS = ("ctx/agree", "ctx/merge")
# Probes by puts: between network namespaces.
PUT_RUNS = [["test_probe_put"]]
PUT_FOLDERS = ("rail/probe_put", "transport/uct_put")
# Tests with an allocator of their own, in place of the simulator's.
STARVING = ("test_control",)
LIMIT_S = 400


def packages(option):
    """Compiler or linker words for the libraries r2core needs."""
    names = ["ucx", "pmix", "libnl-route-3.0", "hwloc", "libsodium", "jansson", "cmocka"]
    return subprocess.check_output(["pkg-config", option, *names], text=True).split()


def sources(tree):
    """All sources of r2core and of the simulator's harness, as (object name, path)."""
    found = []
    for folder in CORE:
        path = os.path.join(tree, "r2core", folder)
        found += [(folder + "_" + name[:-2] + ".o", os.path.join(path, name))
                  for name in sorted(os.listdir(path)) if name.endswith(".c")]
    doubles = os.path.join(tree, "tests/doubles")
    found += [("doubles_" + name[:-2] + ".o", os.path.join(doubles, name))
              for name in sorted(os.listdir(doubles)) if name.endswith(".c")]
    found += [(name + ".o", os.path.join(tree, "tests/sim", name + ".c")) for name in SIM]
    return found + [(name + ".o", os.path.join(tree, "tests/fuzz", name + ".c")) for name in STUB]


def one_place(path, old):
    """The text of a file, in which `old` is there once."""
    with open(path, encoding="utf8") as file:
        text = file.read()
    if text.count(old) != 1:
        raise SystemExit("%s has %d places like: %s" % (path, text.count(old), old))
    return text


def check_places():
    """All defects can be planted in today's sources. Output: TAP."""
    wrong = 0
    for number, (name, path, old, *_) in enumerate(MUTANTS, 1):
        try:
            one_place(os.path.join(TOP, "r2core", path), old)
            print("ok %d - %s" % (number, name))
        except (SystemExit, OSError) as error:
            wrong += 1
            print("not ok %d - %s: %s" % (number, name, str(error).replace("\n", " ")))
    print("1..%d" % len(MUTANTS))
    return 1 if wrong else 0


class Workshop:
    """A copy of the tree with objects that are compiled again only where a defect is planted."""

    def __init__(self, build):
        self.build = build
        self.tree = tempfile.mkdtemp(prefix="r2-mutants-")
        for part in ("r2core", "tests/doubles", "tests/sim", "tests/unit", "tests/fuzz"):
            shutil.copytree(os.path.join(TOP, part), os.path.join(self.tree, part))
        shutil.copy(os.path.join(TOP, "tests/open_files.h"), os.path.join(self.tree, "tests"))
        self.cflags = CFLAGS + ["-I" + os.path.join(self.tree, p) for p in
                                ("r2core", "r2core/include", "tests", "tests/sim", "tests/unit",
                                 "tests/fuzz")]
        self.cflags += ["-I" + build, "-I" + self.tree, *packages("--cflags")]
        self.compile(sources(self.tree) + [(name[0] + ".o", self.tree + "/tests/sim/%s.c" % name[0])
                                           for name in RUNS + AGREE_RUNS]
                     + [(name + ".o", self.tree + "/tests/unit/%s.c" % name)
                        for name in UNIT_PARTS + [run[0] for run in UNIT_RUNS + PUT_RUNS]])

    def compile(self, files):
        """Compiles the files, two at a time."""
        commands = [["gcc", *self.cflags, "-c", path, "-o", os.path.join(self.tree, name)]
                    for name, path in files]
        for start in range(0, len(commands), 2):
            children = [subprocess.Popen(command) for command in commands[start:start + 2]]
            if any(child.wait() for child in children):
                raise SystemExit("a file does not compile: " + str(files[start:start + 2]))

    def health_passes(self):
        """Builds and runs the tests of health; returns whether they all pass."""
        folders = [os.path.join(self.tree, "r2core", name) for name in ("base", "model", "health")]
        files = [os.path.join(folder, name) for folder in folders for name in os.listdir(folder)
                 if name.endswith(".c")]
        unit = os.path.join(TOP, "tests/unit")
        for test, beside in HEALTH.items():
            program = os.path.join(self.tree, test)
            own = [os.path.join(unit, name + ".c") for name in [test, *beside]]
            subprocess.run(["gcc", *self.cflags, "-I" + unit, *files, *own, "-o", program,
                            *packages("--libs"), "-lm"], check=True)
            if subprocess.run([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=LIMIT_S, check=False).returncode != 0:
                return False
        return True

    def passes_for(self, path, run):
        """Whether the test that a defect names passes, or those that watch over its file."""
        if run:
            paths = [self.tree + "/tests/%s/%s.c" % (folder, run[0]) for folder in ("sim", "unit")]
            self.compile([(run[0] + ".o", path) for path in paths if os.path.exists(path)])
            return self.passes([run])
        if path.startswith(HEALTH_FOLDERS):
            return self.health_passes()
        if path.startswith(AGREE_FOLDERS):
            return self.passes(AGREE_RUNS)
        if path.startswith(PUT_FOLDERS):
            return self.passes(PUT_RUNS)
        return self.passes(UNIT_RUNS if path.startswith(UNIT_FOLDERS) else RUNS)

    def passes(self, runs):
        """Links and runs the tests; returns whether they all pass."""
        objects = [os.path.join(self.tree, name) for name, _ in sources(self.tree)]
        objects += [os.path.join(self.tree, name + ".o") for name in UNIT_PARTS]
        harness = [os.path.join(self.tree, name + ".o") for name in SIM]
        for words in runs:
            program = os.path.join(self.tree, words[0])
            starving = words[0] in STARVING
            wraps = ["-Wl,--wrap=malloc,--wrap=calloc"] if starving else []
            subprocess.run(["gcc", *CFLAGS, *wraps,
                            *(o for o in objects if not (starving and o in harness)),
                            program + ".o", "-o", program, *packages("--libs"), "-lm", "-ldl"],
                           check=True)
            try:
                done = subprocess.run([program, *words[1:]], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, timeout=LIMIT_S, check=False,
                                      env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
            except subprocess.TimeoutExpired:
                return False
            if done.returncode != 0:
                return False
        return True

    def plant(self, path, old, new):
        """Replaces one place in a file of the copy and compiles it."""
        full = os.path.join(self.tree, "r2core", path)
        text = one_place(full, old)
        self.write(full, text.replace(old, new))
        return full, text

    def write(self, full, text):
        """Writes a file of the copy and compiles it, or everything for a header."""
        with open(full, "w", encoding="utf8") as file:
            file.write(text)
        changed = [(n, p) for n, p in sources(self.tree) if p == full or full.endswith(".h")]
        self.compile(changed)


def main():
    """Runs the mutants that were asked for."""
    if len(sys.argv) < 2:
        print("usage: run.py BUILD_DIR [NAME...]\n       run.py --places", file=sys.stderr)
        return 2
    if sys.argv[1] == "--places":
        return check_places()
    wanted = sys.argv[2:]
    unknown = set(wanted) - {mutant[0] for mutant in MUTANTS}
    if unknown:
        print("no such mutant: %s" % ", ".join(sorted(unknown)), file=sys.stderr)
        return 2
    shop = Workshop(os.path.abspath(sys.argv[1]))
    survived = 0
    try:
        if not wanted and not shop.passes(UNIT_RUNS + RUNS):
            print("the tests fail without a defect")
            return 1
        for name, path, old, new, *run in MUTANTS:
            if wanted and name not in wanted:
                continue
            full, text = shop.plant(path, old, new)
            caught = not shop.passes_for(path, run[0] if run else None)
            survived += not caught
            print("%s %s" % ("ok" if caught else "not ok", re.sub("-", " ", name)), flush=True)
            shop.write(full, text)
    finally:
        shutil.rmtree(shop.tree)
    print("%d passed, %d failed" % ((len(wanted) or len(MUTANTS)) - survived, survived))
    return 1 if survived else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
