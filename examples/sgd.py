#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Data-parallel training with mpi4py and numpy: gradients travel while others are still computed.

A network of three layers learns a function. Each rank has its own part of the samples. As Horovod
does it, gradients are put into buckets, last layer first, and a bucket's nonblocking allreduce
starts as soon as it is full, on a thread of its own (MPI_THREAD_MULTIPLE); with --half they travel
as 16-bit floats, added by an operation of our own. Nothing here knows of r2:

    mpirun -n 4 --mca coll r2 python3 examples/sgd.py --steps 20

Prints the loss of every step, as exact hexadecimal: runs with and without failing NICs print the
same.
"""

import argparse
import queue
import sys
import threading

import numpy
from mpi4py import MPI

HALF = MPI.Datatype.Create_contiguous(MPI.BYTE, 2).Commit()


def add_halves(here, there, _):
    """The operation on 16-bit floats: there = here + there."""
    total = numpy.frombuffer(there, numpy.float16)
    numpy.add(numpy.frombuffer(here, numpy.float16), total, out=total)


class Buckets:
    """Sums gradients over all ranks in buckets, while the caller goes on."""

    def __init__(self, comm, half):
        self.comm, self.half = comm.Dup(), half
        self.add = MPI.Op.Create(add_halves, commute=True) if half else MPI.SUM
        self.work, self.under_way = queue.SimpleQueue(), []
        self.thread = threading.Thread(target=self._start_all)
        self.thread.start()

    def _start_all(self):
        """The communication thread: starts what it is given, in that order on every rank."""
        while (gradients := self.work.get()) is not None:
            bucket = numpy.concatenate([g.ravel() for g in gradients])
            bucket = bucket.astype(numpy.float16 if self.half else numpy.float32)
            kind = HALF if self.half else MPI.FLOAT
            request = self.comm.Iallreduce(MPI.IN_PLACE, [bucket, bucket.size, kind], self.add)
            self.under_way.append((request, bucket, gradients))
            self.started.release()

    def begin(self):
        """A new step."""
        self.started, self.count = threading.Semaphore(0), 0

    def give(self, gradients):
        """One bucket: arrays that are summed in place by the time finish() returns."""
        self.count += 1
        self.work.put(gradients)

    def finish(self):
        """Waits for all buckets of the step."""
        for _ in range(self.count):
            self.started.acquire()
        MPI.Request.Waitall([request for request, _, _ in self.under_way])
        for _, bucket, gradients in self.under_way:
            at = 0
            for gradient in gradients:
                gradient[...] = bucket[at:at + gradient.size].reshape(gradient.shape)
                at += gradient.size
        self.under_way = []

    def close(self):
        """Ends the thread."""
        self.work.put(None)
        self.thread.join()
        self.comm.Free()


class Network:
    """Layers of tanh with a linear last one."""

    def __init__(self, sizes, seed=1):
        random = numpy.random.default_rng(seed)
        self.weights = [(random.standard_normal((a, b)) / a ** 0.5).astype(numpy.float32)
                        for a, b in zip(sizes, sizes[1:])]

    def step(self, inputs, wanted, buckets, rate, ranks):
        """One step of gradient descent; returns the loss of this rank's samples before it."""
        values = [inputs]
        for weight in self.weights[:-1]:
            values.append(numpy.tanh(values[-1] @ weight))
        error = values[-1] @ self.weights[-1] - wanted
        loss = float((error * error).mean(dtype=numpy.float64))
        buckets.begin()
        gradients, slope = [], error * numpy.float32(2 / len(inputs))
        for layer in reversed(range(len(self.weights))):
            gradients.append(values[layer].T @ slope)
            buckets.give([gradients[-1]])       # under way while the next is computed
            if layer > 0:
                slope = (slope @ self.weights[layer].T) * (1 - values[layer] ** 2)
        buckets.finish()
        for weight, gradient in zip(reversed(self.weights), gradients):
            weight -= numpy.float32(rate / ranks) * gradient
        return loss


def main():
    """Trains."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--width", type=int, default=512, help="of the hidden layers")
    options.add_argument("--rate", type=float, default=0.05)
    options.add_argument("--half", action="store_true", help="gradients travel as 16-bit floats")
    options = options.parse_args()
    comm = MPI.COMM_WORLD
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        sys.exit("this MPI has no MPI_THREAD_MULTIPLE")
    random = numpy.random.default_rng(100 + comm.rank)
    inputs = random.standard_normal((64, 32)).astype(numpy.float32)
    wanted = numpy.sin(inputs.sum(axis=1, keepdims=True)).astype(numpy.float32)
    network = Network([32, options.width, options.width, 1])
    buckets = Buckets(comm, options.half)
    for step in range(options.steps):
        loss = network.step(inputs, wanted, buckets, options.rate, comm.size)
        total = comm.allreduce(loss, MPI.SUM) / comm.size       # in the order of the schedule
        if comm.rank == 0:
            print("step %d loss %s (%.4f)" % (step, total.hex(), total), flush=True)
    digest = float(sum(abs(w).sum(dtype=numpy.float64) for w in network.weights))
    same = comm.allreduce(digest, MPI.MIN) == comm.allreduce(digest, MPI.MAX)
    buckets.close()
    if comm.rank == 0:
        print("weights %s, %s on all ranks"
              % (digest.hex(), "the same" if same else "NOT the same"))


main()
