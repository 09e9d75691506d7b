/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One health machine whose notices are caught: whom it tells what, and when it tells it again.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "health/health.h"
#include "health/machine.h"
#include "health/notice.h"

/* Three hosts of two processes; this one is rank 0, the owner of host 0. */
#define RANKS    6u
#define HOSTS    3u
#define START_NS (100 * R2_NS_PER_S)

typedef struct caught {
    r2_health_t *health;
    r2_notice_t last[RANKS];     /* change told to each rank; id 0: none */
    uint32_t told[RANKS];        /* changes since the test looked */
    uint32_t rails[RANKS];       /* bit for each rail of which something was told */
    r2_verdict_event_t event[4]; /* the first */
    uint32_t event_count;
    bool down[2]; /* our NICs without carrier */
} caught_t;

static void on_notify(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    caught_t *caught = arg;
    r2_notice_t notice;

    assert_int_equal(R2_OK, r2_notice_parse(data, bytes, &notice));
    if (R2_NOTICE_CHANGE == notice.kind) {
        caught->last[rank] = notice;
        ++caught->told[rank];
        caught->rails[rank] |= 1u << notice.rail;
    }
}

static void on_probe(void *arg, uint32_t rank, uint32_t rail, uint64_t timeout_ns, uint64_t id)
{
    (void) arg;
    (void) rank;
    (void) rail;
    (void) timeout_ns;
    (void) id;
}

static void on_beacon(void *arg, uint32_t rank, uint32_t rail, uint64_t id)
{
    on_probe(arg, rank, rail, 0, id);
}

static void on_state(void *arg, uint32_t host, uint32_t rail, bool dead, uint64_t retry_ns)
{
    on_probe(arg, host, rail, retry_ns, dead);
}

static bool on_carrier(void *arg, uint32_t rail)
{
    const caught_t *caught = arg;

    return !caught->down[rail];
}

static void on_gone(void *arg, uint32_t rank)
{
    on_probe(arg, rank, 0, 0, 0);
}

static void on_event(void *arg, const r2_verdict_event_t *event)
{
    caught_t *caught = arg;

    if (caught->event_count < sizeof(caught->event) / sizeof(caught->event[0])) {
        caught->event[caught->event_count++] = *event;
    }
}

static void on_changed(void *arg)
{
    (void) arg;
}

static void caught_init_as(caught_t *caught, uint32_t rank)
{
    static uint32_t host_of[RANKS] = {0, 0, 1, 1, 2, 2};
    static r2_host_t host[HOSTS] = {{.name = "h0", .rail_count = 2},
                                    {.name = "h1", .rail_count = 2},
                                    {.name = "h2", .rail_count = 2}};
    static const r2_hosts_t hosts = {
        .rank_count = RANKS, .host_count = HOSTS, .host_of = host_of, .hosts = host};
    const r2_health_self_t self = {.rank = rank};
    const r2_health_ports_t ports = {.notify = on_notify,
                                     .probe = on_probe,
                                     .beacon = on_beacon,
                                     .rail_state = on_state,
                                     .path_state = on_state,
                                     .peer_gone = on_gone,
                                     .carrier = on_carrier,
                                     .event = on_event,
                                     .changed = on_changed,
                                     .arg = caught};
    r2_params_t params;

    memset(caught, 0, sizeof(*caught));
    r2_params_init(&params);
    assert_int_equal(R2_OK,
                     r2_health_create(&hosts, &self, &params, &ports, START_NS, &caught->health));
}

/** A NIC of ours loses its carrier. */
static void caught_down(caught_t *caught, uint32_t rail, uint64_t now_ns)
{
    caught->down[rail] = true;
    r2_health_carrier(caught->health, rail, false, "no carrier", now_ns);
}

static void caught_init(caught_t *caught)
{
    caught_init_as(caught, 0);
}

static void hear(caught_t *caught, uint32_t from, const r2_notice_t *what, uint64_t now_ns)
{
    r2_notice_t notice = *what;

    notice.version = R2_NOTICE_VERSION;
    assert_int_equal(R2_OK,
                     r2_health_noticed(caught->health, from, &notice, sizeof(notice), now_ns));
    r2_health_tick(caught->health, now_ns);
}

/* The receivers have it: nothing is sent again. */
static void acknowledge_all(caught_t *caught, uint64_t now_ns)
{
    for (uint32_t rank = 0; rank < RANKS; ++rank) {
        const r2_notice_t ack = {.kind = R2_NOTICE_ACK, .id = caught->last[rank].id};

        if (caught->told[rank] > 0) {
            hear(caught, rank, &ack, now_ns);
        }
    }
    memset(caught->told, 0, sizeof(caught->told));
    r2_health_tick(caught->health, now_ns + 60 * R2_NS_PER_S);
    for (uint32_t rank = 0; rank < RANKS; ++rank) {
        assert_int_equal(0, caught->told[rank]);
    }
}

static void changes_go_to_owners_and_own_members(void **state)
{
    caught_t caught;

    (void) state;
    caught_init(&caught);
    caught_down(&caught, 1, START_NS);
    r2_health_tick(caught.health, START_NS);
    assert_int_equal(1, caught.told[1]);
    assert_int_equal(1, caught.told[2]);
    assert_int_equal(0, caught.told[3]);
    assert_int_equal(1, caught.told[4]);
    assert_int_equal(R2_NOTICE_FANOUT, caught.last[1].flags);
    r2_health_destroy(caught.health);
}

/* The owner told of a rail that is down, all have acknowledged it, and then a process dies. */
static void caught_death(caught_t *caught, uint32_t hears, const r2_notice_t *gone)
{
    caught_init(caught);
    caught_down(caught, 1, START_NS);
    r2_health_tick(caught->health, START_NS);
    acknowledge_all(caught, START_NS + 1);
    hear(caught, hears, gone, START_NS + R2_NS_PER_S);
}

/* An owner that had events and dies may not have passed them on: its neighbours tell its
 * successor all. */
static void events_of_dead_owners_are_told_again(void **state)
{
    const r2_notice_t gone = {.kind = R2_NOTICE_GONE, .id = 1, .host_a = 2};
    caught_t caught;

    (void) state;
    caught_death(&caught, 3, &gone);
    assert_int_equal(1, caught.told[3]);
    assert_int_equal(0, caught.told[2]);
    assert_int_equal(0, caught.last[3].host_a);
    assert_int_equal(1, caught.last[3].rail);
    assert_int_equal(1, caught.last[3].entry_version);
    r2_health_destroy(caught.health);
}

/* Who writes nothing takes nothing with it. */
static void other_dead_processes_have_no_events(void **state)
{
    const r2_notice_t gone = {.kind = R2_NOTICE_GONE, .id = 1, .host_a = 3};
    caught_t caught;

    (void) state;
    caught_death(&caught, 2, &gone);
    assert_int_equal(0, caught.told[2]);
    assert_int_equal(0, caught.told[3]);
    r2_health_destroy(caught.health);
}

/* Places for few: what did not fit is told when others have acknowledged, and then there is an
 * end. */
static void what_does_not_fit_is_told_later(void **state)
{
    uint64_t now_ns = START_NS;
    caught_t caught;

    (void) state;
    caught_init(&caught);
    caught.health->outbox_max = 4;
    caught_down(&caught, 0, now_ns);
    caught_down(&caught, 1, now_ns); /* three receivers each, four places */
    for (uint32_t turn = 0; turn < 200 && R2_NEVER_NS != r2_health_deadline_ns(caught.health);
         ++turn) {
        r2_health_tick(caught.health, now_ns);
        for (uint32_t rank = 0; rank < RANKS; ++rank) { /* the newest only; the other comes again */
            const r2_notice_t ack = {.kind = R2_NOTICE_ACK, .id = caught.last[rank].id};

            if (caught.told[rank] > 0) {
                caught.told[rank] = 0;
                hear(&caught, rank, &ack, now_ns);
            }
        }
        now_ns += R2_NS_PER_S;
    }
    for (uint32_t rank = 1; rank < RANKS; rank += 1 == rank ? 1 : 2) {
        assert_int_equal(caught.rails[rank], 3);
    }
    assert_null(caught.health->outbox);
    assert_true(R2_NEVER_NS == caught.health->retell_ns);
    r2_health_destroy(caught.health);
}

/* What is heard is as old as it was there, and grows older until it is passed on. */
static void ages_are_told_on(void **state)
{
    const r2_notice_t change = {.kind = R2_NOTICE_CHANGE, .id = 1, .host_a = 2, .rail = 1,
                                .entry_version = 1, .verdict = R2_VERDICT_NIC,
                                .age = r2_notice_age(4 * R2_NS_PER_S)};
    char text[1024];
    caught_t caught;

    (void) state;
    caught_init(&caught);
    hear(&caught, 2, &change, START_NS);
    assert_true(r2_notice_age_ns(caught.last[1].age) >= 3500 * R2_NS_PER_MS);
    r2_health_describe_broken(caught.health, START_NS, text, sizeof(text));
    assert_non_null(strstr(text, ", for 3."));
    r2_health_tick(caught.health, START_NS + 60 * R2_NS_PER_S);
    assert_int_equal(2, caught.told[1]);
    assert_true(r2_notice_age_ns(caught.last[1].age) >= 56 * R2_NS_PER_S);
    r2_health_destroy(caught.health);
}

/* What is concluded here and written by another is told with its evidence, then with its place in
 * the map. */
static void own_verdicts_get_their_version(void **state)
{
    const r2_notice_t change = {.kind = R2_NOTICE_CHANGE, .id = 1, .host_a = 0, .rail = 1,
                                .entry_version = 7, .verdict = R2_VERDICT_NIC};
    caught_t caught;

    (void) state;
    caught_init_as(&caught, 1);
    caught_down(&caught, 1, START_NS);
    assert_int_equal(1, caught.event_count);
    assert_true(caught.event[0].own);
    assert_int_equal(0, caught.event[0].version);
    hear(&caught, 0, &change, START_NS + R2_NS_PER_MS);
    assert_int_equal(2, caught.event_count);
    assert_false(caught.event[1].own);
    assert_int_equal(R2_VERDICT_NIC, caught.event[1].verdict);
    assert_int_equal(7, caught.event[1].version);
    assert_int_equal(0, caught.event[1].capacity);
    assert_non_null(strstr(caught.event[1].evidence, "concluded here"));
    r2_health_destroy(caught.health);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_go_to_owners_and_own_members),
        cmocka_unit_test(events_of_dead_owners_are_told_again),
        cmocka_unit_test(other_dead_processes_have_no_events),
        cmocka_unit_test(what_does_not_fit_is_told_later),
        cmocka_unit_test(ages_are_told_on),
        cmocka_unit_test(own_verdicts_get_their_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
