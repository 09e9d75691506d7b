#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""A stranger on the fabric sends garbage to every port of a running job: r2's listeners, which are
all there are, must not be impressed, and the job's results stay right.
"""

import os
import random
import re
import socket
import sys

sys.dont_write_bytecode = True
import faultlab
from faultlab import LAB, RAILS, Job, down, fault, heal_all, recover, up
from labtest import r2lab, run_all, socket_on

VICTIM, STRANGER = 1, 3
SEED = int(os.environ.get("SEED", "1"))


def ports(own):
    """Listening (address, port) of rails on the victim: r2's own are bound to a device."""
    rows = r2lab("exec", "--name", LAB, "h%d" % VICTIM, "ss", "-Hltn")[0].split("\n")
    found = [re.match(r"LISTEN\s+\d+\s+\d+\s+(10\.77\.\d+\.\d+)(%rail\d+)?:(\d+)\s", r)
             for r in rows]
    return sorted((f[1], int(f[3])) for f in found if f and bool(f[2]) == own
                  and not f[1].startswith("10.77.255."))


def payloads(rng):
    """What a stranger may send: nothing, noise of all lengths, text, and lengths that lie."""
    yield b""
    for bytes_count in (1, 4, 32, 88, 1000, 20000):
        yield rng.randbytes(bytes_count)
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20
    yield b"\xff" * 64 + rng.randbytes(200)
    yield (1 << 31).to_bytes(4, "little") * 50


def send(target, data):
    """One connection with one payload; a refusal or reset is an answer, too."""
    end = socket_on(LAB, STRANGER, socket.SOCK_STREAM)
    end.settimeout(0.5)
    try:
        end.connect(target)
        end.sendall(data)
        end.shutdown(socket.SHUT_WR)
        end.recv(4096)
    except OSError:
        pass
    finally:
        end.close()


def attack(targets, rng):
    """All payloads to all targets."""
    for target in targets:
        for data in payloads(rng):
            send(target, data)


def test_own_ports():
    """garbage to r2's listeners: right results, and a rail still fails and heals meanwhile"""
    rng = random.Random(SEED)
    job = faultlab.running()
    targets = ports(own=True)
    assert len(targets) >= RAILS, targets      # hello on each rail, and the out-of-band path
    failed = job.status["lanes_failed"]
    attack(targets, rng)
    job.iterations(1)
    assert job.status["lanes_failed"] == failed, "garbage made lanes fail" + job.tail()
    fault("down", "h%d" % VICTIM, "rail2")
    attack([t for t in targets if not t[0].startswith("10.77.2.")], rng)
    fault("heal", "h%d" % VICTIM, "rail2")
    attack(targets, rng)
    job.whole()
    faultlab.stop_running()
    return ", %d ports, seed %d" % (len(targets), SEED)


def test_no_other_ports():
    """nothing listens on a rail that is not bound to its NIC: TCP is r2's own, UCX has no port"""
    job = Job().begin()
    job.whole()
    others, own = ports(own=False), ports(own=True)
    job.right()
    job.kill()
    heal_all()
    assert not others, others
    assert len(own) >= 2 * RAILS, own          # hello and data on each rail
    return ", %d ports of r2's" % len(own)


def main():
    """Raises the lab and runs both."""
    if os.geteuid() != 0:
        print("tests on the lab need root")
        return 77
    try:
        up()
        return run_all([test_own_ports, test_no_other_ports], recover, lambda: None)
    finally:
        down()


if __name__ == "__main__":
    sys.exit(main())
