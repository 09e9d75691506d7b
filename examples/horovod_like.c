/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What Horovod does with MPI, in small: a thread of its own, with MPI_THREAD_MULTIPLE, agrees with
 * those of the other ranks by allreduces of bit vectors which tensors are ready everywhere, fuses
 * these, and adds them up; float16 by an operation of the program on a type of two bytes. Tensors
 * become ready in another order on each rank, and the main thread calls MPI meanwhile. Nothing here
 * needs r2:
 *
 *     mpirun -n 4 --mca coll r2 horovod_like 20
 *     mpirun -n 4 --mca coll r2 horovod_like --device 20
 *
 * With --device tensors and fused ones are in the memory of a GPU, each rank's of its host in turn:
 * the driver copies tensors there, and MPI is given its addresses. The driver is opened at run
 * time.
 *
 * Prints a line for each step; all sums are checked exactly. Exit status 1: some were wrong.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "r2_mpi.h"

enum {
    TENSORS = 150, /* of a step: three words of bits */
    WORDS = 3,     /* with a bit for each tensor, and one that says that a rank ends */
    END_BIT = TENSORS,
    LONGEST = 30000,      /* elements of a tensor */
    FUSED_BYTES = 400000, /* at most, of one allreduce */
};

/** What is to be added up in place. Odd ones are float16. */
typedef struct tensor {
    union {
        float *floats;
        uint16_t *halves;
    } host;     /* owned: where the program writes and looks */
    void *data; /* what is added up: that, or memory of a GPU, owned */
    int count;
    bool ready; /* the main thread has given it; under the lock, as is what follows */
} tensor_t;

static tensor_t tensors[TENSORS];
static int waiting; /* tensors of the step that are not done */
static bool ends;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static MPI_Comm comm; /* of the threads */
static MPI_Datatype half_type;
static MPI_Op half_sum;
static int rank, ranks;

/* ---- memory of GPUs ---- */

/** What is needed of the CUDA driver, whose functions return 0 if they succeed. */
typedef struct driver {
    int (*init)(unsigned flags);
    int (*device_count)(int *count_p);
    int (*retain)(void **context_p, int device);
    int (*set_current)(void *context);
    int (*alloc)(uint64_t *address_p, size_t bytes);
    int (*release)(uint64_t address);
    int (*to_device)(uint64_t to, const void *from, size_t bytes);
    int (*to_host)(void *to, uint64_t from, size_t bytes);
    int (*within)(uint64_t to, uint64_t from, size_t bytes, void *stream);
    int (*wait)(void *stream);
} driver_t;

static driver_t driver;
static bool on_device;
static void *context; /* of the GPU; threads that use it have to say so */

static void must(int rc, const char *what)
{
    if (0 != rc) {
        fprintf(stderr, "horovod_like: rank %d: %s: error %d\n", rank, what, rc);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static void find(void *library, const char *name, void *function_p)
{
    void *symbol = dlsym(library, name);

    must(NULL == symbol, name);
    memcpy(function_p, &symbol, sizeof(symbol));
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    must(NULL == library, "there is no CUDA driver");
    find(library, "cuInit", &driver.init);
    find(library, "cuDeviceGetCount", &driver.device_count);
    find(library, "cuDevicePrimaryCtxRetain", &driver.retain);
    find(library, "cuCtxSetCurrent", &driver.set_current);
    find(library, "cuMemAlloc_v2", &driver.alloc);
    find(library, "cuMemFree_v2", &driver.release);
    find(library, "cuMemcpyHtoD_v2", &driver.to_device);
    find(library, "cuMemcpyDtoH_v2", &driver.to_host);
    find(library, "cuMemcpyDtoDAsync_v2", &driver.within);
    find(library, "cuStreamSynchronize", &driver.wait);
}

/* The GPUs of a host are dealt out to its ranks. */
static void use_gpu(void)
{
    MPI_Comm host;
    int host_rank, count = 0;

    open_driver();
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &host_rank);
    MPI_Comm_free(&host);
    must(driver.init(0), "cuInit");
    must(driver.device_count(&count), "cuDeviceGetCount");
    must(0 == count, "there is no GPU");
    must(driver.retain(&context, host_rank % count), "cuDevicePrimaryCtxRetain");
    must(driver.set_current(context), "cuCtxSetCurrent");
}

static void *memory_alloc(size_t bytes)
{
    uint64_t address = 0;
    void *memory;

    if (on_device) {
        must(driver.alloc(&address, bytes), "cuMemAlloc");
        return (void *) (uintptr_t) address;
    }
    memory = calloc(1, bytes);
    must(NULL == memory, "no memory");
    return memory;
}

static void memory_free(void *memory)
{
    if (on_device) {
        must(driver.release((uintptr_t) memory), "cuMemFree");
    } else {
        free(memory);
    }
}

/* In the default stream. */
static void memory_copy(void *to, const void *from, size_t bytes)
{
    if (on_device) {
        must(driver.within((uintptr_t) to, (uintptr_t) from, bytes, NULL), "cuMemcpyDtoDAsync");
    } else {
        memcpy(to, from, bytes);
    }
}

/* ---- the thread ---- */

static bool has_bit(const uint64_t *bits, int bit)
{
    return 0 != (bits[bit / 64] >> (bit % 64) & 1);
}

static void set_bit(uint64_t *bits, int bit)
{
    bits[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static bool is_half(int i)
{
    return 1 == i % 2;
}

static size_t bytes_of(int i)
{
    return (size_t) tensors[i].count * (is_half(i) ? sizeof(uint16_t) : sizeof(float));
}

/* To or from the buffer in which tensors lie one after the other. */
static void copy_fused(char *fused, const int *which, int count, bool back)
{
    for (int k = 0; k < count; ++k) {
        const size_t bytes = bytes_of(which[k]);

        if (back) {
            memory_copy(tensors[which[k]].data, fused, bytes);
        } else {
            memory_copy(fused, tensors[which[k]].data, bytes);
        }
        fused += bytes;
    }
}

static void reduce_fused(char *fused, const int *which, int count, size_t bytes)
{
    copy_fused(fused, which, count, false);
    if (on_device) { /* r2 would wait for the default stream (docs/gpu.md), other MPIs do not */
        must(driver.wait(NULL), "cuStreamSynchronize");
    }
    if (is_half(which[0])) {
        MPI_Allreduce(MPI_IN_PLACE, fused, (int) (bytes / sizeof(uint16_t)), half_type, half_sum,
                      comm);
    } else {
        MPI_Allreduce(MPI_IN_PLACE, fused, (int) (bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, comm);
    }
    copy_fused(fused, which, count, true);
    pthread_mutex_lock(&lock);
    for (int k = 0; k < count; ++k) {
        tensors[which[k]].ready = false;
    }
    waiting -= count;
    pthread_cond_signal(&done);
    pthread_mutex_unlock(&lock);
}

/* All tensors of one kind that every rank has ready, in the same order everywhere. */
static void reduce_ready(const uint64_t *bits, bool halves, char *fused)
{
    int which[TENSORS], count = 0;
    size_t bytes = 0;

    for (int i = halves ? 1 : 0; i < TENSORS; i += 2) {
        if (!has_bit(bits, i)) {
            continue;
        }
        if (count > 0 && bytes + bytes_of(i) > FUSED_BYTES) {
            reduce_fused(fused, which, count, bytes);
            count = 0;
            bytes = 0;
        }
        which[count++] = i;
        bytes += bytes_of(i);
    }
    if (count > 0) {
        reduce_fused(fused, which, count, bytes);
    }
}

static void *run(void *arg)
{
    const struct timespec cycle = {.tv_nsec = 500000};
    char *fused;

    if (on_device) {
        must(driver.set_current(context), "cuCtxSetCurrent");
    }
    fused = memory_alloc(FUSED_BYTES);
    for (bool over = false; !over;) {
        uint64_t bits[WORDS] = {0}, any[WORDS];

        pthread_mutex_lock(&lock);
        for (int i = 0; i < TENSORS; ++i) {
            if (tensors[i].ready) {
                set_bit(bits, i);
            }
        }
        if (ends) {
            set_bit(bits, END_BIT);
        }
        pthread_mutex_unlock(&lock);
        memcpy(any, bits, sizeof(any));
        MPI_Allreduce(MPI_IN_PLACE, any, WORDS, MPI_UINT64_T, MPI_BOR, comm);
        MPI_Allreduce(MPI_IN_PLACE, bits, WORDS, MPI_UINT64_T, MPI_BAND, comm);
        reduce_ready(bits, false, fused);
        reduce_ready(bits, true, fused);
        over = has_bit(bits, END_BIT);
        if (0 == (any[0] | any[1] | any[2])) {
            nanosleep(&cycle, NULL);
        }
    }
    memory_free(fused);
    return arg;
}

/* ---- the program ---- */

/* Sums of these are whole numbers below 2,048 on up to 16 ranks: float16 holds them. */
static int value(int of_rank, int step, int i, int k)
{
    return (of_rank * 7 + step * 3 + i + k) % 100;
}

static uint16_t half_of(int number)
{
    const float as_float = (float) number;
    uint32_t bits;

    memcpy(&bits, &as_float, sizeof(bits));
    return 0 == number ? 0 : (uint16_t) ((bits - (112u << 23)) >> 13);
}

static void fill(int step, int i)
{
    for (int k = 0; k < tensors[i].count; ++k) {
        if (is_half(i)) {
            tensors[i].host.halves[k] = half_of(value(rank, step, i, k));
        } else {
            tensors[i].host.floats[k] = (float) value(rank, step, i, k);
        }
    }
    if (on_device) {
        must(driver.to_device((uintptr_t) tensors[i].data, tensors[i].host.floats, bytes_of(i)),
             "cuMemcpyHtoD");
    }
}

static long count_wrong(int step, int i)
{
    long wrong = 0;

    if (on_device) {
        must(driver.to_host(tensors[i].host.floats, (uintptr_t) tensors[i].data, bytes_of(i)),
             "cuMemcpyDtoH");
    }
    for (int k = 0; k < tensors[i].count; ++k) {
        int sum = 0;

        for (int r = 0; r < ranks; ++r) {
            sum += value(r, step, i, k);
        }
        wrong += is_half(i) ? tensors[i].host.halves[k] != half_of(sum)
                            : tensors[i].host.floats[k] != (float) sum;
    }
    return wrong;
}

/* @return wrong elements of all ranks. */
static long one_step(int step)
{
    long wrong = 0, all = 0, check = 0;

    pthread_mutex_lock(&lock);
    waiting = TENSORS;
    pthread_mutex_unlock(&lock);
    for (int n = 0; n < TENSORS; ++n) { /* 7 and 150 have no divisor in common */
        const int i = (n * 7 + rank * 31 + step) % TENSORS;

        fill(step, i);
        pthread_mutex_lock(&lock);
        tensors[i].ready = true;
        pthread_mutex_unlock(&lock);
        if (0 == n % 50) { /* as a framework that logs, or fetches data */
            check = n + step;
            MPI_Bcast(&check, 1, MPI_LONG, n / 50 % ranks, MPI_COMM_WORLD);
            wrong += check != n + step;
        }
    }
    pthread_mutex_lock(&lock);
    while (waiting > 0) {
        pthread_cond_wait(&done, &lock);
    }
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < TENSORS; ++i) {
        wrong += count_wrong(step, i);
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static long train(int steps)
{
    long wrong = 0;
    pthread_t thread;

    if (0 != pthread_create(&thread, NULL, run, NULL)) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int step = 0; step < steps; ++step) {
        const long now = one_step(step);

        wrong += now;
        if (0 == rank) {
            printf("step %d: %ld wrong\n", step, now);
            fflush(stdout);
        }
    }
    pthread_mutex_lock(&lock);
    ends = true;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return wrong;
}

static void make_tensors(void)
{
    for (int i = 0; i < TENSORS; ++i) { /* most are short, as biases are */
        tensors[i].count = 0 == i % 5 ? LONGEST : 1 + i * 5;
        tensors[i].host.floats = calloc((size_t) tensors[i].count, sizeof(float));
        must(NULL == tensors[i].host.floats, "no memory");
        tensors[i].data = on_device ? memory_alloc(bytes_of(i)) : tensors[i].host.floats;
    }
}

static void free_tensors(void)
{
    for (int i = 0; i < TENSORS; ++i) {
        if (on_device) {
            memory_free(tensors[i].data);
        }
        free(tensors[i].host.floats);
    }
}

int main(int argc, char **argv)
{
    int provided, steps;
    long wrong;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (MPI_THREAD_MULTIPLE != provided || ranks > 16) {
        fprintf(stderr, "horovod_like: MPI_THREAD_MULTIPLE and at most 16 ranks are needed\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    on_device = argc > 1 && 0 == strcmp(argv[1], "--device");
    steps = argc > 1 + on_device ? atoi(argv[1 + on_device]) : 10;
    if (on_device) {
        use_gpu();
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(2, MPI_BYTE, &half_type); /* as Horovod does */
    MPI_Type_commit(&half_type);
    r2_mpi_half_op_create(R2_MPI_FLOAT16, R2_MPI_HALF_SUM, &half_sum);
    make_tensors();
    wrong = train(steps);
    free_tensors();
    MPI_Op_free(&half_sum);
    MPI_Type_free(&half_type);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0 == wrong ? 0 : 1;
}
