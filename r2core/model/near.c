/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which rails are near a GPU, and which lane that decides. Pure.
 */
#include "r2_config.h"

#include "r2/near.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"

/* As many steps as there are different keys, the least is step 0. */
static void r2_near_rank(const uint32_t *keys, size_t count, r2_near_t *near_p)
{
    memset(near_p, 0, sizeof(*near_p));
    for (size_t i = 0; i < count; ++i) {
        for (size_t other = 0; other < count; ++other) {
            bool is_new = keys[other] < keys[i];

            for (size_t before = 0; is_new && before < other; ++before) {
                is_new = keys[before] != keys[other];
            }
            near_p->steps[i] = (uint8_t) (near_p->steps[i] + (is_new ? 1 : 0));
        }
        near_p->tells = near_p->tells || near_p->steps[i] > 0;
    }
}

void r2_near_find(const r2_nic_t *nics, size_t nic_count, const r2_gpu_place_t *places,
                  size_t place_count, r2_near_gpus_t *gpus_p)
{
    memset(gpus_p, 0, sizeof(*gpus_p));
    for (; gpus_p->count < place_count; ++gpus_p->count) {
        const r2_gpu_place_t *place = &places[gpus_p->count];
        r2_near_gpu_t *gpu = &gpus_p->of[gpus_p->count];
        uint32_t itself[R2_RAILS_MAX] = {0}, copies[R2_RAILS_MAX] = {0};

        for (size_t i = 0; i < nic_count; ++i) {
            itself[i] = place->distances[i];
            copies[i] = nics[i].distance * R2_GPU_DISTANCES + place->distances[i];
        }
        snprintf(gpu->pci, sizeof(gpu->pci), "%s", place->pci);
        r2_near_rank(itself, nic_count, &gpu->itself);
        r2_near_rank(copies, nic_count, &gpu->copies);
    }
}

const r2_near_gpu_t *r2_near_of(const r2_near_gpus_t *gpus, const char *pci)
{
    for (size_t i = 0; i < gpus->count; ++i) {
        if (0 == strcmp(gpus->of[i].pci, pci)) {
            return gpus->of[i].itself.tells || gpus->of[i].copies.tells ? &gpus->of[i] : NULL;
        }
    }
    return NULL;
}

/* Messages to many peers leave at once: by lanes that are all idle, and one rail if that alone
 * counted. */
bool r2_near_is_first(const r2_near_lane_t *a, const r2_near_lane_t *b, uint64_t chunk_bytes)
{
    const uint64_t part_bytes = r2_max(chunk_bytes / R2_NEAR_PARTS, (uint64_t) 1);
    const uint64_t a_lane = a->under_way_bytes / part_bytes, a_rail = a->rail_bytes / part_bytes;
    const uint64_t b_lane = b->under_way_bytes / part_bytes, b_rail = b->rail_bytes / part_bytes;

    if (a_lane != b_lane) {
        return a_lane < b_lane;
    }
    if (a_rail != b_rail) {
        return a_rail < b_rail;
    }
    return a->step != b->step ? a->step < b->step : a->under_way_bytes < b->under_way_bytes;
}
