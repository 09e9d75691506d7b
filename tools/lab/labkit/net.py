# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The namespaces, links and shaping of a lab: everything that `up` builds.

Every step hands a batch to ip or tc in one process, and independent steps run at
once: a lab of 4 hosts x 4 rails is up in a fraction of a second.
"""

import os

from .lab import NETNS, SANDBOX_RUN, may_use_run, rate_bits_per_s
from .spawn import LabError, attempt, must

RAIL_MTU = 9000
MIN_BURST_BYTES = 70000     # a GSO packet is up to 64 KiB: a smaller bucket would never pass it
BURST_S = 0.004             # of rate: short enough to be shaped, long enough for the timer
QUEUE_MS = 20               # the tail drop of a switch with shallow buffers
TOOLS = ("ip", "tc", "nft", "nsenter", "unshare", "setpriv", "hostname", "mount", "umount")
SANDBOX = "a sandbox: unshare -rnm sh -c 'r2lab up ...; r2lab run ...'"
PACKAGES = "iproute2 nftables util-linux mount hostname"

# Equal on every machine, whatever it passes on to new namespaces:
# - one address answers on its own NIC only, as it would with one cable per rail
# - reno, because bbr costs a fifth of the rate here and other defaults differ
# - no slow start after a pause, no forwarding between rails, no IPv6 noise
# - what crosses a switch is none of this machine's firewall's business, which looks at every packet
SYSCTLS = (
    ("net/ipv6/conf/all/disable_ipv6", 1),
    ("net/ipv6/conf/default/disable_ipv6", 1),
    ("net/ipv4/conf/all/arp_ignore", 1),
    ("net/ipv4/conf/all/arp_announce", 2),
    ("net/ipv4/conf/all/rp_filter", 0),
    ("net/ipv4/conf/default/rp_filter", 0),
    ("net/ipv4/ip_forward", 0),
    ("net/ipv4/tcp_congestion_control", "reno"),
    ("net/ipv4/tcp_slow_start_after_idle", 0),
    ("net/bridge/bridge-nf-call-iptables", 0),
    ("net/bridge/bridge-nf-call-ip6tables", 0),
    ("net/bridge/bridge-nf-call-arptables", 0),
)


def in_ns(name, *argv):
    """argv, to be run in a network namespace."""
    return ["nsenter", "--net=%s/%s" % (NETNS, name), *argv]


def tbf(device, rate):
    """The tc command that shapes a device."""
    burst = max(MIN_BURST_BYTES, int(rate_bits_per_s(rate) / 8 * BURST_S))
    return "qdisc replace dev %s root tbf rate %s burst %d latency %dms" \
        % (device, rate, burst, QUEUE_MS)


def check_ground():
    """Refuses what cannot work before anything is built, and gives a sandbox a /run of
    its own (gone with it)."""
    paths = os.environ["PATH"].split(":")
    missing = [t for t in TOOLS if not any(os.access("%s/%s" % (p, t), os.X_OK) for p in paths)]
    if missing:
        raise LabError("missing: %s; on Debian: apt install %s" % (" ".join(missing), PACKAGES))
    if os.geteuid() != 0:
        raise LabError("building a lab needs root, or " + SANDBOX)
    if may_use_run():
        return
    if attempt([["mount", "-t", "tmpfs", SANDBOX_RUN, "/run"]])[0][0] != 0:
        raise LabError("this sandbox may not mount: it takes " + SANDBOX)


def build(lab, labkit):
    """Builds the whole lab step by step: a generator, so that the caller can look in
    between whether to go on. labkit is the folder of this package. The caller removes
    what is there when a step fails."""
    must([["mount", "-t", "tmpfs", "-o", "mode=0755", "r2lab-" + lab.name, lab.dir]])
    yield write_files(lab, labkit)
    names = lab.namespaces()
    yield must([(["ip", "-batch", "-"], "".join("netns add %s\n" % n for n in names))])
    yield must([(in_ns(n, "sh", "-s"), settings()) for n in names])
    yield must([(["ip", "-n", lab.switch, "-batch", "-"], links(lab))])
    yield must([(["ip", "-n", n, "-batch", "-"], text) for n, text in addresses(lab)]
               + [(["tc", "-n", n, "-batch", "-"], text) for n, text in shaping(lab)])


def write_files(lab, labkit):
    """The lab's own files, but for its shape."""
    for folder in ("faults", "runs", "tmp"):
        os.mkdir("%s/%s" % (lab.dir, folder))
    os.symlink(labkit + "/enter", lab.dir + "/agent")
    with open(lab.dir + "/hosts", "w", encoding="ascii") as out:
        out.write("127.0.0.1 localhost\n")
        for h in range(lab.hosts):
            out.write("%s %s h%d\n" % (lab.address(h, "mgmt0"), lab.host(h), h))


def settings():
    """Shell text that makes the settings of one namespace, from inside."""
    return "set -e\n" + "".join(
        "[ ! -e /proc/sys/%s ] || echo %s >/proc/sys/%s\n" % (path, value, path)
        for path, value in SYSCTLS)


def links(lab):
    """ip batch, run in the switch namespace: bridges and cables."""
    text = "".join("link add br%s type bridge mcast_snooping 0\nlink set br%s up\n" % (s, s)
                   for s in list(range(lab.rails)) + ["m"])
    for h in range(lab.hosts):
        for device in lab.devices():
            port, is_mgmt = lab.port(h, device), device == "mgmt0"
            mtu = "" if is_mgmt else "mtu %d " % RAIL_MTU
            text += "link add %s %snetns %s type veth peer name %s %snetns %s\n" \
                % (device, mtu, lab.place(h, device), port, mtu, lab.switch)
            text += "link set %s master br%s up\n" % (port, "m" if is_mgmt else device[4:])
    return text


def addresses(lab):
    """(namespace, ip batch) that gives each host its addresses and brings it up."""
    for h in range(lab.hosts):
        for name in dict.fromkeys(lab.place(h, d) for d in lab.devices()):
            yield name, "link set lo up\n" + "".join(
                "addr add %s/24 dev %s\nlink set %s up\n" % (lab.address(h, d), d, d)
                for d in lab.devices() if lab.place(h, d) == name)


def shaping(lab):
    """(namespace, tc batch) that shapes both ends of every rail."""
    if lab.rate == "none":
        return
    rails = [d for d in lab.devices() if d != "mgmt0"]
    for h in range(lab.hosts):
        yield lab.place(h, "rail0"), "".join(tbf(d, lab.rate) + "\n" for d in rails)
    yield lab.switch, "".join(tbf(lab.port(h, d), lab.rate) + "\n"
                              for h in range(lab.hosts) for d in rails)
