/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What happens to A's lane to B: the scenarios.
 */
#include "r2_config.h"

#include "director.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define STUCK_MAX     6 /* messages that a filled lane holds back */
#define LEARNING      3 /* rounds of a node before its descriptors are counted */
#define HEAP_PER_LANE 4096

static uint32_t below(stage_t *stage, uint32_t limit)
{
    return (uint32_t) r2_prng_below(&stage->prng, limit);
}

/* ---- parts of a round ---- */

static ends_t lane_open(stage_t *stage, node_name_t peer, uint32_t lane)
{
    ends_t ends = {.id = {++stage->ids, ++stage->ids}, .peer = peer, .lane = lane};

    ask(stage, A, &(order_t){.verb = VERB_OPEN, .lane = lane, .id = ends.id[0]});
    ends.address[0] = stage->nodes[A].last;
    ask(stage, peer, &(order_t){.verb = VERB_OPEN, .lane = 0, .id = ends.id[1]});
    ends.address[1] = stage->nodes[peer].last;
    return ends;
}

/** @param from 0: A connects, 1: its peer does */
static void lane_connect(stage_t *stage, const ends_t *ends, int from)
{
    const answer_t *to = &ends->address[1 - from];
    order_t order = {.verb = VERB_CONNECT, .id = ends->id[1 - from], .lane = from ? 0 : ends->lane};

    order.address_bytes = to->address_bytes;
    memcpy(order.address, to->address, sizeof(order.address));
    ask(stage, from ? ends->peer : A, &order);
}

static void lane_send(stage_t *stage, node_name_t name, uint32_t lane, uint32_t count,
                      size_kind_t size)
{
    ask(stage, name,
        &(order_t){.verb = VERB_SEND,
                   .lane = lane,
                   .count = count,
                   .size = size,
                   .seed = r2_prng_u64(&stage->prng)});
}

/** Both ends read until each has got so many messages. */
static void lane_await(stage_t *stage, const ends_t *ends, uint32_t count)
{
    tell(stage, A, &(order_t){.verb = VERB_AWAIT, .lane = ends->lane, .count = count});
    tell(stage, ends->peer, &(order_t){.verb = VERB_AWAIT, .count = count});
    take(stage, A);
    take(stage, ends->peer);
    if (!stage->broken &&
        (stage->nodes[A].last.got < count || stage->nodes[ends->peer].last.got < count)) {
        fail(stage, "a lane that nobody has closed has failed");
    }
}

static ends_t lane_establish(stage_t *stage, node_name_t peer, uint32_t lane)
{
    ends_t ends = lane_open(stage, peer, lane);

    lane_connect(stage, &ends, 0);
    lane_connect(stage, &ends, 1);
    lane_send(stage, A, lane, 1, SIZE_SHORT);
    lane_send(stage, peer, 0, 1, SIZE_SHORT);
    lane_await(stage, &ends, 1);
    return ends;
}

/** Messages of the size go from a node until they are stuck: the other end does not read. */
static void fill_lane(stage_t *stage, node_name_t name, size_kind_t size)
{
    ask(stage, name,
        &(order_t){.verb = VERB_FILL,
                   .count = 1 + below(stage, STUCK_MAX),
                   .size = size,
                   .seed = r2_prng_u64(&stage->prng)});
    stage->stuck += stage->nodes[name].last.under_way;
}

static void turn(stage_t *stage, node_name_t name, uint32_t most)
{
    simply(stage, name, VERB_TURN, 0, below(stage, most + 1));
}

static void rest(stage_t *stage, node_name_t name)
{
    simply(stage, name, VERB_REST, 0, 0);
}

static void close_lane(stage_t *stage, node_name_t name)
{
    simply(stage, name, VERB_CLOSE, 0, 0);
}

/** A's other lane goes on. */
static void other_goes_on(stage_t *stage)
{
    ++stage->others;
    lane_send(stage, A, 1, 1, SIZE_MIXED);
    lane_send(stage, C, 0, 1, SIZE_MIXED);
    lane_await(stage, &stage->other, stage->others);
}

static void destroy_a(stage_t *stage)
{
    other_goes_on(stage);
    simply(stage, A, VERB_DESTROY, 0, 0);
    stage->ended = true;
}

/** Workers end in any order, or at the same time. */
static void destroy(stage_t *stage)
{
    const uint32_t order = below(stage, 3);
    const node_name_t first = 1 == order ? B : A;

    if (2 == order) {
        tell(stage, A, &(order_t){.verb = VERB_DESTROY});
        tell(stage, B, &(order_t){.verb = VERB_DESTROY});
        take(stage, A);
        take(stage, B);
    } else {
        simply(stage, first, VERB_DESTROY, 0, 0);
        turn(stage, A == first ? B : A, 100);
        simply(stage, A == first ? B : A, VERB_DESTROY, 0, 0);
    }
    simply(stage, C, VERB_DESTROY, 0, 0);
}

static void nothing_is_left(stage_t *stage)
{
    for (int name = 0; name < NODES && !stage->broken; ++name) {
        node_t *node = &stage->nodes[name];

        if (0 == node->pid) {
            continue;
        }
        simply(stage, (node_name_t) name, VERB_COUNT, 0, 0);
        if (++node->rounds <= LEARNING) {
            node->descriptors = r2_max(node->descriptors, node->last.descriptors);
            node->heap_bytes = node->last.heap_bytes;
        } else if (node->last.descriptors > node->descriptors) {
            fail(stage, "%c has %u descriptors, not %u", 'A' + name, node->last.descriptors,
                 node->descriptors);
        } else if (node->last.heap_bytes > node->heap_bytes + HEAP_PER_LANE * node->rounds) {
            fail(stage, "%c has %llu bytes more after %u rounds", 'A' + name,
                 (unsigned long long) (node->last.heap_bytes - node->heap_bytes), node->rounds);
        }
    }
}

/* ---- scenarios: A's lane 0 to B is up (but in the last four), B does not progress ---- */

/** Both close; both may have a message half written. */
static void both(stage_t *stage, const ends_t *ends, size_kind_t size)
{
    const node_name_t first = below(stage, 4) ? A : B, second = A == first ? B : A;

    (void) ends;
    fill_lane(stage, A, size);
    if (0 == below(stage, 3)) {
        fill_lane(stage, B, size);
    }
    if (0 == below(stage, 4)) {
        tell(stage, A, &(order_t){.verb = VERB_CLOSE});
        tell(stage, B, &(order_t){.verb = VERB_CLOSE});
        take(stage, A);
        take(stage, B);
        return;
    }
    close_lane(stage, first);
    turn(stage, first, below(stage, 2) * 20);
    if (below(stage, 4)) {
        rest(stage, second); /* has read all, and so made room for the first */
    } else {
        turn(stage, second, 20);
    }
    close_lane(stage, second);
    turn(stage, second, 20);
}

/** A closes, B goes on. */
static void one(stage_t *stage, const ends_t *ends, size_kind_t size)
{
    (void) ends;
    fill_lane(stage, A, size);
    close_lane(stage, A);
    if (below(stage, 2)) {
        rest(stage, B);
    }
    if (below(stage, 2)) {
        lane_send(stage, B, 0, 5, size);
        turn(stage, B, 20);
    }
}

/** By its lane or by its worker. */
static void b_ends_it(stage_t *stage)
{
    if (below(stage, 2)) {
        close_lane(stage, B);
        turn(stage, B, 20);
    } else {
        simply(stage, B, VERB_DESTROY, 0, 0);
    }
}

/** B closes, A finds out. */
static void peer(stage_t *stage, const ends_t *ends, size_kind_t size)
{
    (void) ends;
    fill_lane(stage, A, size);
    turn(stage, B, 20);
    b_ends_it(stage);
    turn(stage, A, 50);
    rest(stage, A);
    close_lane(stage, A);
}

/** A closes, and in one of so many rounds ends its worker, while B is stopped; then B goes on. */
static void close_beside_stopped(stage_t *stage, uint32_t ends_in, uint32_t turns)
{
    close_lane(stage, A);
    rest(stage, A);
    if (0 == below(stage, ends_in)) {
        destroy_a(stage);
    }
    node_continue(stage, B);
    turn(stage, B, turns);
    if (below(stage, 2)) {
        close_lane(stage, B);
    }
    rest(stage, B);
}

/** B is stopped: A's close returns while B cannot do anything. */
static void stopped(stage_t *stage, const ends_t *ends, size_kind_t size)
{
    (void) ends;
    if (below(stage, 2)) {
        fill_lane(stage, B, size);
    }
    node_stop(stage, B);
    fill_lane(stage, A, size);
    rest(stage, A); /* messages that are stuck do not keep A awake */
    close_beside_stopped(stage, 4, 50);
}

/** B dies before or after messages are stuck. */
static void killed(stage_t *stage, const ends_t *ends, size_kind_t size)
{
    const uint32_t when = below(stage, 3);

    (void) ends;
    if (0 == when) {
        node_kill(stage, B);
        lane_send(stage, A, 0, 5, size);
    } else {
        fill_lane(stage, A, size);
        if (1 == when) {
            turn(stage, B, 20);
        }
        node_kill(stage, B);
    }
    if (below(stage, 2)) {
        simply(stage, A, VERB_FAILED, 0, 0);
        rest(stage, A);
    }
    close_lane(stage, A);
    turn(stage, A, 50);
}

/** When the ends begin to connect; B: maybe not before A has closed, maybe never. */
typedef struct begins {
    uint32_t step[2];
} begins_t;

#define CONNECT_STEPS 5

static begins_t connect_draw(stage_t *stage)
{
    return (begins_t){{below(stage, CONNECT_STEPS - 1), below(stage, CONNECT_STEPS + 3)}};
}

static void connect_begin(stage_t *stage, const ends_t *ends, int from, size_kind_t size)
{
    lane_connect(stage, ends, from);
    lane_send(stage, from ? B : A, 0, below(stage, 8), size);
}

/** Some steps of connecting: the ends begin in any order, read a little, send. */
static void connect_some(stage_t *stage, const ends_t *ends, const begins_t *begins,
                         size_kind_t size)
{
    for (uint32_t step = 0; step < CONNECT_STEPS; ++step) {
        for (int from = 0; from < 2; ++from) {
            if (step == begins->step[from]) {
                connect_begin(stage, ends, from, size);
            }
            if (below(stage, 2)) {
                turn(stage, from ? B : A, 10);
            }
        }
    }
}

/** One end closes while the lane is being connected; the other may close, too, or connect then. */
static void connecting(stage_t *stage, const ends_t *ends, size_kind_t size)
{
    begins_t begins = connect_draw(stage);

    connect_some(stage, ends, &begins, size);
    close_lane(stage, A);
    turn(stage, A, 50);
    if (begins.step[1] >= CONNECT_STEPS && below(stage, 2)) {
        connect_begin(stage, ends, 1, size);
    }
    turn(stage, B, 50);
    if (below(stage, 2)) {
        close_lane(stage, B);
    }
    rest(stage, A);
    if (0 == below(stage, 4)) {
        rest(stage, B);
    }
}

/** A connects to what B has closed already. */
static void connecting_late(stage_t *stage, const ends_t *ends, size_kind_t size)
{
    if (below(stage, 2)) {
        connect_begin(stage, ends, 1, size);
        turn(stage, B, 20);
    }
    b_ends_it(stage);
    turn(stage, A, 20);
    connect_begin(stage, ends, 0, size);
    turn(stage, A, 50);
    turn(stage, B, 50);
    turn(stage, A, 50);
    close_lane(stage, A);
    rest(stage, A);
}

static void connecting_stopped(stage_t *stage, const ends_t *ends, size_kind_t size)
{
    begins_t begins = connect_draw(stage);

    connect_some(stage, ends, &begins, size);
    node_stop(stage, B);
    lane_send(stage, A, 0, 8, size);
    turn(stage, A, 50);
    close_beside_stopped(stage, 2, 100);
}

static void connecting_killed(stage_t *stage, const ends_t *ends, size_kind_t size)
{
    begins_t begins = connect_draw(stage);

    connect_some(stage, ends, &begins, size);
    node_kill(stage, B);
    lane_send(stage, A, 0, 8, size);
    turn(stage, A, 50);
    if (below(stage, 2)) {
        rest(stage, A);
    }
    close_lane(stage, A);
    rest(stage, A);
}

const scenario_t scenarios[] = {
    {"both", both, true},
    {"one", one, true},
    {"peer", peer, true},
    {"stopped", stopped, true},
    {"killed", killed, true},
    {"connecting", connecting, false},
    {"connecting-late", connecting_late, false},
    {"connecting-stopped", connecting_stopped, false},
    {"connecting-killed", connecting_killed, false},
};
const size_t scenario_count = r2_array_count(scenarios);

void play_round(stage_t *stage, const scenario_t *scenario, size_kind_t size)
{
    ends_t lane;

    stage->broken = stage->crashed = stage->ended = false;
    stage_fill(stage);
    stage->other = lane_establish(stage, C, 1);
    stage->others = 1;
    lane = scenario->up ? lane_establish(stage, B, 0) : lane_open(stage, B, 0);
    scenario->play(stage, &lane, size);
    if (!stage->ended) {
        other_goes_on(stage);
    }
    destroy(stage);
    nothing_is_left(stage);
    if (stage->broken) {
        stage_clear(stage, false);
    }
}
