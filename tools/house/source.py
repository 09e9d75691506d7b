# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The C sources of a tree: files, includes, functions (by ctags) and who calls what."""

import collections
import os
import re
import shutil
import subprocess

FOLDERS = ("r2core", "ompi", "opal", "tools", "bench", "tests", "examples")
# Where a quoted include is looked for beside the folder of who includes it, as the makefiles have
# it.
ROOTS = ("r2core/include", "r2core", "", "tools", "tools/info", "tests", "tests/sim", "tests/unit")

COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([\"<])([^\">]+)", re.M)
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")

Function = collections.namedtuple("Function", "name file first last local")
FUNCTION_LINES, FILE_LINES = 60, 500


class Missing(Exception):
    """A program or a file that is needed is not there."""


def without_comments(text, strings=False):
    """The same text and lines with blanks for comments, and for strings unless they are wanted."""
    return COMMENTS.sub(lambda m: m.group() if strings and m.group()[0] == '"'
                        else re.sub(r"[^\n]", " ", m.group()), text)


def tags(top, paths, kinds, fields):
    """Rows of ctags for these files; each field is a format of ctags -x."""
    ctags = shutil.which("ctags-universal")
    if not ctags:
        raise Missing("ctags-universal is missing: tools/deps.sh installs universal-ctags")
    command = [ctags, "-x", "--_xformat=" + "\t".join(fields), "--kinds-C=" + kinds,
               "--language-force=C", "-L", "-"]
    return [line.split("\t") for line in subprocess.run(
        command, cwd=top, input="\n".join(paths), check=True, capture_output=True,
        text=True).stdout.splitlines()]


class Tree:
    """All C files of a tree by their paths in it."""

    def __init__(self, top):
        self.top = top
        self.text = {}
        for folder in FOLDERS:
            for place, folders, names in os.walk(os.path.join(top, folder)):
                folders.sort()
                for name in sorted(names):
                    if name.endswith((".c", ".h", ".def")):
                        path = os.path.relpath(os.path.join(place, name), top)
                        self.text[path] = self.read(path)
        if not self.text:
            raise Missing("no C sources in %s" % top)
        self.doubles = {path for path in self.text if path.startswith("tests/doubles/")}

    def read(self, path):
        with open(os.path.join(self.top, path), encoding="utf-8") as file:
            return file.read()

    def includes(self, path):
        """(line, quoted, words, path in the tree or None) of each include of a file."""
        text = without_comments(self.text[path], strings=True)
        for match in INCLUDE.finditer(text):
            words = match.group(2)
            line = text.count("\n", 0, match.start()) + 1
            places = [os.path.normpath(os.path.join(root, words))
                      for root in (os.path.dirname(path),) + ROOTS]
            target = next((place for place in places if place in self.text), None)
            yield line, match.group(1) == '"', words, target

    def functions(self):
        """All functions with a body."""
        rows = tags(self.top, self.text, "f", ("%F", "%N", "%n", "%{end}", "%{file}"))
        return [Function(name, path, int(first), int(last), local == "file")
                for path, name, first, last, local in rows if last]

    def calls(self, functions):
        """{(file, other file): set of (caller, called)}. A local function hides others of its
        name."""
        bare = {path: without_comments(self.text[path]).split("\n") for path in self.text}
        by_name = collections.defaultdict(list)
        for function in functions:
            by_name[function.name].append(function)
        found = collections.defaultdict(set)
        for caller in functions:
            body = "\n".join(bare[caller.file][caller.first - 1:caller.last])
            for name in set(CALL.findall(body)):
                owners = by_name.get(name, ())
                if any(owner.file == caller.file for owner in owners):
                    continue
                for owner in owners:
                    if not owner.local or owner.file.endswith(".h"):
                        found[caller.file, owner.file].add((caller.name, name))
        return found


def is_script(path):
    """A Python file, a shell script or another program in text."""
    if path.endswith(".py"):
        return True
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def long_functions(functions):
    return [f for f in functions if f.last - f.first + 1 > FUNCTION_LINES]


def long_files(top):
    """(lines, path) of files of code that are too long, the longest first."""
    found = []
    for folder in FOLDERS:
        for place, _, names in os.walk(os.path.join(top, folder)):
            for path in (os.path.join(place, name) for name in names):
                if path.endswith((".c", ".h", ".def")) or is_script(path):
                    with open(path, encoding="utf-8") as file:
                        found.append((file.read().count("\n"), os.path.relpath(path, top)))
    return sorted((row for row in found if row[0] > FILE_LINES), reverse=True)
