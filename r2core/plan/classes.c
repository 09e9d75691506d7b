/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hosts with equal rails and equally many ranks form a class.
 *
 * Exchanges are symmetric in the hosts of a class, and what bounds them is convex in the shares, so
 * giving each host of a class the mean of their shares is never slower.
 */
#include "r2_config.h"

#include "plan/classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static bool r2_host_has_cut(const r2_topology_t *topology, uint32_t host)
{
    for (uint32_t c = 0; c < topology->cut_count; ++c) {
        if (topology->cuts[c].host_a == host || topology->cuts[c].host_b == host) {
            return true;
        }
    }
    return false;
}

static bool r2_same_rails(const r2_topology_t *topology, uint32_t a, uint32_t b)
{
    const size_t rails = topology->rail_count;

    return 0 == memcmp(&topology->capacity[a * rails], &topology->capacity[b * rails], rails) &&
           0 == memcmp(&topology->rate_mbytes_per_s[a * rails],
                       &topology->rate_mbytes_per_s[b * rails],
                       rails * sizeof(*topology->rate_mbytes_per_s));
}

/** The class that a host belongs to, or classes->count. */
static uint32_t r2_class_find(const r2_classes_t *classes, const r2_topology_t *topology,
                              const r2_class_t *host)
{
    uint32_t k = 0;

    /* rates first: cheap, and they differ where rails do, but for few */
    while (k < classes->count &&
           (classes->classes[k].rate != host->rate ||
            classes->classes[k].members != host->members ||
            r2_host_has_cut(topology, classes->classes[k].first) ||
            !r2_same_rails(topology, classes->classes[k].first, host->first))) {
        ++k;
    }
    return k;
}

static void r2_classes_fill(r2_classes_t *classes, const r2_topology_t *topology,
                            const uint32_t *members)
{
    for (uint32_t h = 0; h < topology->host_count; ++h) {
        const r2_class_t host = {.hosts = 1,
                                 .first = h,
                                 .members = members[h],
                                 .rate = r2_topology_host_rate(topology, h)};
        /* with many classes searching costs more than it saves: later hosts are alone */
        bool alone = r2_host_has_cut(topology, h) || classes->count >= 2 * R2_CLASSES_PAIRED_MAX;
        uint32_t k = alone ? classes->count : r2_class_find(classes, topology, &host);

        if (k == classes->count) {
            classes->classes[classes->count++] = host;
        } else {
            ++classes->classes[k].hosts;
        }
        classes->class_of[h] = k;
        classes->member_count += members[h];
    }
}

/** Another host of the same class than its first; the first if there is none. */
static uint32_t r2_class_second(const r2_classes_t *classes, uint32_t k)
{
    for (uint32_t h = classes->classes[k].first + 1;
         classes->classes[k].hosts > 1 && h < classes->host_count; ++h) {
        if (classes->class_of[h] == k) {
            return h;
        }
    }
    return classes->classes[k].first;
}

static r2_status_t r2_classes_pair(r2_classes_t *classes, const r2_topology_t *topology)
{
    const uint32_t count = classes->count;

    if (count > R2_CLASSES_PAIRED_MAX) {
        return R2_OK;
    }
    classes->pairs = malloc((size_t) count * count * sizeof(*classes->pairs));
    if (NULL == classes->pairs) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t k = 0; k < count; ++k) {
        for (uint32_t l = 0; l < count; ++l) {
            uint32_t other = k == l ? r2_class_second(classes, k) : classes->classes[l].first;

            classes->pairs[k * count + l] =
                r2_topology_pair_rate(topology, classes->classes[k].first, other);
        }
    }
    return R2_OK;
}

r2_status_t r2_classes_init(r2_classes_t *classes, const r2_topology_t *topology,
                            r2_members_t members)
{
    const size_t hosts = topology->host_count;
    uint32_t *counts = calloc(hosts, sizeof(*counts));
    r2_status_t status = R2_ERR_NO_MEMORY;

    *classes = (r2_classes_t){.host_count = topology->host_count,
                              .classes = malloc(hosts * sizeof(*classes->classes)),
                              .class_of = malloc(hosts * sizeof(*classes->class_of))};
    if (NULL != counts && NULL != classes->classes && NULL != classes->class_of) {
        for (int32_t r = 0; r < topology->rank_count; ++r) {
            uint32_t *count = &counts[topology->host_of[r]];

            *count = R2_MEMBERS_HOSTS == members ? 1 : *count + 1;
        }
        r2_classes_fill(classes, topology, counts);
        status = r2_classes_pair(classes, topology);
    }
    free(counts);
    if (R2_OK != status) {
        r2_classes_fini(classes);
    }
    return status;
}

void r2_classes_fini(r2_classes_t *classes)
{
    free(classes->classes);
    free(classes->class_of);
    free(classes->pairs);
    *classes = (r2_classes_t){.count = 0};
}
