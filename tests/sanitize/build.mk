# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Tests of everything that needs no PMIx server, and but for `closing` no UCX, compiled with
# sanitizers, apart from configure:
#   make -f tests/sanitize/build.mk KIND=asan OUT=DIR all
# KIND: asan (AddressSanitizer, UndefinedBehaviorSanitizer), tsan, fuzz (libFuzzer; clang) or plain.

SRCDIR := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/../..)
KIND ?= asan
OUT ?= build/$(KIND)
CC_fuzz := clang
CC_default := cc
SANCC ?= $(or $(CC_$(KIND)),$(CC_default))

FLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined
FLAGS_tsan := -fsanitize=thread
FLAGS_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
FLAGS_plain :=

comma := ,
DEPS := libsodium cmocka jansson libnl-route-3.0 hwloc
CPPFLAGS += -I$(OUT) -I$(SRCDIR)/r2core -I$(SRCDIR)/r2core/include -I$(SRCDIR)/tests/sim \
    -I$(SRCDIR)/tests -I$(SRCDIR)/tests/unit -I$(SRCDIR)/tests/fuzz -I$(SRCDIR) $(shell pkg-config \
    --cflags $(DEPS) pmix)
CFLAGS := -std=gnu11 -g -O1 -fno-omit-frame-pointer -w -pthread $(FLAGS_$(KIND)) $(EXTRA_CFLAGS)
LDLIBS := $(shell pkg-config --libs $(DEPS)) -lpthread -ldl -lm

# ---- r2core without its UCX and PMIx drivers, with the simulator
CORE := $(addprefix $(SRCDIR)/,$(sort $(patsubst $(SRCDIR)/%,%, \
    $(wildcard $(addprefix $(SRCDIR)/,$(addprefix r2core/,base/*.c model/*.c plan/*.c link/*.c \
    local/*.c mem/*.c exec/*.c \
        rail/*.c health/*.c telemetry/*.c oob/mesh*.c) tests/doubles/*.c)) \
    $(filter-out $(addprefix $(SRCDIR)/r2core/ctx/,cost_source.c start.c version.c),$(wildcard \
    $(SRCDIR)/r2core/ctx/*.c)))))
HARNESS := $(addprefix $(SRCDIR)/tests/sim/,interpret.c sim_memory.c) \
    $(wildcard $(addprefix $(SRCDIR)/tests/sim/,generate*.c harness*.c payload*.c scenario*.c))
STUB := $(addprefix $(SRCDIR)/tests/fuzz/,stub_net.c stub_tp.c)
CHECKER := $(addprefix $(SRCDIR)/tests/unit/,checker.c checker_moves.c checker_race.c \
    checker_run.c \
    checker_values.c schedule_cases.c)

# ---- programs: name, then the sources beside the core
PROGRAMS_sim := campaign test_sim_beside test_sim_coll test_sim_p2p test_sim_p2p_leave \
    test_sim_p2p_memory test_sim_transport test_sim_transport_faults
PROGRAMS_unit := $(notdir $(basename $(wildcard $(addprefix $(SRCDIR)/tests/unit/, \
    $(addsuffix .c,test_hello test_hello_abuse test_plan_golden test_schedule \
    test_schedule_mutants \
        test_params test_wire test_exec test_exec_data test_exec_lend \
        test_exec_lend_odd test_fuse test_sink test_land test_link \
        test_link_peer test_credit \
        test_mismatch test_control test_excuses test_link_end test_direct test_json test_telemetry \
        test_event_writer test_gap test_local test_local_edges test_inbox test_mailbox \
        test_wire_short test_link_short test_link_pass \
        test_glance \
        test_units test_mesh_netns test_health test_notices test_health_map test_verdict \
        test_map_sync test_agree test_peer_info test_lane_grade test_programs test_drive \
        test_crowded test_device_cost test_near \
        test_sources test_pmix_value test_pmix_pair)))))
PROGRAMS_thread := $(notdir $(basename $(wildcard $(SRCDIR)/tests/unit/test_threads*.c)))
PROGRAMS_ucx := closing
PROGRAMS_replay := $(notdir $(basename $(wildcard $(SRCDIR)/tests/fuzz/fuzz_*.c)))

object = $(OUT)/$(patsubst $(SRCDIR)/%.c,%.o,$(1))
objects = $(foreach file,$(1),$(call object,$(file)))

EXTRA_campaign := $(HARNESS) $(SRCDIR)/tests/sim/memory_wrap.c
EXTRA_closing := $(filter-out %/closing.c,$(wildcard $(SRCDIR)/tests/closing/*.c)) \
    $(wildcard $(SRCDIR)/r2core/transport/*.c)
LINK_closing := $(shell pkg-config --libs ucx)
LINK_campaign := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc
EXTRA_test_sim_coll := $(HARNESS)
EXTRA_test_sim_p2p := $(SRCDIR)/tests/sim/p2p_world.c
EXTRA_test_sim_p2p_leave := $(SRCDIR)/tests/sim/p2p_world.c
EXTRA_test_sim_transport := $(SRCDIR)/tests/sim/transport_world.c
EXTRA_test_sim_transport_faults := $(SRCDIR)/tests/sim/transport_world.c
EXTRA_test_sim_p2p_memory := $(SRCDIR)/tests/sim/p2p_world.c
LINK_test_sim_p2p_memory := -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc
EXTRA_test_schedule := $(CHECKER)
EXTRA_test_schedule_mutants := $(CHECKER)
EXTRA_test_threads := $(addprefix $(SRCDIR)/tests/unit/,thread_job.c thread_net.c)
EXTRA_test_threads_p2p := $(EXTRA_test_threads)
EXTRA_test_drive := $(SRCDIR)/tests/unit/thread_net.c
HEALTH := $(addprefix $(SRCDIR)/tests/unit/,health_judge.c health_world.c)
EXTRA_test_health := $(HEALTH)
EXTRA_test_notices := $(HEALTH)
EXTRA_test_link := $(STUB)
EXTRA_test_link_peer := $(STUB)
EXTRA_test_link_end := $(STUB)
EXTRA_test_local := $(STUB) $(SRCDIR)/tests/unit/mail_peer.c
EXTRA_test_local_edges := $(EXTRA_test_local)
EXTRA_test_link_short := $(STUB)
EXTRA_test_link_pass := $(STUB)
EXTRA_test_glance := $(STUB)
EXTRA_test_near := $(STUB)
EXTRA_test_credit := $(STUB)
EXTRA_test_sink := $(STUB)
EXTRA_test_land := $(STUB)
EXTRA_test_mismatch := $(STUB)
EXTRA_test_control := $(STUB)
LINK_test_control := -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc
LINK_test_event_writer := -Wl,--wrap=close
EXTRA_test_excuses := $(STUB)
EXTRA_test_direct := $(STUB)
# What the PMIx server is asked: these have a server of their own.
EXTRA_test_pmix_value := $(SRCDIR)/tests/unit/pmix_stub.c $(SRCDIR)/r2core/oob/pmix.c \
    $(addprefix $(SRCDIR)/r2core/oob/pmix_,pair.c port.c request.c server.c value.c)
EXTRA_test_pmix_pair := $(EXTRA_test_pmix_value)
EXTRA_test_threads_pmix := $(SRCDIR)/r2core/oob/pmix_request.c
LINK_test_threads_pmix := -Wl,--wrap=pthread_cond_timedwait
PMIX_STUB := PMIx_Get_nb PMIx_Query_info_nb PMIx_Get PMIx_Put PMIx_Commit PMIx_Init \
    PMIx_Finalize PMIx_Register_event_handler PMIx_Deregister_event_handler \
    pthread_cond_timedwait sodium_memzero
LINK_test_pmix_value := $(addprefix -Wl$(comma)--wrap=,$(PMIX_STUB)) $(shell pkg-config --libs pmix)
LINK_test_pmix_pair := $(LINK_test_pmix_value)
EXTRA_fuzz_link := $(STUB)

find_main = $(wildcard $(foreach folder,closing sim unit fuzz,$(SRCDIR)/tests/$(folder)/$(1).c))
# libFuzzer has a main() of its own; elsewhere the replay of files is one.
fuzz_main_fuzz :=
fuzz_main_ = $(SRCDIR)/tests/fuzz/replay.c
main_flags = $(if $(filter fuzz_%,$(1)),$(if $(filter fuzz,$(KIND)),-fsanitize=fuzzer))
more = $(EXTRA_$(1)) $(if $(filter fuzz_%,$(1)),$(if $(filter fuzz,$(KIND)),,$(fuzz_main_)))

PROGRAMS := $(PROGRAMS_sim) $(PROGRAMS_unit) $(PROGRAMS_thread) $(PROGRAMS_ucx) $(PROGRAMS_replay)

all: $(addprefix $(OUT)/,$(PROGRAMS))
sim: $(addprefix $(OUT)/,$(PROGRAMS_sim))
unit: $(addprefix $(OUT)/,$(PROGRAMS_unit))
thread: $(addprefix $(OUT)/,$(PROGRAMS_thread))
ucx: $(addprefix $(OUT)/,$(PROGRAMS_ucx))
fuzzers: $(addprefix $(OUT)/,$(PROGRAMS_replay))

$(OUT)/r2_config.h: $(SRCDIR)/tests/sanitize/build.mk
	@mkdir -p $(OUT)
	@printf '%s\n' '#define R2_ENABLE_DEBUG 1' '#define _GNU_SOURCE 1' '#define R2_VERSION "0"' \
	    '#define R2_KERNELS 0' '#define R2_KERNELS_MISSING "tests"' >$@

$(OUT)/core.a: $(call objects,$(CORE))
	@rm -f $@
	@ar rcsP $@ $^

$(OUT)/%.o: $(SRCDIR)/%.c $(OUT)/r2_config.h
	@mkdir -p $(dir $@)
	@$(SANCC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

define program
$(OUT)/$(1): $(call objects,$(call find_main,$(1)) $(call more,$(1))) $(OUT)/core.a
	@$(SANCC) $(CFLAGS) $(call main_flags,$(1)) $$^ -o $$@ $(LINK_$(1)) $(LDLIBS)
endef
$(foreach name,$(PROGRAMS),$(eval $(call program,$(name))))

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)

.PHONY: all sim unit thread ucx fuzzers
