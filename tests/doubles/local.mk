# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Test doubles: the simulator of NICs and switches in virtual time with what opens, probes and tells
# over it, GPUs, a transport that injects faults, a start-up exchange for many ranks of one process.
# Part of the tests' library only.
libr2coretest_la_SOURCES += \
    tests/doubles/fault.c \
    tests/doubles/fault.h \
    tests/doubles/gpu_sim.c \
    tests/doubles/gpu_sim.h \
    tests/doubles/hello_sim.c \
    tests/doubles/hello_sim.h \
    tests/doubles/hello_sim_net.c \
    tests/doubles/hello_sim_state.h \
    tests/doubles/loop.c \
    tests/doubles/loop.h \
    tests/doubles/nic_watch_sim.c \
    tests/doubles/nic_watch_sim.h \
    tests/doubles/post_sim.c \
    tests/doubles/post_sim.h \
    tests/doubles/probe_sim.c \
    tests/doubles/probe_sim.h \
    tests/doubles/sim.c \
    tests/doubles/sim.h \
    tests/doubles/sim_conn.c \
    tests/doubles/sim_events.c \
    tests/doubles/sim_net.c \
    tests/doubles/sim_put.c \
    tests/doubles/sim_send.c \
    tests/doubles/sim_state.h

# The C form of kernels, for FAKECUDA_KERNELS and for tests that add them by themselves.
check_LTLIBRARIES += tests/doubles/kernels_c.la
tests_doubles_kernels_c_la_SOURCES = tests/doubles/kernels_c.c
tests_doubles_kernels_c_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
tests_doubles_kernels_c_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nonexistent
