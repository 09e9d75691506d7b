#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Proves each verb of r2lab with real namespaces: up, exec, status, counters, fault, down."""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from labtest import (NETNS, R2LAB, Skip, Wire, become, counters, devices, mbit_per_s, namespaces,
                     processes, r2lab, remains, run_all, socket_on, address, until)

A = "ta%d" % os.getpid()    # 3 hosts x 2 rails, shaped
B = "tb%d" % os.getpid()    # 2 hosts x 1 rail, not shaped
C = "tc%d" % os.getpid()    # for labs that must not come to be
WHEN = re.compile(r"fault (\S+) (h\d+) (rail\d+|mgmt0) at (\d+\.\d{9})")


def fault(*words):
    """Injects into lab A; returns the lines printed, checked, and the last one's time."""
    start = time.monotonic_ns()
    lines = r2lab("fault", "--name", A, *words)[0].splitlines()
    matches = [WHEN.fullmatch(line) for line in lines]
    assert lines and all(matches), lines
    seconds, fraction = matches[-1][4].split(".")
    when = int(seconds) * 10**9 + int(fraction)
    assert start < when < time.monotonic_ns(), "time is not CLOCK_MONOTONIC of the act"
    return lines, when


def tool(namespace, *argv):
    """Output of a command in a namespace."""
    return subprocess.run(["nsenter", "--net=%s/%s" % (NETNS, namespace), *argv], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def test_usage():
    """wrong command lines: usage, exit status 2, nothing built"""
    wrong = [[], ["upp"], ["up", "--hosts", "0"], ["up", "--hosts", "x"], ["up", "--rails", "65"],
             ["up", "--rate", "fast"], ["up", "--rate", "10"], ["up", "--rate", "0mbit"],
             ["up", "--size", "3"], ["up", "more"], ["up", "--hosts"], ["up", "--force=1"],
             ["run"], ["run", "--peer", "lam", "x"], ["run", "--p2p", "tcp", "x"],
             ["run", "--p2p", "r2", "--peer", "ob1", "x"], ["run", "--ppn", "0", "x"],
             ["run", "--timeout", "-1", "x"], ["exec"], ["exec", "h0"], ["fault"],
             ["fault", "down"], ["fault", "melt", "h0", "rail0"], ["fault", "loss", "h0", "0"],
             ["fault", "--at", "cable", "down", "h0", "0"], ["status", "--xml"], ["down", "now"]]
    for words in wrong:
        out, err = r2lab(*words[:1], *(["--name", C] if words else []), *words[1:], status=2)
        assert "usage: r2lab" in err and not out, words
    for name in ("", "Upper", "a/b", "a.b", "-a", "x" * 17, "9a", "\u00e4"):
        r2lab("up", "--name=" + name, status=2)
    assert not remains(C)
    assert "usage: r2lab" in r2lab("--help")[0]


def test_no_lab():
    """verbs on a lab that is not there"""
    assert "no lab %s\n" % C == r2lab("down", "--name", C)[0]
    for words in (["status"], ["counters"], ["run", "x"], ["exec", "h0", "x"],
                  ["fault", "down", "h0", "0"]):
        err = r2lab(words[0], "--name", C, *words[1:], status=1)[1]
        assert "no lab " + C in err, err


def test_up():
    """up: namespaces, addresses, MTU, bridges, shaping and settings"""
    r2lab("up", "--name", A, "--hosts", 3, "--rails", 2, "--rate", "100mbit")
    assert namespaces(A) == [A + "-h0", A + "-h1", A + "-h2", A + "-sw"]
    become(A, h2_rail1="up")
    links = {d["ifname"]: d for d in json.loads(tool(A + "-h2", "ip", "-j", "addr"))}
    assert sorted(links) == ["lo", "mgmt0", "rail0", "rail1"]
    assert links["rail1"]["mtu"] == 9000 and links["rail1"]["operstate"] == "UP"
    assert [a["local"] for a in links["rail1"]["addr_info"]] == ["10.77.1.3"]   # and no IPv6
    ports = {d["ifname"]: d for d in json.loads(tool(A + "-sw", "ip", "-j", "link"))}
    assert [ports[p]["master"] for p in ("h2r1", "h0r0", "h1m")] == ["br1", "br0", "brm"]
    for namespace, device in ((A + "-h0", "rail1"), (A + "-sw", "h0r1")):
        qdisc = json.loads(tool(namespace, "tc", "-j", "qdisc", "show", "dev", device))[0]
        assert qdisc["kind"] == "tbf" and qdisc["options"]["rate"] == 100e6 / 8, qdisc
        assert qdisc["options"]["burst"] >= 65536, qdisc
    assert "tbf" not in tool(A + "-h0", "tc", "qdisc", "show", "dev", "mgmt0")
    for name, value in (("conf/all/arp_ignore", "1"), ("conf/all/arp_announce", "2"),
                        ("tcp_congestion_control", "reno"), ("tcp_slow_start_after_idle", "0")):
        assert tool(A + "-h1", "cat", "/proc/sys/net/ipv4/" + name).strip() == value, name


def test_up_again():
    """up of a lab that is there: refused, but for --force"""
    err = r2lab("up", "--name", A, status=1)[1]
    assert "is there already" in err, err
    tool(A + "-h0", "ip", "link", "set", "dev", "rail0", "alias", "of-before")
    r2lab("up", "--name", A, "--hosts", 3, "--rails", 2, "--force")
    assert "of-before" not in tool(A + "-h0", "ip", "link", "show", "dev", "rail0")


def test_up_fast():
    """up of 4 x 4, several times"""
    best = 100.0
    for _ in range(3):
        start = time.monotonic()
        r2lab("up", "--name", C)
        best = min(best, time.monotonic() - start)
        r2lab("down", "--name", C)
    assert best < 10, best
    return ", best %.2f s" % best


def broken_tool(folder, text):
    """A PATH in which tc is a script."""
    with open(folder + "/tc", "w", encoding="ascii") as out:
        out.write("#!/bin/sh\n" + text)
    os.chmod(folder + "/tc", 0o755)
    return {"PATH": folder + ":" + os.environ["PATH"]}


def test_rollback():
    """up that fails in the middle or is interrupted leaves nothing"""
    with tempfile.TemporaryDirectory() as folder:
        env = broken_tool(folder, "echo no shaping today >&2; exit 1\n")
        assert "no shaping today" in r2lab("up", "--name", C, status=1, env=env)[1]
        assert not remains(C)
        env = broken_tool(folder, "sleep 0.5; exec /sbin/tc \"$@\"\n")
        with subprocess.Popen([R2LAB, "up", "--name", C], env={**os.environ, **env},
                              stderr=subprocess.DEVNULL) as child:
            assert until(lambda: namespaces(C))
            child.send_signal(signal.SIGTERM)
            assert child.wait() in (1, -signal.SIGTERM), child.returncode
        assert not remains(C)


def test_side_by_side():
    """two labs with equal addresses do not see each other"""
    r2lab("up", "--name", B, "--hosts", 2, "--rails", 1, "--rate", "none")
    here, there = socket_on(A, 1), socket_on(B, 1)
    for end in (here, there):
        end.bind((address(1, 0), 4242))
        end.settimeout(0.2)
    for lab, end in ((A, here), (B, there)):
        with socket_on(lab, 0) as source:
            source.sendto(lab.encode(), (address(1, 0), 4242))
        assert end.recv(100) == lab.encode()
    for end in (here, there):
        try:
            raise AssertionError("strange packet %r" % end.recv(100))
        except TimeoutError:
            end.close()
    assert "tbf" not in tool(B + "-h0", "tc", "qdisc", "show")


def carries(lab, rail, low, high, hosts=(0, 1)):
    """Waits until a rail carries that many Mbit/s: a pause of this process spoils one measurement,
    not all."""
    seen = []
    assert until(lambda: low < (seen.append(mbit_per_s(lab, rail, hosts=hosts))
                                or seen[-1]) < high), seen
    return seen[-1]


def test_rate():
    """rails carry their rate and no more; mgmt0 and an unshaped lab carry far more"""
    rate, mgmt = carries(A, 0, 75, 106), carries(A, "mgmt0", 200, 10**6)
    free = carries(B, 0, 200, 10**6)
    return ", %.0f, %.0f and %.0f Mbit/s" % (rate, mgmt, free)


def test_exec():
    """exec: hostname, arguments, exit status, own /dev/shm and /sys, names"""
    def run(*words):
        return r2lab("exec", "--name", A, *words)[0]
    assert run("h1", "hostname") == A + "-h1\n" == run(A + "-h1",
                                                       "hostname") == run("1", "hostname")
    assert run("h0", "printf", "<%s>", "a b", "$HOME", "--name") == "<a b><$HOME><--name>"
    r2lab("exec", "--name", A, "h0", "sh", "-c", "exit 9", status=9)
    r2lab("exec", "--name", A, "h3", "true", status=2)
    run("h0", "touch", "/dev/shm/r2-mark")
    assert run("h0", "ls", "/dev/shm") == "r2-mark\n" and run("h1", "ls", "/dev/shm") == ""
    assert not os.path.exists("/dev/shm/r2-mark")
    assert run("h0", "ls", "/sys/class/net").split() == ["lo", "mgmt0", "rail0", "rail1"]
    assert run("h0", "getent", "hosts", A + "-h2").split()[0] == "10.77.255.3"


def test_counters():
    """counters: bytes of each host and device"""
    before = counters(A)
    wire = Wire(A, 1)
    wire.ends[0].sendto(bytes(5000), wire.names[1])
    wire.close()
    after = counters(A)
    for host, name in (("h0", "tx_bytes"), ("h1", "rx_bytes")):
        assert after[host]["rail1"][name] - before[host]["rail1"][name] >= 5000
    assert after["h0"]["rail0"] == before["h0"]["rail0"] and sorted(after) == ["h0", "h1", "h2"]
    assert sorted(after["h0"]) == ["mgmt0", "rail0", "rail1"]


def check_ways(words, ways, text, state="up"):
    """One fault on h1 rail1: what gets through, what status says; then it heals."""
    wire, other = Wire(A, 1), Wire(A, 0)
    fault(*words, "h1", "rail1")
    row = become(A, h1_rail1=state)["h1", "rail1"]
    assert (wire.ways(), row["fault"]) == (ways, text), (words, wire.ways(), row)
    assert other.ways() == "both" and row["address"] == "10.77.1.2"
    fault("heal", "h1", "rail1")
    row = become(A, h1_rail1="up")["h1", "rail1"]
    assert (row["fault"], row["address"]) == ("-", "10.77.1.2"), row
    assert until(lambda: wire.ways() == "both"), "not healed: %s" % wire.ways()
    wire.close()
    other.close()


def test_fault_ways():
    """fault down, drop, drop-in, drop-out at the host and at the switch, and heal"""
    check_ways(["down"], "none", "down", "down")
    check_ways(["--at", "switch", "down"], "none", "down@switch", "no-carrier")
    for at, mark in (([], ""), (["--at", "switch"], "@switch"), (["--at=host"], "")):
        check_ways([*at, "drop"], "none", "drop" + mark)
        check_ways([*at, "drop-in"], "out", "drop-in" + mark)
        check_ways([*at, "drop-out"], "in", "drop-out" + mark)


def test_fault_loss():
    """fault loss, as one word and as two, both ways"""
    wire = Wire(A, 0)
    for words in (["loss=30%"], ["--at", "switch", "loss", "30%"]):
        fault(*words, "1", "0")
        for way in (0, 1):
            share = 1 - wire.count(way, 500) / 500
            assert 0.1 < share < 0.5, (words, way, share)
        assert devices(A)["h1", "rail0"]["fault"].startswith("loss=30%")
        fault("heal", "1", "0")
    assert wire.count(0, 500) == 500
    fault("loss=100%", "1", "0")
    assert wire.ways() == "none"
    fault("heal", "1", "0")
    wire.close()


def test_fault_rate():
    """fault rate at both ends, in bits and in per cent, and back"""
    for words in (["rate=10mbit"], ["rate", "10%"], ["--at", "switch", "rate=10000kbit"]):
        fault(*words, "h1", "rail0")
        carries(A, 0, 6, 12)
        carries(A, 0, 6, 12, (1, 0))
    assert devices(A)["h1", "rail0"]["rate"] == "10000kbit"
    fault("heal", "h1", "rail0")
    carries(A, 0, 75, 106)
    err = r2lab("fault", "--name", B, "rate=10%", "h0", "0", status=2)[1]
    assert "have no rate" in err
    r2lab("fault", "--name", B, "rate=10mbit", "h0", "0")
    carries(B, 0, 6, 12)
    r2lab("fault", "--name", B, "heal", "h0", "0")
    carries(B, 0, 200, 10**6)


def test_fault_together():
    """faults add up until heal; lists of hosts and rails; mgmt0"""
    wire = Wire(A, 1)
    fault("drop-in", "h1", "1")
    fault("drop-out", "h1", "1")
    fault("rate=50mbit", "h1", "1")
    fault("--at", "switch", "drop-out", "h1", "1")
    assert devices(A)["h1", "rail1"]["fault"] == "drop rate=50mbit drop-out@switch"
    assert wire.ways() == "none"
    lines, _ = fault("down", "h0,h1", "rail0,1")
    assert [line.split()[2:4] for line in lines] == [["h0", "rail0"], ["h0", "rail1"],
                                                     ["h1", "rail0"], ["h1", "rail1"]]
    become(A, h0_rail0="down", h0_rail1="down", h1_rail0="down", h1_rail1="down", h2_rail0="up",
           h2_rail1="up")
    assert len(fault("heal", "all", "all")[0]) == 6
    there = become(A, h0_rail0="up", h0_rail1="up", h1_rail0="up", h1_rail1="up", h2_rail0="up",
                   h2_rail1="up")
    assert {(r["fault"], r["rate"]) for (_, d),
            r in there.items() if d != "mgmt0"} == {("-", "100mbit")}
    assert until(lambda: wire.ways() == "both")
    wire.close()
    fault("down", "h2", "mgmt0")
    become(A, h2_mgmt0="down")
    fault("heal", "h2", "mgmt0")
    become(A, h2_mgmt0="up")
    for words in (["down", "h3", "0"], ["down", "h0", "2"], ["loss=0%", "h0", "0"],
                  ["loss=101%", "h0", "0"], ["rate=1", "h0", "0"], ["drop=1", "h0", "0"]):
        r2lab("fault", "--name", A, *words, status=2)


def test_fault_concurrent():
    """faults at the same time do not lose each other"""
    kinds = ["drop-in", "drop-out", "loss=1%", "rate=50mbit", "down"] * 3
    children = [subprocess.Popen([R2LAB, "fault", "--name", A, kind, "h0", "rail0"],
                                 stdout=subprocess.DEVNULL) for kind in kinds]
    assert [child.wait() for child in children] == [0] * len(kinds)
    assert devices(A)["h0", "rail0"]["fault"] == "down drop loss=1% rate=50mbit"
    fault("heal", "h0", "rail0")


def test_fault_fast():
    """fault is quick: times as diagnostics, only far too long fails"""
    spent = {}
    for kind in ("down", "heal", "drop", "heal"):
        times = []
        for _ in range(5):
            start = time.monotonic()
            fault(kind, "h1", "rail1")
            times.append(time.monotonic() - start)
        spent[kind] = statistics.median(times)
        assert min(times) < 2, (kind, times)
    return ", median " + " ".join("%s %.0f ms" % (k, v * 1e3) for k, v in spent.items())


def test_status():
    """status: the table and the JSON say the same"""
    become(A, h1_rail1="up")
    table = r2lab("status", "--name", A)[0].splitlines()
    assert table[0] == "lab %s: 3 hosts x 2 rails, rate 100mbit, runs: none" % A
    assert table[1].split() == "host rail address state fault rate rx_bytes tx_bytes".split()
    whole = json.loads(r2lab("status", "--name", A, "--json")[0])
    assert (whole["name"], whole["hosts"], whole["rails"]) == (A, 3, 2)
    assert [row.split()[:4] for row in table[2:]] == [
        [d["host"], d["rail"], d["address"], d["state"]] for d in whole["devices"]]


def test_down():
    """down ends what runs on the hosts and removes all, also of half a lab"""
    with subprocess.Popen([R2LAB, "exec", "--name", A, "h0", "sh", "-c",
                           "trap '' TERM INT HUP; while :; do sleep 60; done"]) as child:
        assert until(lambda: processes(A))
        r2lab("down", "--name", A)
        assert child.wait() == -signal.SIGKILL
    assert not remains(A)
    os.remove("/run/r2lab/%s/shape" % B)
    assert "not complete" in r2lab("status", "--name", B, status=1)[1]
    r2lab("down", "--name", B)
    assert not remains(B)


def test_sandbox():
    """everything without root, in unshare -rnm"""
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*user, "test", "-x", R2LAB], check=False).returncode != 0:
        user = []       # a source tree that only root can read
    sandbox = [*user, "unshare", "-rnm"]
    if subprocess.run([*sandbox, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("this kernel gives no user namespaces")
    script = """set -e; cd /
        "$0" down; "$0" up --hosts 2 --rails 2; "$0" exec h1 hostname
        "$0" run -n 2 hostname | sort
        "$0" fault drop h1 rail1; "$0" fault loss=1% h0 0; "$0" fault rate=1mbit h0 0
        "$0" fault --at switch down h0 1; "$0" status; "$0" fault heal all all; "$0" down
        test ! -e /run/netns/r2-h0"""
    done = subprocess.run([*sandbox, "sh", "-c", script, R2LAB], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          env={"PATH": os.environ["PATH"], "HOME": "/"})
    assert done.returncode == 0, done.stdout
    for text in ("no lab r2\n", "\nr2-h1\nr2-h0\nr2-h1\n", "down@switch", "loss=1% rate=1mbit"):
        assert text in done.stdout, (text, done.stdout)
    return ", as nobody" if user else ""


def recover():
    """Heals what a failed test left broken."""
    for lab in filter(namespaces, (A, B)):
        subprocess.run([R2LAB, "fault", "--name", lab, "heal", "all", "all"], check=False,
                       stdout=subprocess.DEVNULL)


def cleanup():
    """Takes down what failed tests left."""
    for lab in (A, B, C):
        r2lab("down", "--name", lab)


def main():
    """All tests, or exit status 77 where there can be no lab."""
    if os.geteuid() != 0:
        print("the tests of r2lab need root")
        return 77
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    return run_all(tests, recover, cleanup)


if __name__ == "__main__":
    sys.exit(main())
