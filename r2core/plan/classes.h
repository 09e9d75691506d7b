/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hosts with equal rails and equally many ranks form a class: they get equal shares.
 */
#ifndef R2_PLAN_CLASSES_H
#define R2_PLAN_CLASSES_H

#include "r2/topology.h"

/* Pairs of classes are looked at one by one. Beyond this many classes what pairs share is not. */
#define R2_CLASSES_PAIRED_MAX 32u

/** What takes part in an exchange: all ranks, or one for each host (hierarchical forms). */
typedef enum r2_members { R2_MEMBERS_RANKS, R2_MEMBERS_HOSTS } r2_members_t;

typedef struct r2_class {
    uint32_t hosts;   /* how many */
    uint32_t first;   /* one of them */
    uint32_t members; /* on each host */
    uint64_t rate;    /* of a host, all rails, sixteenths of MB/s */
} r2_class_t;

typedef struct r2_classes {
    r2_class_t *classes; /* owned */
    uint32_t count;
    uint32_t *class_of; /* owned; [host] */
    uint64_t *pairs;    /* owned; [class * count + class], rate between a host of each; NULL: not
                           looked at */
    uint32_t host_count;
    uint64_t member_count; /* in all */
} r2_classes_t;

/** @return R2_OK or R2_ERR_NO_MEMORY. */
r2_status_t r2_classes_init(r2_classes_t *classes, const r2_topology_t *topology,
                            r2_members_t members);
void r2_classes_fini(r2_classes_t *classes);

/** Do two hosts, one of each class, exist, so that the pair counts? */
static inline bool r2_classes_paired(const r2_classes_t *classes, uint32_t k, uint32_t l)
{
    return k != l || classes->classes[k].hosts > 1;
}

#endif
