/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What collectives are made of, as a table.
 */
#ifndef R2_PLAN_KINDS_H
#define R2_PLAN_KINDS_H

#include <stdbool.h>

#include "r2/coll.h"
#include "r2/schedule.h"

/** What gives the length of the whole vector (base/coll_kinds.def). */
typedef enum r2_span {
    R2_SPAN_NONE,
    R2_SPAN_VECTOR,
    R2_SPAN_BLOCKS,
    R2_SPAN_COUNTS,
    R2_SPAN_EDGES
} r2_span_t;

typedef struct r2_kind {
    const char *name; /* as in the name of the MPI call */
    r2_span_t span;
    bool reduces; /* elements matter */
    bool rooted;
} r2_kind_t;

/** An op of the table. @param kind below R2_COLL_KIND_COUNT. */
const r2_kind_t *r2_kind(r2_coll_kind_t kind);

/** True if that is the digest of a plan for a collective of this kind. */
bool r2_kind_has_digest(r2_coll_kind_t kind, uint32_t digest);

#endif
