/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Where the buffers of the benchmarks are: memory of the host, or of a GPU. What is in a GPU's
 * memory is written and read by copies of the CUDA driver, which is opened at run time.
 */
#ifndef R2_BENCH_PLACE_H
#define R2_BENCH_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/** Values of -d. */
typedef enum r2_bench_place {
    R2_BENCH_IN_HOST,
    R2_BENCH_IN_DEVICE,  /* cuda */
    R2_BENCH_IN_MANAGED, /* moves between GPU and host as they touch it */
} r2_bench_place_t;

/** @return false if no place is called that. */
bool r2_bench_place_find(const char *name, r2_bench_place_t *place_p);

/** The name as -d takes it. */
const char *r2_bench_place_name(r2_bench_place_t place);

/**
 * Opens the driver and makes a GPU's context the current one of this thread; nothing for the host.
 * @param local_rank of this process among those of its host: GPUs are dealt out in turn
 * @param text_p     why not
 * @return false if there is no driver, or no device.
 */
bool r2_bench_place_open(r2_bench_place_t place, int local_rank, char *text_p, size_t text_bytes);

/** Undoes open, also one that failed. */
void r2_bench_place_close(void);

/** Memory of a GPU, which only the driver and MPI may touch. @return NULL if there is none left. */
void *r2_bench_place_alloc(r2_bench_place_t place, size_t bytes);

/** Releases memory of alloc; NULL is nothing. */
void r2_bench_place_free(void *memory);

/** Copies to and from memory of a GPU; both have been carried out when they return. An error ends
 * the job. */
void r2_bench_place_write(void *to, const void *from, size_t bytes);
void r2_bench_place_read(void *to, const void *from, size_t bytes);

#endif
