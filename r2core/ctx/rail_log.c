/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Log lines about rails: wording, and folding of what repeats itself.
 */
#include "r2_config.h"

#include "ctx/rail_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/util.h"
#include "model/health_map.h"
#include "r2/nic.h"

#define R2_RAIL_LOG_AT_ONCE 2u /* lines: it went, it came back */

/** What is known of one rail or way. */
typedef struct r2_rail_subject {
    struct r2_rail_subject *prev, *next;
    uint32_t host, other, rail;
    char name[240]; /* how its lines begin */
    char host_name[64], from[64];
    r2_verdict_t verdict;
    uint32_t capacity, left, all;
    bool is_way, broken; /* now */
    /* broken: first evidence; else when it was that, for how long it took */
    uint64_t since_ns;
    /* when to tell what its own host should have told; 0: nothing is held */
    uint64_t held_ns;
    uint64_t window_ns; /* start of the interval; 0: none */
    uint64_t interval_ns;
    uint32_t spoken; /* lines in this interval */
    uint32_t folded; /* changes that had no line */
    uint32_t breaks; /* of these, times that it broke */
} r2_rail_subject_t;

struct r2_rail_log {
    const r2_log_t *log; /* borrowed: outlives this */
    int64_t wall_offset_ns;
    r2_rail_subject_t *subjects; /* owned list, newest change last */
    uint32_t count;
};

r2_rail_log_t *r2_rail_log_create(const r2_log_t *log, int64_t wall_offset_ns)
{
    r2_rail_log_t *rails = calloc(1, sizeof(*rails));

    if (NULL != rails) {
        rails->log = log;
        rails->wall_offset_ns = wall_offset_ns;
    }
    return rails;
}

/* ---- wording ---- */

static void r2_rail_time(const r2_rail_log_t *rails, uint64_t at_ns, char *text_p, size_t bytes)
{
    const time_t at_s =
        (time_t) (((int64_t) at_ns + rails->wall_offset_ns) / (int64_t) R2_NS_PER_S);
    struct tm local;

    if (NULL == localtime_r(&at_s, &local) || 0 == strftime(text_p, bytes, "%H:%M:%S", &local)) {
        snprintf(text_p, bytes, "an unknown time");
    }
}

/* What is wrong, as an admin would look for it. */
static const char *r2_rail_wrong(const r2_rail_subject_t *at)
{
    if (R2_VERDICT_PLANE == at->verdict) {
        return "is dead (its switch: other hosts lost it, too)";
    }
    if (R2_VERDICT_PATH == at->verdict) {
        return "does not pass (a switch or cable between the two)";
    }
    return R2_VERDICT_AMBIGUOUS == at->verdict
               ? "does not pass (the NIC, cable or switch port of one of the two)"
               : "is dead (NIC, cable or switch port)";
}

static void r2_rail_left(const r2_rail_subject_t *at, char *text_p, size_t bytes)
{
    snprintf(text_p, bytes, "%s with %u of %u rails", at->is_way ? "they go on" : "the job goes on",
             at->left, at->all);
}

/* What it is now, without the time. */
static void r2_rail_now(const r2_rail_subject_t *at, char *text_p, size_t bytes)
{
    char left[64];

    r2_rail_left(at, left, sizeof(left));
    if (!at->broken) {
        snprintf(text_p, bytes, "it is well now, with %u of %u rails", at->left, at->all);
    } else if (R2_VERDICT_SLOW == at->verdict) {
        snprintf(text_p, bytes, "it gives %u/%u of its rate now", at->capacity, R2_CAPACITY_FULL);
    } else {
        snprintf(text_p, bytes, "it %s; %s", r2_rail_wrong(at), left);
    }
}

static void r2_rail_speak_broken(const r2_rail_log_t *rails, const r2_rail_subject_t *at)
{
    char since[32], left[64], from[160] = "";

    r2_rail_time(rails, at->since_ns, since, sizeof(since));
    r2_rail_left(at, left, sizeof(left));
    if ('\0' != at->from[0]) {
        snprintf(from, sizeof(from), ", seen from %s; %s does not answer", at->from, at->host_name);
    }
    if (R2_VERDICT_SLOW == at->verdict) {
        r2_warn(rails->log,
                "%s gives %u/%u of its rate (NIC, cable, switch port or other traffic); since %s",
                at->name, at->capacity, R2_CAPACITY_FULL, since);
    } else {
        r2_warn(rails->log, "%s %s%s; %s; since %s", at->name, r2_rail_wrong(at), from, left,
                since);
    }
}

static void r2_rail_speak(const r2_rail_log_t *rails, const r2_rail_subject_t *at, uint64_t now_ns)
{
    if (at->broken) {
        r2_rail_speak_broken(rails, at);
        return;
    }
    r2_warn(rails->log, "%s is back after %.1f s; %u of %u rails work", at->name,
            (double) (now_ns - r2_min(at->since_ns, now_ns)) / R2_NS_PER_S, at->left, at->all);
}

/* All that had no line of its own. */
static void r2_rail_speak_folded(const r2_rail_log_t *rails, r2_rail_subject_t *at, uint64_t now_ns)
{
    char now[160];

    r2_rail_now(at, now, sizeof(now));
    r2_warn(rails->log, "%s changed %u more times in %.0f s, broken %u of these; %s", at->name,
            at->folded, (double) (now_ns - at->window_ns) / R2_NS_PER_S, at->breaks, now);
    at->folded = at->breaks = 0;
}

/* ---- subjects ---- */

static r2_rail_subject_t *r2_rail_find(r2_rail_log_t *rails, uint32_t host, uint32_t other,
                                       uint32_t rail)
{
    r2_rail_subject_t *at;

    DL_FOREACH(rails->subjects, at) {
        if (at->host == host && at->other == other && at->rail == rail) {
            return at;
        }
    }
    return NULL;
}

static void r2_rail_forget(r2_rail_log_t *rails, r2_rail_subject_t *at)
{
    DL_DELETE(rails->subjects, at);
    --rails->count;
    free(at);
}

/* "rail1 (mlx5_0:1) of h1", "mlx5_0:1 of h1" without IP: how its lines begin. */
static void r2_rail_title(const r2_rail_change_t *change, char *text_p, size_t bytes)
{
    char nic[2 * R2_NIC_NAME_MAX + 4];

    if (NULL == change->port || '\0' == change->port[0] || 0 == strcmp(change->port, change->nic)) {
        snprintf(nic, sizeof(nic), "%s", change->nic);
    } else {
        snprintf(nic, sizeof(nic), "%s (%s)", change->nic, change->port);
    }
    if (NULL != change->other_name) {
        snprintf(text_p, bytes, "%s between %s and %s", nic, change->host_name, change->other_name);
    } else {
        snprintf(text_p, bytes, "%s of %s", nic, change->host_name);
    }
}

static r2_rail_subject_t *r2_rail_subject(r2_rail_log_t *rails, const r2_rail_change_t *change,
                                          uint64_t now_ns)
{
    r2_rail_subject_t *at = r2_rail_find(rails, change->host, change->other, change->rail);

    if (NULL != at) {
        return at;
    }
    at = rails->subjects; /* longest without a change */
    if (NULL != at && rails->count >= R2_RAIL_LOG_SUBJECTS_MAX) {
        if (at->folded > 0) {
            r2_rail_speak_folded(rails, at, now_ns);
        }
        r2_rail_forget(rails, at);
    }
    at = calloc(1, sizeof(*at));
    if (NULL == at) {
        return NULL;
    }
    at->host = change->host;
    at->other = change->other;
    at->rail = change->rail;
    at->is_way = NULL != change->other_name;
    r2_rail_title(change, at->name, sizeof(at->name));
    snprintf(at->host_name, sizeof(at->host_name), "%s", change->host_name);
    DL_APPEND(rails->subjects, at);
    ++rails->count;
    return at;
}

static void r2_rail_set(r2_rail_subject_t *at, const r2_rail_change_t *change)
{
    const bool broken = change->capacity < R2_CAPACITY_FULL;

    at->verdict = change->verdict;
    at->capacity = change->capacity;
    at->left = change->left;
    at->all = change->all;
    if (broken) {
        at->since_ns = change->since_ns; /* kept when it comes back: how long it was gone */
    }
    at->broken = broken;
    snprintf(at->from, sizeof(at->from), "%s", NULL == change->from ? "" : change->from);
}

/* ---- changes ---- */

/* An interval is over: a quiet one ends the counting, else the next one is longer. */
static void r2_rail_next_window(const r2_rail_log_t *rails, r2_rail_subject_t *at, uint64_t now_ns)
{
    if (0 == at->folded) {
        at->window_ns = at->interval_ns = 0;
        at->spoken = 0;
        return;
    }
    r2_rail_speak_folded(rails, at, now_ns);
    at->window_ns = now_ns;
    at->interval_ns = r2_min(2 * at->interval_ns, R2_RAIL_LOG_INTERVAL_MAX_S * R2_NS_PER_S);
    at->spoken = R2_RAIL_LOG_AT_ONCE; /* it goes on flapping: nothing at once */
}

void r2_rail_log_change(r2_rail_log_t *rails, const r2_rail_change_t *change, uint64_t now_ns)
{
    r2_rail_subject_t *at = r2_rail_subject(rails, change, now_ns);
    bool was_broken;

    if (NULL == at) {
        return;
    }
    was_broken = at->broken;
    at->held_ns = 0;
    DL_DELETE(rails->subjects, at);
    DL_APPEND(rails->subjects, at);
    r2_rail_set(at, change);
    if (!was_broken && !at->broken) {
        return; /* nobody was told that it was */
    }
    if (0 != at->window_ns && now_ns >= at->window_ns + at->interval_ns) {
        r2_rail_next_window(rails, at, now_ns);
    }
    if (0 == at->window_ns) {
        at->window_ns = r2_max(now_ns, 1ull);
        at->interval_ns = R2_RAIL_LOG_INTERVAL_S * R2_NS_PER_S;
    }
    if (at->spoken < R2_RAIL_LOG_AT_ONCE) {
        ++at->spoken;
        r2_rail_speak(rails, at, now_ns);
        return;
    }
    ++at->folded;
    at->breaks += at->broken && !was_broken;
}

void r2_rail_log_hold(r2_rail_log_t *rails, const r2_rail_change_t *change, uint64_t now_ns)
{
    r2_rail_subject_t *at = r2_rail_subject(rails, change, now_ns);

    if (NULL != at && !at->broken && 0 == at->held_ns) {
        r2_rail_set(at, change);
        at->broken = false;
        at->held_ns = now_ns + R2_RAIL_LOG_HELD_S * R2_NS_PER_S;
    }
}

void r2_rail_log_release(r2_rail_log_t *rails, uint32_t host, uint32_t rail)
{
    r2_rail_subject_t *at = r2_rail_find(rails, host, UINT32_MAX, rail);

    if (NULL != at) {
        r2_rail_forget(rails, at);
    }
}

void r2_rail_log_tick(r2_rail_log_t *rails, uint64_t now_ns)
{
    r2_rail_subject_t *at, *next;

    DL_FOREACH_SAFE(rails->subjects, at, next) {
        if (0 != at->held_ns && now_ns >= at->held_ns) {
            at->held_ns = 0;
            at->broken = true;
            r2_rail_speak(rails, at, now_ns);
        }
        if (0 != at->window_ns && now_ns >= at->window_ns + at->interval_ns) {
            r2_rail_next_window(rails, at, now_ns);
        }
        if (0 == at->window_ns && 0 == at->held_ns && !at->broken) {
            r2_rail_forget(rails, at); /* nothing is left to be said of it */
        }
    }
}

uint64_t r2_rail_log_deadline_ns(const r2_rail_log_t *rails)
{
    uint64_t deadline_ns = R2_NEVER_NS;
    const r2_rail_subject_t *at;

    DL_FOREACH(rails->subjects, at) {
        if (0 != at->held_ns) {
            deadline_ns = r2_min(deadline_ns, at->held_ns);
        }
        if (0 != at->window_ns) {
            deadline_ns = r2_min(deadline_ns, at->window_ns + at->interval_ns);
        }
    }
    return deadline_ns;
}

void r2_rail_log_destroy(r2_rail_log_t *rails, uint64_t now_ns)
{
    r2_rail_subject_t *at, *next;

    DL_FOREACH_SAFE(rails->subjects, at, next) {
        if (at->folded > 0) {
            r2_rail_speak_folded(rails, at, now_ns);
        }
        r2_rail_forget(rails, at);
    }
    free(rails);
}
