# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The environment that makes mpirun work in a lab.

Everything goes through the environment (OMPI_MCA_x is the same as --mca x), so that the
user's own --mca on the command line takes precedence and is never a repeated parameter.
A variable that the user has set already stays as it is.
"""

import glob
import os

from . import openmpi
from .spawn import LabError

PEERS = ("ob1", "ob1-ring", "ucx", "ucx-ring", "mpich")

GROUND = {
    # whatever this machine has: a lab's hosts compute on cores
    "coll_r2_gpu": "ignore",
    "mpi_yield_when_idle": "1",             # more ranks than cores
}

# Point-to-point and one-sided traffic, by --p2p. Stock transports stay off the rails beside r2: a
# rail that dies under them would hang the job.
POINT_TO_POINT = {
    "r2": {
        "pml": "ob1",
        "btl": "r2,self",
        "osc": "{osc}",
    },
    "mgmt": {
        "pml": "ob1",
        "btl": "self,{shm},tcp",
        "btl_tcp_if_include": "mgmt0",
    },
}

STOCK_OB1 = {
    "coll": "^r2",                          # whatever a file enables
    "pml": "ob1",
    "btl": "self,{shm},tcp",
    "btl_tcp_if_include": "{rails}",
}

STOCK_UCX = {
    "coll": "^r2",
    "pml": "ucx",
    "btl": "^openib,uct,{shm},tcp,r2",
    "osc": "^ucx",
    "opal_common_ucx_tls": "any",           # else pml/ucx declines a machine without RDMA
    "opal_common_ucx_devices": "any",
}

STOCK_UCX_ENV = {                         # MPICH's, too
    "UCX_TLS": "tcp,sm,self",
    "UCX_NET_DEVICES": "{rails}",
    "UCX_MAX_RNDV_RAILS": "{nrails}",
}

RING = {
    "coll_tuned_use_dynamic_rules": "1",
    "coll_tuned_allreduce_algorithm": "4",
}


def parameters(peer, p2p):
    """MCA parameters of a run (name: text with holes) and plain variables."""
    mca, plain = dict(GROUND), {}
    stock, _, ring = (peer or "").partition("-")
    if stock == "ob1":
        mca.update(STOCK_OB1)
    elif stock == "ucx":
        mca.update(STOCK_UCX)
        plain.update(STOCK_UCX_ENV)
    elif stock == "mpich":
        plain.update(STOCK_UCX_ENV)
    else:
        mca.update(POINT_TO_POINT[p2p or "r2"])
        mca["coll_r2_rails"] = "{rails}"
    if ring:
        mca.update(RING)
    if os.geteuid() == 0:
        plain.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                     PRTE_ALLOW_RUN_AS_ROOT="1", PRTE_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return mca, plain


def environment(lab, run_id, run_dir, version, peer=None, p2p=None, ppn=0, build=None, root=None,
                launches=True):
    """The variables to add to the environment of mpirun, of an Open MPI of that (first number of
    a) version; or, if it is not mpirun that launches, of what does."""
    mca, plain = parameters(peer, p2p)
    rails = ",".join("soft%s:1" % d[4:] if lab.is_ib else d
                     for d in lab.devices() if d != "mgmt0")
    holes = {"dir": lab.dir, "run": run_dir, "rails": rails, "nrails": lab.rails,
             "shm": "vader" if version < 5 else "sm",
             # Debian's file leaves out pt2pt, which 5.0 does not have.
             "osc": "rdma,sm,pt2pt" if version < 5 else "rdma,sm"}
    mapping = "ppr:%d:node" % ppn if ppn else "node"
    wanted = openmpi.launcher(version, mapping) if launches else {}
    wanted.update({"OMPI_MCA_" + name: text for name, text in mca.items()})
    wanted.update(plain)
    added = {name: text.format(**holes) for name, text in wanted.items()
             if name not in os.environ}
    if not peer:
        added.update(components(build, root))
    added.update(R2LAB_NAME=lab.name, R2LAB_DIR=lab.dir, R2LAB_RUN_DIR=run_dir,
                 R2LAB_RUN_ID=run_id)
    return added


def components(build, root=None):
    """Variables that point to r2's component and library, in a build tree or an install
    prefix. They come first, so that a build tree wins over what is installed; only folders
    that are there, because a missing one ends Open MPI's scan."""
    modules, libraries = search(build, root)
    added = {}
    if modules and "OMPI_MCA_mca_base_component_path" not in os.environ:
        added["OMPI_MCA_mca_base_component_path"] = ":".join([*modules, "SYSTEM_DEFAULT"])
    if libraries:
        before = os.environ.get("LD_LIBRARY_PATH")
        added["LD_LIBRARY_PATH"] = ":".join(libraries + ([before] if before else []))
    return added


def search(build, root=None):
    """Folders that hold (components, libr2core): those of `build`, else of $R2_BUILDDIR,
    else of the tree that this file is in (tools/lab/labkit), or of the prefix that it is
    installed in (share/r2/labkit), where the components know their library themselves.
    In a root only what was built there can run, so only what is named."""
    here = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    top = os.path.dirname(os.path.dirname(here))
    if build:
        found = in_build(build)
        if not found[0]:
            raise LabError("no component of r2 under %s: is it built?" % build)
        return found
    if "R2_BUILDDIR" in os.environ:
        return in_build(os.environ["R2_BUILDDIR"])
    if root is not None:
        return [], []
    if os.path.exists(top + "/configure.ac"):
        return next((f for f in map(in_build, (top + "/build", top)) if f[0]), ([], []))
    prefix = glob.escape(top)
    return holding("mca_*_r2.so", glob.glob(prefix + "/lib*/openmpi")
                   + glob.glob(prefix + "/lib/*/openmpi")), []


def in_build(top):
    """As search(), for one build tree; nothing if it has no libr2core yet."""
    top = os.path.abspath(top)
    modules = holding("mca_*_r2.so", [top + "/mca"]) or holding("mca_*_r2.so", [
        top + "/ompi/mca/coll/r2/.libs", top + "/opal/mca/btl/r2/.libs", top + "/.libs"])
    libraries = holding("libr2core.so*", [top + "/r2core/.libs", top + "/.libs"])
    return (modules, libraries) if modules and libraries else ([], [])


def holding(pattern, folders):
    """Those of the folders that are there and hold such a file, not a dangling link."""
    return [f for f in folders
            if any(map(os.path.exists, glob.glob("%s/%s" % (glob.escape(f), pattern))))]
