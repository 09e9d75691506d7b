/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Arguments of the benchmarks.
 */
#ifndef R2_BENCH_OPTIONS_H
#define R2_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "place.h"
#include "task.h"

enum {
    R2_BENCH_MAX_FAULTS = 1024, /* of one run */
    R2_BENCH_MAX_WORDS = 8,     /* of one fault, without its time */
    R2_BENCH_MAX_SIZES = 64,    /* of a list of sizes */
};

/** Element types of -T. */
typedef enum r2_bench_type {
    R2_BENCH_CHAR,
    R2_BENCH_INT,
    R2_BENCH_FLOAT,
    R2_BENCH_DOUBLE,
} r2_bench_type_t;

/** Defects that --plant-error puts into the second iteration, to prove that validation finds them.
 * With all of them, defect number N is in iteration N, the first being 0. */
typedef enum r2_bench_plant {
    R2_BENCH_PLANT_NONE,
    R2_BENCH_PLANT_SUM,   /* one element of the result is wrong */
    R2_BENCH_PLANT_HOLE,  /* one element of the result was not written */
    R2_BENCH_PLANT_SEND,  /* the send buffer was changed */
    R2_BENCH_PLANT_GUARD, /* a byte behind the receive buffer was written */
    R2_BENCH_PLANT_EARLY, /* a rank left the barrier before the last one entered */
    R2_BENCH_PLANT_ALL,   /* all that the buffers can have, one after the other */
} r2_bench_plant_t;

/** One --fault: when, and the words that the fault command gets. */
typedef struct r2_bench_fault {
    char *text;                      /* owned: the words, as printed */
    char *words[R2_BENCH_MAX_WORDS]; /* owned by words[0]: null-terminated if fewer */
    unsigned words_count;
    bool at_iteration;  /* else at `seconds` */
    uint64_t iteration; /* of the measured ones, counted through all sizes */
    double seconds;     /* since the measured loop of the first size began */
} r2_bench_fault_t;

/** Everything that was asked for. */
typedef struct r2_bench_options {
    size_t min_bytes;
    size_t max_bytes;
    size_t sizes[R2_BENCH_MAX_SIZES]; /* sizes_count: a list in ascending order instead */
    unsigned sizes_count;
    uint64_t iterations;     /* 0: by size, as OSU does */
    uint64_t warmup;         /* UINT64_MAX: by size */
    uint64_t checked_warmup; /* with validation; UINT64_MAX: as warmup */
    size_t mem_limit_bytes;  /* of the buffers of one process */
    uint64_t tests;       /* calls of MPI_Test during the computation of a nonblocking collective */
    uint64_t window;      /* messages under way at a time, of point-to-point bandwidths */
    double seconds;       /* run each size this long; 0: count iterations */
    double line_rate;     /* of one host, MB/s; 0: unknown */
    r2_bench_type_t type; /* that is being measured */
    r2_bench_type_t types[4]; /* types_count: all that are asked for */
    unsigned types_count;
    int root;
    r2_bench_place_t place; /* of the buffers */
    r2_bench_plant_t plant;
    bool all_types;
    bool rooted;      /* a root was asked for */
    bool rotate_root; /* iteration i has rank i as its root */
    bool tails;       /* percentiles */
    bool full;
    bool validate;
    bool digest;
    bool progress;
    const char *csv;          /* borrowed: argv */
    const char *fault_cmd;    /* borrowed: argv */
    r2_bench_fault_t *faults; /* owned: faults_count */
    unsigned faults_count;
} r2_bench_options_t;

/** What the arguments ask the program to do. */
typedef enum r2_bench_request {
    R2_BENCH_RUN,
    R2_BENCH_HELP,
    R2_BENCH_VERSION,
    R2_BENCH_BAD, /* the error text says why */
} r2_bench_request_t;

/**
 * Reads the arguments; prints nothing.
 * @param error_p [256] text that names the bad argument, if R2_BENCH_BAD.
 */
r2_bench_request_t r2_bench_options_init(r2_bench_options_t *options, int argc, char **argv,
                                         const r2_bench_task_t *task, char *error_p);

/** Adds the value of a --fault. @return false if it is none, or there are too many. */
bool r2_bench_options_add_fault(r2_bench_options_t *options, const char *text);

/** Releases what init allocated. */
void r2_bench_options_fini(r2_bench_options_t *options);

/** Prints the usage text. */
void r2_bench_options_usage(const r2_bench_task_t *task, FILE *out);

/** The smallest message size, with the type that is being measured. */
size_t r2_bench_options_first(const r2_bench_options_t *options);

/** The size after that one, 0 after the last. */
size_t r2_bench_options_next(const r2_bench_options_t *options, size_t bytes);

/** The defect of iteration @p turn, counted through all sizes. */
r2_bench_plant_t r2_bench_options_plant(const r2_bench_options_t *options,
                                        const r2_bench_kind_t *kind, uint64_t turn);

/** Iterations of a size, without --seconds. */
uint64_t r2_bench_options_iterations(const r2_bench_options_t *options, size_t bytes);

/** Warm-up iterations of a size. */
uint64_t r2_bench_options_warmup(const r2_bench_options_t *options, size_t bytes);

/** Size of one element, bytes. */
size_t r2_bench_type_bytes(r2_bench_type_t type);

/** Name of a type as -T takes it. */
const char *r2_bench_type_name(r2_bench_type_t type);

#endif
