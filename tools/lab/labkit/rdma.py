# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""RDMA for the hosts of a lab: the NICs of tests/softverbs (docs/softverbs.md).

In the lab's folder, rdma/hX has what stands in /sys/class/infiniband of host X, and
rdma/preload the name of the library that `enter` loads before every command.
"""

import os

from .lab import NETNS
from .net import in_ns
from .spawn import LabError, must


def find():
    """(NIC program, library of verbs) of $R2_BUILDDIR, or of the tree that this file is in."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.realpath(__file__)))))
    given = os.environ.get("R2_BUILDDIR")
    for build in [given] if given else [top + "/build", top]:
        folder = os.path.abspath(build) + "/tests/softverbs"
        found = folder + "/softverbs", folder + "/.libs/libsoftverbs.so"
        if all(map(os.path.exists, found)):
            return found
    raise LabError("--rdma needs tests/softverbs: `make check-programs` builds it, and "
                   "$R2_BUILDDIR says where")


def start(lab):
    """Starts the NIC of each host. They end with the lab, as all that runs on its hosts."""
    program, library = find()
    os.mkdir(lab.dir + "/rdma")
    def ib(h):
        return lab.is_ib * ["--ib", "--netns", "%s/%s" % (NETNS, lab.place(h, "rail0"))]

    must([in_ns(lab.host(h), program, "nic", "--detach", *ib(h),
                "--files", "%s/rdma/h%d" % (lab.dir, h)) for h in range(lab.hosts)])
    with open(lab.dir + "/rdma/preload", "w", encoding="utf-8") as out:
        out.write(library)
