# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What is done to the job: one row for each event, each also without the out-of-band path."""

from dataclasses import dataclass

HOSTS, RAILS = 4, 4
RATE = "100mbit"


@dataclass(frozen=True)
class Row:
    """One event. A row without a verdict is no fault: nobody may blame a rail or give up a lane."""

    name: str
    text: str
    words: tuple = ()       # of r2lab fault, before HOST RAIL
    verdict: str = ""       # what every rank has to call it
    hold_s: float = 3.0     # how long it lasts
    process: str = ""       # what happens to a rank instead: stop or busy
    capacity: float = 0.0   # what is left of the rail
    nic: tuple = ()         # of the RDMA NIC's own instead; the link stays up (--rdma only)

    def share(self):
        """Throughput over healthy that a schedule can have which gives all ranks the same work."""
        return (RAILS - 1 + self.capacity) / RAILS if self.words or self.nic else 1.0


@dataclass(frozen=True)
class Beside:
    """What happens to the out-of-band path before the row begins."""

    name: str
    text: str
    fault: tuple = ()       # of r2lab fault, before HOST RAIL
    mpirun: tuple = ()      # further arguments


EVENTS = [
    Row("down-host", "link down at the host", ("down",), "nic"),
    Row("down-switch", "link down at the switch port", ("--at", "switch", "down"), "nic"),
    Row("drop", "silent drop both ways", ("drop",), "nic"),
    Row("drop-in", "silent drop of what comes in", ("drop-in",), "nic"),
    Row("drop-out", "silent drop of what goes out", ("drop-out",), "nic"),
    Row("port-down", "RDMA port down, its link up", verdict="nic", nic=("port-down",)),
    Row("device-fatal", "RDMA device dies, its link up", verdict="nic", nic=("fatal",)),
    Row("rate-10", "rail at 10 % of its rate", ("rate=10%",), "slow", hold_s=5.0, capacity=0.1),
    Row("stop", "a rank is stopped for 10 s", hold_s=10.0, process="stop"),
    Row("busy", "a rank computes for 10 s without MPI", hold_s=10.0, process="busy"),
]

# With notices kept to mgmt0, a silent mgmt0 loses all of them; else they may go over rails. The
# launcher's own connections lie there, too, and break within seconds if the host itself refuses
# their packets: so packets get lost behind the cable, and the ranks say nothing that the launcher
# would have to carry.
QUIET = ("--mca", "coll_r2_verbose", "0")
BESIDES = [
    Beside("", ""),
    Beside("oob-lost", ", all out-of-band notices lost", ("--at", "switch", "drop"),
           ("--mca", "coll_r2_oob_nics", "mgmt0", *QUIET)),
    Beside("mgmt0-down", ", mgmt0 down", ("down",), QUIET),
]


def table():
    """Name -> (row, beside), in order."""
    return {"/".join(filter(None, (row.name, beside.name))): (row, beside)
            for beside in BESIDES for row in EVENTS}


def victims(count):
    """The (host, rail) of each fault: all in turn, so that no rail fails again while it is still
    taken for a flapping one."""
    return [((i + i // RAILS) % HOSTS, i % RAILS) for i in range(count)]
