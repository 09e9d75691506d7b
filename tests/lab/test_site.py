#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""bench/site on a lab as on a site's own hosts: what is found, measured and broken, over TCP or,
with --rdma, over RDMA NICs that are none; and what it says where nothing can be measured."""

import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
from labtest import R2LAB, RDMA, TOP, UP_RDMA, devices, r2lab, run_all, until

LAB = "st%d" % os.getpid()
BUILD = os.environ.setdefault("R2_BUILDDIR", TOP + "/build")
SITE = TOP + "/bench/site/r2_site"
TRANSPORT = "rc_verbs" if RDMA else "tcp"
LAUNCH = "%s run --name %s --build %s -n {n}" % (R2LAB, LAB, BUILD)
STOCK = "coll=^r2 pml=ob1 btl=tcp,self btl_tcp_if_include=rail0,rail1"
FAULT = "%s fault --name %s" % (R2LAB, LAB)
BRIEF = ("--seconds", "0.1", "--bytes", "256K", "--quiet", "--minutes", "1.4")
RAILS = ["rail0", "rail1"]


def site(*words, status=0, launch=LAUNCH, stock=STOCK):
    """Runs r2_site; returns (stdout, stderr)."""
    done = subprocess.run([SITE, "--launch", launch, "--stock", stock, *BRIEF, *words],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr[-3000:])
    return done.stdout, done.stderr


def received(host):
    """Bytes that each rail of a host has received."""
    return {rail: row["rx_bytes"] for (at, rail), row in devices(LAB).items()
            if at == host and rail in RAILS}


def test_figures():
    """rails are found, and measured one by one and together under both stacks"""
    doc = json.loads(site("--json", "--rounds", "1")[0])
    assert [h["host"] for h in doc["hosts"]] == ["%s-h%d" % (LAB, h) for h in (0, 1)]
    for host in doc["hosts"]:
        assert [r["name"] for r in host["rails"]] == RAILS, host
        assert {r["rdma"] for r in host["rails"]} == (
            {"soft0:1", "soft1:1"} if RDMA else {None}), host
        assert all(bool(r["gid"]) == RDMA for r in host["rails"]), host
    assert doc["transports"] == dict.fromkeys(RAILS, TRANSPORT), doc["transports"]
    assert doc["rounds"] == 1 and not doc["failed"], doc
    rows = {(row["over"], row["what"]): row for row in doc["figures"]}
    assert len(rows) == len(doc["figures"]) == 8, sorted(map(str, rows))
    assert {over for over, _ in rows} == {None, *RAILS}
    for row in rows.values():
        for stack in ("r2", "stock"):
            values = list(row["stacks"][stack]["rounds"].values())
            assert len(values) == 1 and all(v > 0 for v in values), row
        assert row["ratio"] > 0, row
    assert not doc["fail_over"] and "--fault-cmd" in doc["left_out"][0], doc["left_out"]


def test_settings():
    """settings of the command line reach r2: what goes over one rail goes over that rail"""
    before = received("h1")
    doc = json.loads(site("--json", "--rounds", "1", "--no-stock", "--parts", "all", "--r2",
                          "coll_r2_rails=rail1")[0])
    after = received("h1")
    grown = {rail: after[rail] - before[rail] for rail in RAILS}
    assert list(doc["transports"]) == ["rail1"] and len(doc["figures"]) == 4, doc
    assert grown["rail1"] > 10 * 256 * 1024 and grown["rail0"] < 256 * 1024, grown


def test_fail_over():
    """a port that goes down and comes back: the pause, rates, what r2 said, nothing wrong"""
    out = site("--json", "--parts", "fail-over", "--fault-cmd", FAULT, "--fault-rails", "rail1")[0]
    doc = json.loads(out)
    (shot,) = doc["fail_over"]
    assert shot["rail"] == "rail1" and shot["host"] == LAB + "-h1" and shot["why"] is None, shot
    assert shot["wrong"] == 0 and shot["pause_ms"] >= 0, shot
    assert min(shot["before"], shot["during"], shot["after"]) > 0, shot
    assert "dead" in shot["said"] and "back" in shot["said"], shot
    assert devices(LAB)["h1", "rail1"]["state"] == "up"
    return "; pause %.0f ms" % shot["pause_ms"]


def test_bad_fault_command():
    """a fault command that fails is a failure, not a figure"""
    doc = json.loads(site("--json", "--parts", "fail-over", "--fault-cmd", "false",
                          "--fault-rails", "rail0", status=1)[0])
    assert doc["fail_over"][0]["pause_ms"] is None and "false" in doc["failed"][0], doc["failed"]


def test_tables():
    """text and Markdown have what JSON has"""
    text = site("--rounds", "1", "--no-stock")[0]
    assert "What r2 found" in text and "Left out" in text and text.count("rail1") >= 4, text
    assert text.count(TRANSPORT) >= 4, text
    page = site("--rounds", "1", "--parts", "all", "--no-stock", "--markdown")[0]
    assert "| all rails | point-to-point, 256 KiB, MB/s |" in page, page


def test_stock_is_r2():
    """where the other stack is r2 itself, that is said"""
    out = site("--rounds", "1", "--parts", "all", stock="btl=r2,self", status=1)[0]
    assert "the site's own settings use r2" in out, out


def test_without_r2():
    """where r2 takes no part, its own reason is said"""
    out = site("--rounds", "1", "--no-stock", "--r2", "coll_r2_rails=nosuch0", status=2)
    assert "nosuch0" in out[1], out


def test_one_host():
    """ranks that are all on one host are no measurement"""
    err = site("--rounds", "1", launch=LAUNCH + " --host %s-h0:2" % LAB, status=2)[1]
    assert "r2 is for several hosts" in err, err


def test_time_is_up():
    """the time is kept, and what was had by then is shown"""
    doc = json.loads(site("--json", "--rounds", "100", "--minutes", "0.2")[0])
    assert doc["seconds"] < 40 and doc["rounds"] < 100, doc["seconds"]
    assert any("was up" in note for note in doc["left_out"]), doc["left_out"]


def test_gpus():
    """--gpu on the stand-in for a driver: kernels, staging, a shared GPU, a sanitizer; one table"""
    stand_in = ("LD_LIBRARY_PATH=%s/tests/fakecuda/.libs coll_r2_gpu=auto "
                "FAKECUDA_KERNELS=%s/tests/doubles/.libs/kernels_c.so" % (BUILD, BUILD))
    has_kernels = os.path.exists(BUILD + "/r2core/mem/kernels.ptx")
    out, err = site("--gpu", "--r2", stand_in, "--sanitizer", "env FAKECUDA_ABORT=1",
                    status=0 if has_kernels else 1)
    rows = {line.split("  ")[0]: line for line in out.splitlines()}
    assert len(rows) == 9, out + err
    for name in ("copies inside the device, read and written", "copies onto it from pinned memory",
                 "copies off it"):
        assert " GB/s" in rows[name], out
    judged = ["allreduce of 256 KiB in GPUs"]
    judged += ["sum of float, by r2's kernel", "sum of bfloat16"] if has_kernels else []
    for name in judged:
        assert rows[name].split()[-1] in ("reached", "missed"), out
    for name in ("4 ranks, one GPU on each host", "under env"):
        assert rows[name].endswith("right"), out


def test_wrong_gpus():
    """a mistake that the sanitizer finds, a device that fails, and no device are told"""
    stand_in = "LD_LIBRARY_PATH=%s/tests/fakecuda/.libs coll_r2_gpu=auto" % BUILD
    out = site("--gpu", "--r2", stand_in, "--sanitizer", "env FAKECUDA_FAULTS=exec@9=700",
               status=1)[0]
    assert "under env" in out and "FAILED" in out.splitlines()[-1], out
    out = site("--gpu", "--r2", stand_in + " FAKECUDA_DEVICES=0", status=2)[1]
    assert "nothing could be measured on GPUs" in out, out


def is_faulty():
    """Is a port of the lab down?"""
    return any(row["state"] != "up" for row in devices(LAB).values())


def test_interrupted_fail_over():
    """who interrupts it while a port is down has no port down after it"""
    with subprocess.Popen([SITE, "--launch", LAUNCH, "--no-stock", *BRIEF, "--parts", "fail-over",
                           "--fault-cmd", FAULT, "--fault-rails", "rail1"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as child:
        assert until(is_faulty, 60), "no port went down"
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)
    assert child.returncode != 0
    assert not is_faulty()


def recover():
    """Heals what a test left broken."""
    r2lab("fault", "--name", LAB, "heal", "all", "all")


def down():
    """Takes the lab down."""
    r2lab("down", "--name", LAB)


def main():
    """Raises the lab, runs the tests."""
    r2lab("up", "--name", LAB, "--hosts", 2, "--rails", 2, "--rate", "400mbit",
          *UP_RDMA)
    tests = [test_figures, test_fail_over]
    if not RDMA:
        tests += [test_settings, test_bad_fault_command, test_tables, test_stock_is_r2,
                  test_without_r2, test_one_host, test_time_is_up, test_gpus, test_wrong_gpus,
                  test_interrupted_fail_over]
    return run_all(tests, recover, down)


sys.exit(main())
