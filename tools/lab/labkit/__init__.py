# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The parts of r2lab.

lab     names, places and the recorded shape of one lab
spawn   running ip, tc and nft, several at once
net     the namespaces, links and shaping: what `up` builds
sweep   ending processes and removing everything: `down` and leftovers
fault   what `fault` does to a rail
launch  the environment that makes mpirun work in a lab
run     `run` and `exec`
report  `status` and `counters`
cli     the command line
enter   (shell) puts a command on a host; also mpirun's launch agent

`fault` is on the clock of whoever measures a recovery: what it imports stays small,
so no module imports more than os, sys, time and its neighbours at the top.
"""
