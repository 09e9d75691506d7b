#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Plants one defect at a time in a copy of r2core and expects the tests to notice.

run.py [--jobs N] [--tree DIR] BUILD_DIR [NAME...]: BUILD_DIR is a configured build; NAME picks
mutants, and the tests of whole jobs are not tried without a defect then. --baseline tries only
that. Copies and objects are kept in BUILD_DIR/mutants, or DIR. --places: whether all defects fit
into the sources.
Exit status 0: every mutant was caught, and the tree without a defect passes.
"""

import argparse
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time

from mutants import MUTANTS

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PARTS = ("r2core", "tests/doubles", "tests/sim", "tests/unit", "tests/fuzz", "tests/fakecuda",
         "tests/open_files.h")
CORE = ["base", "model", "plan", "rail", "link", "local", "exec", "ctx", "oob", "transport",
        "health", "telemetry", "mem"]
STUB = ["stub_net", "stub_tp"]
SIM = ["generate", "generate_unhelpful", "harness", "harness_dump", "harness_end", "harness_faults",
       "harness_health", "harness_rank", "harness_requests", "interpret", "p2p_world", "payload",
       "payload_kinds", "scenario", "scenario_faults", "scenario_words", "sim_memory"]
UNIT_PARTS = ["thread_net", "checker", "checker_moves", "checker_race", "checker_run",
              "checker_values", "schedule_cases", "mail_peer", "place_receive", "pmix_stub"]
CFLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=address,undefined",
          "-fno-sanitize-recover=undefined", "-DR2_ENABLE_DEBUG=1", "-pthread"]
RUNS = [["test_sim_coll"], ["test_sim_relay"], ["campaign", "--seed", "1274", "--runs", "2"],
        ["campaign", "--seed", "1", "--runs", "250"]]
# Planner's defects: its unit tests notice them, without a simulated network.
UNIT_RUNS = [["test_shares"], ["test_shares_random"], ["test_weighted"], ["test_recursive"],
             ["test_plan_memo"], ["test_programs"]]
UNIT_FOLDERS = ("plan/", "model/topology")
# Defects of health are caught by unit tests that stand alone: (test, sources beside it).
WORLD = ["health_world", "health_judge"]
HEALTH = {"test_agreement": [], "test_disseminate": [], "test_describe": WORLD,
          "test_health_map": [], "test_verdict": [], "test_health": WORLD,
          "test_notices": WORLD, "test_probers": WORLD}
HEALTH_RUNS = [[name] for name in HEALTH]
HEALTH_FOLDERS = ("health/", "model/health_map")
# Plans that change: short runs that fail soon where ranks do not agree.
AGREE_RUNS = [["test_sim_health"]]
AGREE_FOLDERS = ("ctx/agree", "ctx/map_sync")
# Probes by puts: between network namespaces.
PUT_RUNS = [["test_probe_put"]]
PUT_FOLDERS = ("rail/probe_put", "transport/uct_put")
# Tests on the CUDA driver of tests/fakecuda, which the build has; nothing else of r2core.
DRIVER = ("test_mem", "test_mem_queue", "test_mem_share")
MEM_RUNS = [["test_mem"], ["test_mem_queue"]]
MEM_FOLDERS = ("mem/",)
# The same with runs of the engine, whose sources the test includes: links are its own.
STAGED = ("test_exec_staged", "test_exec_rows", "test_exec", "test_exec_device", "test_exec_loan",
          "test_exec_borrow", "test_exec_lend", "test_exec_lend_odd", "test_exec_nic",
          "test_exec_landing", "test_exec_stream", "test_exec_rates", "test_fuse")
# The same with all of r2core.
WITH_DRIVER = DRIVER + STAGED + ("test_pins",)
# The transport over RDMA: its test with the NIC of tests/softverbs, which the build has.
RC = "test_tp_ucx"
RC_PARTS = ["tp_closing", "tp_memory", "tp_pin", "tp_processes", "tp_put", "tp_rail", "tp_rdma",
            "tp_land", "tp_sides", "tp_tcp"]
# Tests with an allocator of their own, in place of the simulator's, or a clock.
OWN = {"test_control": SIM, "test_threads_pmix": ["pmix_stub"]}
LIMIT_S = 400
# Who takes much longer than without a defect does not end.
LIMIT_TIMES, LIMIT_LEAST_S = 5, 60
SOUND_S = {}            # {run: seconds without a defect}
CHILDREN = set()        # tests that run


def limit_s(run):
    """How long a run may take."""
    sound_s = SOUND_S.get(tuple(run), LIMIT_S)
    return min(LIMIT_S, max(LIMIT_LEAST_S, LIMIT_TIMES * sound_s))


def runs_for(path, run):
    """What watches over a defect: the test that it names, or those of its file."""
    if run:
        return [run]
    for folders, runs in ((HEALTH_FOLDERS, HEALTH_RUNS), (AGREE_FOLDERS, AGREE_RUNS),
                          (PUT_FOLDERS, PUT_RUNS), (UNIT_FOLDERS, UNIT_RUNS),
                          (MEM_FOLDERS, MEM_RUNS)):
        if path.startswith(folders):
            return runs
    return RUNS


def packages(option):
    """Compiler or linker words for the libraries r2core needs."""
    names = ["ucx", "pmix", "libnl-route-3.0", "hwloc", "libsodium", "jansson", "cmocka"]
    return subprocess.check_output(["pkg-config", option, *names], text=True).split()


def make_variables():
    """{name: value} of what the makefiles of tests set; what a value refers to is put in."""
    found = {}
    for folder in ("sim", "unit"):
        with open(os.path.join(TOP, "tests", folder, "local.mk"), encoding="utf8") as file:
            text = file.read().replace("\\\n", " ")
        found.update(re.findall(r"^(\w+) = (.*)$", text, re.MULTILINE))
    return {name: re.sub(r"\$\((\w+)\)", lambda match: found.get(match.group(1), ""), value)
            for name, value in found.items()}


def make_value(variables, test, what):
    """A variable of one test's, for instance its LDFLAGS; empty: it has none."""
    return "".join(variables.get("tests_%s_%s_%s" % (folder, test, what), "")
                   for folder in ("sim", "unit"))


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
    for number, (name, path, old, new, *_) in enumerate(MUTANTS, 1):
        try:
            one_place(os.path.join(TOP, "r2core", path), old)
            if old == new:
                raise SystemExit("it changes nothing")
            print("ok %d - %s" % (number, name))
        except (SystemExit, OSError) as error:
            wrong += 1
            print("not ok %d - %s: %s" % (number, name, str(error).replace("\n", " ")))
    if not check_watchers():
        wrong += 1
    print("1..%d" % (len(MUTANTS) + 1))
    return 1 if wrong else 0


def check_watchers():
    """All folders, files and tests that this program names are there. Output: TAP."""
    folders = HEALTH_FOLDERS + AGREE_FOLDERS + PUT_FOLDERS + UNIT_FOLDERS
    there = {os.path.relpath(os.path.join(place, name), os.path.join(TOP, "r2core"))
             for place, _, names in os.walk(os.path.join(TOP, "r2core")) for name in names}
    missing = [name for name in folders if not any(path.startswith(name) for path in there)]
    programs = {runs[0] for _, path, _, _, *run in MUTANTS for runs in runs_for(path, *run or [[]])}
    named = sorted(programs | set(HEALTH) | set(RC_PARTS))
    missing += [name for name in named if test_source(TOP, name) is None]
    names = [mutant[0] for mutant in MUTANTS]
    missing += ["two of the name " + name for name in sorted(set(names)) if names.count(name) > 1]
    number = len(MUTANTS) + 1
    print("%s %d - all that watches over defects%s" % (
        "not ok" if missing else "ok", number, ": " + ", ".join(missing) if missing else ""))
    return not missing


def end(child):
    """Ends a test that runs, with the processes that it has started."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def give_up(*_):
    """Somebody has enough of it. The copies are made whole when they are used again."""
    for child in list(CHILDREN):
        end(child)
    os._exit(143)


def test_source(tree, name):
    """Path of a test's source, or None."""
    paths = [os.path.join(tree, "tests", folder, name + ".c") for folder in ("sim", "unit")]
    return next((path for path in paths if os.path.exists(path)), None)


class Workshop:
    """A copy of the tree. What a defect, or a change of the tree, does not touch stays compiled."""

    def __init__(self, build, tree, compilers):
        self.build, self.tree, self.compilers = build, tree, compilers
        os.makedirs(tree, exist_ok=True)
        self.cflags = CFLAGS + ["-I" + os.path.join(tree, p) for p in
                                ("r2core", "r2core/include", "tests", "tests/sim", "tests/unit",
                                 "tests/fuzz")]
        self.cflags += ["-I" + build, "-I" + tree, *packages("--cflags")]
        self.libs = [*packages("--libs"), "-lm", "-ldl"]
        self.driver = os.path.join(build, "tests", "fakecuda", ".libs")
        self.variables = make_variables()
        self.copy()
        self.sources = self.find_sources()
        self.forget_other_flags()
        self.compile(self.stale())

    def copy(self):
        """Makes the copy equal to the tree; who differs is written anew, so its objects are old."""
        wanted = set()
        for part in PARTS:
            top = os.path.join(TOP, part)
            names = [part] if os.path.isfile(top) else [
                os.path.relpath(os.path.join(place, name), TOP)
                for place, _, files in os.walk(top) for name in files
                if name.endswith((".c", ".h", ".def"))]
            wanted.update(names)
        for name in sorted(wanted):
            there = os.path.join(self.tree, name)
            with open(os.path.join(TOP, name), "rb") as file:
                text = file.read()
            if not os.path.exists(there) or open(there, "rb").read() != text:
                os.makedirs(os.path.dirname(there), exist_ok=True)
                with open(there, "wb") as file:
                    file.write(text)
        for place, _, files in os.walk(self.tree):
            for name in files:
                path = os.path.relpath(os.path.join(place, name), self.tree)
                if name.endswith((".c", ".h", ".def")) and path not in wanted:
                    os.remove(os.path.join(self.tree, path))

    def forget_other_flags(self):
        """Objects that were compiled in another way count as old."""
        path, flags = os.path.join(self.tree, "flags"), "\n".join(self.cflags)
        if os.path.exists(path) and open(path, encoding="utf8").read() == flags:
            return
        for name in os.listdir(self.tree):
            if name.endswith(".d"):
                os.remove(os.path.join(self.tree, name))
        with open(path, "w", encoding="utf8") as file:
            file.write(flags)

    def find_sources(self):
        """{object: source} of r2core, its doubles, the harnesses and all tests in use."""
        found = {}
        for folder in CORE + ["doubles"]:
            path = os.path.join(self.tree, "tests" if folder == "doubles" else "r2core", folder)
            found.update({"%s_%s.o" % (folder, name[:-2]): os.path.join(path, name)
                          for name in sorted(os.listdir(path)) if name.endswith(".c")})
        for folder, names in (("sim", SIM), ("fuzz", STUB), ("unit", UNIT_PARTS)):
            found.update({name + ".o": os.path.join(self.tree, "tests", folder, name + ".c")
                          for name in names})
        self.common = sorted(found)
        tests = {run[0] for _, path, _, _, *named in MUTANTS
                 for run in runs_for(path, named[0] if named else None)}
        tests.update(name for names in HEALTH.values() for name in names)
        tests.update(RC_PARTS)
        tests.add("memory_wrap")
        found.update({name + ".o": test_source(self.tree, name) for name in sorted(tests)})
        return found

    def extra(self, test):
        """Objects that a test has beside its own one, and that are not common to all."""
        return ["memory_wrap.o"] if "memory_wrap.c" in \
            make_value(self.variables, test, "SOURCES") else []

    def needs(self, name):
        """What an object was compiled from, as the compiler wrote it down."""
        try:
            with open(os.path.join(self.tree, name[:-2] + ".d"), encoding="utf8") as file:
                return file.read().partition(":")[2].replace("\\\n", " ").split()
        except OSError:
            return None

    def stale(self):
        """Objects that are older than what they were compiled from."""
        def changed(name):
            path, needs = os.path.join(self.tree, name), self.needs(name)
            if needs is None or not os.path.exists(path):
                return True
            at = os.stat(path).st_mtime_ns
            return any(not os.path.exists(p) or os.stat(p).st_mtime_ns > at for p in needs)
        return [name for name in self.sources if changed(name)]

    def compile(self, names):
        """Compiles objects."""
        for start in range(0, len(names), self.compilers):
            some = names[start:start + self.compilers]
            children = [subprocess.Popen(
                ["gcc", *self.cflags, "-MMD", "-c", self.sources[name], "-o",
                 os.path.join(self.tree, name)]) for name in some]
            if any([child.wait() for child in children]):
                raise SystemExit("a file does not compile: " + " ".join(some))

    def link(self, test):
        """Builds a test."""
        program = os.path.join(self.tree, test)
        if test in HEALTH:
            names = [name for name in self.common
                     if name.startswith(("base_", "model_", "health_"))]
            names += [name + ".o" for name in HEALTH[test]]
        elif test in DRIVER:
            names = [name for name in self.common if name.startswith(("base_", "model_", "mem_"))]
        elif test in STAGED:
            names = [name for name in self.common if name.startswith(("base_", "model_"))]
            names += ["doubles_kernels_c.o"]
        elif test == RC:
            names = [name for name in self.common if name[:-2] not in (*SIM, *UNIT_PARTS)]
            names += [name + ".o" for name in RC_PARTS]
        elif test in OWN:
            names = [name for name in self.common if name[:-2] not in OWN[test]]
        else:
            names = self.common
        names = [*names, *self.extra(test)]
        wraps = ["-Wl," + word for word in
                 re.findall(r"--wrap=\w+", make_value(self.variables, test, "LDFLAGS"))]
        wraps += ["-rdynamic"] if test == RC else []     # verbs pass through the program
        driver = [os.path.join(self.driver, "libcuda.so.1"), "-Wl,-rpath," + self.driver]
        subprocess.run(["gcc", *CFLAGS, *wraps,
                        *(os.path.join(self.tree, name) for name in [*names, test + ".o"]),
                        "-o", program, *self.libs,
                        *(driver if test in WITH_DRIVER else [])], check=True)
        return program

    def failure(self, runs):
        """The first of the runs that fails, and how, or None."""
        for words in runs:
            program = self.link(words[0])
            nic = [os.path.join(TOP, "tests/softverbs/with-nic")] if words[0] == RC else []
            child = subprocess.Popen([*nic, program, *words[1:]], start_new_session=True,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     env={**os.environ, "R2_BUILDDIR": self.build,
                                          "ASAN_OPTIONS": "detect_leaks=0:"
                                                          "verify_asan_link_order=0"})
            CHILDREN.add(child)
            try:
                status = child.wait(limit_s(words))
            except subprocess.TimeoutExpired:
                return "%s: no end within %d s" % (" ".join(words), limit_s(words))
            finally:
                end(child)
                CHILDREN.discard(child)
            if status != 0:
                return "%s: status %d" % (" ".join(words), status)
        return None

    def try_mutant(self, path, old, new, run=None):
        """What catches a defect, or None. The copy is as before then, its objects not older."""
        full = os.path.join(self.tree, "r2core", path)
        text, at = one_place(full, old), os.stat(full)
        users = [name for name in self.sources if full in self.needs(name)]
        for name in users:
            os.rename(os.path.join(self.tree, name), os.path.join(self.tree, name + ".sound"))
        try:
            with open(full, "w", encoding="utf8") as file:
                file.write(text.replace(old, new))
            self.compile(users)
            return self.failure(runs_for(path, run))
        finally:
            for name in users:
                os.rename(os.path.join(self.tree, name + ".sound"), os.path.join(self.tree, name))
            with open(full, "w", encoding="utf8") as file:
                file.write(text)
            os.utime(full, ns=(at.st_atime_ns, at.st_mtime_ns))


class Shift:
    """Workshops side by side, which take the next piece of work each."""

    def __init__(self, build, tree, jobs):
        self.shops = [Workshop(build, os.path.join(tree, str(number)), 2 if jobs == 1 else 1)
                      for number in range(1, jobs + 1)]

    def each(self, work, act):
        """Calls act(workshop, item) for each item; returns the results that are true."""
        left, results, lock = queue.SimpleQueue(), [], threading.Lock()
        for item in work:
            left.put(item)

        def worker(shop):
            while not left.empty():
                try:
                    item = left.get_nowait()
                except queue.Empty:
                    return
                try:
                    result = act(shop, item)
                except (SystemExit, subprocess.SubprocessError) as error:
                    print("# %s" % error, flush=True)
                    result = item
                with lock:
                    results.extend([result] if result else [])

        threads = [threading.Thread(target=worker, args=(shop,)) for shop in self.shops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results


def try_sound(shop, run):
    """One run without a defect."""
    begun_s = time.monotonic()
    why = shop.failure([run])
    SOUND_S[tuple(run)] = time.monotonic() - begun_s
    print("# %s" % (why + ", without a defect" if why else " ".join(run) + " passes"), flush=True)
    return why


def try_one(shop, mutant):
    """One defect; returns its name if it survives."""
    name, path, old, new, *run = mutant
    why = shop.try_mutant(path, old, new, *run)
    print("%s %s # %s" % ("ok" if why else "not ok", name.replace("-", " "), why or "survives"),
          flush=True)
    return None if why else name


def main():
    """Runs the mutants that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--places", action="store_true", help="whether defects fit the sources")
    parser.add_argument("--baseline", action="store_true", help="only try the tests as they are")
    parser.add_argument("--jobs", type=int, default=2, help="defects that are tried side by side")
    parser.add_argument("--tree", help="where the copies are kept (BUILD/mutants)")
    parser.add_argument("build", nargs="?", type=os.path.abspath, help="a configured build")
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants (default: all)")
    options = parser.parse_args()
    if options.places:
        return check_places()
    if not options.build:
        parser.error("a build directory is needed")
    unknown = set(options.names) - {mutant[0] for mutant in MUTANTS}
    if unknown:
        parser.error("no such mutant: %s" % ", ".join(sorted(unknown)))

    signal.signal(signal.SIGTERM, give_up)
    signal.signal(signal.SIGINT, give_up)
    shift = Shift(options.build, options.tree or os.path.join(options.build, "mutants"),
                  max(1, options.jobs))
    wanted = [m for m in MUTANTS if not options.names or m[0] in options.names]
    runs = []
    for _, path, _, _, *run in wanted:
        runs += [r for r in runs_for(path, *run or [None]) if r not in runs]
    if options.names and not options.baseline:
        runs = [run for run in runs if run not in RUNS]
    if shift.each(runs, try_sound):
        print("the tests fail without a defect")
        return 1
    if options.baseline:
        return 0
    survived = len(shift.each(wanted, try_one))
    print("%d passed, %d failed" % (len(wanted) - survived, survived))
    return 1 if survived else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
