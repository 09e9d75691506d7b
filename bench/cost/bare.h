/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A bare UCX driver: r2's transfers without r2, to tell what r2 adds.
 */
#ifndef BENCH_COST_BARE_H
#define BENCH_COST_BARE_H

#include <stddef.h>

/*
 * What it shares with r2: UCX settings, one context and worker for each rail, packets of up to
 * chunk_bytes with a header, the pipelined ring, the reduction, and how it waits. What it lacks:
 * acknowledgements, windows, credit, replay, other threads, any answer to a failure.
 */
typedef struct bare bare_t;

/**
 * Connects each rank with the next one on every rail. Collective over MPI_COMM_WORLD.
 * @param rails names of NICs, separated by commas.
 * @return NULL: it could not be; the reason is on stderr.
 */
bare_t *bare_create(const char *rails, size_t chunk_bytes);
void bare_destroy(bare_t *bare);

/** Sum over all ranks, by a ring. What comes early for the next call is kept; for no later one can
 * it come. */
void bare_allreduce(bare_t *bare, const float *in, float *out, size_t count);
/** A barrier that also gets out what UCX has taken and the kernel had no room for. */
void bare_barrier(bare_t *bare);
/** Sum over two ranks, which send each other all they have. */
void bare_exchange(bare_t *bare, const float *in, float *out, size_t count);

#endif
