#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Workers of Python's multiprocessing (fork) beside MPI; with --die rank 1 is killed while its
worker lives on."""

import array
import multiprocessing
import os
import signal
import sys
import time

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
FORK = multiprocessing.get_context("fork")


def square(number):
    """What a worker does."""
    return number * number


def work():
    """A pool of workers while collectives go on. @return errors."""
    errors = 0
    for turn in range(3):
        with FORK.Pool(2) as pool:
            squares = pool.map_async(square, range(100))
            for step in range(20):
                errors += WORLD.allreduce(RANK + step) != SIZE * (SIZE - 1) // 2 + SIZE * step
            errors += squares.get(60) != [i * i for i in range(100)]
        errors += WORLD.allgather((RANK, turn)) != [(i, turn) for i in range(SIZE)]
    return errors


def idle():
    """A worker that outlives its parent."""
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    time.sleep(600)


def die():
    """Rank 1 dies, its worker does not."""
    worker = FORK.Process(target=idle)
    WORLD.Allreduce(array.array("i", [1]), array.array("i", [0]))  # lanes are open
    WORLD.Barrier()
    if RANK == 1:
        worker.start()
    pid = WORLD.bcast(worker.pid, root=1)
    WORLD.Set_errhandler(MPI.ERRORS_RETURN)
    WORLD.barrier()
    if RANK == 1:
        print("child", pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    try:
        WORLD.Allreduce(array.array("i", [1]), array.array("i", [0]))
        outcome = "no error"
    except MPI.Exception:
        outcome = "error"
    took = time.monotonic() - start
    try:
        os.kill(pid, 0)
        child = "lives"
    except ProcessLookupError:
        child = "is gone"
    print("rank %d: %s after %.2f s, the child %s" % (RANK, outcome, took, child), flush=True)
    if child == "lives":
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


if "--die" in sys.argv:
    die()
failures = WORLD.allreduce(work())
if RANK == 0:
    print("%sok 1 - workers of multiprocessing\n1..1" % ("not " if failures else ""), flush=True)
sys.exit(failures != 0)
