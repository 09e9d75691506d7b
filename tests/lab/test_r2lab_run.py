#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Proves `r2lab run` with stock Open MPI: layouts, stacks, endings and what is left."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from labtest import R2LAB, TOP, Skip, counters, processes, r2lab, remains, run_all, until

LAB = "tr%d" % os.getpid()      # 3 hosts x 2 rails
WORK = tempfile.mkdtemp(prefix="r2lab-test-")
APP = WORK + "/allreduce"
SLEEPER = ("sh", "-c", "trap '' TERM; echo here; while :; do sleep 1; done")

SITTER = ("sh", "-c", "echo here; sleep 600")    # longer than any test takes


def run(*words, **options):
    """r2lab run in the lab of these tests."""
    return r2lab("run", "--name", LAB, "--timeout", "60", *words, **options)[0]


def leftovers():
    """Processes and files of runs in the lab."""
    folder = "/run/r2lab/%s/runs" % LAB
    return [str(p) for p in processes(LAB)] + os.listdir(folder)


def start(*words):
    """Starts a run in the background and waits until 3 ranks have said that they are here."""
    child = subprocess.Popen([R2LAB, "run", "--name", LAB, *words], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for _ in range(3):
        assert child.stdout.readline() == "here\n"
    return child


def moved(before, after):
    """Bytes sent by all hosts in between: (on rails, on mgmt0)."""
    sums = {"rail": 0, "mgmt": 0}
    for host, there in after.items():
        for device, numbers in there.items():
            sums[device[:4]] += numbers["tx_bytes"] - before[host][device]["tx_bytes"]
    return sums["rail"], sums["mgmt"]


def test_ready():
    """a lab, and a program built with mpicc"""
    subprocess.run(["mpicc", "-O2", "-o", APP, TOP + "/tests/lab/allreduce.c"], check=True)
    r2lab("up", "--name", LAB, "--hosts", 3, "--rails", 2, "--rate", "400mbit")


def layout(*words):
    """Host number of each rank, in the order of ranks."""
    out = run(*words, "sh", "-c", "echo $OMPI_COMM_WORLD_RANK $(hostname)")
    pairs = sorted((int(r), h) for r, h in map(str.split, out.splitlines()))
    return [int(h.removeprefix(LAB + "-h")) for _, h in pairs]


def test_layout():
    """ranks: one for each host, in turn over the hosts, --ppn consecutive ones, --host"""
    assert layout() == [0, 1, 2]
    assert layout("-n", "5") == [0, 1, 2, 0, 1]
    assert layout("--ppn", "2") == [0, 0, 1, 1, 2, 2]
    assert layout("--ppn=2", "-n", "4") == [0, 0, 1, 1]
    assert layout("-n", "2", "--host", "%s-h2,%s-h1" % (LAB, LAB)) in ([1, 2], [2, 1])


def test_parameters():
    """the user's parameters take precedence and are not repeated"""
    words = ("--mca", "pml", "ob1", "-mca", "btl", "self,tcp", "--mca", "mpi_yield_when_idle", "0",
             "--mca", "coll_r2_rails", "rail1", "--bind-to", "none", "-n", "2")
    assert "wrong 0" in run(*words, APP)
    show = '--mca pml "$OMPI_MCA_pml" "$OMPI_MCA_coll_r2_rails"'
    out = run("-n", "1", "--mca", "coll_r2_rails", "rail1", "sh", "-c", "echo " + show)
    assert out.split() == ["--mca", "pml", "ob1", "rail1"], out
    out = run("-n", "1", "sh", "-c", "echo " + show, env={"OMPI_MCA_pml": "^cm"})
    assert out.split() == ["--mca", "pml", "^cm", "rail0,rail1"], out


def test_show():
    """--show prints what would run; the component path has only folders that are there"""
    out = r2lab("run", "--name", LAB, "--show", "-n", "2", "./my app", env={"R2_BUILDDIR": WORK})[0]
    prrte = shutil.which("prterun")     # the launcher of Open MPI 5.0
    network = "PRTE_MCA_prte_if_include" if prrte else "OMPI_MCA_oob_tcp_if_include"
    options = (" --leave-session-attached --pmixmca mca_base_component_path /" if prrte
               else "")
    assert network + "=mgmt0\n" in out and "OMPI_MCA_mca_base_component_path" not in out, out
    assert out.endswith("mpirun%s -n 2 './my app'\n" % options), out
    modules, libraries = WORK + "/ompi/mca/coll/r2/.libs", WORK + "/.libs"
    for folder, name in ((modules, "mca_coll_r2.so"), (libraries, "libr2core.so.0")):
        os.makedirs(folder)
        with open(folder + "/" + name, "w", encoding="ascii"):
            pass
    out = r2lab("run", "--name", LAB, "--build", WORK, "--show", "x")[0]
    assert "OMPI_MCA_mca_base_component_path=%s:SYSTEM_DEFAULT\n" % modules in out, out
    assert "LD_LIBRARY_PATH=" + libraries in out, out
    r2lab("run", "--name", LAB, "--build", WORK + "/nowhere", "x", status=1)
    shutil.rmtree(WORK + "/ompi")


def test_status():
    """mpirun's exit status is passed on; elsewhere, with standard input"""
    run("-n", "2", "sh", "-c", "exit 7", status=7)
    out = subprocess.run([os.path.relpath(R2LAB, "/usr"), "run", "--name", LAB, "-n", "1", "cat"],
                         cwd="/usr", input="through a pipe", stdout=subprocess.PIPE, text=True,
                         timeout=60, check=True).stdout
    assert out == "through a pipe", out


def test_own_places():
    """ranks of one host share /dev/shm and IPC, those of others do not; nothing is left"""
    script = "touch /dev/shm/r$OMPI_COMM_WORLD_RANK $TMPDIR/t; sleep 0.7; " \
             "echo $(hostname) $(readlink /proc/self/ns/ipc) $(ls /dev/shm $TMPDIR)"
    rows = [line.split() for line in run("--ppn", "2", "sh", "-c", script).splitlines()]
    assert len(rows) == 6 and len({row[1] for row in rows}) == 3
    for row in rows:
        host = int(row[0][-1])
        assert {"r%d" % r for r in range(6)} & set(row) == {"r%d" % (2 * host),
                                                            "r%d" % (2 * host + 1)}, row
    assert len({(row[0], row[1]) for row in rows}) == 3
    assert not leftovers(), leftovers()


def test_stacks():
    """payload is on the rails by default, on mgmt0 with --p2p mgmt; sums are right"""
    return shares("--mca coll r2", "--mca coll ^r2", "--p2p mgmt --mca coll ^r2")


def test_peers():
    """payload of --peer ob1 is on the rails"""
    return shares("--peer ob1", "--peer ob1-ring")


def test_peers_ucx():
    """payload of --peer ucx is on the rails; with two ranks on a host, too"""
    if "mca:pml:ucx:" not in subprocess.run(["ompi_info", "--parsable"], stdout=subprocess.PIPE,
                                            text=True, check=True).stdout:
        raise Skip("this Open MPI has no pml/ucx")
    notes = shares("--peer ucx", "--peer ucx-ring")
    before = counters(LAB)
    assert "wrong 0" in run("--peer", "ucx", "--ppn", "2", APP, "1000000", "1")
    rails, mgmt = moved(before, counters(LAB))
    assert mgmt < 0.01 * rails
    return notes


def test_mpich():
    """MPICH's launcher: ranks where --ppn wants them, payload on the rails, the timeout"""
    if not shutil.which("mpiexec.mpich") or not shutil.which("mpicc.mpich"):
        raise Skip("there is no MPICH: tools/deps.sh peers")
    said = run("--peer", "mpich", "--ppn", "2", "-n", "6", "sh", "-c", "echo $PMI_RANK $(hostname)")
    assert sorted(said.split("\n")) == ["", *("%d %s-h%d" % (r, LAB, r // 2) for r in range(6))]
    subprocess.run(["mpicc.mpich", "-O2", "-o", APP + ".mpich", TOP + "/tests/lab/allreduce.c"],
                   check=True)
    before = counters(LAB)
    child = subprocess.Popen([R2LAB, "run", "--name", LAB, "--timeout", "8", "--peer", "mpich",
                              "-n", "3", APP + ".mpich", "1000000", "100000"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert child.stdout.readline() == "iteration 0 done\n"
    child.communicate(timeout=60)
    rails, mgmt = moved(before, counters(LAB))
    assert child.returncode == 124 and rails > 8e6 and mgmt < 0.01 * rails, (rails, mgmt)
    assert not leftovers(), leftovers()
    assert "no mpiexec.mpich" in r2lab("run", "--name", LAB, "--peer", "mpich", "x", status=1,
                                       env={"PATH": without_mpich()})[1]


def without_mpich():
    """A PATH that has Open MPI's mpirun and nothing else."""
    folder = WORK + "/bin"
    os.makedirs(folder)
    os.symlink(shutil.which("mpirun"), folder + "/mpirun")
    return folder


def shares(*stacks):
    """Runs each and looks at where the bytes were."""
    notes = []
    for stack in stacks:
        before = counters(LAB)
        assert "wrong 0" in run(*stack.split(), "-n", "3", APP, "1000000"), stack
        rails, mgmt = moved(before, counters(LAB))
        share = mgmt / (rails + mgmt)
        assert rails + mgmt > 8e6, (stack, rails, mgmt)
        assert share > 0.99 if "mgmt" in stack else share < 0.01, (stack, rails, mgmt)
        notes.append("%s %.2f%%" % (stack, share * 100))
    return "; on mgmt0: " + ", ".join(notes)


def test_one_rail():
    """a host with one rail works, and says on request that there is nothing to fail over to"""
    words = ("--mca", "coll_r2_rails", "rail1", "-n", "3", APP, "100000")
    out, err = r2lab("run", "--name", LAB, "--timeout", "60", "--mca", "coll_r2_verbose", "2",
                     *words)
    assert "wrong 0" in out
    for name in ("coll:r2", "btl:r2"):
        lines = re.findall(name + r": in use on %s-h\d: 1 rail: rail1 \(.*\), nothing to fail "
                                  r"over to" % LAB, err)
        assert len(lines) == 3, err
    assert "fail over" not in r2lab("run", "--name", LAB, "--timeout", "60", *words)[1]


FIREWALL = """sysctl -q net.ipv4.ip_local_port_range="40000 41999"; nft -f - <<END
table inet fw {
    chain input {
        type filter hook input priority 0; policy accept;
        iifname { "rail0", "rail1", "mgmt0" } tcp dport != 40000-41999 counter drop
        iifname { "rail0", "rail1", "mgmt0" } udp dport != 40000-41999 counter drop
    }
}
END"""


def test_firewall():
    """what docs/for-admins.md says of port ranges: only those are used, and no rail is blamed"""
    for host in ("h0", "h1", "h2"):
        r2lab("exec", "--name", LAB, host, "sh", "-c", FIREWALL)
    out, err = r2lab("run", "--name", LAB, "--timeout", "60", "-n", "3", APP, "1000000", "3")
    assert "wrong 0" in out and "warning" not in err, err
    for host in ("h0", "h1", "h2"):
        rules = r2lab("exec", "--name", LAB, host, "nft", "list", "table", "inet", "fw")[0]
        assert rules.count("counter packets 0 ") == 2, rules
        r2lab("exec", "--name", LAB, host, "sh", "-c",
              'nft delete table inet fw; sysctl -q net.ipv4.ip_local_port_range="32768 60999"')


def test_fault_hangs():
    """a stock stack hangs on a dropping rail; --timeout ends it with status 124"""
    child = subprocess.Popen([R2LAB, "run", "--name", LAB, "--timeout", "4", "--peer", "ob1-ring",
                              "-n", "3", APP, "1000000", "100000"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "iteration 0 done\n"
    r2lab("fault", "--name", LAB, "drop", "h1", "rail1")
    begin = time.monotonic()
    err = child.communicate(timeout=60)[1]
    assert child.returncode == 124 and time.monotonic() - begin < 10
    assert "has not ended after 4 s" in err, err
    r2lab("fault", "--name", LAB, "heal", "h1", "rail1")
    assert not leftovers(), leftovers()


def test_fault_from_inside():
    """a rank can call r2lab fault without naming the lab"""
    out = run("-n", "1", R2LAB, "fault", "down", "h2", "rail0")
    assert out.startswith("fault down h2 rail0 at "), out
    r2lab("fault", "--name", LAB, "heal", "h2", "rail0")


def test_signals():
    """TERM, INT and HUP end a run, also of stubborn ranks, and all that belongs to it"""
    for signo, ranks in ((signal.SIGTERM, SLEEPER), (signal.SIGINT, SITTER),
                         (signal.SIGHUP, SITTER)):
        child = start(*ranks)
        assert "runs: %s.%d" % (LAB, child.pid) in r2lab("status", "--name", LAB)[0]
        child.send_signal(signo)
        child.communicate(timeout=20)
        assert child.returncode == 128 + signo, (signo, child.returncode)
        assert not leftovers(), leftovers()


def settled():
    """The processes of the lab, when those that only helped to start others have gone."""
    now, before = set(processes(LAB)), None
    while now != before:
        time.sleep(1)
        now, before = set(processes(LAB)), now
    return now


def crash(spared):
    """Stops all processes of a run and kills its r2lab. Returns what is left of it: the kernel may
    wake mpirun, which ends the others then."""
    child = start(*SITTER)
    doomed = set(processes(LAB)) - spared
    assert len(doomed) > 5
    for pid in doomed:
        os.kill(pid, signal.SIGSTOP)
    child.kill()
    child.wait(timeout=10)
    child.stdout.close()    # mpirun may hold the other end
    return doomed & set(processes(LAB))


def test_crash():
    """r2lab killed, its processes stopped: the next run sweeps, and spares a run that lives"""
    other = start(*SITTER)
    spared = settled()
    doomed = next(filter(lambda left: len(left) >= 3, (crash(spared) for _ in range(8))))
    assert run("-n", "1", "echo", "next") == "next\n"
    assert not doomed & set(processes(LAB)) and spared <= set(processes(LAB))
    assert os.listdir("/run/r2lab/%s/runs" % LAB) == ["%s.%d" % (LAB, other.pid)]
    other.kill()    # this time nothing is stopped: mpirun ends by itself when r2lab is gone
    other.communicate(timeout=10)
    assert until(lambda: not processes(LAB)), processes(LAB)


def test_recovery():
    """--enable-recovery: the other ranks outlive one that is killed"""
    script = "sleep 0.5; test $OMPI_COMM_WORLD_RANK = 1 && kill -9 $$; sleep 2.5; echo alive"
    words = ("--enable-recovery", "-n", "3", "sh", "-c", script)
    assert run(*words).split() == ["alive", "alive"]


def test_down_ends_run():
    """down ends a run that is going on"""
    child = start(*SLEEPER)
    r2lab("down", "--name", LAB)
    child.communicate(timeout=10)
    assert child.returncode != 0 and not remains(LAB), remains(LAB)


def recover():
    """Heals what a failed test left broken."""
    subprocess.run([R2LAB, "fault", "--name", LAB, "heal", "all", "all"], check=False,
                   stdout=subprocess.DEVNULL)


def cleanup():
    """Removes the lab and the work folder."""
    r2lab("down", "--name", LAB)
    shutil.rmtree(WORK)


def main():
    """All tests, or exit status 77 where there can be no lab."""
    os.environ.pop("R2LAB_NAME", None)
    if os.geteuid() != 0:
        print("the tests of r2lab need root")
        return 77
    return run_all([f for name, f in globals().items() if name.startswith("test_")],
                   recover, cleanup)


if __name__ == "__main__":
    sys.exit(main())
