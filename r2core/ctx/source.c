/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The table of sources.
 */
#include "r2_config.h"

#include "ctx/source.h"

#include "base/clock.h"
#include "base/util.h"

void r2_sources_add(r2_sources_t *sources, const r2_source_t *source)
{
    r2_assert(sources->count < R2_SOURCES_MAX && (NULL != source->poll || source->fd >= 0));
    sources->at[sources->count] = *source;
    sources->at[sources->count++].ready = source->fd < 0;
}

uint64_t r2_sources_deadline_ns(const r2_sources_t *sources)
{
    uint64_t deadline_ns = R2_NEVER_NS;

    for (uint32_t i = 0; i < sources->count; ++i) {
        const r2_source_t *source = &sources->at[i];

        if (NULL != source->deadline_ns) {
            deadline_ns = r2_min(deadline_ns, source->deadline_ns(source->instance));
        }
    }
    return deadline_ns;
}

void r2_sources_flush(const r2_sources_t *sources)
{
    for (uint32_t i = 0; i < sources->count; ++i) {
        if (NULL != sources->at[i].flush) {
            sources->at[i].flush(sources->at[i].instance);
        }
    }
}
