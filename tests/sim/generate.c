/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Draws scenarios: machine, parameters, collectives, faults.
 */
#include "r2_config.h"

#include "generate_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/util.h"
#include "plan/kinds.h"

void draw_say(draw_t *d, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(d->text + d->used, GENERATE_BYTES - d->used, format, args);
    va_end(args);
    if (n > 0 && d->used + (size_t) n + 2 < GENERATE_BYTES) {
        d->used += (size_t) n;
        d->text[d->used++] = '\n';
    }
    d->text[d->used] = '\0';
}

/* ---- machine ---- */

static void draw_machine(draw_t *d)
{
    d->hosts = (uint32_t) draw_pick(d, 1, draw_chance(d, 20) ? 6 : 4);
    d->ppn = draw_chance(d, 60) ? 1 : (uint32_t) draw_pick(d, 1, 3);
    if (1 == d->hosts * d->ppn && draw_chance(d, 90)) {
        d->hosts = 2;
    }
    d->rails = d->rails_least = (uint32_t) draw_pick(d, 1, 4);
    draw_say(d, "hosts %u", d->hosts);
    draw_say(d, "ppn %u", d->ppn);
    draw_say(d, "rails %u", d->rails);
    draw_say(d, "rate %" PRIu64, draw_pick_wide(d, 5000000, 200000000));
    draw_say(d, "latency %" PRIu64 "us", draw_pick_wide(d, 1, 200));
    draw_say(d, "keep %" PRIu64, 25 * draw_pick(d, 0, 4));
    draw_say(d, "retry %" PRIu64 "ms", draw_pick_wide(d, 1, 2000));
    draw_say(d, "jitter %" PRIu64 "us", draw_pick_wide(d, 1, 100));
    if (draw_chance(d, 50)) {
        draw_say(d, "socket %" PRIu64, draw_pick_wide(d, 1000, 500000));
        draw_say(d, "receive %" PRIu64, draw_pick_wide(d, 1000, 500000));
    }
    if (draw_chance(d, 20)) {
        draw_say(d, "batch %" PRIu64, draw_pick(d, 1, 4));
    }
    if (draw_chance(d, 10) && d->hosts > 1 && d->rails > 1) {
        d->rails_least = (uint32_t) draw_pick(d, 1, d->rails);
        draw_say(d, "rails-of h%u %u", d->hosts - 1, d->rails_least);
    }
    if (draw_chance(d, 60)) {
        uint64_t base = draw_chance(d, 50) ? 0 : UINT32_MAX;

        draw_say(d, "first-seq %" PRId64,
                 (int64_t) (base - draw_pick(d, 0, draw_chance(d, 50) ? 100 : 100000)));
    }
    if (draw_chance(d, 15)) {
        d->lossy = true;
        draw_say(d, "hello-loss %" PRIu64, draw_pick(d, 1, 40));
    }
}

static void draw_params(draw_t *d)
{
    uint64_t chunk_max = draw_chance(d, 50) ? 8192 : draw_pick_wide(d, 8192, 131072);

    if (draw_chance(d, 70)) {
        draw_say(d, "param chunk_max_bytes %" PRIu64, chunk_max);
        draw_say(d, "param chunk_min_bytes %" PRIu64, draw_pick_wide(d, 1024, 8192));
    }
    if (draw_chance(d, 50)) {
        /* down to one chunk, or less */
        draw_say(d, "param unexpected_bytes %" PRIu64, draw_pick_wide(d, 1024, 262144));
        draw_say(d, "param eager_bytes %" PRIu64, draw_pick_wide(d, 1024, 65536));
    }
    if (draw_chance(d, 30)) {
        draw_say(d, "param credit_bytes %" PRIu64, draw_pick_wide(d, 65536, 1048576));
    }
    if (draw_chance(d, 40)) {
        draw_say(d, "param copy_max_bytes %" PRIu64,
                 draw_chance(d, 30) ? 0 : draw_pick_wide(d, 1, 8192));
        draw_say(d, "param retransmit_bytes %" PRIu64,
                 draw_chance(d, 30) ? 0 : draw_pick_wide(d, 100, 262144));
    }
    if (draw_chance(d, 30)) {
        draw_say(d, "param window_min_bytes %" PRIu64, draw_pick_wide(d, 8192, 262144));
    }
    if (draw_chance(d, 30)) {
        draw_say(d, "param scratch_bytes %" PRIu64, draw_pick_wide(d, 65536, 1048576));
    }
    if (draw_chance(d, 30)) {
        draw_say(d, "param ack_delay_us %" PRIu64, draw_pick_wide(d, 100, 9000));
    }
    if (draw_chance(d, 50)) {
        draw_say(d, "param heal_min_ms %" PRIu64, draw_pick_wide(d, 10, 1000));
        draw_say(d, "param failure_timeout_ms %" PRIu64, draw_pick_wide(d, 20, 200));
    }
    if (draw_chance(d, 20)) {
        draw_say(d, "param takeover_us %" PRIu64, draw_pick_wide(d, 500, 50000));
    }
    if (draw_chance(d, 10)) {
        draw_say(d, "param async_progress 1");
    }
    if (draw_chance(d, 25)) {
        static const char *const names[] = {"recursive-doubling", "exchange", "weighted", "direct",
                                            "ring", "r2", "recursive", "hierarchical"};
        uint64_t which = draw_pick(d, 0, r2_array_count(names) - 1);

        d->free_order = which > 3;
        draw_say(d, "param allreduce_algorithm %s", names[which]);
    }
    if (draw_chance(d, 25)) {
        static const char *const names[] = {"bruck", "ring", "direct"};

        draw_say(d, "param allgather_algorithm %s", names[draw_pick(d, 0, 2)]);
    }
    if (draw_chance(d, 20)) {
        draw_say(d, "param bcast_algorithm %s",
                 draw_chance(d, 50) ? "binomial" : "scatter-allgather");
    }
}

/* ---- program ---- */

static uint64_t draw_count(draw_t *d, uint64_t times)
{
    if (draw_chance(d, 5)) {
        return 0;
    }
    if (times > 1 || draw_chance(d, 40)) {
        return draw_pick(d, 1, 64);
    }
    return draw_pick_wide(d, 1, draw_chance(d, 30) ? 60000 : 6000);
}

/** A kind, written as scenarios have it; allreduce is drawn more often than others. */
static r2_coll_kind_t draw_kind(draw_t *d, char *word_p, size_t room)
{
    const r2_coll_kind_t kind = draw_chance(d, 20)
                                    ? R2_COLL_ALLREDUCE
                                    : (r2_coll_kind_t) draw_pick(d, 0, R2_COLL_KIND_COUNT - 1);

    snprintf(word_p, room, "%s", r2_kind(kind)->name);
    for (char *c = word_p; '\0' != *c; ++c) {
        *c = '_' == *c || ' ' == *c ? '-' : *c;
    }
    return kind;
}

static void draw_coll(draw_t *d, const char *comm, uint32_t size)
{
    static const char *const types[] = {"i64", "f64", "matrix", "bytes3"};
    char word[40], root[32] = "";
    const r2_coll_kind_t kind = draw_kind(d, word, sizeof(word));
    uint64_t type = draw_pick(d, 0, r2_kind(kind)->reduces ? 2 : 3);
    uint64_t times = draw_chance(d, 30) ? draw_pick(d, 2, 30) : 1;
    uint64_t count = draw_count(d, times);

    if (R2_SPAN_BLOCKS == r2_kind(kind)->span || R2_SPAN_EDGES == r2_kind(kind)->span) {
        /* of a block for each rank: all of them as long as a vector */
        count = (count + size - 1) / size;
    }
    if (r2_kind(kind)->rooted) {
        snprintf(root, sizeof(root), " root=%" PRIu64, draw_pick(d, 0, size - 1));
    }
    if (R2_COLL_ALLREDUCE == kind && 1 == type && d->free_order) {
        type = 0; /* no reference has the bits of such sums */
    }
    draw_say(d, "coll %s %s %" PRIu64 " on=%s times=%" PRIu64 "%s%s%s", word, types[type], count,
             comm, times, root, draw_chance(d, 25) ? " in-place" : "",
             draw_chance(d, 35) ? " nb" : "");
}

static uint32_t draw_comm(draw_t *d, const char *name, uint64_t cid)
{
    uint32_t ranks = d->hosts * d->ppn, size = 0;
    char list[256] = "";
    size_t used = 0;
    uint32_t first = (uint32_t) draw_pick(d, 0, ranks - 1);

    for (uint32_t i = 0; i < ranks; ++i) {
        uint32_t r = (first + i) % ranks;

        if (0 == i || draw_chance(d, 65)) {
            used +=
                (size_t) snprintf(list + used, sizeof(list) - used, "%s%u", size > 0 ? "," : "", r);
            ++size;
        }
    }
    draw_say(d, "comm %s cid=%" PRIu64 " ranks=%s", name, cid, list);
    return size;
}

static void draw_pause(draw_t *d)
{
    uint64_t us = draw_pick_wide(d, 10, d->span_ns / R2_NS_PER_US);

    if (draw_chance(d, 50)) {
        draw_say(d, "compute %" PRIu64 "us rank=%" PRIu64, us,
                 draw_pick(d, 0, d->hosts * d->ppn - 1));
    } else if (draw_chance(d, 50)) {
        draw_say(d, "compute %" PRIu64 "us", us);
    } else {
        draw_say(d, "wait");
    }
}

static void draw_program(draw_t *d)
{
    uint32_t ranks = d->hosts * d->ppn;
    uint32_t size_a = 0, size_b = 0;

    for (uint64_t left = draw_pick(d, 2, 14); left > 0; --left) {
        if (0 != size_a && draw_chance(d, 20)) {
            draw_say(d, "free a");
            size_a = 0;
        }
        if (0 == size_a && draw_chance(d, 20)) {
            size_a = draw_comm(d, "a", 7); /* always the same context id */
        }
        if (0 == size_b && draw_chance(d, 15)) {
            size_b = draw_comm(d, "b", draw_pick(d, 8, 9));
        }
        if (0 != size_a && draw_chance(d, 40)) {
            draw_coll(d, "a", size_a);
        } else if (0 != size_b && draw_chance(d, 40)) {
            draw_coll(d, "b", size_b);
        } else {
            draw_coll(d, "world", ranks);
        }
        if (draw_chance(d, 25)) {
            draw_pause(d);
        }
        draw_unhelpful_steps(d);
    }
}

/* ---- faults ---- */

static uint64_t draw_time(draw_t *d)
{
    uint64_t at_ns = draw_chance(d, 5) ? 0 : draw_pick_wide(d, 1000, d->span_ns);

    d->last_ns = r2_max(d->last_ns, at_ns);
    return at_ns / 1000;
}

static void draw_port_fault(draw_t *d)
{
    static const char *const verbs[] = {"down", "drop", "drop-in", "drop-out",
                                        "up",   "pass", "break"};
    static const char *const repairs[] = {"up", "pass", "pass", "pass"};
    uint64_t verb = draw_pick(d, 0, draw_chance(d, 60) ? 3 : 6);
    uint32_t host = (uint32_t) draw_pick(d, 0, d->hosts - 1),
             rail = (uint32_t) draw_pick(d, 0, d->rails - 1);
    uint64_t at_us = draw_time(d);
    uint64_t flaps = draw_chance(d, 15) ? draw_pick(d, 2, 10) : 1;

    for (; flaps > 0; --flaps) {
        draw_say(d, "at %" PRIu64 "us %s h%u rail%u", at_us, verbs[verb], host, rail);
        if (verb < 4 && (flaps > 1 || draw_chance(d, 50))) {
            at_us += draw_pick_wide(d, 10, d->span_ns / 1000);
            draw_say(d, "at %" PRIu64 "us %s h%u rail%u", at_us, repairs[verb], host, rail);
            at_us += draw_pick_wide(d, 10, d->span_ns / 1000);
        }
        d->last_ns = r2_max(d->last_ns, at_us * 1000);
    }
}

static void draw_fault(draw_t *d)
{
    uint32_t host = (uint32_t) draw_pick(d, 0, d->hosts - 1),
             rail = (uint32_t) draw_pick(d, 0, d->rails - 1);
    uint64_t at_us;

    if (draw_chance(d, 60)) {
        draw_port_fault(d);
        return;
    }
    at_us = draw_time(d);
    switch (draw_pick(d, 0, 4)) {
    case 0:
        draw_say(d, "at %" PRIu64 "us rate h%u rail%u %" PRIu64, at_us, host, rail,
                 draw_pick_wide(d, 200000, 50000000));
        break;
    case 1:
        draw_say(d, "at %" PRIu64 "us loss h%u rail%u %" PRIu64, at_us, host, rail,
                 draw_pick(d, 1, 30));
        break;
    case 2:
        draw_say(d, "at %" PRIu64 "us cut h%u h%u rail%u", at_us, host, (host + 1) % d->hosts,
                 rail);
        break;
    case 3:
        for (uint32_t h = 0; h < d->hosts; ++h) { /* a whole plane */
            draw_say(d, "at %" PRIu64 "us down h%u rail%u", at_us, h, rail);
        }
        break;
    default: {
        uint32_t rank = (uint32_t) draw_pick(d, 0, d->hosts * d->ppn - 1);
        uint64_t for_us = draw_pick_wide(d, 10, 3000000);

        draw_say(d, "at %" PRIu64 "us stop r%u", at_us + 1, rank);
        draw_say(d, "at %" PRIu64 "us cont r%u", at_us + 1 + for_us, rank);
        d->last_ns = r2_max(d->last_ns, (at_us + 1 + for_us) * 1000);
        break;
    }
    }
}

static void draw_rule(draw_t *d)
{
    static const char *const actions[] = {"drop", "duplicate", "delay", "break", "error", "fail"};
    static const char *const onlies[] = {" only=acks", " only=data", " only=control", ""};
    uint64_t action = draw_pick(d, 0, 5);
    uint64_t until_us = draw_pick_wide(d, 100, 3000000);

    d->last_ns = r2_max(d->last_ns, until_us * 1000);
    draw_say(d, "rule %s %.2f%s delay=%" PRIu64 "us until=%" PRIu64 "us", actions[action],
             (double) draw_pick_wide(d, 1, action < 3 ? 5000 : 100) / 100,
             onlies[draw_pick(d, 0, 3)], draw_pick_wide(d, 1, 50000), until_us);
}

/* What cannot be survived: a process dies, or two hosts lose each other for good. */
static void draw_the_end(draw_t *d)
{
    uint32_t host = (uint32_t) draw_pick(d, 0, d->hosts - 1);
    uint64_t at_us = draw_time(d);

    draw_say(d, "expect any");
    draw_say(d, "param no_path_timeout_ms %" PRIu64, draw_pick_wide(d, 100, 3000));
    if (draw_chance(d, 60)) {
        draw_say(d, "at %" PRIu64 "us kill r%" PRIu64, at_us + 1,
                 draw_pick(d, 0, d->hosts * d->ppn - 1));
    }
    if (draw_chance(d, 60)) {
        bool cut = draw_chance(d, 50);

        for (uint32_t rail = 0; rail < d->rails; ++rail) {
            if (cut) {
                draw_say(d, "at %" PRIu64 "us cut h%u h%u rail%u", at_us + 1, host,
                         (host + 1) % d->hosts, rail);
            } else {
                draw_say(d, "at %" PRIu64 "us %s h%u rail%u", at_us + 1,
                         draw_chance(d, 50) ? "down" : "drop", host, rail);
            }
        }
    }
}

static void cut_pair(draw_t *d, uint64_t at_us, uint32_t host)
{
    for (uint32_t rail = 0; rail < d->rails; ++rail) {
        draw_say(d, "at %" PRIu64 "us cut h%u h%u rail%u", at_us, host, (host + 1) % d->hosts,
                 rail);
    }
}

/* Two hosts share no rail, for a time or for good: what they have to say goes by way of a third. */
static void draw_relay(draw_t *d, uint64_t heal_us)
{
    uint32_t host = (uint32_t) draw_pick(d, 0, d->hosts - 1);

    if (draw_chance(d, 30)) {
        cut_pair(d, 0, host);
    } else {
        cut_pair(d, draw_time(d), host);
    }
    if (draw_chance(d, 60)) {
        cut_pair(d, heal_us + 1, host);
    }
}

/* Out-of-band messages get lost, come late, twice and in another order; management NICs fail. */
static void draw_post(draw_t *d)
{
    if (draw_chance(d, 50)) {
        draw_say(d, "post-loss %" PRIu64, draw_chance(d, 30) ? 100 : draw_pick(d, 1, 99));
    }
    if (draw_chance(d, 30)) {
        draw_say(d, "post-twice %" PRIu64, draw_pick(d, 1, 100));
    }
    if (draw_chance(d, 40)) {
        draw_say(d, "post-delay %" PRIu64 "us", draw_pick_wide(d, 10, 1000000));
    }
    for (uint32_t host = 0; host < d->hosts && draw_chance(d, 50); ++host) {
        uint64_t at_us = draw_time(d);

        draw_say(d, "at %" PRIu64 "us post-cut h%u", at_us, host);
        if (draw_chance(d, 60)) {
            draw_say(d, "at %" PRIu64 "us post-join h%u", at_us + draw_pick_wide(d, 100, 3000000),
                     host);
        }
    }
}

static void draw_faults(draw_t *d)
{
    uint64_t heal_us;

    if (draw_chance(d, 25)) {
        draw_post(d);
    }
    for (uint64_t left = draw_pick(d, 0, draw_chance(d, 30) ? 8 : 3); left > 0; --left) {
        draw_fault(d);
    }
    for (uint64_t left = draw_chance(d, 40) ? draw_pick(d, 1, 3) : 0; left > 0; --left) {
        draw_rule(d);
    }
    if (draw_chance(d, 12)) {
        draw_the_end(d);
        if (draw_chance(d, 50)) {
            return;
        }
    }
    heal_us = d->last_ns / 1000 + draw_pick_wide(d, 100, 3000000);
    draw_say(d, "at %" PRIu64 "us heal", heal_us);
    if (d->hosts >= 3 && draw_chance(d, 15)) {
        draw_relay(d, heal_us);
    }
}

/*
 * Over reliable connections, with calls that are long enough to be put. At times one host has no
 * RDMA; what a lane has sent outlives it more often than not. Draws of its own: those of others
 * stay.
 */
static void draw_puts(draw_t *d)
{
    /* an order of reduction that depends on rails has bits of its own */
    const char *const calls[] = {d->free_order ? "allreduce i64" : "allreduce f64", "bcast bytes3",
                                 "allgather i64", "reduce-scatter f64"};
    r2_prng_t prng;

    r2_prng_seed(&prng, d->seed * 0xd1342543de82ef95ull + 4242);
    draw_say(d, "rdma %u", 0 == d->seed % 8 && d->hosts > 2 ? d->hosts - 1 : d->hosts);
    draw_say(d, "keep %u", 0 == d->seed % 3 ? 50 : 100);
    draw_say(d, "param put 1");
    for (uint64_t left = r2_prng_between(&prng, 1, 2); left > 0; --left) {
        draw_say(d, "coll %s %" PRIu64 " times=%" PRIu64 "%s",
                 calls[r2_prng_below(&prng, r2_array_count(calls))],
                 r2_prng_between(&prng, 10000, 100000), r2_prng_between(&prng, 1, 3),
                 r2_prng_chance(&prng, 200000) ? " nb" : "");
    }
}

void generate_scenario(uint64_t seed, uint32_t axes, char *text_p)
{
    draw_t d = {.text = text_p, .seed = seed, .axes = axes & ~GENERATE_PUTS};

    r2_prng_seed(&d.prng, seed * 0x9e3779b97f4a7c15ull + 12345);
    d.span_ns = draw_pick_wide(&d, 200 * R2_NS_PER_US, 2 * R2_NS_PER_S);
    draw_say(&d, "seed %" PRIu64, seed);
    draw_machine(&d);
    draw_params(&d);
    if (0 != (axes & GENERATE_PUTS)) {
        draw_puts(&d);
    }
    draw_unhelpful_begin(&d);
    draw_program(&d);
    if (!d.sound) {
        draw_faults(&d);
    }
    draw_unhelpful_end(&d);
}
