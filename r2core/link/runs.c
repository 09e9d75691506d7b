/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Runs of numbers: a sorted array, searched by distance from the watermark.
 */
#include "r2_config.h"

#include "link/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void r2_runs_fini(r2_runs_t *runs)
{
    free(runs->list);
    memset(runs, 0, sizeof(*runs));
}

r2_status_t r2_runs_reserve(r2_runs_t *runs, size_t more)
{
    size_t room = r2_max(2 * runs->room, (size_t) 16);
    r2_run_t *list;

    if (runs->count + more <= runs->room) {
        return R2_OK;
    }
    room = r2_max(room, runs->count + more);
    list = realloc(runs->list, room * sizeof(*list));
    if (NULL == list) {
        return R2_ERR_NO_MEMORY;
    }
    runs->list = list;
    runs->room = room;
    return R2_OK;
}

/* Index of the first run that ends at or after `number`. */
static size_t r2_runs_find(const r2_runs_t *runs, uint64_t watermark, uint64_t number)
{
    size_t low = 0, high = runs->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (runs->list[middle].last - watermark < number - watermark) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool r2_runs_has(const r2_runs_t *runs, uint64_t watermark, uint64_t number)
{
    size_t at = r2_runs_find(runs, watermark, number);

    return at < runs->count && runs->list[at].first - watermark <= number - watermark;
}

void r2_runs_add(r2_runs_t *runs, uint64_t watermark, uint64_t number)
{
    size_t at = r2_runs_find(runs, watermark, number);
    bool follows = at > 0 && runs->list[at - 1].last + 1 == number;
    bool precedes = at < runs->count && runs->list[at].first == number + 1;

    r2_assert(!r2_runs_has(runs, watermark, number));
    if (follows && precedes) {
        runs->list[at - 1].last = runs->list[at].last;
        --runs->count;
        memmove(&runs->list[at], &runs->list[at + 1], (runs->count - at) * sizeof(*runs->list));
    } else if (follows) {
        runs->list[at - 1].last = number;
    } else if (precedes) {
        runs->list[at].first = number;
    } else {
        r2_assert(runs->count < runs->room);
        memmove(&runs->list[at + 1], &runs->list[at], (runs->count - at) * sizeof(*runs->list));
        runs->list[at] = (r2_run_t){number, number};
        ++runs->count;
    }
}

bool r2_runs_take_first(r2_runs_t *runs, uint64_t number)
{
    if (0 == runs->count || runs->list[0].first != number) {
        return false;
    }
    if (runs->list[0].last == number) {
        --runs->count;
        memmove(&runs->list[0], &runs->list[1], runs->count * sizeof(*runs->list));
    } else {
        ++runs->list[0].first;
    }
    return true;
}
