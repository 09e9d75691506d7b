#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Queue pairs of a job in which all processes talk to all others over all rails: scale.py prints
the table of docs/ucx.md, scale.py --check compares that file with it, and the limit up to which
coll_r2_tls=auto takes rc with what devices have. test_softverbs.py counts the same on NICs."""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
DEVICE_QUEUE_PAIRS = 131072     # ibv_devinfo -v, max_qp: what devices have at least
QUEUE_PAIR_BYTES = 64 << 10     # of the host's memory, by reading: 256 sends of 256 bytes
DC_PAIRS = 9                    # of UCX's dc_mlx5, by reading: 8 to send with, 1 to receive
HOSTS = (2, 8, 16, 1000)
PER_HOST, RAILS = 128, 8


def of_process(tls, hosts, per_host, rails):
    """Queue pairs of a process."""
    return {"rc": rails * per_host * (hosts - 1), "dc": DC_PAIRS * rails, "ud": rails,
            "tcp": 0}[tls]


def of_device(tls, hosts, per_host):
    """Queue pairs of a device, which all processes of its host share."""
    return per_host * of_process(tls, hosts, per_host, 1)


def counted(hosts, per_host, rails):
    """Ends of rc's lanes that the first process has, one by one, and the first device."""
    process = device = 0
    ranks = [(host, rank) for host in range(hosts) for rank in range(per_host)]
    for mine in ranks:
        for theirs in ranks:
            for rail in range(rails):
                if mine[0] == theirs[0]:
                    continue    # within a host no NIC is used
                process += mine == (0, 0)
                device += mine[0] == 0 and rail == 0
    return process, device


def size(count):
    """MiB or GiB."""
    mib = count >> 20
    return "%d GiB" % (mib >> 10) if mib >= 1024 else "%d MiB" % mib


def row(hosts, per_host=PER_HOST, rails=RAILS):
    """One line of the table."""
    rc = of_process("rc", hosts, per_host, rails)
    words = ["{:,}".format(hosts), "{:,}".format(hosts * per_host),
             "{:,}; {:,}; {}".format(rc, of_device("rc", hosts, per_host),
                                     size(rc * QUEUE_PAIR_BYTES))]
    words += ["{:,}; {:,}".format(of_process(tls, hosts, per_host, rails),
                                  of_device(tls, hosts, per_host)) for tls in ("dc", "ud")]
    return "| " + " | ".join(words + ["{:,}".format(rc)]) + " |"


def limit():
    """The most processes that coll_r2_tls=auto gives rc."""
    with open(TOP + "/r2core/include/r2/nic.h", encoding="utf8") as file:
        return int(re.search(r"define R2_RC_RANKS_MAX (\d+)u", file.read()).group(1))


def check():
    """Output: TAP."""
    with open(TOP + "/docs/ucx.md", encoding="utf8") as file:
        lines = file.read().splitlines()
    most = limit()
    tests = [("a row for %d hosts" % hosts, row(hosts) in lines) for hosts in HOSTS]
    tests += [("%d hosts of %d, %d rails, counted one by one" % case,
               counted(*case) == (of_process("rc", *case), of_device("rc", *case[:2])))
              for case in ((2, 1, 1), (2, 3, 2), (3, 4, 2), (5, 2, 8))]
    tests += [("rc up to %d processes fits a device" % most,
               of_device("rc", most // PER_HOST, PER_HOST) <= DEVICE_QUEUE_PAIRS),
              ("and twice as many do not",
               of_device("rc", 2 * most // PER_HOST, PER_HOST) > DEVICE_QUEUE_PAIRS)]
    for number, (name, good) in enumerate(tests, 1):
        print("%s %d - %s" % ("ok" if good else "not ok", number, name))
    print("1..%d" % len(tests))
    return 0 if all(good for _, good in tests) else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    print("\n".join(row(hosts) for hosts in HOSTS))
