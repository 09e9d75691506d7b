/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The stand-in for the CUDA driver under a pipeline as staging has it, whole and with each of its
 * waits left out: device -> pinned slot -> CPU -> pinned slot -> device -> kernel, two slots deep.
 */
#include "fakecuda/parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { CHUNK = 8192, WORDS = CHUNK / 4, CHUNKS = 12, DEPTH = 2 };

typedef enum defect {
    NONE,
    SENDS_BEFORE_COPIED,  /* the CPU reads a slot without waiting for its copy */
    REUSES_SLOT,          /* the CPU fills a slot that is still being copied */
    KERNEL_DOES_NOT_WAIT, /* for the copy to the device */
    KERNEL_WAITS_FOR_OLD, /* for the copy of the chunk before in the other slot */
    RECORDS_TOO_EARLY,    /* before the copy */
    OVERWRITES_LANDING,   /* while the kernel reads it */
    FREES_TOO_EARLY,      /* the source, and goes on */
    DEFECTS
} defect_t;

typedef struct run {
    defect_t defect;
    int seed;
    const char *delay_us;
} run_t;

typedef struct pipeline {
    CUstream out, in, reduce;
    CUevent left[DEPTH], landed[DEPTH], reduced[DEPTH];
    CUdeviceptr source, landing, sum;
    unsigned char *sent, *received; /* slots */
    CUfunction add;
} pipeline_t;

static void create(pipeline_t *p)
{
    OK(cuStreamCreate(&p->out, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&p->in, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&p->reduce, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < DEPTH; ++i) {
        OK(cuEventCreate(&p->left[i], CU_EVENT_DISABLE_TIMING));
        OK(cuEventCreate(&p->landed[i], CU_EVENT_DISABLE_TIMING));
        OK(cuEventCreate(&p->reduced[i], CU_EVENT_DISABLE_TIMING));
    }
    OK(cuMemAlloc(&p->source, CHUNKS * CHUNK));
    OK(cuMemAlloc(&p->landing, DEPTH * CHUNK));
    OK(cuMemAlloc(&p->sum, CHUNKS * CHUNK));
    OK(cuMemAllocHost((void **) &p->sent, DEPTH * CHUNK));
    OK(cuMemAllocHost((void **) &p->received, DEPTH * CHUNK));
    OK(cuMemsetD32(p->source, 5, CHUNKS * WORDS));
    OK(cuMemsetD32(p->sum, 6, CHUNKS * WORDS));
    OK(cuCtxSynchronize());
    p->add = load_add();
}

static void start_chunk(pipeline_t *p, int chunk)
{
    int slot = chunk % DEPTH;

    OK(cuMemcpyDtoHAsync(p->sent + slot * CHUNK, p->source + (unsigned) (chunk * CHUNK), CHUNK,
                         p->out));
    OK(cuEventRecord(p->left[slot], p->out));
}

static void pass_chunk(pipeline_t *p, int chunk, defect_t defect)
{
    int slot = chunk % DEPTH;

    if (SENDS_BEFORE_COPIED != defect) {
        OK(cuEventSynchronize(p->left[slot]));
    }
    if (REUSES_SLOT != defect) {
        OK(cuEventSynchronize(p->landed[slot]));
    }
    memcpy(p->received + slot * CHUNK, p->sent + slot * CHUNK, CHUNK);
}

static void land_chunk(pipeline_t *p, int chunk, defect_t defect)
{
    int slot = chunk % DEPTH;
    CUdeviceptr landing = p->landing + (unsigned) (slot * CHUNK);

    if (OVERWRITES_LANDING != defect) {
        OK(cuStreamWaitEvent(p->in, p->reduced[slot], 0));
    }
    if (RECORDS_TOO_EARLY == defect) {
        OK(cuEventRecord(p->landed[slot], p->in));
    }
    OK(cuMemcpyHtoDAsync(landing, p->received + slot * CHUNK, CHUNK, p->in));
    if (RECORDS_TOO_EARLY != defect) {
        OK(cuEventRecord(p->landed[slot], p->in));
    }
    if (KERNEL_DOES_NOT_WAIT != defect) {
        int of = KERNEL_WAITS_FOR_OLD == defect ? (slot + 1) % DEPTH : slot;
        OK(cuStreamWaitEvent(p->reduce, p->landed[of], 0));
    }
    OK(launch_add(p->add, landing, p->sum + (unsigned) (chunk * CHUNK), WORDS, p->reduce));
    OK(cuEventRecord(p->reduced[slot], p->reduce));
}

static void check_sum(const pipeline_t *p)
{
    static unsigned words[CHUNKS * WORDS];

    OK(cuMemcpyDtoH(words, p->sum, sizeof(words)));
    for (int i = 0; i < CHUNKS * WORDS; ++i) {
        MUST(11 == words[i]);
    }
}

static void run(const void *arg)
{
    const run_t *how = arg;
    pipeline_t p;
    char seed[16];

    start_device();
    create(&p);
    snprintf(seed, sizeof(seed), "%d", how->seed);
    MUST(0 == fakecuda_set("seed", seed) && 0 == fakecuda_set("delay_us", how->delay_us));
    for (int i = 0; i < DEPTH; ++i) {
        start_chunk(&p, i);
    }
    for (int i = 0; i < CHUNKS; ++i) {
        pass_chunk(&p, i, how->defect);
        land_chunk(&p, i, how->defect);
        if (i + DEPTH < CHUNKS) {
            if (FREES_TOO_EARLY == how->defect && i == CHUNKS / 2) {
                OK(cuMemFree(p.source));
            }
            start_chunk(&p, i + DEPTH);
        }
    }
    OK(cuCtxSynchronize());
    if (0 == fakecuda_counter("mistakes")) {
        check_sum(&p);
    }
    fprintf(stderr, "mistakes %d\n", (int) fakecuda_counter("mistakes"));
}

/* With and without delays: what is missing is found without luck. */
static const char *const delays[] = {"0", "300"};

static void whole(void **state)
{
    char said[16384];

    (void) state;
    for (int i = 0; i < 6; ++i) {
        run_t how = {NONE, i, delays[i % 2]};
        assert_int_equal(run_child(run, &how, said, sizeof(said)), 0);
        assert_string_equal(said, "mistakes 0\n");
    }
}

static void each_defect_is_found(void **state)
{
    char said[65536];

    (void) state;
    for (defect_t defect = NONE + 1; defect < DEFECTS; ++defect) {
        for (int i = 0; i < 4; ++i) {
            run_t how = {defect, i, delays[i % 2]};
            run_child(run, &how, said, sizeof(said));
            if (NULL == strstr(said, "MISTAKE")) {
                fail_msg("defect %d, seed %d, delay %s: not found", defect, i, delays[i % 2]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(each_defect_is_found),
    };

    return cmocka_run_group_tests_name("fakecuda pipeline", tests, NULL, NULL);
}
