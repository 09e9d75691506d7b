#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Jobs under Slurm's srun --mpi=pmix on a lab of 4 hosts with 4 rails, and r2lab slurm itself.

Results are those of a healthy run under mpirun, to the last bit. A PMIx event would kill the step
(docs/decisions.md), so none may be sent.
"""

import os
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from faultlab import (BUILD, HOSTS, LAB, RAILS, Job, device_bytes, down, in_jobs, killed,
                      killed_errors, recover, up)
from labtest import R2LAB, TOP, processes, r2lab, remains, run_all, until
import test_verdicts as verdicts

FUNCTIONAL = BUILD + "/tests/functional/"
OWN = ("/etc/munge", "/etc/slurm", "/run/munge", "/var/lib/munge", "/var/log/munge",
       "/var/log/slurm", "/var/lib/slurm", "/var/spool/slurmd", "/run/slurm", "/run/slurmctld.pid",
       "/run/slurmd.pid")     # of this machine


DAEMONS = ("munged", "slurmctld", "slurmd", "slurmdbd")


class SlurmJob(Job):
    """A job of fault_driver under srun; parameters are words NAME=VALUE."""

    @staticmethod
    def launch(mpirun):
        """Words for r2lab, up to the program."""
        return ["slurm", "run", "--name", LAB, "--build", BUILD, "--timeout", "150", "--mpi=pmix",
                "-N%d" % HOSTS, "-n%d" % HOSTS, "env", "OMPI_MCA_coll=r2", *mpirun]


def srun(*words, status=0):
    """r2lab slurm run: (stdout, stderr)."""
    return r2lab("slurm", "run", "--name", LAB, "--build", BUILD, "--timeout", "60", *words,
                 status=status)


def daemons():
    """This machine's own daemons of Slurm and munge, which are in its network namespace: pid, and
    when it began."""
    found = {}
    home = os.stat("/proc/self/ns/net").st_ino
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, encoding="ascii", errors="replace") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
            if name in DAEMONS and os.stat("/proc/%s/ns/net" % pid).st_ino == home:
                found[int(pid)] = int(rest.split()[19])
        except OSError:
            pass
    return found


def machine():
    """What this machine's own Slurm and munge have: names and times of change. Where they run they
    write their logs and states by themselves: the configuration, and that the same ones run."""
    found = daemons()
    for top in [top for top in OWN if not found or top.startswith("/etc/")]:
        for folder, _, files in os.walk(top):
            for name in [folder, *(folder + "/" + each for each in files)]:
                found[name] = os.lstat(name).st_mtime_ns
        if os.path.isfile(top):
            found[top] = os.lstat(top).st_mtime_ns
    return found


before = {}     # the same before the tests


def test_up():
    """up: a second one is refused; a run without is, too"""
    r2lab("slurm", status=2)
    r2lab("slurm", "up", "now", status=2)
    said = r2lab("slurm", "run", "--name", LAB, "true", status=1)[1]
    assert "has no Slurm" in said, said
    r2lab("slurm", "up", "--name", LAB)
    assert "has a Slurm already" in r2lab("slurm", "up", "--name", LAB, status=1)[1]
    hosts = srun("-N%d" % HOSTS, "hostname")[0].split()
    assert sorted(hosts) == ["%s-h%d" % (LAB, h) for h in range(HOSTS)], hosts
    srun("-n1", "sh", "-c", "exit 7", status=7)


def test_no_event():
    """coll_r2_oob = pmix: r2 tells that Slurm does not survive an event, and sends none"""
    job = SlurmJob("--iterations", 2, mpirun=("OMPI_MCA_coll_r2_oob=pmix",))
    job.open("init", "first", "finalize")
    job.ended()
    job.finish()
    said = job.error_text()
    assert said.count("does not survive an event") == 1, said
    srun("--mpi=pmix", "-N2", "-n2", BUILD + "/tests/functional/oob_events", "breaks")


def test_exact():
    """healthy: r2 is in use on all hosts, all rails carry payload, exact results"""
    start = [device_bytes(h, r)[0] for h in range(HOSTS) for r in range(RAILS)]
    job = SlurmJob("--iterations", 4, mpirun=("OMPI_MCA_coll_r2_verbose=2",))
    job.open("init", "first", "finalize")
    job.ended()
    job.finish()
    said = job.error_text()
    for host in range(HOSTS):
        assert "coll:r2: in use on %s-h%d: 4 rails" % (LAB, host) in said, said
    after = [device_bytes(h, r)[0] for h in range(HOSTS) for r in range(RAILS)]
    assert all(b - a > 1e6 for a, b in zip(start, after)), (start, after)
    assert job.status["lanes_failed"] == 0, job.tail()


def test_two_per_host():
    """all collectives, two ranks on each of two hosts"""
    out, err = srun("--mpi=pmix", "-N2", "-n4", "--ntasks-per-node=2", "env", "OMPI_MCA_coll=r2",
                    FUNCTIONAL + "all_collectives")
    assert "not ok" not in out and out.count("\nok ") > 10, (out, err)


def the_job():
    """The job that is under way while rails fail, with event files."""
    if verdicts.state["job"] is None or verdicts.state["job"].child.poll() is not None:
        words = ("OMPI_MCA_coll_r2_event_file=" + verdicts.FILES, "OMPI_MCA_coll_r2_oob=pmix")
        verdicts.state["job"] = SlurmJob(mpirun=words).begin()
        verdicts.state["job"].whole()


def test_down():
    """link down in the middle of a collective: survived, and blamed on the NIC by every rank"""
    the_job()
    return verdicts.nic_fault(["down", "h1", "rail2"], 1, 2)


def test_drop():
    """silent drop in the middle of a collective: survived, and blamed on the NIC by every rank"""
    the_job()
    return verdicts.nic_fault(["drop", "h3", "rail1"], 3, 1)


def test_end():
    """the job ends with all results right"""
    the_job()
    verdicts.test_end()


def test_killed():
    """a rank is killed: the step ends with an error, nothing is left"""
    return killed(SlurmJob().begin())


def test_killed_errors():
    """a rank is killed, errors return: all survivors get an error that names it"""
    return killed_errors(SlurmJob("--errors", "return").begin())


def test_no_pmix():
    """without PMIx: Open MPI 4.1 ends in MPI_Init, 5.0 starts jobs of one process, and r2 tells"""
    is_prrte = shutil.which("prterun") is not None      # Open MPI 5.0
    hint = "srun started 2 tasks" if is_prrte else "you can use SLURM's PMIx support"
    for kind in ("pmi2", "none"):
        err = srun("--mpi=" + kind, "-N2", "-n2", "env", "OMPI_MCA_coll=r2",
                   FUNCTIONAL + "hello_mpi", status=0 if is_prrte else 1)[1]
        assert err.count(hint) == (1 if is_prrte else 2), (kind, err)


def test_timeout():
    """--timeout and a signal end a step, also of stubborn ranks"""
    stubborn = ("-N2", "sh", "-c", "trap '' TERM; echo here; while :; do sleep 1; done")
    out, err = r2lab("slurm", "run", "--name", LAB, "--timeout", "2", *stubborn, status=124)
    assert "has not ended after 2 s" in err and out == "here\nhere\n", (out, err)
    child = subprocess.Popen([R2LAB, "slurm", "run", "--name", LAB, *stubborn],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert child.stdout.readline() == "here\n"
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=20)
    assert child.returncode == 128 + signal.SIGTERM, child.returncode
    assert until(lambda: not in_jobs()), in_jobs()
    assert not os.listdir("/run/r2lab/%s/runs" % LAB)
    srun("-N%d" % HOSTS, "true")


def test_taken_down():
    """slurm down ends what runs and leaves nothing; the machine's own Slurm is as before"""
    child = subprocess.Popen([R2LAB, "slurm", "run", "--name", LAB, "-N2", "sh", "-c",
                              "echo here; sleep 600"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    assert child.stdout.readline() == "here\n"
    r2lab("slurm", "down", "--name", LAB)
    child.communicate(timeout=20)
    assert child.returncode not in (0, 124)
    assert until(lambda: not processes(LAB), 2), processes(LAB)    # some may be on their way out
    assert not os.path.exists("/run/r2lab/%s/slurm" % LAB)
    r2lab("slurm", "down", "--name", LAB)
    assert machine() == before


def test_lab_down():
    """down of the lab ends its Slurm"""
    r2lab("slurm", "up", "--name", LAB)
    r2lab("down", "--name", LAB)
    assert not remains(LAB), remains(LAB)


TESTS = [test_up, test_no_event, test_exact, test_two_per_host, test_down, test_drop, test_end,
         test_killed, test_killed_errors, test_no_pmix, test_timeout, test_taken_down,
         test_lab_down]


def unable():
    """Why the tests cannot run here, or None. Missing packages are installed."""
    if os.geteuid() != 0:
        return "the lab's Slurm needs root"
    if not shutil.which("dpkg"):
        return "this is no Debian system, whose Slurm these tests know"
    done = subprocess.run([TOP + "/tools/deps.sh", "slurm"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        return "Slurm cannot be installed: " + done.stdout.strip().split("\n")[-1]
    return None


def main():
    """Raises the lab, runs all tests."""
    why = unable()
    if why:
        print(why)
        return 77
    before.update(machine())
    try:
        up()
        return run_all(TESTS, recover, lambda: None)
    finally:
        down()


if __name__ == "__main__":
    sys.exit(main())
