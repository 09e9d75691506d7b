# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Names, places and the recorded shape of one lab.

A lab L with N hosts and R rails is

    /run/netns/L-h0 ..      network namespaces of the hosts: lo, mgmt0, rail0 ..
    /run/netns/L-n0 ..      with InfiniBand: rail0 .. of each host, where no process of it looks
    /run/netns/L-sw         namespace of the switches: br0 .. and brm, ports h0r0 .. and h0m
    /run/r2lab/L/           a tmpfs of its own, so that removing it removes everything:
        shape               hosts, rails, rate and ib as lines "key value"; written last by `up`
        hosts               becomes /etc/hosts on every host
        agent               link to labkit/enter
        faults/hX.Y         faults in force on device Y of host X, lines "end kind value"
        runs/ID/            one run: lock, hostfile, and shm and tmp of each host
        tmp                 where a host's own tmp appears
        slurm/              with Slurm: its configuration, key, state and logs, shm and tmp of hosts
        rdma/               with RDMA: files of each host's NIC, name of the library
"""

import os

from .spawn import LabError

NETNS = "/run/netns"
ROOT = "/run/r2lab"
SANDBOX_RUN = "r2lab-run"       # name of the file system that is a sandbox's own /run
MAX_HOSTS = 200
MAX_RAILS = 64
MGMT_SUBNET = 255
UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


class UsageError(Exception):
    """The command line is wrong. Exit status 2."""


def may_use_run():
    """False in the user namespace of an `unshare -r` that has no /run of its own yet: what
    it sees in /run belongs to others, and it could even signal their processes."""
    with open("/proc/self/uid_map", encoding="ascii") as source:
        ids = source.read().split()
    if len(ids) != 3 or ids[2] != "1":
        return True
    with open("/proc/self/mounts", encoding="utf-8") as source:
        return any(line.startswith(SANDBOX_RUN + " /run ") for line in source)


def parse_name(text):
    """A lab's name starts host names, so it has letters, digits and '-' only."""
    plain = text.replace("-", "a")
    if not (plain.isascii() and plain.isalnum() and text == text.lower()
            and text[0].isalpha() and len(text) <= 16):
        raise UsageError("bad lab name %r: a letter, then letters, digits or '-', at most 16, "
                         "all lower case" % text)
    return text


def parse_rate(text):
    """'100mbit' -> '100mbit'; checked, in tc's spelling."""
    number, unit = text[:-4], UNITS.get(text[-4:], 0)
    is_number = number.isascii() and number.replace(".", "", 1).isdigit()
    if not (is_number and 8000 <= float(number) * unit <= 10**12):
        raise UsageError("bad rate %r: a number and kbit, mbit or gbit, 8kbit to 1000gbit" % text)
    return text


def rate_bits_per_s(rate):
    """Bits per second of a checked rate."""
    return int(float(rate[:-4]) * UNITS[rate[-4:]])


class Lab:
    """One lab: where its things are. Nothing here touches the network."""

    def __init__(self, name, hosts=0, rails=0, rate="none", is_ib=False):
        self.name = name
        self.hosts = hosts      # number of hosts
        self.rails = rails      # number of rails of each host
        self.rate = rate        # of every rail, tc's spelling, or "none"
        self.is_ib = is_ib      # rails are InfiniBand ports without a network device
        self.dir = "%s/%s" % (ROOT, name)
        self.switch = name + "-sw"

    def host(self, index):
        """Name of a host: its namespace and its hostname."""
        return "%s-h%d" % (self.name, index)

    def place(self, index, device):
        """Name of the namespace that a device of a host is in."""
        outside = self.is_ib and device != "mgmt0"
        return "%s-n%d" % (self.name, index) if outside else self.host(index)

    def devices(self):
        """The network devices of every host, but for lo."""
        return ["rail%d" % r for r in range(self.rails)] + ["mgmt0"]

    def port(self, host, device):
        """The switch port that a host's device is plugged into."""
        return "h%dm" % host if device == "mgmt0" else "h%dr%s" % (host, device[4:])

    def address(self, host, device):
        """IPv4 address of a device: one /24 for each rail."""
        subnet = MGMT_SUBNET if device == "mgmt0" else int(device[4:])
        return "10.77.%d.%d" % (subnet, host + 1)

    def namespaces(self):
        """Names of all namespaces of the lab, from its recorded shape."""
        outside = ["%s-n%d" % (self.name, h) for h in range(self.hosts) if self.is_ib]
        return [self.host(h) for h in range(self.hosts)] + outside + [self.switch]

    def leftovers(self):
        """Names of the namespaces that are there, however the lab came to be."""
        try:
            there = os.listdir(NETNS)
        except FileNotFoundError:
            return []
        heads = self.name + "-h", self.name + "-n"
        return sorted(n for n in there if n == self.switch
                      or n.startswith(heads) and n[len(heads[0]):].isdigit())

    def exists(self):
        """True if anything of the lab is there, complete or not."""
        return may_use_run() and (os.path.isdir(self.dir) or bool(self.leftovers()))

    def save(self):
        """Records the shape: from now on the lab counts as complete."""
        with open(self.dir + "/shape.new", "w", encoding="ascii") as out:
            out.write("hosts %d\nrails %d\nrate %s\nib %d\n"
                      % (self.hosts, self.rails, self.rate, self.is_ib))
        os.rename(self.dir + "/shape.new", self.dir + "/shape")

    @classmethod
    def load(cls, name):
        """The complete lab of that name, or a LabError that says what there is."""
        lab = cls(name)
        if not may_use_run():
            raise LabError("no lab %s in this sandbox; `r2lab up` builds one" % name)
        try:
            with open(lab.dir + "/shape", encoding="ascii") as source:
                shape = dict(line.split() for line in source)
        except OSError:
            if lab.exists():
                raise LabError("lab %s is not complete: remove it with "
                               "`r2lab down --name %s`" % (name, name)) from None
            raise LabError("no lab %s: %s" % (name, others())) from None
        return cls(name, int(shape["hosts"]), int(shape["rails"]), shape["rate"],
                   shape.get("ib") == "1")

    def parse_host(self, text):
        """'h1', '1' or 'L-h1' -> 1."""
        digits = text.removeprefix(self.name + "-").removeprefix("h")
        if not (digits.isascii() and digits.isdigit() and int(digits) < self.hosts):
            raise UsageError("no host %r: lab %s has h0 .. h%d" % (text, self.name, self.hosts - 1))
        return int(digits)

    def parse_device(self, text):
        """'rail2' or '2' -> 'rail2'; 'mgmt0' too."""
        digits = text.removeprefix("rail")
        if text == "mgmt0":
            return text
        if not (digits.isascii() and digits.isdigit() and int(digits) < self.rails):
            raise UsageError("no rail %r: lab %s has rail0 .. rail%d, and mgmt0"
                             % (text, self.name, self.rails - 1))
        return "rail%d" % int(digits)


def others():
    """A phrase that names the labs there are."""
    try:
        names = sorted(n for n in os.listdir(ROOT) if os.path.exists("%s/%s/shape" % (ROOT, n)))
    except OSError:
        names = []
    return "there is " + ", ".join(names) if names else "there is none; `r2lab up` builds one"
