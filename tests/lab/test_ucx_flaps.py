#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Lanes of the UCX transport between three hosts, closed with packets pending while their rails go
down, drop silently and crawl: test_ucx_flaps.py [SECONDS [SEED]]

Needs the program tests/lab/ucx_flaps of the build directory ($R2_BUILDDIR). Each process judges
itself and prints one line (see ucx_flaps.c); all flaps together must be 200 in 30 seconds.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, r2lab

LAB = "uf%d" % os.getpid()
HOSTS = 3
SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
PROGRAM = os.path.join(os.environ.get("R2_BUILDDIR", TOP + "/build"), "tests/lab/ucx_flaps")
FAULTS = ("drop", "drop", "drop-in", "drop-out", "down", "--at switch down", "--at switch drop",
          "rate 5mbit", "loss 20%")
QUIET_S = 7     # healthy to the end: longer than TCP's pauses between repeated SYNs


def flap(end, draw):
    """Faults one after the other until shortly before the end; returns their number."""
    count = 0
    while time.monotonic() < end - QUIET_S:
        words = draw.choice(FAULTS).split()
        host = "h%d" % draw.randrange(HOSTS)
        r2lab("fault", "--name", LAB, *words, host, "rail0")
        time.sleep(min(draw.uniform(0.2, 2.0), max(0.0, end - QUIET_S - time.monotonic())))
        r2lab("fault", "--name", LAB, "heal", host, "rail0")
        time.sleep(draw.uniform(0.1, 0.8))
        count += 1
    return count


def test_flaps():
    """Lanes between three hosts come back after every fault and every close."""
    print("%d s, seed %d" % (SECONDS, SEED))
    assert os.access(PROGRAM, os.X_OK), "%s is not built" % PROGRAM
    folder = tempfile.mkdtemp(prefix="ucxflaps")
    processes = []
    try:
        r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", 1, "--rate", "200mbit")
        end = time.monotonic() + SECONDS
        for rank in range(HOSTS):
            processes.append(subprocess.Popen(
                [R2LAB, "exec", "--name", LAB, "h%d" % rank, PROGRAM, str(rank), str(HOSTS),
                 folder, "rail0", str(SECONDS), str(SEED)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True))
        time.sleep(1)
        faults = flap(end, random.Random(SEED))
        outputs = [p.communicate(timeout=60)[0] for p in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
        r2lab("down", "--name", LAB)
        shutil.rmtree(folder)
    text = "".join(outputs)
    print(text, end="")
    assert all(p.returncode == 0 for p in processes), [p.returncode for p in processes]
    assert all(len(output.splitlines()) == 1 for output in outputs), "noise"
    closed = sum(int(n) for n in re.findall(r"(?:at-will|timeouts|failures) (\d+)", text))
    assert closed >= 200 * SECONDS // 30, "only %d flaps" % closed
    print("%d faults, lanes closed %d times" % (faults, closed))


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(77)
    test_flaps()
