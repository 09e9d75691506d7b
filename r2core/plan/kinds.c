/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What collectives are made of, as a table.
 */
#include "r2_config.h"

#include "plan/kinds.h"

#include <assert.h>

static const r2_kind_t kinds[R2_COLL_KIND_COUNT] = {
#define R2_COLL_KIND(id, text, length, folds, has_root) \
    [R2_COLL_##id] = {                                  \
        .name = (text), .span = R2_SPAN_##length, .reduces = (folds), .rooted = (has_root)},
#include "base/coll_kinds.def"
#undef R2_COLL_KIND
};

static_assert(R2_COLL_KIND_COUNT <= 1u << R2_DIGEST_KIND_BITS, "a digest holds any kind");

const r2_kind_t *r2_kind(r2_coll_kind_t kind)
{
    return &kinds[kind];
}

bool r2_kind_has_digest(r2_coll_kind_t kind, uint32_t digest)
{
    return (uint32_t) kind == (digest & ((1u << R2_DIGEST_KIND_BITS) - 1));
}
