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

# Simulated jobs: scenarios as text, ranks in virtual time
check_LTLIBRARIES += libr2simtest.la
libr2simtest_la_SOURCES = \
    tests/sim/generate.c \
    tests/sim/generate.h \
    tests/sim/harness.c \
    tests/sim/harness.h \
    tests/sim/harness_dump.c \
    tests/sim/harness_rank.c \
    tests/sim/interpret.c \
    tests/sim/payload.c \
    tests/sim/payload.h \
    tests/sim/scenario.c \
    tests/sim/scenario.h
libr2simtest_la_LIBADD = libr2coretest.la

check_PROGRAMS += tests/sim/campaign tests/sim/run_scenario
tests_sim_campaign_SOURCES = tests/sim/campaign.c
tests_sim_campaign_LDADD = libr2simtest.la $(R2_TEST_LIBS)
tests_sim_run_scenario_SOURCES = tests/sim/run_scenario.c
tests_sim_run_scenario_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Collectives under faults
check_PROGRAMS += tests/sim/test_sim_coll
tests_sim_test_sim_coll_SOURCES = tests/sim/test_sim_coll.c
tests_sim_test_sim_coll_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Random scenarios on the simulator: make check-campaign-sim [SEED=1] [RUNS=5000]
SEED = 1
RUNS = 5000
check-campaign-sim: tests/sim/campaign
	./tests/sim/campaign --seed $(SEED) --runs $(RUNS)
check-campaign: check-campaign-sim

# Planted defects, each of which the simulator's tests must catch: make check-mutants [MUTANTS="NAME ..."]
EXTRA_DIST += tests/mutants/mutants.py tests/mutants/run.py
check-mutants: check-programs
	$(top_srcdir)/tests/mutants/run.py $(abs_top_builddir) $(MUTANTS)
