/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The UCX transport over RDMA: registered memory.
 */
#include "r2_config.h"

#include "tp_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

/* ---- registrations: verbs that pass through this program ---- */

static uint32_t registered, refused;
static size_t locked_bytes;  /* of all memory */
static uintptr_t counted[2]; /* of memory between these */
static uintptr_t newest[2];  /* address and bytes */
static bool refuses;
bool refuses_all, opens_none, connects_none;
static size_t lock_limit = SIZE_MAX; /* of what is counted */
memory_slow_t memory_slow;

uint32_t memory_registered(void)
{
    return registered;
}

uint32_t memory_refused(void)
{
    return refused;
}

/** What is registered of the counted memory. */
static struct {
    const void *mr;
    size_t bytes;
} locks[256];

static size_t locked_now(void)
{
    size_t bytes = 0;

    for (size_t i = 0; i < r2_array_count(locks); ++i) {
        bytes += NULL == locks[i].mr ? 0 : locks[i].bytes;
    }
    return bytes;
}

/** Moves a row from one owner to another: NULL is nobody. */
static void lock_move(const void *from, const void *to, size_t bytes)
{
    for (size_t i = 0; i < r2_array_count(locks); ++i) {
        if (from == locks[i].mr) {
            locks[i].mr = to;
            locks[i].bytes = bytes;
            return;
        }
    }
}

void memory_count(uintptr_t start, uintptr_t end)
{
    counted[0] = start;
    counted[1] = end;
    registered = refused = 0;
}

void memory_refuse(const void *data, size_t bytes)
{
    memory_count((uintptr_t) data, (uintptr_t) data + bytes);
    refuses = bytes > 0;
}

bool memory_spin(atomic_bool *what)
{
    const uint64_t end_ns = now_ns() + 10 * R2_NS_PER_S;

    while (!atomic_load(what) && now_ns() < end_ns) {
        sched_yield();
    }
    return atomic_load(what);
}

static void slow_pin(void *address, size_t bytes)
{
    (void) madvise(address, bytes, MADV_POPULATE_WRITE);
    atomic_store(&memory_slow.begun, true);
    (void) memory_spin(&memory_slow.may_end);
}

typedef void *(*reg_fn_t)(void *pd, void *address, size_t bytes, uint64_t iova, unsigned access);

R2_EXPORT void *ibv_reg_mr_iova2(void *pd, void *address, size_t bytes, uint64_t iova,
                                 unsigned access);
void *ibv_reg_mr_iova2(void *pd, void *address, size_t bytes, uint64_t iova, unsigned access)
{
    union {
        void *pointer;
        reg_fn_t function;
    } next = {.pointer = dlsym(RTLD_NEXT, "ibv_reg_mr_iova2")};
    const uintptr_t at = (uintptr_t) address;
    const bool again = at == newest[0] && bytes == newest[1]; /* UCX takes two kinds of keys */
    void *mr;

    newest[0] = at;
    newest[1] = bytes;
    locked_bytes += again ? 0 : bytes;
    if (refuses_all) {
        errno = ENOMEM;
        return NULL;
    }
    if (at >= counted[0] && at < counted[1]) {
        if (refuses) {
            refused += !again;
            errno = EFAULT;
            return NULL;
        }
        if (locked_now() + bytes > lock_limit) {
            refused += !again;
            errno = ENOMEM;
            return NULL;
        }
        registered += !again;
    }
    if (memory_slow.on && at >= counted[0] && at < counted[1]) {
        slow_pin(address, bytes);
    }
    mr = next.function(pd, address, bytes, iova, access);
    if (NULL != mr && at >= counted[0] && at < counted[1]) {
        lock_move(NULL, mr, bytes);
    }
    return mr;
}

R2_EXPORT int ibv_dereg_mr(void *mr);
int ibv_dereg_mr(void *mr)
{
    union {
        void *pointer;
        int (*function)(void *mr);
    } next = {.pointer = dlsym(RTLD_NEXT, "ibv_dereg_mr")};

    newest[0] = 0;
    lock_move(mr, NULL, 0);
    return next.function(mr);
}

R2_EXPORT void *ibv_open_device(void *device);
void *ibv_open_device(void *device)
{
    union {
        void *pointer;
        void *(*function)(void *device);
    } next = {.pointer = dlsym(RTLD_NEXT, "ibv_open_device")};

    if (opens_none) {
        errno = EACCES;
        return NULL;
    }
    return next.function(device);
}

R2_EXPORT int ibv_modify_qp(void *qp, void *attr, int mask);
int ibv_modify_qp(void *qp, void *attr, int mask)
{
    union {
        void *pointer;
        int (*function)(void *qp, void *attr, int mask);
    } next = {.pointer = dlsym(RTLD_NEXT, "ibv_modify_qp")};

    return connects_none ? EOPNOTSUPP : next.function(qp, attr, mask);
}

char *memory_map(char *at)
{
    char *memory = mmap(at, WHOLE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (NULL == at ? 0 : MAP_FIXED), -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    for (size_t i = 0; i < CHUNKS; ++i) {
        memcpy(memory + i * DATA_MAX, pattern + i, DATA_MAX);
    }
    memory_count((uintptr_t) memory, (uintptr_t) memory + WHOLE_BYTES);
    return memory;
}

void memory_send(side_t *a, side_t *b, const char *memory, const r2_tp_memory_t *whole)
{
    static packet_t packets[CHUNKS];

    b->received = 0;
    for (uint32_t i = 0; i < CHUNKS; ++i) {
        assert_true(packet_send_part(&packets[i], a, i, DATA_MAX, memory + i * DATA_MAX, whole) >=
                    0);
    }
    assert_true(progress_until(a, b, &b->received, CHUNKS));
    for (uint32_t i = 0; i < CHUNKS; ++i) {
        while (!packets[i].done) {
            tp.ops->worker_progress(a->worker);
        }
        assert_int_equal(packets[i].status, R2_OK);
    }
    assert_int_equal(b->wrong, 0);
}

/** A message's memory is registered whole, with its first packet, and is known from then on. */
void test_memory_is_registered_once(void **state)
{
    char *memory = memory_map(NULL);
    const r2_tp_memory_t whole = {.data = memory, .bytes = WHOLE_BYTES};
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    memory_send(&a, &b, memory, &whole);
    assert_int_equal(registered, 1);
    for (int i = 0; i < 3; ++i) {
        memory_send(&a, &b, memory, 0 == i % 2 ? NULL : &whole);
    }
    assert_int_equal(registered, 1);
    pair_close(&a, &b);
    munmap(memory, WHOLE_BYTES);
}

/** What was unmapped is not known any more, whatever lies at its place. */
void test_memory_is_unmapped(void **state)
{
    char *memory = memory_map(NULL);
    const r2_tp_memory_t whole = {.data = memory, .bytes = WHOLE_BYTES};
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    for (int i = 0; i < 5; ++i) {
        memory_send(&a, &b, memory, &whole);
        assert_int_equal(registered, 1);
        munmap(memory, WHOLE_BYTES);
        assert_ptr_equal(memory_map(memory), memory);
    }
    memory_send(&a, &b, memory, &whole);
    munmap(memory + WHOLE_BYTES / 2, WHOLE_BYTES / 2); /* a part of it */
    memory_send(&a, &b, memory_map(memory), &whole);
    assert_int_equal(registered, 1);
    pair_close(&a, &b);
    munmap(memory, WHOLE_BYTES);
}

/** Neighbours that share pages, sent one by one: known at the second turn, each of them. */
void test_memory_of_neighbours(void **state)
{
    enum { PARTS = 8, BYTES = 40000 };
    char *memory = memory_map(NULL);
    packet_t packet;
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    for (int turn = 0; turn < 3; ++turn) {
        registered = 0;
        for (uint32_t i = 0; i < PARTS; ++i) {
            char *part = memory + (size_t) i * BYTES;

            memcpy(part, pattern + i, BYTES);
            b.received = 0;
            assert_true(packet_send(&packet, &a, i, BYTES, part) >= 0);
            assert_true(progress_until(&a, &b, &b.received, 1));
            while (!packet.done) {
                tp.ops->worker_progress(a.worker);
            }
        }
        assert_int_equal(registered, 0 == turn ? PARTS : 0);
    }
    pair_close(&a, &b);
    munmap(memory, WHOLE_BYTES);
}

/** Memory that cannot be registered is copied, and not tried with each packet. */
void test_memory_is_refused(void **state)
{
    char *memory = memory_map(NULL);
    const r2_tp_memory_t whole = {.data = memory, .bytes = WHOLE_BYTES};
    side_t a, b;
    uint32_t once;

    (void) state;
    pair_open(&a, &b);
    refuses = true;
    memory_send(&a, &b, memory, &whole);
    once = refused;
    assert_true(once > 0);
    memory_send(&a, &b, memory, &whole);
    assert_int_equal(refused, once);
    refuses = false;
    munmap(memory, WHOLE_BYTES);
    memory_send(&a, &b, memory_map(memory), &whole);
    assert_int_equal(registered, 1);
    pair_close(&a, &b);
    munmap(memory, WHOLE_BYTES);
}

/** Where little may be locked, what was not used for longest makes room for what is sent now. */
void test_memory_is_short(void **state)
{
    enum { PARTS = 8, BYTES = 1 << 20 };
    char *memory = memory_map(NULL);
    packet_t packet;
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    lock_limit = 3 * (size_t) BYTES * 2; /* two kinds of keys */
    for (uint32_t i = 0; i < 3 * PARTS; ++i) {
        const uint32_t chunk = i % PARTS * (BYTES / DATA_MAX);
        const r2_tp_memory_t part = {.data = memory + (size_t) chunk * DATA_MAX,
                                     .bytes = BYTES - 4096};

        b.received = 0;
        assert_true(packet_send_part(&packet, &a, chunk, DATA_MAX, part.data, &part) >= 0);
        assert_true(progress_until(&a, &b, &b.received, 1));
        packet_wait(&packet, &a);
        assert_true(locked_now() <= lock_limit);
    }
    assert_int_equal(registered, 3 * PARTS); /* each time: it had made room for others */
    lock_limit = 4096;                       /* nothing fits: it is copied */
    memory_send(&a, &b, memory_map(memory), NULL);
    assert_int_equal(registered, 0);
    lock_limit = SIZE_MAX;
    pair_close(&a, &b);
    munmap(memory, WHOLE_BYTES);
}

/** Sends one packet that is copied. */
static void copy_send(side_t *a, side_t *b)
{
    packet_t packet;

    b->received = 0;
    assert_true(packet_send(&packet, a, 1, 4096, pattern + 1) >= 0);
    assert_true(progress_until(a, b, &b->received, 1));
    packet_wait(&packet, a);
}

/** Where all that may be locked is: UCX's buffers for copies, and a new worker, get room. */
void test_memory_is_used_up(void **state)
{
    enum { PARTS = 8, BYTES = 1 << 20 };
    packet_t packet;
    char *memory;
    side_t a, b;

    (void) state;
    memory_count(0, UINTPTR_MAX);
    pair_open(&a, &b);
    memory = memory_map(NULL);
    memory_count(0, UINTPTR_MAX);
    for (int turn = 0; turn < 2; ++turn) {
        for (uint32_t i = 0; i < PARTS; ++i) {
            const uint32_t chunk = i * (BYTES / DATA_MAX);
            const r2_tp_memory_t part = {.data = memory + (size_t) chunk * DATA_MAX,
                                         .bytes = BYTES - 4096};

            b.received = 0;
            assert_true(packet_send_part(&packet, &a, chunk, DATA_MAX, part.data, &part) >= 0);
            assert_true(progress_until(&a, &b, &b.received, 1));
            packet_wait(&packet, &a);
        }
        if (0 == turn) {
            lock_limit = locked_now();
            copy_send(&a, &b);
            lock_limit = SIZE_MAX;
        }
    }
    tp.ops->ep_close(a.ep);
    tp.ops->ep_close(b.ep);
    tp.ops->worker_destroy(a.worker);
    lock_limit = locked_now() + PARTS * (size_t) BYTES; /* half of what a worker takes */
    assert_int_equal(tp.ops->worker_create(a.device, &callbacks, &a, &a.worker), R2_OK);
    side_connect(&a, &b);
    b.received = 0;
    assert_true(packet_send(&packet, &a, 1, 0, NULL) >= 0);
    assert_true(progress_until(&a, &b, &b.received, 1));
    packet_wait(&packet, &a);
    lock_limit = SIZE_MAX;
    memory_count(0, 0);
    pair_close(&a, &b);
    munmap(memory, WHOLE_BYTES);
}

/** What a worker with a lane locks: what packets arrive in, and what is copied goes out from. */
void test_worker_locks_little(void **state)
{
    side_t a, b;

    (void) state;
    locked_bytes = 0;
    pair_open(&a, &b);
    assert_in_range(locked_bytes / 2, (size_t) 4 << 20, (size_t) 14 << 20);
    pair_close(&a, &b);
}

/** The NIC reads long packets where they lie, however late; short ones are copied at once. */
void test_long_packets_are_not_copied(void **state)
{
    static const uint32_t bytes[] = {DATA_MAX, 16384, 4096};
    char *memory = memory_map(NULL);
    packet_t packet;
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    for (uint32_t i = 0; i < r2_array_count(bytes); ++i) {
        const bool is_copied = bytes[i] < 8192;

        a.received = 0;
        memcpy(memory, pattern + (is_copied ? i + 1 : 0), bytes[i]);
        nic_fault("drop 1"); /* of what comes in at the other end */
        assert_true(packet_send(&packet, &b, i + 1, bytes[i], memory) >= 0);
        memcpy(memory, pattern + (is_copied ? 0 : i + 1), bytes[i]);
        nic_fault("heal");
        assert_true(progress_until(&a, &b, &a.received, 1));
        packet_wait(&packet, &b);
        assert_int_equal(a.wrong, 0);
    }
    pair_close(&a, &b);
    munmap(memory, WHOLE_BYTES);
}
