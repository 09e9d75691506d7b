#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Arrays in the memory of a GPU, given to mpi4py: a loop as of a simulation or a training.

In each step the ranks exchange the edges of their arrays with both neighbours, point-to-point, and
add up another array by a nonblocking allreduce, all in the GPU's memory. mpi4py takes any object
that has __cuda_array_interface__; the class here is the least of that kind, over the CUDA driver,
and calls nothing but copies. CuPy's, PyTorch's and Numba's arrays are given to MPI likewise.

    mpirun -n 4 -x LD_PRELOAD=/usr/local/lib/libr2_cuda_support.so --mca coll r2 \\
        python3 examples/cuda_arrays.py --steps 20

Prints what MPIX_Query_cuda_support() says, and a line for each step. All numbers are checked.
"""

import argparse
import ctypes
import sys

import numpy
from mpi4py import MPI


class Driver:
    """The CUDA driver, with the primary context of one device."""

    def __init__(self, local_rank):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            sys.exit("there is no CUDA driver: %s" % error)
        self.call("cuInit", ctypes.c_uint(0))
        count, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context),
                  ctypes.c_int(local_rank % count.value))
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        """Calls a function of the driver; an error ends the program."""
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            sys.exit("%s returned %d" % (name, result))


class DeviceArray:
    """A contiguous array in the GPU's memory."""

    def __init__(self, driver, shape, dtype):
        self.driver, self.dtype = driver, numpy.dtype(dtype)
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.nbytes = int(numpy.prod(self.shape)) * self.dtype.itemsize
        address = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(self.nbytes))
        self.address, self.is_owner = address.value, True

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "version": 3,
                "data": (self.address, False), "strides": None}

    def part(self, first, count):
        """Elements first to first + count of an array of one dimension, in the same memory."""
        part = object.__new__(DeviceArray)
        part.driver, part.dtype, part.shape = self.driver, self.dtype, (count,)
        part.nbytes = count * self.dtype.itemsize
        part.address, part.is_owner = self.address + first * self.dtype.itemsize, False
        return part

    def set(self, values):
        """Copies from the host."""
        values = numpy.ascontiguousarray(values, self.dtype)
        assert values.shape == self.shape
        self.driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.address),
                         values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.nbytes))

    def get(self):
        """A copy in the host's memory."""
        values = numpy.empty(self.shape, self.dtype)
        self.driver.call("cuMemcpyDtoH_v2", values.ctypes.data_as(ctypes.c_void_p),
                         ctypes.c_uint64(self.address), ctypes.c_size_t(self.nbytes))
        return values

    def free(self):
        """Gives the memory back."""
        if self.is_owner:
            self.driver.call("cuMemFree_v2", ctypes.c_uint64(self.address))


def cuda_support():
    """What MPI says of itself: of the library that is preloaded, if one is."""
    return ctypes.CDLL(None).MPIX_Query_cuda_support()


def cells(rank, step, count):
    """The inner cells of a rank."""
    return numpy.arange(count, dtype=numpy.float64) + 1000 * rank + step


def gradients(rank, step, count):
    """Whole numbers, whose sums are exact in any order."""
    return ((numpy.arange(count) * (rank + 1) + step) % 97).astype(numpy.float32)


def one_step(comm, step, field, sums, edge):
    """Returns how many numbers are wrong on this rank."""
    rank, size = comm.rank, comm.size
    left, right = (rank - 1) % size, (rank + 1) % size
    inner = field.shape[0] - 2 * edge
    field.set(numpy.concatenate([numpy.full(edge, -1.0), cells(rank, step, inner),
                                 numpy.full(edge, -1.0)]))
    sums.set(gradients(rank, step, sums.shape[0]))
    adding = comm.Iallreduce(MPI.IN_PLACE, sums, MPI.SUM)
    MPI.Request.Waitall([
        comm.Irecv(field.part(0, edge), left, 1),
        comm.Irecv(field.part(edge + inner, edge), right, 2),
        comm.Isend(field.part(edge, edge), left, 2),
        comm.Isend(field.part(inner, edge), right, 1)])
    adding.Wait()
    whole = numpy.concatenate([cells(left, step, inner)[-edge:], cells(rank, step, inner),
                               cells(right, step, inner)[:edge]])
    total = sum(gradients(r, step, sums.shape[0]) for r in range(size))
    return int((field.get() != whole).sum() + (sums.get() != total).sum())


def main():
    """Steps."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--cells", type=int, default=50000)
    options.add_argument("--edge", type=int, default=5000, help="cells that neighbours exchange")
    options.add_argument("--gradients", type=int, default=200000)
    options = options.parse_args()
    comm = MPI.COMM_WORLD
    driver = Driver(comm.Split_type(MPI.COMM_TYPE_SHARED).rank)
    field = DeviceArray(driver, options.cells + 2 * options.edge, numpy.float64)
    sums = DeviceArray(driver, options.gradients, numpy.float32)
    if comm.rank == 0:
        print("MPIX_Query_cuda_support() says %d" % cuda_support(), flush=True)
    wrong = 0
    for step in range(options.steps):
        now = comm.allreduce(one_step(comm, step, field, sums, options.edge))
        wrong += now
        if comm.rank == 0:
            print("step %d: %d wrong" % (step, now), flush=True)
    field.free()
    sums.free()
    sys.exit(0 if wrong == 0 else 1)


main()
