/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Shares of the vector that hosts own in a weighted direct exchange.
 *
 * All in fixed point with 32 binary digits: rates as parts of the fastest host's, times as
 * multiples of what that host needs to send the whole vector once.
 */
#include "r2_config.h"

#include "plan/shares.h"

#include <stdlib.h>

#include "base/util.h"

/* Bisection of the time ends at 1/2^20 of it, or gives up above 4096 times the bound. */
#define R2_TIME_STEPS  20u
#define R2_TIME_DOUBLE 12u
/* Rounding of a sum of shares. */
#define R2_SHARE_SLACK ((uint64_t) 1 << 12)

typedef unsigned __int128 r2_wide_t;

typedef struct solver {
    const r2_classes_t *classes; /* borrowed */
    uint64_t fastest;            /* rate of the fastest host */
    uint64_t *share;             /* owned; [class] */
} solver_t;

static uint64_t r2_times(uint64_t a, uint64_t b)
{
    return (uint64_t) ((r2_wide_t) a * b >> 32);
}

static uint64_t r2_over(uint64_t a, uint64_t b)
{
    return (uint64_t) (((r2_wide_t) a << 32) / b);
}

static const r2_class_t *class_at(const solver_t *solver, uint32_t k)
{
    return &solver->classes->classes[k];
}

/** By what a host's traffic grows with its share: members elsewhere less its own. */
static int64_t r2_class_growth(const r2_classes_t *classes, uint32_t k)
{
    return (int64_t) classes->member_count - 2 * (int64_t) classes->classes[k].members;
}

static uint64_t r2_class_rate(const solver_t *solver, uint32_t k)
{
    return r2_over(class_at(solver, k)->rate, solver->fastest);
}

/** Largest share with which a host of the class keeps up. */
static uint64_t r2_class_limit(const solver_t *solver, uint32_t k, uint64_t time)
{
    const uint64_t able = r2_times(time, r2_class_rate(solver, k));
    const uint64_t own = (uint64_t) class_at(solver, k)->members * R2_SHARE_ONE;

    return able <= own ? 0 : (able - own) / (uint64_t) r2_class_growth(solver->classes, k);
}

static uint64_t r2_share_sum(const solver_t *solver)
{
    uint64_t sum = 0;

    for (uint32_t k = 0; k < solver->classes->count; ++k) {
        sum += class_at(solver, k)->hosts * solver->share[k];
    }
    return sum;
}

/** The time from which on no share is negative and they sum to 1: exact where pairs set no
 * limit. */
static uint64_t r2_solver_time(const solver_t *solver)
{
    uint64_t slowest = 0, own = R2_SHARE_ONE, rates = 0;

    for (uint32_t k = 0; k < solver->classes->count; ++k) {
        const r2_class_t *class = class_at(solver, k);
        const uint64_t growth = (uint64_t) r2_class_growth(solver->classes, k);
        const uint64_t members = (uint64_t) class->members * R2_SHARE_ONE;

        if (0 == class->rate) {
            continue;
        }
        slowest = r2_max(slowest, r2_over(members, r2_class_rate(solver, k)));
        own += class->hosts * members / growth;
        rates += class->hosts * r2_class_rate(solver, k) / growth;
    }
    return r2_max(slowest, r2_over(own, r2_max(rates, 1u)));
}

/** Scales shares that sum to more than 1. */
static void r2_scale_down(solver_t *solver)
{
    const uint64_t sum = r2_share_sum(solver);

    for (uint32_t k = 0; sum > R2_SHARE_ONE && k < solver->classes->count; ++k) {
        solver->share[k] = r2_over(solver->share[k], sum);
    }
}

static void r2_take_away(solver_t *solver, uint32_t k, uint32_t members, uint64_t *excess)
{
    const uint64_t taken = r2_min(solver->share[k], *excess / members);

    solver->share[k] -= taken;
    *excess -= taken * members;
}

/**
 * Makes one pair of classes keep to the rails it shares. The class of fewer hosts gives way first:
 * the sum loses less. @return false: it did already.
 */
static bool r2_relieve_pair(solver_t *solver, uint32_t k, uint32_t l, uint64_t time)
{
    const r2_class_t *a = class_at(solver, k), *b = class_at(solver, l);
    const uint64_t able = r2_times(
        time, r2_over(solver->classes->pairs[k * solver->classes->count + l], solver->fastest));
    const uint64_t asked = a->members * solver->share[l] + b->members * solver->share[k];
    uint64_t excess = asked - r2_min(asked, able);

    if (excess <= R2_SHARE_SLACK || !r2_classes_paired(solver->classes, k, l)) {
        return false;
    }
    if (a->hosts == b->hosts) {
        solver->share[k] = (uint64_t) ((r2_wide_t) solver->share[k] * able / asked);
        solver->share[l] =
            k == l ? solver->share[k] : (uint64_t) ((r2_wide_t) solver->share[l] * able / asked);
    } else if (a->hosts < b->hosts) {
        r2_take_away(solver, k, b->members, &excess);
        r2_take_away(solver, l, a->members, &excess);
    } else {
        r2_take_away(solver, l, a->members, &excess);
        r2_take_away(solver, k, b->members, &excess);
    }
    return true;
}

static bool r2_relieve_pairs(solver_t *solver, uint64_t time)
{
    const uint32_t count = solver->classes->count;
    bool any = false;

    for (uint32_t k = 0; k < count; ++k) {
        for (uint32_t l = k; l < count; ++l) {
            any = r2_relieve_pair(solver, k, l, time) || any;
        }
    }
    return any;
}

/** Starts from what each host keeps up with. */
static void r2_shares_start(solver_t *solver, uint64_t time)
{
    for (uint32_t k = 0; k < solver->classes->count; ++k) {
        solver->share[k] = r2_min(r2_class_limit(solver, k, time), R2_SHARE_ONE);
    }
}

/** Finds shares for a time. @return false: none found that keep to it. */
static bool r2_shares_within(solver_t *solver, uint64_t time)
{
    r2_shares_start(solver, time);
    r2_scale_down(solver);
    if (NULL == solver->classes->pairs || !r2_relieve_pairs(solver, time)) {
        return true;
    }
    /* the most that pairs leave to all hosts; what is too much is scaled away afterwards */
    r2_shares_start(solver, time);
    r2_relieve_pairs(solver, time);
    if (r2_share_sum(solver) + R2_SHARE_SLACK < R2_SHARE_ONE) {
        return false;
    }
    r2_scale_down(solver);
    return true;
}

/** Shares for the least time. @return false: no time is long enough. */
static bool r2_solve_pairs(solver_t *solver)
{
    uint64_t low = r2_solver_time(solver), high = low, best;

    if (r2_shares_within(solver, low)) {
        return true;
    }
    for (uint32_t i = 0; i < R2_TIME_DOUBLE && high < UINT64_MAX / 4; ++i) {
        high *= 2;
        if (r2_shares_within(solver, high)) {
            break;
        }
        low = high;
    }
    best = high;
    for (uint32_t i = 0; low < high && i < R2_TIME_STEPS; ++i) {
        uint64_t middle = low + (best - low) / 2;

        if (r2_shares_within(solver, middle)) {
            best = middle;
        } else {
            low = middle;
        }
    }
    return r2_shares_within(solver, best);
}

static r2_status_t r2_shares_alloc(r2_shares_t *shares, const r2_classes_t *classes)
{
    *shares = (r2_shares_t){.host_count = classes->host_count, .routable = true};
    shares->weight = malloc((size_t) classes->host_count * sizeof(*shares->weight));
    return NULL == shares->weight ? R2_ERR_NO_MEMORY : R2_OK;
}

static bool r2_all_hosts_reach(const r2_classes_t *classes)
{
    for (uint32_t k = 0; k < classes->count; ++k) {
        for (uint32_t l = k; NULL != classes->pairs && l < classes->count; ++l) {
            if (r2_classes_paired(classes, k, l) && 0 == classes->pairs[k * classes->count + l]) {
                return false;
            }
        }
        if (0 == classes->classes[k].rate) {
            return 1 == classes->host_count;
        }
    }
    return true;
}

r2_status_t r2_shares_equal(r2_shares_t *shares, const r2_classes_t *classes)
{
    r2_status_t status = r2_shares_alloc(shares, classes);

    for (uint32_t h = 0; R2_OK == status && h < classes->host_count; ++h) {
        shares->weight[h] = classes->classes[classes->class_of[h]].members * R2_SHARE_ONE;
    }
    shares->routable = r2_all_hosts_reach(classes);
    return status;
}

/** Where the closed form has no meaning: see r2_shares_solve(). */
static bool r2_keeps_equal(const r2_classes_t *classes)
{
    uint64_t fastest = 0;

    for (uint32_t k = 0; k < classes->count; ++k) {
        if (r2_class_growth(classes, k) <= 0) {
            return true;
        }
        fastest = r2_max(fastest, classes->classes[k].rate);
    }
    return 0 == fastest;
}

static uint64_t r2_fastest_rate(const r2_classes_t *classes)
{
    uint64_t fastest = 1;

    for (uint32_t k = 0; k < classes->count; ++k) {
        fastest = r2_max(fastest, classes->classes[k].rate);
    }
    return fastest;
}

/** Hosts without a rail: nothing reaches them, so the exchange cannot run as it is. */
static bool r2_has_dead_host(const r2_classes_t *classes)
{
    for (uint32_t k = 0; k < classes->count; ++k) {
        if (0 == classes->classes[k].rate) {
            return true;
        }
    }
    return false;
}

r2_status_t r2_shares_solve(r2_shares_t *shares, const r2_classes_t *classes)
{
    solver_t solver = {.classes = classes, .fastest = r2_fastest_rate(classes)};
    r2_status_t status;

    if (r2_keeps_equal(classes)) {
        return r2_shares_equal(shares, classes);
    }
    status = r2_shares_alloc(shares, classes);
    solver.share = calloc(classes->count, sizeof(*solver.share));
    if (NULL == solver.share || R2_OK != status) {
        free(solver.share);
        r2_shares_fini(shares);
        return R2_ERR_NO_MEMORY;
    }
    shares->routable = r2_solve_pairs(&solver) && !r2_has_dead_host(classes);
    if (!shares->routable && 0 == r2_share_sum(&solver)) {
        /* every pair lacks a rail: each host keeps what it can, and messages go round about */
        for (uint32_t k = 0; k < classes->count; ++k) {
            solver.share[k] = r2_class_limit(&solver, k, 2 * r2_solver_time(&solver));
        }
    }
    for (uint32_t h = 0; h < classes->host_count; ++h) {
        shares->weight[h] = solver.share[classes->class_of[h]];
    }
    free(solver.share);
    return R2_OK;
}

void r2_shares_fini(r2_shares_t *shares)
{
    free(shares->weight);
    shares->weight = NULL;
}

bool r2_shares_are_equal(const r2_shares_t *shares, const r2_classes_t *classes)
{
    const uint64_t members = classes->classes[classes->class_of[0]].members;

    for (uint32_t h = 1; h < shares->host_count; ++h) {
        if ((r2_wide_t) shares->weight[h] * members !=
            (r2_wide_t) shares->weight[0] * classes->classes[classes->class_of[h]].members) {
            return false;
        }
    }
    return true;
}

static uint64_t *r2_weights_of_ranks(const r2_shares_t *shares, const r2_topology_t *topology)
{
    uint64_t *weights = calloc((size_t) topology->rank_count, sizeof(*weights));
    uint64_t *ranks = calloc(topology->host_count, sizeof(*ranks));

    if (NULL != weights && NULL != ranks) {
        for (int32_t r = 0; r < topology->rank_count; ++r) {
            ++ranks[topology->host_of[r]];
        }
        for (int32_t r = 0; r < topology->rank_count; ++r) {
            const uint32_t host = topology->host_of[r];

            weights[r] = shares->weight[host] / ranks[host];
        }
    } else {
        free(weights);
        weights = NULL;
    }
    free(ranks);
    return weights;
}

r2_status_t r2_shares_layout(const r2_shares_t *shares, const r2_topology_t *topology,
                             uint64_t count, uint64_t element_bytes, r2_layout_t *layout_p)
{
    uint64_t *weights = r2_weights_of_ranks(shares, topology);
    r2_status_t status;

    if (NULL == weights) {
        return R2_ERR_NO_MEMORY;
    }
    status = r2_layout_weighted(layout_p, topology->rank_count, weights, count, element_bytes);
    free(weights);
    return status;
}
