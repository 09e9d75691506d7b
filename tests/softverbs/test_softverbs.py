#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""softverbs on a lab: UCX's own tools and stock Open MPI over RDMA NICs that are none, and the
lab's faults on them (docs/softverbs.md).

Needs tests/softverbs of the build directory ($R2_BUILDDIR) and ucx_perftest (Debian: ucx-utils),
which is fetched into the build directory where it is not installed.
"""

import collections
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lab"))
from labtest import (  # noqa: E402
    R2LAB, counters, namespaces, processes, r2lab, remains, run_all, softverbs,
    until)
from perftest import BUILD, LAB, RC, UD, Perftest, tool  # noqa: E402
from scale import of_device  # noqa: E402

SOFTVERBS = BUILD + "/tests/softverbs/softverbs"
BENCH = BUILD + "/bench/osu/r2_bench"
ENDLESS = 10**8             # iterations
FAST = {"UCX_RC_TIMEOUT": "50ms", "UCX_RC_RETRY_COUNT": "3"}         # 67 ms x 4
STEADY = {"UCX_RC_TIMEOUT": "50ms", "UCX_RC_RETRY_COUNT": "7"}       # lost tails cost 67 ms each


def on(host, *words, status=0):
    """Standard output of a command on a host."""
    return r2lab("exec", "--name", LAB, host, *words, status=status)[0]


def fault(*words):
    """One of the lab's faults."""
    r2lab("fault", "--name", LAB, *words)


def nic(host, device="soft0"):
    """Counters of a device, or the sums of all devices of a host (None)."""
    sums = collections.Counter()
    for which, name, value in map(str.split, softverbs(LAB, host, "counters").splitlines()):
        sums[name] += int(value) * (device in (None, which))
    return sums


def port(host, device="soft0"):
    """State of a device's port."""
    rows = {line.split()[0]: line.split() for line in softverbs(LAB, host, "devices").splitlines()}
    return rows[device][4]


def test_listing():
    """devices on each host, files in /sys/class/infiniband, rc and ud in ucx_info"""
    rows = on("h1", SOFTVERBS, "devices").splitlines()
    assert [row.split()[:7] for row in rows] == [
        ["soft%d" % r, "port", "1", "rail%d" % r, "ACTIVE", "gid", "1"] for r in (0, 1)], rows
    assert on("h1", "cat", "/sys/class/infiniband/soft1/ports/1/gid_attrs/ndevs/0") == "rail1\n"
    assert on("h0", "cat", "/sys/class/infiniband/soft0/ports/1/gids/1").endswith("0a4d:0001\n")
    said = on("h0", tool("ucx_info"), "-d")
    lines = [" ".join(line.split()[2:]) for line in said.splitlines()]
    for transport in ("rc_verbs", "ud_verbs"):
        for device in ("soft0:1", "soft1:1"):
            assert any(pair == (transport, device) for pair in zip(lines, lines[1:])), said


def test_rails():
    """r2_info finds the ports and their GIDs; jobs go by them, or by TCP"""
    info = json.loads(r2lab("exec", "--name", LAB, "h1", "sh", "-c",
                            BUILD + "/tools/r2_info --json || true",      # nothing is installed
                            env={"OMPI_MCA_coll_r2_rails": "soft*:1"})[0])
    assert [(p["port"], p["rail"], p["link"], p["state"], p["gid_index"], p["gid_kind"], p["gid"])
            for p in info["rdma_ports"]] == [
        ("soft%d:1" % r, r, "Ethernet", "ACTIVE", 1, "RoCE v2", "::ffff:10.77.%d.2" % r)
        for r in (0, 1)], info["rdma_ports"]
    assert [(r["name"], r["rdma"], r["transport"]) for r in info["rails"]] == [
        ("rail%d" % r, "soft%d:1" % r, "rc_verbs") for r in (0, 1)], info["rails"]
    job = ("run", "--name", LAB, "--timeout", 60, "--p2p", "mgmt", "-n", 2)
    program = BUILD + "/tests/functional/hello_mpi"
    for rails, tls, kind in (("rail0,rail1", "auto", ", rc_verbs"), ("soft0:1,soft1:1", "rc",
                             ", rc_verbs"), ("soft0:1,rail1", "ud", ", ud_verbs"),
                             ("soft*:1", "tcp", "")):
        before = nic("h0")["sent"]
        said = r2lab(*job, program, env={
            "OMPI_MCA_coll": "r2", "OMPI_MCA_coll_r2_tls": tls, "OMPI_MCA_coll_r2_verbose": "2",
            "OMPI_MCA_coll_r2_rails": rails})
        assert "h0: 2 rails: rail0 (10000 Mbit/s%s) rail1" % kind in "".join(said), said
        assert (nic("h0")["sent"] > before) == (tls != "tcp"), (tls, before)


def r2_job(ranks, *words, by="slot", **env):
    """A job over the RDMA rails; what it says."""
    return "".join(r2lab("run", "--name", LAB, "--timeout", 80, "--p2p", "mgmt", "-n", ranks,
                         "--map-by", by, "--host", "%s-h0:2,%s-h1:2" % (LAB, LAB), *words,
                         env={"OMPI_MCA_coll": "r2", "OMPI_MCA_coll_r2_tls": "rc", **env}))


def test_collectives():
    """every collective, two ranks on each host"""
    before = nic("h0")["sent"], nic("h1", "soft1")["sent"]
    said = r2_job(4, BUILD + "/tests/functional/all_collectives")
    assert nic("h0")["sent"] > before[0] + 1000 and nic("h1", "soft1")["sent"] > before[1] + 1000
    return ", " + said.strip().splitlines()[-1]


def test_collectives_by_datagrams():
    """the same over ud"""
    before = nic("h0")["sent"], nic("h1", "soft1")["sent"]
    said = r2_job(4, BUILD + "/tests/functional/all_collectives", OMPI_MCA_coll_r2_tls="ud")
    assert nic("h0")["sent"] > before[0] + 1000 and nic("h1", "soft1")["sent"] > before[1] + 1000
    return ", " + said.strip().splitlines()[-1]


def watched(tls, *words):
    """A job over the RDMA rails; what it says, and the counters of h0's devices meanwhile, up
    to a hundred times a second. One command on the host looks again and again: to start one takes
    longer."""
    job = subprocess.Popen(
        [R2LAB, "run", "--name", LAB, "--timeout", "80", "--p2p", "mgmt", *map(str, words)],
        stdout=subprocess.PIPE, text=True, stderr=subprocess.STDOUT,
        env={**os.environ, "OMPI_MCA_coll": "r2", "OMPI_MCA_coll_r2_tls": tls})
    loop = 'while :; do "$0" counters; echo; sleep 0.01; done'
    out = os.memfd_create("out")
    watcher = subprocess.Popen([R2LAB, "exec", "--name", LAB, "h0", "sh", "-c", loop, SOFTVERBS],
                               stdin=subprocess.DEVNULL, stdout=out)
    try:
        said = job.communicate()[0]
    finally:
        watcher.kill()
        watcher.wait()
    blocks = os.pread(out, 1 << 24, 0).decode().split("\n\n")[:-1]    # the last may be cut off
    os.close(out)
    assert job.returncode == 0, said[-2000:]
    samples = []
    for block in blocks:
        samples.append({"soft0": {}, "soft1": {}})
        for which, name, value in map(str.split, block.splitlines()):
            samples[-1][which][name] = int(value)
    return said, samples


def samples_of(tls, ranks, seconds):
    """Counters of h0's devices, of the one that has more, while a job of so many ranks on each of
    two hosts exchanges with everybody; not before it has queue pairs."""
    said, samples = watched(tls, "--ppn", ranks, "-n", 2 * ranks, BENCH, "alltoall", "-m",
                            "65536:65536", "--seconds", seconds, "-x", "3", "-c")
    assert ", 0 wrong results" in said, said[-2000:]
    larger = ({name: max(each[name] for each in sample.values()) for name in sample["soft0"]}
              for sample in samples)
    return [sample for sample in larger if sample["queue_pairs"]]


def objects(tls, ranks):
    """Queue pairs and shared receive queues that a device of h0 has most of the time, the most
    queue pairs, which two processes that call one another at once have two of until one has given
    way, and the most registered bytes. Who can look only now and then has more time for it."""
    for seconds in (0.6, 4, 20):
        samples = samples_of(tls, ranks, seconds)
        if len(samples) >= 5:
            break
    assert len(samples) >= 5, samples
    return {"queue_pairs": statistics.mode(each["queue_pairs"] for each in samples),
            "shared_receives": statistics.mode(each["shared_receives"] for each in samples),
            "peak": max(each["queue_pairs"] for each in samples),
            "region_bytes": max(each["region_bytes"] for each in samples)}


def test_objects():
    """queue pairs, shared receive queues and locked memory are those of the table (docs/ucx.md)"""
    notes = []
    for ranks in (1, 2, 3):
        rc, ud = objects("rc", ranks), objects("ud", ranks)
        assert [rc["queue_pairs"], ud["queue_pairs"]] == [
            of_device(tls, 2, ranks) for tls in ("rc", "ud")], (ranks, rc, ud)
        assert rc["peak"] <= 2 * rc["queue_pairs"] and ud["peak"] <= 2 * ud["queue_pairs"], (rc, ud)
        assert rc["shared_receives"] == ranks and ud["shared_receives"] == 0, (ranks, rc, ud)
        assert rc["region_bytes"] <= ranks * (26 << 20), (ranks, rc)
        assert ud["region_bytes"] <= ranks * (26 << 20), (ranks, ud)
        notes.append("%d: rc %d, %.1f MiB, ud %d, %.1f MiB" % (
            ranks, rc["queue_pairs"], rc["region_bytes"] / 2**20 / ranks, ud["queue_pairs"],
            ud["region_bytes"] / 2**20 / ranks))
    nic_now = nic("h0")
    assert nic_now["queue_pairs"] == nic_now["regions"] == 0, nic_now
    return ", ranks of a host, queue pairs, most bytes of a rank: " + "; ".join(notes)


def test_registrations():
    """in steady state a call registers nothing, whether its messages are put or not"""
    return most_without("0") + "; put" + most_without("1")


def most_without(put):
    """A machine that is busy grows pools later, and has more time for it."""
    for seconds in (1.2, 2.5, 10):
        registered, longest, whole = steady(put, seconds)
        if 2 * longest > whole:
            break
    assert registered > 0 and 2 * longest > whole > 10000, (registered, longest, whole)
    return " %d registered; 0 while %d of %d packets were sent" % (registered, longest, whole)


def steady(put, seconds):
    """What a host registers while a job repeats a call: at first memory and pools of UCX, which
    grow with what waits, and then nothing. Returns how many, the most packets that were sent
    without any, and all packets."""
    before = nic("h0", None)
    _, samples = watched("rc", "-n", 2, "--map-by", "node", "--host",
                         "%s-h0:2,%s-h1:2" % (LAB, LAB), "--mca", "coll_r2_put", put, BENCH,
                         "allreduce", "-m", "4194304:4194304", "--seconds", seconds, "-x", "3")
    packets = {}    # by registrations so far
    for sample in samples:
        now = {name: sum(each[name] for each in sample.values()) for name in sample["soft0"]}
        packets.setdefault(now["registered"], []).append(now["sent"])
    longest = max(sent[-1] - sent[0] for sent in packets.values())
    whole = nic("h0", None)["sent"] - before["sent"]
    return max(packets) - before["registered"], longest, whole


def copies(**env):
    """Bytes that the sender and the receiver of a long message copied, for each of its payload,
    once all is set up. Copies of the kernel and of the NIC are not seen."""
    first, calls, length = 5, 20, 4 << 20
    said = r2_job(2, "sh", "-c", 'export LD_PRELOAD="$LD_PRELOAD:$1"; shift; exec "$@"', "sh",
                  BUILD + "/tests/softverbs/.libs/copies.so",
                  BUILD + "/tests/functional/late_root", first + calls, length, first, by="node",
                  **env)
    copied = dict(re.findall(r"rank (\d) copied (\d+) bytes", said))
    assert "%d calls, 0 wrong bytes" % (first + calls) in said and len(copied) == 2, said
    return [int(copied[rank]) / (calls * length) for rank in "01"]


def test_copies():
    """copies of a long message: none by its sender, one by its receiver, whichever of its threads
    reads it, none where it is put"""
    sent, put, tcp = copies(), copies(OMPI_MCA_coll_r2_put="1"), copies(OMPI_MCA_coll_r2_tls="tcp")
    notes = ", sender and receiver: %.2f, %.2f; put %.2f, %.2f; tcp, beside the kernel's, %.2f, " \
        "%.2f" % (*sent, *put, *tcp)
    assert sent[0] < 0.02 and put[0] < 0.02, notes
    assert 0.9 < sent[1] < 1.1 and put[1] < 0.2, notes
    return notes


def test_perftest():
    """ucx_perftest over rc and ud: messages, puts, gets, atomics"""
    notes = []
    for tls, test, count, size in ((RC, "tag_lat", 1000, 8), (RC, "tag_bw", 200, 1 << 20),
                                   (RC, "ucp_put_bw", 100, 1 << 20), (RC, "ucp_get", 100, 65536),
                                   (RC, "ucp_fadd", 100, 8), (RC, "ucp_cswap", 100, 8),
                                   (UD, "tag_lat", 200, 8), (UD, "tag_bw", 20, 1 << 20)):
        latency, speed = Perftest(test, count, size, tls).result()
        notes.append("%s %s %s" % (tls[:2], test, "%.0f us" % latency if size == 8
                                   else "%.0f MB/s" % speed))
    return ", " + ", ".join(notes)


def test_stock_open_mpi():
    """stock pml/ucx: all collectives, over the rails and not over mgmt0"""
    env = {"UCX_TLS": "rc_v,sm,self", "UCX_NET_DEVICES": "soft0:1,soft1:1"}
    program = BUILD + "/tests/functional/all_collectives"
    before = nic("h0")["sent"]
    said = r2lab("run", "--name", LAB, "--timeout", 60, "--peer", "ucx", "-n", 2, program,
                 env=env)[0]
    assert "not ok" not in said and "ok 60" in said, said
    assert nic("h0")["sent"] > before + 100


def broken(*words, limit_s):
    """A fault under traffic: both sides fail, no earlier than retries are used up. Seconds."""
    job = Perftest("tag_bw", ENDLESS, 65536, RC, **FAST)
    try:
        assert until(job.is_busy), job.peek(job.client)
        start = time.monotonic()
        fault(*words)
        assert until(job.has_failed, limit_s), job.peek(job.client)
        return time.monotonic() - start
    finally:
        job.kill()


def test_packets_as_one():
    """packets of a message leave as one, and one by one where a netdev's are shorter"""
    def moved():
        return (counters(LAB)["h0"]["rail0"]["tx_packets"] + counters(LAB)["h1"]["rail0"][
            "tx_packets"], nic("h0")["sent"] + nic("h1")["sent"])

    def share():
        before = moved()
        Perftest("ucp_put_bw", 100, 1 << 20).result()
        netdev, ours = (b - a for a, b in zip(before, moved()))
        assert ours > 100 * 128, ours
        return netdev / ours

    usual = share()
    on("h1", "ip", "link", "set", "rail0", "mtu", "1500")
    shorter = share()
    on("h1", "ip", "link", "set", "rail0", "mtu", "9000")
    assert usual < 0.5 and shorter > 0.9, (usual, shorter)
    return ", %.2f, %.2f of the netdev for one of the NIC" % (usual, shorter)


def test_link_down():
    """link down: the port is down, retries are exceeded; after the heal it works again"""
    passed_s = broken("down", "h1", "rail0", limit_s=8)
    assert port("h1") == "DOWN" and port("h0") == "ACTIVE"
    assert on("h1", "cat", "/sys/class/infiniband/soft0/ports/1/state") == "1: DOWN\n"
    fault("heal", "h1", "rail0")
    assert until(lambda: port("h1") == "ACTIVE")
    Perftest("tag_lat", 200).result()
    return ", %.2f s" % passed_s


def test_silent_drop():
    """silent drop: both ports stay up, retries are exceeded"""
    before = nic("h0")["timeouts"] + nic("h1")["timeouts"]
    passed_s = broken("drop", "h1", "rail0", limit_s=8)
    assert port("h1") == "ACTIVE" and port("h0") == "ACTIVE"
    assert nic("h0")["timeouts"] + nic("h1")["timeouts"] >= before + 4
    fault("heal", "h1", "rail0")
    return ", %.2f s" % passed_s


def test_flaps():
    """drops shorter than the retries: nothing is noticed"""
    before = nic("h0")["resent"] + nic("h1")["resent"]
    job = Perftest("tag_bw", ENDLESS, 65536, RC, **STEADY)
    try:
        assert until(job.is_busy)
        for _ in range(3):
            fault("drop", "h1", "rail0")
            time.sleep(0.06)
            fault("heal", "h1", "rail0")
            time.sleep(0.2)
        lines = job.peek(job.client).count(b"[thread 0]")
        assert until(lambda: job.peek(job.client).count(b"[thread 0]") >= lines + 2)
        assert not job.has_failed()
    finally:
        job.kill()
    assert nic("h0")["resent"] + nic("h1")["resent"] > before


def test_stopped_process():
    """the NIC of a process that is stopped takes puts, as hardware does"""
    job = Perftest("ucp_put_bw", ENDLESS, 65536, RC, **FAST)
    try:
        assert until(job.is_busy)
        job.server.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        before = nic("h0")["received"]
        time.sleep(1.0)     # far longer than the retries
        packets = nic("h0")["received"] - before
        job.server.send_signal(signal.SIGCONT)
        assert packets > 1000, packets
        assert job.client.poll() is None and not job.has_failed()
        return ", %.0f MB meanwhile" % (packets * 8192 / 1e6)
    finally:
        job.kill()


def test_killed_process():
    """a process that is killed: its peer's retries are exceeded"""
    job = Perftest("ucp_put_bw", ENDLESS, 65536, RC, **FAST)
    try:
        assert until(job.is_busy)
        job.server.kill()
        assert until(job.has_failed, 8), job.peek(job.client)
    finally:
        job.kill()


def test_own_faults():
    """faults of the NIC's own: losses and delays are made good, a dead device is told"""
    for words in (("drop", "0.01", "0", "7"), ("delay", "0.005", "2")):
        on("h0", SOFTVERBS, "fault", "soft0", *words)
    Perftest("tag_bw", 500, 65536, **STEADY).result()
    Perftest("ucp_put_bw", 500, 65536, **STEADY).result()
    on("h0", SOFTVERBS, "fault", "soft0", "heal")
    job = Perftest("ucp_put_bw", ENDLESS, 65536, **STEADY)
    on("h0", SOFTVERBS, "fault", "soft0", "late-write", "0.1", "5")
    assert until(lambda: nic("h0")["late_landed"] > 0)
    job.kill()      # its server would wait for ever: an old value overwrites the last
    on("h0", SOFTVERBS, "fault", "soft0", "heal")
    struck = nic("h0")
    assert all(struck[name] > 0 for name in ("dropped", "delayed", "late_landed")), struck
    on("h0", SOFTVERBS, "fault", "soft1", "fatal")
    assert port("h0", "soft1") == "DEAD"
    on("h0", SOFTVERBS, "fault", "soft1", "heal")
    assert port("h0", "soft1") == "ACTIVE"
    on("h0", SOFTVERBS, "fault", "soft1", "melt", status=2)


def test_gid_moves():
    """an address that changes and an index that moves are seen by who opens the device anew"""
    on("h0", SOFTVERBS, "fault", "soft0", "gid", "0", "2")
    assert on("h0", "cat", "/sys/class/infiniband/soft0/ports/1/gids/2").endswith("0a4d:0001\n")
    Perftest("tag_lat", 200).result()
    on("h0", "ip", "addr", "add", "10.77.0.77/24", "dev", "rail0")
    on("h0", "ip", "addr", "del", "10.77.0.1/24", "dev", "rail0")
    on("h0", "ip", "addr", "replace", "10.77.0.77/24", "dev", "rail0")
    assert until(lambda: "10.77.0.77" in on("h0", SOFTVERBS, "devices"))
    Perftest("tag_lat", 200).result()
    on("h0", SOFTVERBS, "fault", "soft0", "gid", "0", "1")


def test_down():
    """the NICs end with the lab"""
    assert len(processes(LAB)) == 2 and counters(LAB)
    r2lab("down", "--name", LAB)
    assert not remains(LAB)


def recover():
    """Heals what a failed test left broken."""
    if namespaces(LAB):
        fault("heal", "all", "all")
        for device in ("soft0", "soft1"):
            on("h0", SOFTVERBS, "fault", device, "heal")
            on("h0", SOFTVERBS, "fault", device, "gid", "0", "1")


def main():
    """All tests, or exit status 77 where there can be no lab."""
    if os.geteuid() != 0:
        print("the tests of softverbs need root")
        return 77
    r2lab("up", "--name", LAB, "--hosts", 2, "--rails", 2, "--rate", "none", "--rdma")
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    return run_all(tests, recover, lambda: r2lab("down", "--name", LAB))


if __name__ == "__main__":
    sys.exit(main())
