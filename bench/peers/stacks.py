# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The stacks that do the same work: r2 in the forms that users have, and what it is compared with.

A stack says what r2lab and mpirun are told, which build of the benchmark it runs, and which rows it
has something to say about.
"""

import os
import shutil
from dataclasses import dataclass

# Open MPI's ring, or what comes closest to it, by coll/tuned's numbers: each byte crosses each rail
# as seldom as it can. r2lab's --peer ob1-ring has that of allreduce.
RING = {
    "allreduce": None,
    "allgather": ("coll_tuned_allgather_algorithm", "4"),
    "reduce_scatter": ("coll_tuned_reduce_scatter_algorithm", "3"),
    "bcast": ("coll_tuned_bcast_algorithm", "9"),
    "alltoall": ("coll_tuned_alltoall_algorithm", "2"),
}
HAN = ("allgather", "allreduce", "bcast", "gather", "reduce", "scatter")
GLOO = ("allgather", "allreduce", "alltoall", "barrier", "bcast", "reduce")


@dataclass(frozen=True)
class Stack:
    """One way to do the work."""

    name: str
    title: str
    suits: object           # (layout, kind) -> has it something to say about that row?
    words: object           # (layout, kind) -> options of `r2lab run`, arguments of mpirun
    program: str = "mpi"    # build of the benchmark: mpi, mpich or gloo
    is_r2: bool = False     # one that the others are compared with


def always(_layout, _kind):
    return True


def fixed(lab=(), mpirun=()):
    """The same words for every row."""
    return lambda _layout, _kind: (tuple(lab), tuple(mpirun))


def default_r2(layout, kind):
    """What a user of coll/r2 has. On one host what r2 leaves goes over what Open MPI sends with;
    point-to-point is btl/r2's."""
    leaves_some = layout.hosts == 1 and not kind.is_pairs
    return ("--p2p", "mgmt") if leaves_some else (), ("--mca", "coll", "r2")


def ring(_layout, kind):
    """ob1 with the ring forced."""
    forced = RING[kind.name]
    return ("--peer", "ob1-ring"), ("--mca", *forced) if forced else ()


STACKS = [
    Stack("r2", "r2", always, default_r2, is_r2=True),
    Stack("r2-own", "r2, single_host=r2", lambda layout, kind: layout.hosts == 1
          and not kind.is_pairs,
          fixed((), ("--mca", "coll", "r2", "--mca", "coll_r2_single_host", "r2")), is_r2=True),
    Stack("r2-vader", "r2, btl=r2,vader,self", lambda layout, kind: layout.hosts == 1
          and kind.is_pairs,
          fixed((), ("--mca", "coll", "r2", "--mca", "btl", "r2,vader,self")), is_r2=True),
    Stack("ob1", "ob1 + btl/tcp", always, fixed(("--peer", "ob1"))),
    Stack("ring", "ob1, ring forced", lambda layout, kind: kind.name in RING and layout.hosts > 1,
          ring),
    Stack("han", "ob1, coll/han", lambda layout, kind: kind.name in HAN and layout.hosts > 1
          and layout.ppn > 1,
          fixed(("--peer", "ob1"), ("--mca", "coll_han_priority", "100"))),
    Stack("ucx", "pml/ucx", always, fixed(("--peer", "ucx"))),
    Stack("mpich", "MPICH", always, fixed(("--peer", "mpich")), program="mpich"),
    Stack("gloo", "Gloo, one rail", lambda _layout, kind: kind.name in GLOO,
          fixed(("--peer", "ob1")), program="gloo"),
]
BY_NAME = {stack.name: stack for stack in STACKS}

# Where the builds of the benchmark are, and why one may be missing.
PROGRAMS = {
    "mpi": "bench/osu/r2_bench",
    "mpich": "bench/peers/r2_bench_mpich",
    "gloo": "bench/peers/gloo_bench",
}


def why_missing(stack, build, which=shutil.which):
    """Why a stack cannot run here, or None."""
    if stack.program == "mpich" and not which("mpiexec.mpich"):
        return "there is no mpiexec.mpich: apt-get install mpich libmpich-dev"
    if not os.path.exists(os.path.join(build, PROGRAMS[stack.program])):
        return {
            "mpi": "%s is not built: make" % PROGRAMS["mpi"],
            "mpich": "its benchmark is not built: apt-get install libmpich-dev, then make "
                     "bench-peers-mpich",
            "gloo": "its benchmark is not built: apt-get install libgloo-dev g++, then make "
                    "bench-peers-gloo",
        }[stack.program]
    return None
