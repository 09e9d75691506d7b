# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The applications of test_apps.py as a table: how each is run, and which of the numbers it prints
are results."""

import os
import re
import shutil

HERE = os.path.dirname(os.path.realpath(__file__))


class App:
    """One application.

    words       the program and its arguments
    layout      r2lab's and mpirun's words for ranks on hosts
    inputs      file in the folder of the run: file here
    output      file of the run that has progress and results: what it writes, stdout or stderr
    marks       text in the output that says where a fault is to hit, in order
    results     pattern with two groups: name and value of a result
    least       number of results that there have to be, and that are compared: NetPIPE goes on
    while it has time
    tolerance   how far results of another MPI may differ: sums in another order. 0: not at all
    """

    def __init__(self, package, words, layout, marks, results, least, inputs=(), output="stdout",
                 tolerance=0.0):
        self.package, self.words, self.layout, self.marks = package, words, layout, marks
        self.pattern, self.least = re.compile(results, re.MULTILINE), least
        self.inputs, self.output, self.tolerance = dict(inputs), output, tolerance

    def missing(self):
        """Why it cannot run here, or None."""
        if shutil.which(self.words[0]):
            return None
        return "no %s: tools/deps.sh apps installs package %s" % (self.words[0], self.package)

    def prepare(self, folder):
        """Puts the inputs where the run looks for them."""
        for name, source in self.inputs.items():
            shutil.copy("%s/%s" % (HERE, source), "%s/%s" % (folder, name))

    def results(self, text):
        """(name, value) of all results, in order."""
        return [(name.strip(), value.strip())
                for name, value in self.pattern.findall(text)][:self.least]


APPS = {
    # Dense linear algebra, transposition, Fourier transform, and a storm of short messages.
    "hpcc": App(
        "hpcc", ("hpcc",), ("-n", "4"),
        ("Begin of MPIRandomAccess_LCG section", "Begin of MPIFFT section"),
        r"^(Success|HPL_\w*norm\w*|PTRANS_residual|MPIRandomAccess\w*_Errors|MPIFFT_maxErr|HPLM\w*Procs)=(.*)$",
        13, inputs={"hpccinf.txt": "hpcc.in"}, output="hpccoutf.txt"),
    # Molecular dynamics: neighbours, a Fourier transform over all ranks, balancing by moving atoms.
    "lammps": App(
        "lammps", ("lmp", "-in", "lammps.in", "-log", "none"), ("--ppn", "2", "-n", "4"),
        ("\n      20 ", "\n      60 "),
        r"^ +(\d+) ((?: +[-\d.e]+){6})", 21, inputs={"lammps.in": "lammps.in"}, tolerance=1e-6),
    # Density functional theory: distributed diagonalization with ScaLAPACK, Fourier transforms by
    # alltoall.
    "espresso": App(
        "quantum-espresso", ("pw.x", "-ndiag", "4", "-in", "pw.in"), ("-n", "4"),
        ("iteration #  3", "iteration #  7"),
        r"^!?\s+(total energy|[\w-]+ contribution|highest occupied level \(ev\)) *[=:] +(\S+)", 17,
        inputs={"pw.in": "pw.in"}, tolerance=1e-6),
    # Messages of all sizes up to 4 MiB between two ranks, each byte compared by the program itself.
    "netpipe": App(
        "netpipe-openmpi", ("NPopenmpi", "-i", "-n", "20", "-u", "4194304"), ("-n", "2"),
        ("\n  8: ", "\n 20: "), r"^ *(\d+: +\d+ bytes) .*--> *(.*)$", 40, output="stderr"),
}
