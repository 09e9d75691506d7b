# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""MPICH's launcher, Hydra, beside Open MPI's on the same machine: Debian's mpiexec.mpich.

Its daemons are started by the lab's agent and talk on mgmt0. Debian's MPICH is built on UCX, which
is told to use the rails as it is under pml/ucx.
"""

import shutil

from .spawn import LabError

LAUNCHER = "mpiexec.mpich"


def command(lab, run_dir, root):
    """The launcher with its options; `-n N PROGRAM` follows."""
    if root is not None:
        raise LabError("--peer mpich runs in this system only, not in --root")
    if not shutil.which(LAUNCHER):
        raise LabError("no %s in PATH; on Debian: apt install mpich" % LAUNCHER)
    return [LAUNCHER, "-launcher", "rsh", "-launcher-exec", lab.dir + "/agent", "-iface", "mgmt0",
            "-f", run_dir + "/machines"]


def machines(lab, ppn):
    """Its list of hosts."""
    return "".join("%s:%d\n" % (lab.host(h), ppn or 1) for h in range(lab.hosts))
