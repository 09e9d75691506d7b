/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Crowded ranks: do they wait for processors, and do calls gain by plans that are made for that?
 *
 * Ranks that wait for processors may do so since they poll: then the network is the limit, and
 * plans with few messages and many bytes lose. So plans for crowded ranks are tried: what calls
 * take with them is held against what the same calls took before.
 */
#include "r2_config.h"

#include "ctx/crowded.h"

#include <assert.h>

#include "base/util.h"
#include "plan/thresholds.h"

/*
 * Ranks are crowded where a thread, for plans rank 0's, has to wait for a processor for 1/4 of the
 * time for which it could use one, and not where it is less than 1/8. Windows with little of that
 * time in them say nothing. So many windows in a row. Plans for crowded ranks that gain let ranks
 * wait less, as cores that are free do: so that they are not crowded takes four times as many each
 * time, and the last change is that they are.
 */
#define R2_CROWDED_PART      4u
#define R2_UNCROWDED_PART    8u
#define R2_CROWDED_ENOUGH    (R2_CROWDED_LOOK_NS / 4)
#define R2_CROWDED_WINDOWS   4u
#define R2_UNCROWDED_WINDOWS 16u
#define R2_CROWDED_CHANGES   9u

static_assert(r2_threshold_crowded_bytes <= 1u << R2_CROWDED_MOST, "each length has a bit");

/* A window that took so many times longer had idle time in it. */
#define R2_CROWDED_SPAN 4u

/*
 * A trial begins once so many calls have shown what they take without. It is lost when so many
 * calls, and so much time of them, took 1/4 more than the same calls before; it goes on after that.
 * What earlier calls gained counts half as much each time, so that a few slow ones, while somebody
 * else has the processor, do not end what gained before.
 * One call counts for no more than so many times what it took before: somebody else had the
 * processor. One that takes twice as long is lost as soon as some calls say so. The first ones
 * after a change make plans, and a few more of short ones are slow until memory and connections are
 * used to it.
 */
#define R2_TRIAL_BEFORE   8u
#define R2_TRIAL_SKIPPED  2u
#define R2_TRIAL_WARM     64u
#define R2_TRIAL_WARM_NS  (20 * R2_NS_PER_MS)
#define R2_TRIAL_CALLS    16u
#define R2_TRIAL_FEWEST   8u
#define R2_TRIAL_LEAST_NS R2_NS_PER_MS
#define R2_TRIAL_PART     4
#define R2_TRIAL_TIMES    4u
#define R2_TRIAL_KEEP     64u /* older calls count half */
/* So many times more, the first time after so many calls without, then after four times as many. */
#define R2_TRIAL_AGAIN 3u
#define R2_TRIAL_REST  1024u

/* One window says so, or otherwise; 0: neither. */
static int r2_crowded_window(r2_crowded_t *crowded, const r2_cpu_time_t *now)
{
    const r2_cpu_time_t from = crowded->cores.from;
    uint64_t waited_ns, all_ns;

    crowded->cores.from = *now;
    if (now->thread != from.thread) {
        return 0; /* threads take turns with calls */
    }
    waited_ns = now->waited_ns - from.waited_ns;
    all_ns = waited_ns + now->ran_ns - from.ran_ns;
    if (all_ns < R2_CROWDED_ENOUGH) {
        return 0;
    }
    if (R2_CROWDED_PART * waited_ns >= all_ns) {
        return 1;
    }
    return R2_UNCROWDED_PART * waited_ns < all_ns ? -1 : 0;
}

/* What gained is used at once when they are crowded again. */
static void r2_crowded_change(r2_crowded_t *crowded)
{
    crowded->crowded = !crowded->crowded;
    crowded->cores.windows = 0;
    ++crowded->changes;
    for (uint32_t i = 0; i < R2_CROWDED_TRIALS; ++i) {
        crowded->trials[i].gained_ns = 0;
        crowded->trials[i].took_ns = crowded->trials[i].judged = 0;
    }
}

/* What is not tried as plans are follows what is seen, both ways. */
static void r2_crowded_sees(r2_crowded_t *crowded, int says)
{
    if (0 != says) {
        crowded->cores.against =
            says == (crowded->cores.waits ? -1 : 1) ? crowded->cores.against + 1 : 0;
    }
    if (crowded->cores.against >=
        (crowded->cores.waits ? R2_UNCROWDED_WINDOWS : R2_CROWDED_WINDOWS)) {
        crowded->cores.waits = !crowded->cores.waits;
        crowded->cores.against = 0;
    }
}

void r2_crowded_look_at_cores(r2_crowded_t *crowded, const r2_cpu_time_t *now)
{
    const int says = r2_crowded_window(crowded, now);
    const uint32_t needed =
        crowded->crowded ? R2_UNCROWDED_WINDOWS << crowded->changes : R2_CROWDED_WINDOWS;

    crowded->cores.windows = says == (crowded->crowded ? -1 : 1) ? crowded->cores.windows + 1 : 0;
    if (crowded->cores.windows >= needed && crowded->changes < R2_CROWDED_CHANGES) {
        r2_crowded_change(crowded);
    }
    r2_crowded_sees(crowded, says);
}

void r2_crowded_look_at_rails(r2_crowded_t *crowded, const r2_crowded_rails_t *now)
{
    const uint64_t span_ns = now->now_ns - crowded->rails.from_ns;
    uint64_t bytes_per_s = 0;

    if (crowded->rails.carry) {
        return;
    }
    if (0 != crowded->rails.from_ns && span_ns >= R2_CROWDED_LOOK_NS &&
        span_ns < R2_CROWDED_SPAN * R2_CROWDED_LOOK_NS) {
        bytes_per_s = (uint64_t) ((unsigned __int128) (now->bytes - crowded->rails.from_bytes) *
                                  R2_NS_PER_S / span_ns);
    }
    crowded->rails.carry =
        r2_min(bytes_per_s, crowded->rails.before_bytes_per_s) > now->slow_bytes_per_s;
    crowded->rails.before_bytes_per_s = bytes_per_s;
    crowded->rails.from_ns = now->now_ns;
    crowded->rails.from_bytes = now->bytes;
}

/* Where it is remembered. Another one's place may be taken, which then starts again. */
static r2_crowded_call_t *r2_crowded_call(r2_crowded_t *crowded, const r2_crowded_call_t *is)
{
    const uint64_t hash = ((is->bytes * 31 + (uint32_t) is->size) * 31 + is->kind) * 31 + is->coll;
    r2_crowded_call_t *call =
        &crowded->calls[(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) % R2_CROWDED_CALLS];

    if (call->kind != is->kind || call->coll != is->coll || call->size != is->size ||
        call->bytes != is->bytes) {
        *call = (r2_crowded_call_t){
            .kind = is->kind, .coll = is->coll, .size = is->size, .bytes = is->bytes};
    }
    return call;
}

/* The calls have their plans, and are used to them. */
static bool r2_crowded_is_warm(r2_crowded_call_t *call, uint64_t took_ns)
{
    call->since_ns += took_ns;
    return ++call->since > R2_TRIAL_WARM ||
           (call->since > R2_TRIAL_SKIPPED && call->since_ns > R2_TRIAL_WARM_NS);
}

/* Others may have had the processor, so it is tried again, each time after more calls, and has to
 * gain then. */
static void r2_crowded_lose(r2_crowded_trial_t *trial)
{
    const uint32_t lost = trial->losses + 1;

    *trial = (r2_crowded_trial_t){
        .lost = true,
        .losses = lost,
        .rest = lost <= R2_TRIAL_AGAIN ? R2_TRIAL_REST << (2 * trial->losses) : 0};
}

/* One more call without. @return is it tried? */
static bool r2_crowded_rests(r2_crowded_trial_t *trial)
{
    if (trial->lost && 0 != trial->rest && 0 == --trial->rest) {
        trial->lost = false;
    }
    return !trial->lost;
}

static void r2_crowded_judge(r2_crowded_trial_t *trial, uint64_t before_ns, uint64_t took_ns)
{
    bool twice;

    took_ns = r2_min(took_ns, R2_TRIAL_TIMES * before_ns);
    trial->gained_ns += (int64_t) before_ns - (int64_t) took_ns;
    trial->took_ns += before_ns;
    ++trial->judged;
    twice = trial->judged >= R2_TRIAL_FEWEST && -trial->gained_ns > (int64_t) trial->took_ns;
    if ((trial->judged < R2_TRIAL_CALLS && !twice) || trial->took_ns < R2_TRIAL_LEAST_NS) {
        return;
    }
    trial->lost = 0 != trial->losses ? trial->gained_ns < 0
                                     : -R2_TRIAL_PART * trial->gained_ns > (int64_t) trial->took_ns;
    if (trial->lost) {
        r2_crowded_lose(trial);
        return;
    }
    trial->losses = R2_TRIAL_PART * trial->gained_ns > (int64_t) trial->took_ns ? 0 : trial->losses;
    trial->gained_ns /= 2;
    trial->took_ns /= 2;
    trial->judged = 0;
}

void r2_crowded_called(r2_crowded_t *crowded, const r2_crowded_call_t *is, uint64_t took_ns,
                       const r2_cost_params_t *used)
{
    r2_crowded_trial_t *trial = &crowded->trials[is->kind + r2_cost_crowded_bit(is->bytes)];
    r2_crowded_call_t *call = r2_crowded_call(crowded, is);

    if (r2_cost_is_crowded(used, is->kind, is->bytes)) {
        if (trial->used && call->before >= R2_TRIAL_BEFORE && r2_crowded_is_warm(call, took_ns)) {
            r2_crowded_judge(trial, r2_max(call->before_ns / call->before, (uint64_t) 1), took_ns);
        }
        return;
    }
    if (!crowded->crowded) { /* free cores would be no measure for what is tried */
        return;
    }
    if (R2_TRIAL_KEEP == call->before) {
        call->before /= 2;
        call->before_ns /= 2;
    }
    call->before_ns += took_ns;
    call->since = 0;
    call->since_ns = 0;
    if (++call->before >= R2_TRIAL_BEFORE && crowded->rails.carry) {
        trial->used = r2_crowded_rests(trial);
    }
}

uint32_t r2_crowded_told(const r2_crowded_t *crowded)
{
    uint32_t told = 0;

    for (uint32_t i = 0; crowded->crowded && i < R2_CROWDED_TRIALS; ++i) {
        told |= (uint32_t) crowded->trials[i].used << i;
    }
    return told;
}
