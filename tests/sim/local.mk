# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Tests on the virtual-time simulator: same form as in tests/unit/local.mk.

# Laws of the simulator
check_PROGRAMS += tests/sim/test_sim_transport tests/sim/test_sim_transport_faults \
    tests/sim/test_sim_put
transport_world_sources = tests/sim/transport_world.c tests/sim/transport_world.h
tests_sim_test_sim_transport_SOURCES = tests/sim/test_sim_transport.c $(transport_world_sources)
tests_sim_test_sim_transport_LDADD = $(R2_TEST_LIBS)
tests_sim_test_sim_transport_faults_SOURCES = tests/sim/test_sim_transport_faults.c \
    $(transport_world_sources)
tests_sim_test_sim_transport_faults_LDADD = $(R2_TEST_LIBS)
tests_sim_test_sim_put_SOURCES = tests/sim/test_sim_put.c $(transport_world_sources)
tests_sim_test_sim_put_LDADD = $(R2_TEST_LIBS)

# Out-of-band messages, probes and beacons in the simulator
check_PROGRAMS += tests/sim/test_sim_beside
tests_sim_test_sim_beside_SOURCES = tests/sim/test_sim_beside.c
tests_sim_test_sim_beside_LDADD = $(R2_TEST_LIBS)

# Hello calls in the simulator
check_PROGRAMS += tests/sim/test_sim_hello
tests_sim_test_sim_hello_SOURCES = tests/sim/test_sim_hello.c
tests_sim_test_sim_hello_LDADD = $(R2_TEST_LIBS)

# Simulated jobs: scenarios as text, ranks in virtual time
check_LTLIBRARIES += libr2simtest.la
libr2simtest_la_SOURCES = \
    tests/sim/generate.c \
    tests/sim/generate.h \
    tests/sim/generate_parts.h \
    tests/sim/generate_unhelpful.c \
    tests/sim/harness.c \
    tests/sim/harness.h \
    tests/sim/harness_dump.c \
    tests/sim/harness_end.c \
    tests/sim/harness_faults.c \
    tests/sim/harness_health.c \
    tests/sim/harness_rank.c \
    tests/sim/harness_requests.c \
    tests/sim/interpret.c \
    tests/sim/payload.c \
    tests/sim/payload.h \
    tests/sim/payload_kinds.c \
    tests/sim/payload_parts.h \
    tests/sim/scenario.c \
    tests/sim/scenario.h \
    tests/sim/scenario_faults.c \
    tests/sim/scenario_parts.h \
    tests/sim/scenario_words.c \
    tests/sim/sim_memory.c \
    tests/sim/sim_memory.h
libr2simtest_la_LIBADD = libr2coretest.la

# Programs in which memory can run out
R2_WRAP_MEMORY = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc

check_PROGRAMS += tests/sim/campaign tests/sim/run_scenario
tests_sim_campaign_SOURCES = tests/sim/campaign.c tests/sim/memory_wrap.c
tests_sim_campaign_LDFLAGS = $(AM_LDFLAGS) $(R2_WRAP_MEMORY)
tests_sim_campaign_LDADD = libr2simtest.la $(R2_TEST_LIBS)
tests_sim_run_scenario_SOURCES = tests/sim/run_scenario.c tests/sim/memory_wrap.c
tests_sim_run_scenario_LDFLAGS = $(AM_LDFLAGS) $(R2_WRAP_MEMORY)
tests_sim_run_scenario_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# What a change that only moves code must leave as it was: make record-behaviour (tools/house)
check_PROGRAMS += tests/sim/record
tests_sim_record_SOURCES = tests/sim/memory_wrap.c tests/sim/record.c
tests_sim_record_LDFLAGS = $(AM_LDFLAGS) $(R2_WRAP_MEMORY)
tests_sim_record_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Persistent collectives: other orders on each rank, faults in between
check_PROGRAMS += tests/sim/test_sim_persistent
tests_sim_test_sim_persistent_SOURCES = tests/sim/test_sim_persistent.c
tests_sim_test_sim_persistent_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Lanes of two transports
check_PROGRAMS += tests/sim/test_sim_rdma
tests_sim_test_sim_rdma_SOURCES = tests/sim/test_sim_rdma.c
tests_sim_test_sim_rdma_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Messages that are put
check_PROGRAMS += tests/sim/test_sim_place
tests_sim_test_sim_place_SOURCES = tests/sim/test_sim_place.c
tests_sim_test_sim_place_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Buffers of GPUs
check_PROGRAMS += tests/sim/test_sim_gpu
tests_sim_test_sim_gpu_SOURCES = tests/sim/test_sim_gpu.c
tests_sim_test_sim_gpu_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Collectives under faults
check_PROGRAMS += tests/sim/test_sim_coll
tests_sim_test_sim_coll_SOURCES = tests/sim/test_sim_coll.c
tests_sim_test_sim_coll_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Processes that compute in the middle of collectives
check_PROGRAMS += tests/sim/test_sim_credit
tests_sim_test_sim_credit_SOURCES = tests/sim/test_sim_credit.c
tests_sim_test_sim_credit_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Relaying through third hosts
check_PROGRAMS += tests/sim/test_sim_presence
tests_sim_test_sim_presence_SOURCES = tests/sim/test_sim_presence.c
tests_sim_test_sim_presence_LDADD = libr2simtest.la $(R2_TEST_LIBS)
check_PROGRAMS += tests/sim/test_sim_slow
tests_sim_test_sim_slow_SOURCES = tests/sim/test_sim_slow.c
tests_sim_test_sim_slow_LDADD = libr2simtest.la $(R2_TEST_LIBS)

check_PROGRAMS += tests/sim/test_sim_relay
tests_sim_test_sim_relay_SOURCES = tests/sim/test_sim_relay.c
tests_sim_test_sim_relay_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Random jobs with random faults: make check-campaign [SEED=1] [RUNS=N] on the simulator (5000),
# with LAB=1 real processes on the lab (300, about 20 minutes); UNHELPFUL=all or a list: peers that
# are healthy but unhelpful as well
SEED = 1
RUNS =
LAB =
UNHELPFUL =
check-campaign: check-programs
	$(if $(LAB),R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/lab/campaign.py --runs $(or \
	    $(RUNS),300), \
	    ./tests/sim/campaign --runs $(or $(RUNS),5000) $(if $(UNHELPFUL),--unhelpful $(UNHELPFUL))) \
	    --seed $(SEED)
.PHONY: check-campaign

# Planted defects, each of which the simulator's tests must catch: make check-mutants [MUTANTS="NAME
# ..."]
EXTRA_DIST += tests/mutants/mutants.py tests/mutants/mutants_crowded.py \
    tests/mutants/mutants_scatter.py \
    tests/mutants/mutants_link.py tests/mutants/mutants_oob.py \
    tests/mutants/mutants_gpu.py tests/mutants/mutants_local.py tests/mutants/mutants_put.py \
    tests/mutants/mutants_send.py \
    tests/mutants/run.py \
    tests/mutants/watchers.py
check-mutants: check-programs
	$(top_srcdir)/tests/mutants/run.py $(abs_top_builddir) $(MUTANTS)

# Point-to-point under faults
check_PROGRAMS += tests/sim/test_sim_p2p tests/sim/test_sim_p2p_leave
tests_sim_test_sim_p2p_leave_SOURCES = \
    tests/sim/p2p_world.c \
    tests/sim/p2p_world.h \
    tests/sim/test_sim_p2p_leave.c
tests_sim_test_sim_p2p_leave_LDADD = $(R2_TEST_LIBS)
tests_sim_test_sim_p2p_SOURCES = \
    tests/sim/p2p_world.c \
    tests/sim/p2p_world.h \
    tests/sim/test_sim_p2p.c
tests_sim_test_sim_p2p_LDADD = $(R2_TEST_LIBS)

# Point-to-point where memory is short: allocations of some sizes fail
check_PROGRAMS += tests/sim/test_sim_p2p_memory
tests_sim_test_sim_p2p_memory_SOURCES = \
    tests/sim/p2p_world.c \
    tests/sim/p2p_world.h \
    tests/sim/test_sim_p2p_memory.c
tests_sim_test_sim_p2p_memory_LDFLAGS = $(AM_LDFLAGS) \
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc
tests_sim_test_sim_p2p_memory_LDADD = $(R2_TEST_LIBS)

# What a large job costs each of its processes
check_PROGRAMS += tests/sim/scale
tests_sim_scale_SOURCES = tests/sim/scale.c
tests_sim_scale_LDADD = $(R2_TEST_LIBS)

# What ranks know of broken rails
check_PROGRAMS += tests/sim/test_sim_health
tests_sim_test_sim_health_SOURCES = tests/sim/test_sim_health.c
tests_sim_test_sim_health_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# The catalogue of faults: F1 to F13 by name
check_PROGRAMS += tests/sim/test_sim_catalogue
tests_sim_test_sim_catalogue_SOURCES = tests/sim/test_sim_catalogue.c
tests_sim_test_sim_catalogue_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Healthy but unhelpful peers
check_PROGRAMS += tests/sim/test_sim_unhelpful
tests_sim_test_sim_unhelpful_SOURCES = tests/sim/test_sim_unhelpful.c tests/sim/memory_wrap.c
tests_sim_test_sim_unhelpful_LDFLAGS = $(AM_LDFLAGS) $(R2_WRAP_MEMORY)
tests_sim_test_sim_unhelpful_LDADD = libr2simtest.la $(R2_TEST_LIBS)
check_PROGRAMS += tests/sim/test_sim_descriptors
tests_sim_test_sim_descriptors_SOURCES = tests/sim/test_sim_descriptors.c
tests_sim_test_sim_descriptors_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Broadcasts down a chain
check_PROGRAMS += tests/sim/test_sim_chain
tests_sim_test_sim_chain_SOURCES = tests/sim/test_sim_chain.c
tests_sim_test_sim_chain_LDADD = libr2simtest.la $(R2_TEST_LIBS)

# Same bits around thresholds, whatever fails
check_PROGRAMS += tests/sim/test_sim_thresholds
tests_sim_test_sim_thresholds_SOURCES = tests/sim/test_sim_thresholds.c
tests_sim_test_sim_thresholds_LDADD = libr2simtest.la $(R2_TEST_LIBS)
