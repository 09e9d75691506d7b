/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Notices of health: whatever passes the parser is safe, and a machine survives any sequence of
 * them.
 */
#include "r2_config.h"

#include "fuzz.h"
#include "health/health.h"
#include "health/notice.h"
#include "r2/nic.h"

#define RANKS  6
#define HOSTS  3
#define RAILS  2
#define OUTPUT 4000 /* what one machine may send in answer to one input */

/* What the machine did. */
typedef struct outcome {
    uint32_t sent;
    uint64_t probe; /* last id */
} outcome_t;

static void notify(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    outcome_t *outcome = arg;
    r2_notice_t notice;

    fuzz_check(rank < RANKS && R2_OK == r2_notice_parse(data, bytes, &notice));
    fuzz_check(++outcome->sent < OUTPUT);
}

static void probe(void *arg, uint32_t rank, uint32_t rail, uint64_t timeout_ns, uint64_t id)
{
    fuzz_check(rank < RANKS && rail < RAILS && timeout_ns > 0);
    ((outcome_t *) arg)->probe = id;
}

static void beacon(void *arg, uint32_t rank, uint32_t rail, uint64_t id)
{
    (void) arg;
    (void) id;
    fuzz_check(rank < RANKS && rail < RAILS);
}

static void state(void *arg, uint32_t host, uint32_t rail, bool dead, uint64_t retry_ns)
{
    (void) arg;
    (void) dead;
    (void) retry_ns;
    fuzz_check(host < HOSTS && rail < RAILS);
}

static void peer_gone(void *arg, uint32_t rank)
{
    (void) arg;
    fuzz_check(rank < RANKS);
}

static void event(void *arg, const r2_verdict_event_t *text)
{
    (void) arg;
    fuzz_check(text->host < HOSTS && text->capacity <= R2_CAPACITY_FULL && NULL != text->evidence);
}

static void changed(void *arg)
{
    (void) arg;
}

static void feed(r2_health_t *health, fuzz_input_t *input, uint64_t now_ns, outcome_t *outcome)
{
    uint8_t choice = fuzz_u8(input);
    uint8_t bytes[sizeof(r2_notice_t)];
    r2_notice_t notice;
    r2_status_t status;

    switch (choice % 4) {
    case 0:
        r2_health_lane(health, choice / 4 % RANKS, choice / 32 % RAILS, choice / 32 % RAILS,
                       R2_LANE_EVENT_FAILED, R2_ERR_TIMEOUT, now_ns);
        break;
    case 1:
        r2_health_probed(health, outcome->probe, choice / 4 % 2, choice / 8 % 2, now_ns);
        break;
    default:
        fuzz_take(input, bytes, sizeof(bytes));
        status = r2_health_noticed(health, choice / 4 % (RANKS + 1), bytes, sizeof(bytes), now_ns);
        fuzz_check(R2_OK != status || R2_OK == r2_notice_parse(bytes, sizeof(bytes), &notice));
        break;
    }
}

static bool carrier(void *arg, uint32_t rail)
{
    (void) arg;
    return 0 == rail;
}

static void check_map(const r2_health_map_t *map)
{
    uint32_t host, rail;

    for (host = 0; host < HOSTS; ++host) {
        for (rail = 0; rail < RAILS; ++rail) {
            const r2_health_entry_t *entry = r2_health_map_entry(map, host, rail);

            fuzz_check(entry->capacity <= R2_CAPACITY_FULL &&
                       entry->version <= R2_HEALTH_VERSION_MAX);
            fuzz_check(entry->verdict < R2_VERDICT_COUNT && entry->direction < R2_DIRECTION_COUNT);
        }
    }
    fuzz_check(map->exception_count <= R2_HEALTH_EXCEPTIONS_MAX);
}

/* Input: a byte that chooses (lane failed, probe answered, notice of a rank), the notice, ... */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint32_t host_of[RANKS] = {0, 0, 1, 1, 2, 2};
    static r2_host_t host[HOSTS] = {{.name = "a", .rail_count = RAILS},
                                    {.name = "b", .rail_count = RAILS},
                                    {.name = "c", .rail_count = RAILS}};
    static const r2_hosts_t hosts = {
        .rank_count = RANKS, .host_count = HOSTS, .host_of = host_of, .hosts = host};
    const r2_health_self_t self = {.rank = 0};
    outcome_t outcome = {0};
    const r2_health_ports_t ports = {.notify = notify,
                                     .probe = probe,
                                     .beacon = beacon,
                                     .rail_state = state,
                                     .path_state = state,
                                     .peer_gone = peer_gone,
                                     .event = event,
                                     .changed = changed,
                                     .carrier = carrier,
                                     .arg = &outcome};
    fuzz_input_t input = {data, bytes < 2000 ? bytes : 2000};
    r2_params_t params;
    r2_health_t *health;
    uint64_t now_ns = R2_NS_PER_S;

    r2_params_init(&params);
    if (R2_OK != r2_health_create(&hosts, &self, &params, &ports, now_ns, &health)) {
        return 0;
    }
    while (input.left > 0) {
        outcome.sent = 0;
        feed(health, &input, now_ns, &outcome);
        now_ns += 20 * R2_NS_PER_MS;
        if (now_ns >= r2_health_deadline_ns(health)) {
            r2_health_tick(health, now_ns);
        }
        check_map(r2_health_map(health));
    }
    r2_health_destroy(health);
    return 0;
}
