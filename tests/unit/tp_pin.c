/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The UCX transport over RDMA: memory that a thread registers while others send.
 */
#include "r2_config.h"

#include "tp_memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/** What a thread pins beside the one that has the engine. */
typedef struct pinning {
    const side_t *side;
    void *pin;
} pinning_t;

static void *pin_work(void *arg)
{
    const pinning_t *pinning = arg;

    tp.ops->pin(pinning->side->worker, pinning->pin);
    return NULL;
}

static void grant_and_back(const side_t *side, char *memory, size_t bytes)
{
    char key[R2_TP_KEY_MAX];
    size_t key_bytes;
    void *grant;

    assert_int_equal(tp.ops->grant(side->worker, memory, bytes, NULL, key, &key_bytes, &grant),
                     R2_OK);
    tp.ops->ungrant(side->worker, grant);
}

/** While a thread pins, others send, and register what they send; then what was pinned is known,
 * unless it was unmapped meanwhile. */
void test_memory_is_pinned_beside(void **state)
{
    char *sent = memory_map(NULL);
    const r2_tp_memory_t whole = {.data = sent, .bytes = WHOLE_BYTES};
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    for (int unmaps = 0; unmaps <= 1; ++unmaps) {
        char *memory = memory_map(NULL);
        pinning_t pinning = {.side = &a, .pin = tp.ops->pin_begin(a.worker, memory, WHOLE_BYTES)};
        pthread_t thread;

        assert_non_null(pinning.pin);
        atomic_store(&memory_slow.begun, false);
        atomic_store(&memory_slow.may_end, false);
        memory_slow.on = true;
        assert_int_equal(pthread_create(&thread, NULL, pin_work, &pinning), 0);
        assert_true(memory_spin(&memory_slow.begun));
        memory_send(&a, &b, sent, &whole);
        memory_send(&b, &a, sent, &whole);
        if (1 == unmaps) {
            munmap(memory, WHOLE_BYTES);
            assert_ptr_equal(memory_map(memory), memory);
            memory_send(&a, &b, sent, &whole); /* what is unmapped is taken note of by then */
        }
        atomic_store(&memory_slow.may_end, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        memory_slow.on = false;
        tp.ops->pin_end(a.worker, pinning.pin);
        memory_count((uintptr_t) memory, (uintptr_t) memory + WHOLE_BYTES);
        grant_and_back(&a, memory, WHOLE_BYTES);
        assert_int_equal(memory_registered(), unmaps);
        assert_null(tp.ops->pin_begin(a.worker, memory, WHOLE_BYTES)); /* it is known */
        munmap(memory, WHOLE_BYTES);
    }
    pair_close(&a, &b);
    munmap(sent, WHOLE_BYTES);
}

/** Two of the three steps. @return what the third one ends. */
static void *pin_open(const side_t *side, char *memory, size_t bytes)
{
    void *pin = tp.ops->pin_begin(side->worker, memory, bytes);

    assert_non_null(pin);
    tp.ops->pin(side->worker, pin);
    return pin;
}

/** What begins in the last page of what is registered becomes one with it, and does not throw it
 * out; what others register around it meanwhile stays. */
void test_pinning_joins_neighbours(void **state)
{
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    char *memory = memory_map(NULL), *next = memory + 8 * page + 100;
    side_t a, b;
    void *pin;

    (void) state;
    pair_open(&a, &b);
    grant_and_back(&a, memory, 8 * page + 50);
    assert_int_equal(memory_registered(), 1);
    tp.ops->pin_end(a.worker, pin_open(&a, next, 2 * page));
    assert_int_equal(memory_registered(), 2);
    grant_and_back(&a, next, 2 * page);
    grant_and_back(&a, memory, 8 * page + 50);
    assert_null(tp.ops->pin_begin(a.worker, memory, 10 * page));
    assert_int_equal(memory_registered(), 2);

    pin = pin_open(&a, memory + 12 * page, page);
    assert_int_equal(memory_registered(), 3);
    grant_and_back(&a, memory, 16 * page);
    assert_int_equal(memory_registered(), 4);
    tp.ops->pin_end(a.worker, pin);
    grant_and_back(&a, memory, 16 * page);
    assert_int_equal(memory_registered(), 4);
    pair_close(&a, &b);
    munmap(memory, WHOLE_BYTES);
}

/** Memory that cannot be registered with its neighbour is registered by itself, when it is asked
 * for. */
void test_pinning_does_without_neighbours(void **state)
{
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    char *memory = memory_map(NULL), *next = memory + 8 * page + 100;
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    grant_and_back(&a, memory, 8 * page + 50);
    memory_refuse(memory, page); /* and what begins with it */
    tp.ops->pin_end(a.worker, pin_open(&a, next, 2 * page));
    assert_int_equal(memory_refused(), 1);
    grant_and_back(&a, next, 2 * page);
    memory_refuse(memory, 0);
    memory_count((uintptr_t) memory, (uintptr_t) memory + WHOLE_BYTES);
    grant_and_back(&a, next, 2 * page);
    assert_int_equal(memory_registered(), 0);
    pair_close(&a, &b);
    munmap(memory, WHOLE_BYTES);
}

/** How long the engine is kept from others when much is registered: at once, and in three steps. */
void test_pinning_keeps_nobody_waiting(void **state)
{
    enum { BYTES = 64 << 20 };
    uint64_t whole_ns, kept_ns, pin_ns;
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    memory_slow.on = true;
    atomic_store(&memory_slow.may_end, true);
    for (int steps = 0; steps <= 1; ++steps) {
        char *memory =
            mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint64_t start_ns = now_ns();

        assert_ptr_not_equal(memory, MAP_FAILED);
        memory_count((uintptr_t) memory, (uintptr_t) memory + BYTES);
        if (1 == steps) {
            void *pin = tp.ops->pin_begin(a.worker, memory, BYTES);

            pin_ns = now_ns();
            tp.ops->pin(a.worker, pin);
            pin_ns = now_ns() - pin_ns;
            assert_int_equal(memory_registered(), 1); /* and all that follows finds it */
            tp.ops->pin_end(a.worker, pin);
        }
        grant_and_back(&a, memory, BYTES);
        assert_int_equal(memory_registered(), 1);
        if (1 == steps) {
            kept_ns = now_ns() - start_ns - pin_ns;
        } else {
            whole_ns = now_ns() - start_ns;
        }
        munmap(memory, BYTES);
    }
    memory_slow.on = false;
    printf("# 64 MiB: %.2f ms at once; in steps %.2f, and %.2f without the lock\n",
           (double) whole_ns / 1e6, (double) kept_ns / 1e6, (double) pin_ns / 1e6);
    pair_close(&a, &b);
}
