/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Pinned memory that takes long: two ranks, FAKECUDA_PIN_WAITS=1. A thread of rank 0 sends memory
 * of the GPU (with "bcast": to both, by a collective), for which memory has to be pinned, and the
 * driver does that when all that the program has started has ended; that ends when rank 0 has made
 * collectives with rank 1.
 */
#include <mpi.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 100000 };

static void *library;
static unsigned long long device;
static sem_t gate;
static volatile int sends; /* the thread is about to */
static MPI_Comm others;    /* MPI_COMM_NULL: by point-to-point */

static void *function(const char *name)
{
    void *found = dlsym(library, name);

    if (NULL == found) {
        fprintf(stderr, "no %s\n", name);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return found;
}

static void wait_at_gate(void *arg)
{
    (void) arg;
    while (0 != sem_wait(&gate)) {
    }
}

/* Memory of 7, then work that ends when the gate opens. */
static void start_gpu(void)
{
    int (*init)(unsigned), (*create)(void **ctx_p, unsigned flags, int number);
    int (*alloc)(unsigned long long *at_p, size_t bytes), (*wait)(void);
    int (*set)(unsigned long long at, unsigned char value, size_t count);
    int (*launch)(void *stream, void (*fn)(void *arg), void *arg);
    int (*stream)(void **stream_p, unsigned flags);
    void *context, *other;

    library = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **) &init = function("cuInit");
    *(void **) &create = function("cuCtxCreate_v2");
    *(void **) &alloc = function("cuMemAlloc_v2");
    *(void **) &set = function("cuMemsetD8_v2");
    *(void **) &wait = function("cuCtxSynchronize");
    *(void **) &launch = function("cuLaunchHostFunc");
    *(void **) &stream = function("cuStreamCreate");
    if (0 != init(0) || 0 != create(&context, 0, 0) || 0 != alloc(&device, BYTES) ||
        0 != set(device, 7, BYTES) || 0 != wait() || 0 != stream(&other, 1) ||
        0 != launch(other, wait_at_gate, NULL)) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void *sender(void *arg)
{
    void *memory = (void *) (uintptr_t) device;

    (void) arg;
    sends = 1;
    if (MPI_COMM_NULL == others) {
        MPI_Send(memory, BYTES, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
    } else {
        MPI_Bcast(memory, BYTES, MPI_BYTE, 0, others);
    }
    return NULL;
}

static void receive(unsigned char *got)
{
    if (MPI_COMM_NULL == others) {
        MPI_Recv(got, BYTES, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Bcast(got, BYTES, MPI_BYTE, 0, others);
    }
}

/* While the other thread waits for memory. */
static int collectives(int rank)
{
    int wrong = 0;

    for (int i = 0; i < 200; ++i) {
        int mine = rank + i, sum = 0;

        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += 2 * i + 1 != sum;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    static unsigned char got[BYTES];
    int rank, provided, wrong;
    pthread_t thread;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sem_init(&gate, 0, 0);
    others = MPI_COMM_NULL;
    if (argc > 1 && 0 == strcmp(argv[1], "bcast")) {
        MPI_Comm_dup(MPI_COMM_WORLD, &others);
    }
    if (0 == rank) {
        start_gpu();
        pthread_create(&thread, NULL, sender, NULL);
        while (!sends) {
        }
    }
    wrong = collectives(rank);
    if (0 == rank) {
        sem_post(&gate);
        pthread_join(thread, NULL);
    } else {
        receive(got);
        for (int i = 0; i < BYTES; ++i) {
            wrong += 7 != got[i];
        }
    }
    printf("rank %d: %d wrong\n", rank, wrong);
    if (MPI_COMM_NULL != others) {
        MPI_Comm_free(&others);
    }
    MPI_Finalize();
    return 0 == wrong ? 0 : 1;
}
