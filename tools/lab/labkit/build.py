# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The verbs `up` and `down`."""

import os
import signal
import time

from . import net, rdma, sweep
from .lab import Lab
from .spawn import LabError

STOPPING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def up(lab, force, has_rdma):
    """Builds a lab, or leaves nothing of it. A signal waits for the end of the step, then
    undoes the rest."""
    net.check_ground()
    start = time.monotonic()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    with sweep.Turn():
        if lab.exists():
            if not force:
                raise LabError("lab %s is there already: `r2lab down --name %s`, or `up --force`"
                               % (lab.name, lab.name))
            sweep.remove(lab)
        try:
            os.mkdir(lab.dir)
            for _ in net.build(lab, os.path.dirname(os.path.realpath(__file__))):
                if signal.sigpending() & STOPPING:
                    raise LabError("interrupted")
            if has_rdma:
                rdma.start(lab)
            lab.save()
        except BaseException:
            sweep.remove(lab)
            raise
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    shaped = "unshaped" if lab.rate == "none" else "at " + lab.rate
    print("lab %s: %d host%s x %d rail%s %s, up in %.2f s"
          % (lab.name, lab.hosts, "s"[:lab.hosts != 1], lab.rails, "s"[:lab.rails != 1], shaped,
             time.monotonic() - start))
    return 0


def down(name):
    """Ends everything in a lab and removes it."""
    lab = Lab(name)
    if not lab.exists():
        print("no lab %s" % name)
        return 0
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    with sweep.Turn():
        sweep.remove(lab)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    print("lab %s is down" % name)
    return 0
