# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Tests on the virtual-time simulator: same form as in tests/unit/local.mk.

# The simulator and its drivers: part of the tests' library only.
libr2coretest_la_SOURCES += \
    r2core/base/prng.h \
    r2core/oob/loop.c \
    r2core/oob/loop.h \
    r2core/rail/hello_sim.c \
    r2core/rail/hello_sim.h \
    r2core/transport/fault.c \
    r2core/transport/fault.h \
    r2core/transport/sim.c \
    r2core/transport/sim.h \
    r2core/transport/sim_conn.c \
    r2core/transport/sim_net.c \
    r2core/transport/sim_send.c \
    r2core/transport/sim_state.h

# Laws of the simulator
check_PROGRAMS += tests/sim/test_sim_transport
tests_sim_test_sim_transport_SOURCES = tests/sim/test_sim_transport.c
tests_sim_test_sim_transport_LDADD = $(R2_TEST_LIBS)
