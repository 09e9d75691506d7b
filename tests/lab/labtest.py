# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What the tests of r2lab share: running it, sockets inside its hosts, TAP."""

import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
R2LAB = TOP + "/tools/lab/r2lab"
LIMIT_S = 100     # for one test
NETNS = "/run/netns"
CLONE_NEWNET = 0x40000000
UD = "--ud" in sys.argv                 # rails are RDMA devices, and lanes go by datagrams
PUT = "--put" in sys.argv               # the same, and messages are put (coll_r2_put)
IB = "--ib" in sys.argv                 # rails are InfiniBand ports, without IP
RDMA = UD or PUT or IB or "--rdma" in sys.argv    # rails are RDMA devices (docs/softverbs.md)
if UD:
    os.environ["OMPI_MCA_coll_r2_tls"] = "ud"
if PUT:
    os.environ["OMPI_MCA_coll_r2_put"] = "1"
UP_RDMA = ("--ib",) if IB else RDMA * ("--rdma",)   # of `r2lab up`
# r2 is what is tested, on communicators of one host, too.
os.environ.setdefault("OMPI_MCA_coll_r2_single_host", "r2")
LIBC = ctypes.CDLL(None, use_errno=True)


class Skip(Exception):
    """This test cannot run here; the text says why."""


def r2lab(*words, status=0, env=None, **options):
    """Runs r2lab, checks its exit status and returns (stdout, stderr)."""
    done = subprocess.run([R2LAB, *map(str, words)], stdin=subprocess.DEVNULL, timeout=90,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **(env or {})}, check=False, **options)
    assert done.returncode == status, "r2lab %s: exit status %d, not %d\n%s%s" % (
        " ".join(map(str, words)), done.returncode, status, done.stdout, done.stderr)
    return done.stdout, done.stderr


def same_mpi(python):
    """Skips a test for which mpi4py is missing, or is of another Open MPI than mpirun."""
    ask = ("import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; "
           "print(MPI.Get_library_version())")
    says = [subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                           check=False).stdout
            for words in ((python, "-c", ask), ("mpirun", "--version"))]
    theirs, ours = (re.search(r"Open MPI\)? v?([^,\s]+)", text) for text in says)
    if theirs is None:
        raise Skip("python3-mpi4py is not installed")
    if theirs.group(1) != ours.group(1):
        raise Skip("mpi4py is of Open MPI %s, mpirun of %s" % (theirs.group(1), ours.group(1)))


def follow(child, lab, word, faults=()):
    """Reads what a job says, to its end. faults: after which line that begins with `word`, from 1
    on, to do what. Returns all lines in one, and those that begin so."""
    lines, marked = [], []
    for line in child.stdout:
        lines.append(line)
        if line.startswith(word):
            marked.append(line)
            for when, *fault in faults:
                if when == len(marked):
                    r2lab("fault", "--name", lab, *fault)
    return "".join(lines), marked


def namespaces(lab):
    """Names of the namespaces of a lab that are there."""
    names = os.listdir(NETNS) if os.path.isdir(NETNS) else []
    return sorted(n for n in names if n.startswith(lab + "-"))


def remains(lab):
    """All that a lab has left on this machine."""
    folder = "/run/r2lab/" + lab
    return namespaces(lab) + ([folder] if os.path.exists(folder) else [])


def processes(lab):
    """Pids of all processes in the namespaces of a lab."""
    ids = {os.stat("%s/%s" % (NETNS, n)).st_ino for n in namespaces(lab)}
    pids = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat("/proc/%s/ns/net" % name).st_ino in ids:
                pids.append(int(name))
        except OSError:
            pass
    return [p for p in pids if p != os.getpid()]


def counters(lab):
    """Byte counters: host -> device -> name -> number."""
    return json.loads(r2lab("counters", "--name", lab)[0])


def devices(lab):
    """status --json as (host, rail) -> row."""
    rows = json.loads(r2lab("status", "--json", "--name", lab)[0])["devices"]
    return {(row["host"], row["rail"]): row for row in rows}


def softverbs(lab, host, *words):
    """What the RDMA NIC of a host says to a command. It is reached through the host's network: all
    else that r2lab gives to a command there takes twenty times as long."""
    tool = os.environ.get("R2_BUILDDIR", TOP + "/build") + "/tests/softverbs/softverbs"
    return subprocess.run(["nsenter", "--net=%s/%s-%s" % (NETNS, lab, host), tool, *words],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=90,
                          check=True).stdout


def rdma_sent(lab, host):
    """Packets that the RDMA NIC of a host has sent, all its devices."""
    lines = softverbs(lab, host, "counters").splitlines()
    return sum(int(line.split()[2]) for line in lines if line.split()[1] == "sent")


def until(condition, limit_s=10.0):
    """Waits for a condition; returns whether it came."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def become(lab, **states):
    """Waits until devices have their states, h0_rail1="up" and so on: the kernel tells of a carrier
    a moment later, from a worker of its own. Returns what status --json says then."""
    def there():
        return {name: devices(lab)[tuple(name.split("_"))]["state"] for name in states}
    assert until(lambda: there() == states), (states, there())
    return devices(lab)


def socket_on(lab, host, kind=socket.SOCK_DGRAM):
    """A socket that lives on a host: a socket stays in the namespace it was made in."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open("%s/%s-h%d" % (NETNS, lab, host), os.O_RDONLY)
    try:
        assert LIBC.setns(there, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            return socket.socket(socket.AF_INET, kind)
        finally:
            assert LIBC.setns(home, CLONE_NEWNET) == 0
    finally:
        os.close(home)
        os.close(there)


def address(host, rail):
    """IPv4 address of a rail, by number, or of 'mgmt0'."""
    return "10.77.%s.%d" % (255 if rail == "mgmt0" else rail, host + 1)


class Wire:
    """A UDP socket on one rail of each of two hosts, to see what gets through."""

    def __init__(self, lab, rail, hosts=(0, 1)):
        self.ends, self.names = [], []
        for host in hosts:
            end = socket_on(lab, host)
            end.bind((address(host, rail), 0))
            end.settimeout(0.15)
            self.ends.append(end)
            self.names.append(end.getsockname())
        for way in (0, 1, 0, 1):        # let both ends learn the other's link address
            self.count(way, 1)

    def count(self, start, packets=5):
        """Sends packets from one end (0 or 1); returns how many arrive at the other."""
        got = 0
        for done in range(0, packets, 100):     # a receive buffer holds some 250
            batch = min(100, packets - done)
            for _ in range(batch):
                try:
                    self.ends[start].sendto(b"r2", self.names[1 - start])
                except OSError:     # the device is down: nothing is sent
                    pass
            got += self.receive(1 - start, batch)
        return got

    def receive(self, end, most):
        """Number of packets that arrive at one end, until it is silent for a while."""
        for got in range(most):
            try:
                self.ends[end].recv(100)
            except TimeoutError:
                return got
        return most

    def ways(self):
        """What works: 'both', 'out' (from the second host only), 'in' or 'none'."""
        into, out = self.count(0) > 0, self.count(1) > 0
        return {(1, 1): "both", (0, 1): "out", (1, 0): "in", (0, 0): "none"}[into, out]

    def close(self):
        """Closes both ends."""
        for end in self.ends:
            end.close()


def mbit_per_s(lab, rail, seconds=0.4, hosts=(0, 1)):
    """TCP throughput between two hosts over one rail."""
    listener = socket_on(lab, hosts[1], socket.SOCK_STREAM)
    listener.bind((address(hosts[1], rail), 0))
    listener.listen()
    listener.settimeout(5)
    source = socket_on(lab, hosts[0], socket.SOCK_STREAM)
    source.settimeout(5)
    source.connect(listener.getsockname())
    sink = listener.accept()[0]
    source.setblocking(False)
    sink.setblocking(False)
    block, got, start = bytes(1 << 16), 0, None
    begin = time.monotonic()
    while (now := time.monotonic()) < begin + 0.15 + seconds:
        try:
            source.send(block)
        except BlockingIOError:
            pass
        try:
            size = len(sink.recv(1 << 20))
        except BlockingIOError:
            time.sleep(0.0002)
            continue
        if now > begin + 0.15:      # the bucket's burst and slow start are over
            start = start or now
            got += size
    for each in (listener, source, sink):
        each.close()
    return got * 8e-6 / (time.monotonic() - start) if start else 0.0


def stopped(signo, _):
    """Ends the program as an error does: what it has built is removed. (check stops a suite that
    takes too long.)"""
    signal.signal(signo, signal.SIG_IGN)
    sys.exit(128 + signo)


signal.signal(signal.SIGTERM, stopped)


def too_long(*_):
    """Ends a test that hangs."""
    raise TimeoutError("the test took more than %d s" % LIMIT_S)


def passes(label, test, recover):
    """Runs one test and prints its line."""
    start = time.monotonic()
    signal.alarm(LIMIT_S)
    try:
        note = test()
        print("ok %s (%.2f s%s)" % (label, time.monotonic() - start, note or ""))
        return True
    except Skip as why:
        print("ok %s # SKIP %s" % (label, why))
        return True
    except Exception:   # noqa: BLE001 - any kind of failure is a failed test
        signal.alarm(0)     # recovering may take its time
        print("not ok %s" % label)
        print("".join("# %s\n" % line for line in traceback.format_exc().splitlines()), end="")
        recover()
        return False
    finally:
        signal.alarm(0)
        sys.stdout.flush()


def run_all(tests, recover, cleanup):
    """Runs the tests in order, prints TAP, returns the exit status. recover() follows a test
    that failed, cleanup() the last, and SIGTERM."""
    failed = 0
    signal.signal(signal.SIGALRM, too_long)
    print("1..%d" % len(tests))
    try:
        for number, test in enumerate(tests, 1):
            title = (test.__doc__ or test.__name__).strip().split("\n")[0]
            failed += not passes("%d - %s" % (number, title), test, recover)
    finally:
        cleanup()
    return 1 if failed else 0
