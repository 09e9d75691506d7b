# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The verbs `status` and `counters`: what is there, as the kernel tells it."""

import json
import os

from . import fault
from .spawn import attempt

COUNTERS = ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets")


def devices(lab):
    """For each host a dictionary: device name -> what `ip` says about it."""
    def seen(name):
        results = attempt([["ip", "-n", lab.place(h, name), "-j", "-s", "addr", "show"]
                           for h in range(lab.hosts)])
        return [{d["ifname"]: d for d in json.loads(text)} if status == 0 else {}
                for status, text in results]

    there = seen("mgmt0")
    return [{**a, **b} for a, b in zip(there, seen("rail0"))] if lab.is_ib else there


def state(device):
    """up, down (at the host), no-carrier (the port is down), or missing."""
    if not device:
        return "missing"
    if "UP" not in device["flags"]:
        return "down"
    return "no-carrier" if "NO-CARRIER" in device["flags"] else "up"


def numbers(device):
    """The counters of one device, as the host sees them."""
    stats = device.get("stats64", {"rx": {}, "tx": {}})
    return {c: stats[c[:2]].get(c[3:], 0) for c in COUNTERS}


def rows(lab):
    """One dictionary for each device of each host."""
    for h, there in enumerate(devices(lab)):
        for name in lab.devices():
            device = there.get(name, {})
            active = fault.peek(lab, h, name)
            addresses = [a["local"] for a in device.get("addr_info", ()) if a["family"] == "inet"]
            rate = "none" if name == "mgmt0" else lab.rate
            yield {"host": "h%d" % h, "rail": name, "address": ",".join(addresses) or "-",
                   "state": state(device), "fault": fault.describe(active),
                   "rate": active.get(("host", "rate"), rate), **numbers(device)}


def status(lab, as_json):
    """The verb status."""
    table = list(rows(lab))
    runs = sorted(r for r in os.listdir(lab.dir + "/runs") if r.startswith(lab.name))
    if as_json:
        print(json.dumps({"name": lab.name, "hosts": lab.hosts, "rails": lab.rails,
                          "rate": lab.rate, "runs": runs, "devices": table}, indent=1))
        return 0
    print("lab %s: %d hosts x %d rails, rate %s, runs: %s"
          % (lab.name, lab.hosts, lab.rails, lab.rate, " ".join(runs) or "none"))
    columns = ("host", "rail", "address", "state", "fault", "rate", "rx_bytes", "tx_bytes")
    lines = [columns] + [tuple(str(row[c]) for c in columns) for row in table]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        cells = [t.rjust(w) if c.endswith("bytes") else t.ljust(w)
                 for t, w, c in zip(line, widths, columns)]
        print("  ".join(cells).rstrip())
    return 0


def counters(lab):
    """The verb counters: {"h0": {"rail0": {"rx_bytes": 1, ...}, ...}, ...}."""
    table = {"h%d" % h: {name: numbers(there.get(name, {})) for name in lab.devices()}
             for h, there in enumerate(devices(lab))}
    print(json.dumps(table))
    return 0
