# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What `fault` does to a rail.

A rail has two ends: the host's device and the switch port. Faults in force are recorded
as {(end, kind): value}, so that `heal` and `status` know them and a second fault on the
same rail adds to the first. A recorded drop is one direction; `drop` is two records.

| kind     | host end                      | switch end                                  |
|----------|-------------------------------|---------------------------------------------|
| down     | device down                   | port down: the host loses the carrier       |
| drop-in  | nft ingress of the device     | nft egress of the port                      |
| drop-out | nft egress of the device      | nft ingress of the port                     |
| loss     | nft ingress and egress        | nft ingress and egress                      |
| rate     | tbf, always at both ends, whatever end is named                             |
"""

import fcntl
import os
import time

from .lab import UsageError, parse_rate, rate_bits_per_s
from .net import in_ns, tbf
from .spawn import must

KINDS = ("down", "drop", "drop-in", "drop-out", "loss", "rate", "heal")
WITH_VALUE = ("loss", "rate")
ENDS = ("host", "switch")
LOSS_UNIT = 1000000     # loss is recorded and drawn in millionths


def parse_kind(words):
    """KIND[=VALUE] HOST RAIL or KIND VALUE HOST RAIL -> kind, value text or None, rest."""
    kind, is_joined, value = words[0].partition("=")
    rest = words[1:]
    if kind not in KINDS:
        raise UsageError("no fault %r: there are %s" % (kind, " ".join(KINDS)))
    if kind in WITH_VALUE and not is_joined:
        if len(rest) < 3:
            raise UsageError("%s needs a value, a host and a rail" % kind)
        value, rest = rest[0], rest[1:]
    elif kind not in WITH_VALUE and is_joined:
        raise UsageError("%s takes no value" % kind)
    if len(rest) != 2:
        raise UsageError("a fault is KIND[=VALUE] HOST RAIL")
    return kind, value if kind in WITH_VALUE else None, rest


def parse_percent(text):
    """'1%' or '0.01%' as a fraction."""
    number = text.removesuffix("%")
    is_number = number.isascii() and number.replace(".", "", 1).isdigit()
    if not (is_number and text != number and float(number) <= 100):
        raise UsageError("bad share %r: a number from 0 to 100 and %%, as in 1%%" % text)
    return float(number) / 100


def parse_value(lab, kind, text):
    """The value as it is recorded: millionths for loss, tc's spelling for rate."""
    if kind == "loss":
        millionths = round(parse_percent(text) * LOSS_UNIT)
        if millionths == 0:
            raise UsageError("loss=%s is no loss" % text)
        return str(millionths)
    if kind == "rate" and text.endswith("%"):
        if lab.rate == "none":
            raise UsageError("rate=%s: the rails of lab %s have no rate" % (text, lab.name))
        kbits = rate_bits_per_s(lab.rate) * parse_percent(text) / 1000
        return parse_rate("%dkbit" % kbits)
    return parse_rate(text) if kind == "rate" else "-"


def parse_record(text):
    """Lines "end kind value" -> {(end, kind): value}."""
    rows = (line.split() for line in text.splitlines())
    return {(end, kind): value for end, kind, value in rows}


class Faults:
    """The recorded faults of one device of one host; locked while it is open."""

    def __init__(self, lab, host, device):
        self.lab, self.host, self.device = lab, host, device
        path = "%s/faults/h%d.%s" % (lab.dir, host, device)
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self.active = parse_record(os.pread(self.file, 4096, 0).decode())

    def close(self):
        """Writes the record and lets the next one in."""
        text = "".join("%s %s %s\n" % (*key, value) for key, value in self.active.items())
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, text.encode(), 0)
        os.close(self.file)

    def place(self, end):
        """(namespace, device) of one end."""
        if end == "host":
            return self.lab.place(self.host, self.device), self.device
        return self.lab.switch, self.lab.port(self.host, self.device)

    def add(self, kind, value, end):
        """Records a fault; returns the commands that carry it out."""
        filtered = self.is_filtered(end)
        for each in ("drop-in", "drop-out") if kind == "drop" else (kind,):
            self.active["host" if kind == "rate" else end, each] = value
        if kind == "down":
            return [link(*self.place(end), "down")]
        if kind == "rate":
            return [shape(*self.place(e), value) for e in ENDS]
        return [self.filter(end, filtered)]

    def heal(self):
        """Forgets all faults; returns the commands that undo them, and whatever was done to
        the link or the shaping of this rail by hand."""
        filtered = [end for end in ENDS if self.is_filtered(end)]
        self.active = {}
        rate = "none" if self.device == "mgmt0" else self.lab.rate
        return [self.filter(end, True) for end in filtered] \
            + [shape(*self.place(end), rate) for end in ENDS] \
            + [link(*self.place(end), "up") for end in ENDS]

    def is_filtered(self, end):
        """True if one end has filters, by the record."""
        return any((end, kind) in self.active for kind in ("drop-in", "drop-out", "loss"))

    def filter(self, end, replaces):
        """The nft command that sets the filters of one end to what is recorded for it.
        Replacing is one transaction too, but the kernel takes 10 ms longer for it."""
        namespace, device = self.place(end)
        table = "netdev r2lab_" + device
        text = "table %s\ndelete table %s\n" % (table, table) if replaces else ""
        # In is what the host receives: what comes in at its device, what goes out at the port.
        hooks = (("drop-in", "ingress"), ("drop-out", "egress")) if end == "host" \
            else (("drop-in", "egress"), ("drop-out", "ingress"))
        if self.is_filtered(end):
            text += "table %s {\n" % table
            for kind, hook in hooks:
                text += "chain %s { type filter hook %s device %s priority 0; %s }\n" \
                    % (kind.replace("-", "_"), hook, device, self.rule(end, kind))
            text += "}\n"
        return in_ns(namespace, "nft", "-f", "-"), text

    def rule(self, end, kind):
        """The nft rule for one direction, or ''."""
        loss = self.active.get((end, "loss"))
        if (end, kind) in self.active or loss == str(LOSS_UNIT):
            return "counter drop;"
        return "numgen random mod %d < %s counter drop;" % (LOSS_UNIT, loss) if loss else ""


def link(namespace, device, state):
    """The command that sets a device up or down."""
    return ["ip", "-n", namespace, "link", "set", device, state]


def shape(namespace, device, rate):
    """The command that gives a device a rate, or none."""
    if rate == "none":
        return ["sh", "-c", 'tc -n "$0" qdisc del dev "$1" root 2>/dev/null || :',
                namespace, device]
    return ["tc", "-n", namespace, *tbf(device, rate).split()]


def inject(lab, kind, value, end, targets):
    """Carries out one fault on all targets (host, device) at once; returns CLOCK_MONOTONIC
    in ns when it had taken effect on all of them. After a failure the record holds all that
    may be in force, so that `heal` undoes it."""
    rails = [Faults(lab, *target) for target in sorted(set(targets))]
    before = [dict(rail.active) for rail in rails]
    try:
        jobs = [job for rail in rails
                for job in (rail.heal() if kind == "heal" else rail.add(kind, value, end))]
        must(jobs)
        return time.monotonic_ns()
    except BaseException:
        for rail, active in zip(rails, before):
            rail.active = {**active, **rail.active}
        raise
    finally:
        for rail in rails:
            rail.close()


def describe(active):
    """The faults of one rail in words, as `status` shows them."""
    words = []
    for end, kind in sorted(active):
        value = active[end, kind]
        if kind.startswith("drop") and (end, "drop-in") in active and (end, "drop-out") in active:
            kind = "drop"
        text = {"loss": "loss=%g%%" % (float(value) * 100 / LOSS_UNIT) if kind == "loss" else "",
                "rate": "rate=" + value}.get(kind, kind)
        text += "@switch" if end == "switch" else ""
        if text not in words:
            words.append(text)
    return " ".join(words) or "-"


def peek(lab, host, device):
    """The recorded faults of one rail."""
    try:
        with open("%s/faults/h%d.%s" % (lab.dir, host, device), encoding="ascii") as source:
            fcntl.flock(source, fcntl.LOCK_SH)
            return parse_record(source.read())
    except OSError:
        return {}


def run(lab, end, words):
    """The verb: checks everything, then acts, then says when."""
    kind, text, (host_text, rail_text) = parse_kind(words)
    value = parse_value(lab, kind, text)
    hosts = range(lab.hosts) if host_text == "all" \
        else [lab.parse_host(t) for t in host_text.split(",")]
    devices = [d for d in lab.devices() if d != "mgmt0"] if rail_text == "all" \
        else [lab.parse_device(t) for t in rail_text.split(",")]
    targets = [(h, d) for h in hosts for d in devices]
    when = inject(lab, kind, value, end, targets)
    label = kind if text is None else "%s=%s" % (kind, text)
    for host, device in targets:
        print("fault %s h%d %s at %d.%09d" % (label, host, device, *divmod(when, 10**9)))
    return 0
