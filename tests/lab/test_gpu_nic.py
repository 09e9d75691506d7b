#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Collectives on memory of GPUs that NICs read, and write, by themselves (coll_r2_gpu_nic_bytes,
coll_r2_put), while rails die and come back: on the stand-ins for both (tests/fakecuda,
tests/softverbs). All numbers right, no mistake in the use of the driver, none of NICs that read
before the application has written.

Needs tests/functional/gpu_steps of the build directory ($R2_BUILDDIR).
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, follow, r2lab, run_all

LAB = "gn%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
STEPS = 12
RANKS = 3


def train(faults=(), kind="device", peer_memory="1", nic_bytes=4096, count=150000, put=0,
          order="0"):
    """A loop on buffers of a kind of memory; faults: at which step to do what. Returns what was
    said, messages that NICs were to read, those that were fetched, bytes copied off GPUs, those
    copied onto them, and those that NICs have put there."""
    stats = "/tmp/%s.stats" % LAB
    heal()      # what the test before has broken
    child = subprocess.Popen(
        [R2LAB, "run", "--name", LAB, "--build", BUILD, "--timeout", "100", "--ppn", "1",
         "-n", str(RANKS), "-x", "LD_LIBRARY_PATH=" + BUILD + "/tests/fakecuda/.libs",
         "-x", "R2_TEST_GPU=" + kind, "-x", "FAKECUDA_DELAY_US=200", "-x", "FAKECUDA_SEED=7",
         "-x", "FAKECUDA_STATS=" + stats, "-x", "FAKECUDA_NIC_ORDER=" + order,
         "-x", "SOFTVERBS_PEER_MEMORY=" + peer_memory,
         "-x", "FAKECUDA_KERNELS=" + BUILD + "/tests/doubles/.libs/kernels_c.so",
         "--mca", "coll", "r2", "--mca", "coll_r2_gpu", "auto", "--mca", "coll_r2_verbose", "2",
         "--mca", "coll_r2_gpu_nic_bytes", str(nic_bytes), "--mca", "coll_r2_put", str(put),
         "sh", "-c",
         "LD_PRELOAD=%s/tests/functional/.libs/gpu_buffers.so:$LD_PRELOAD "
         "exec %s/tests/functional/gpu_steps %d %d" % (BUILD, BUILD, count, STEPS)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said, steps = follow(child, LAB, "step ", faults)
    assert child.wait() == 0 and len(steps) == STEPS, said
    assert said.count(": 0 wrong\n") == RANKS and "MISTAKE" not in said, said
    assert " copies, 0 mistakes" in said, said
    counts = re.findall(r"# rank \d: (\d+) messages for NICs to read, (\d+) fetched, (\d+) bytes "
                        r"put", said)
    assert len(counts) == RANKS, said
    messages, fetched, placed = (sum(int(c[i]) for c in counts) for i in range(3))
    return said, messages, fetched, *copied(stats), placed


def copied(stats):
    """Bytes copied off GPUs and onto them, by the counters that the driver has written; they are
    removed."""
    off = on = 0
    folder, name = os.path.split(stats)
    for file in os.listdir(folder):
        if file.startswith(name + "."):
            with open(os.path.join(folder, file), encoding="utf8") as text:
                said = text.read()
            off += int(re.search(r"^bytes_d2h (\d+)", said, re.M).group(1))
            on += int(re.search(r"^bytes_h2d (\d+)", said, re.M).group(1))
            os.remove(os.path.join(folder, file))
    return off, on


def test_read_by_nics():
    """NICs read what is sent: fewer bytes are copied off the GPUs, and nothing is fetched"""
    before = train(nic_bytes=1099511627776)
    assert before[1:3] == (0, 0), before[0]
    after = train()
    print("# %d messages, %.2f of the bytes copied off GPUs" % (after[1], after[3] / before[3]))
    assert after[1] > 100 and after[2] == 0 and after[3] < 0.7 * before[3], after[0]


def test_rails():
    """rails go down, drop silently and return"""
    _, messages, fetched, *_ = train(((3, "down", "h1", "rail1"), (5, "drop", "h0", "rail0"),
                                     (8, "heal", "all", "all"), (10, "down", "h2", "rail0")))
    print("# %d messages, %d fetched" % (messages, fetched))
    assert messages > 100


def test_relayed():
    """two hosts have no rail in common: what was on its way, if anything, is copied and relayed"""
    said, messages, fetched, *_ = train(((4, "down", "h0", "rail0"), (4, "down", "h1", "rail1"),
                                        (9, "heal", "all", "all")), count=600000)
    print("# %d messages, %d fetched" % (messages, fetched))
    assert messages > 50, said      # sim-gpu shows that some are fetched


def test_refused():
    """memory that is not registered goes by way of the host: told once by each process"""
    said, messages, fetched, *_, placed = train(peer_memory="refuse", put=1)
    print("# %d messages, %d fetched" % (messages, fetched))
    assert 0 < fetched == messages and placed == 0, said
    assert said.count("cannot be registered") in range(1, 2 * RANKS + 1), said


def test_unknown():
    """without the kernel's peer memory nothing is tried"""
    said, messages, fetched, *_, placed = train(peer_memory="0", put=1)
    assert messages == fetched == placed == 0 and "cannot be registered" not in said, said


def test_kinds():
    """another kind of memory for each buffer and rank"""
    _, messages, *_, placed = train(kind="mixed", put=1)
    print("# %d messages, %d bytes put" % (messages, placed))


def test_written_by_nics():
    """what is received lands in the GPUs' memory: fewer bytes are copied onto them"""
    before = train()
    after = train(put=1)
    print("# %d bytes put, %.2f of the bytes copied onto GPUs, %.2f of those off them" % (
        after[5], after[4] / before[4], after[3] / before[3]))
    assert before[5] == 0 < after[5] and before[4] - after[4] > 0.9 * after[5], after[0]


def test_written_plain():
    """a device that needs no flush"""
    assert train(put=1, order="200")[5] > 0


def test_written_never():
    """a driver that does not say what its devices need: nothing is put there"""
    assert train(put=1, order="999")[5] == 0


def test_written_rails():
    """rails die in the middle, drop silently and return while messages land in GPUs' memory"""
    *_, placed = train(((2, "drop", "h0", "rail1"), (4, "heal", "all", "all"),
                        (5, "down", "h1", "rail1"), (6, "heal", "all", "all"),
                        (8, "drop", "h2", "rail0"), (10, "heal", "all", "all")), put=1,
                       count=600000)
    print("# %d bytes put" % placed)
    assert placed > 0


def heal():
    """All rails as new."""
    r2lab("fault", "--name", LAB, "heal", "all", "all")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", RANKS, "--rails", 2, "--rate", "400mbit", "--rdma")
    return run_all([test_read_by_nics, test_rails, test_relayed, test_refused, test_unknown,
                    test_kinds, test_written_by_nics, test_written_plain, test_written_never,
                    test_written_rails], heal, down)


sys.exit(main())
