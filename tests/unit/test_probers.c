/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Many processes on each host: few of them probe, whoever they are, and all know what broke.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/util.h"
#include "health_world.h"

#define T_HOSTS  4
#define T_RAILS  3
#define T_MANY   24 /* processes of a host */
#define T_RUN_MS 1000

static world_t t_world;

static void t_fault(fault_kind_t kind, uint32_t host, uint32_t rank)
{
    t_world.faults[t_world.fault_count++] = (fault_t){.kind = kind,
                                                      .host = host,
                                                      .host_b = 2,
                                                      .rail = 1,
                                                      .rank = rank,
                                                      .from_ns = t_world.now_ns,
                                                      .to_ns = R2_NEVER_NS};
}

static void t_end(void)
{
    const char *wrong = world_wrong(&t_world);

    if (NULL != wrong) {
        fail_msg("%s", wrong);
    }
    assert_int_equal(t_world.unfair, 0);
    world_fini(&t_world);
}

/** Probes until everybody knows. */
static uint64_t t_probes(fault_kind_t kind, uint32_t per_host)
{
    world_init(&t_world, T_HOSTS, per_host, T_RAILS, 1);
    t_fault(kind, 1, 0);
    world_run(&t_world, T_RUN_MS);
    t_end();
    return t_world.probes;
}

/** Two processes of a host probe at once; all others learn of it. The rest is for healing. */
static void load_does_not_follow_the_processes(void **state)
{
    static const fault_kind_t kinds[] = {FAULT_NIC, FAULT_PATH, FAULT_PLANE};

    (void) state;
    for (size_t i = 0; i < r2_array_count(kinds); ++i) {
        const uint64_t few = t_probes(kinds[i], 2), many = t_probes(kinds[i], T_MANY);

        assert_true(few > 0);
        assert_true(many <= few + few / 4);
    }
}

/** The first processes of hosts are stopped: others take their turn, and nobody is blamed in their
 * place. */
static void others_take_their_turn(void **state)
{
    (void) state;
    world_init(&t_world, T_HOSTS, T_MANY, T_RAILS, 2);
    for (uint32_t host = 0; host < T_HOSTS; ++host) {
        t_fault(FAULT_STOP, 0, host * T_MANY);
        t_fault(FAULT_STOP, 0, host * T_MANY + 1);
    }
    t_fault(FAULT_NIC, 1, 0);
    world_run(&t_world, 8 * T_RUN_MS); /* owners are succeeded, too */
    assert_int_equal(r2_health_map_entry(r2_health_map(t_world.machines[5].health), 1, 1)->capacity,
                     0);
    t_end();
}

/** Those that never came to their turn forget it when the lane is back: nothing is left to do. */
static void short_outages_are_forgotten(void **state)
{
    (void) state;
    world_init(&t_world, T_HOSTS, T_MANY, T_RAILS, 3);
    t_fault(FAULT_NIC, 1, 0);
    world_run(&t_world, T_RUN_MS);
    t_world.faults[0].to_ns = t_world.now_ns;
    world_run(&t_world, 6 * T_RUN_MS);
    for (uint32_t rank = 0; rank < t_world.rank_count; ++rank) {
        assert_true(R2_NEVER_NS == r2_health_deadline_ns(t_world.machines[rank].health));
    }
    t_end();
}

/** The third process of a host waits for its turn. What it hears before it asks says nothing of
 * what it asks about. */
static void old_news_are_no_evidence(void **state)
{
    machine_t *machine = &t_world.machines[2];

    (void) state;
    world_init(&t_world, T_HOSTS, 4, T_RAILS, 4);
    r2_health_lane(machine->health, 9, 1, 1, R2_LANE_EVENT_SUSPECT, R2_ERR_TIMEOUT, t_world.now_ns);
    world_run(&t_world, 100);
    machine->delivered_ns = t_world.now_ns;
    world_run(&t_world, 80);
    assert_int_equal(t_world.probes, 0);
    t_fault(FAULT_PATH, 0, 0); /* to host 2 */
    world_run(&t_world, T_RUN_MS);
    assert_int_equal(machine->own_events[R2_VERDICT_HEALTHY], 0);
    assert_int_equal(machine->own_events[R2_VERDICT_PATH], 1);
    t_end();
}

/* The machine stands still from then on, and all processes with it. */
static void t_stand_still(uint64_t for_ms)
{
    for (uint32_t rank = 0; rank < t_world.rank_count; ++rank) {
        t_fault(FAULT_STOP, 0, rank);
        t_world.faults[t_world.fault_count - 1].to_ns = t_world.now_ns + for_ms * R2_NS_PER_MS;
    }
}

/** When nobody gets to run, and how what came meanwhile is read. */
typedef struct t_late {
    uint64_t from_ms, to_ms;    /* it begins */
    uint64_t least_ms, most_ms; /* it lasts */
    uint32_t reads_max;         /* see world_t */
    bool reads_unknown;
} t_late_t;

/*
 * Nobody gets to run for a while in the middle of an investigation. All answers are there when it
 * goes on, past its deadline or a little before.
 */
static void t_answers_are_late(const t_late_t *late)
{
    uint32_t found = 0;

    for (uint64_t from_ms = late->from_ms; from_ms <= late->to_ms; from_ms += 10) {
        for (uint64_t for_ms = late->least_ms; for_ms <= late->most_ms; for_ms += 20) {
            world_init(&t_world, T_HOSTS, 1, T_RAILS, 1);
            t_world.reads_max = late->reads_max;
            t_world.reads_unknown = late->reads_unknown;
            t_fault(FAULT_NIC, 1, 0);
            world_run(&t_world, from_ms);
            t_stand_still(for_ms);
            world_run(&t_world, 3 * T_RUN_MS);
            for (uint32_t rank = 0; rank < t_world.rank_count; ++rank) {
                const uint32_t *events = t_world.machines[rank].own_events;

                assert_int_equal(events[R2_VERDICT_AMBIGUOUS] + events[R2_VERDICT_PATH], 0);
                found += events[R2_VERDICT_NIC];
            }
            t_end();
        }
    }
    assert_true(found > 0);
}

static void late_answers_are_taken_together(void **state)
{
    (void) state;
    t_answers_are_late(&(t_late_t){100, 300, 100, 400, 0, false});
}

/* They are in sockets, which are read one after another. */
static void unread_answers_are_awaited(void **state)
{
    (void) state;
    for (uint32_t reads_max = 1; reads_max <= 4; reads_max *= 2) {
        t_answers_are_late(&(t_late_t){100, 300, 20, 200, reads_max, false});
    }
}

/* Nobody knows that they are there, but the process comes later than it wanted to. */
static void who_is_late_waits_for_answers(void **state)
{
    (void) state;
    t_answers_are_late(&(t_late_t){140, 150, 130, 150, 2, true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_does_not_follow_the_processes),
        cmocka_unit_test(others_take_their_turn),
        cmocka_unit_test(short_outages_are_forgotten),
        cmocka_unit_test(old_news_are_no_evidence),
        cmocka_unit_test(late_answers_are_taken_together),
        cmocka_unit_test(unread_answers_are_awaited),
        cmocka_unit_test(who_is_late_waits_for_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
