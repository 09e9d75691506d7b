/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The UCX transport over RDMA: data that the peer's NIC writes, and when it does no longer.
 */
#include "r2_config.h"

#include "tp_sides.h"

#include <sys/mman.h>
#include <time.h>

#define PUTS       40u
#define WHOLE      ((size_t) PUTS * DATA_MAX)
#define LATE_MS    700u
#define SETTLED_MS 1100u /* after a fault that keeps packets for LATE_MS */

/** Memory of one side that the other writes to. */
typedef struct window {
    char *memory;
    char key[R2_TP_KEY_MAX];
    size_t key_bytes;
    void *grant;
} window_t;

static char *pages_map(char *at)
{
    char *memory = mmap(at, WHOLE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (NULL == at ? 0 : MAP_FIXED), -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static void window_grant(window_t *window, side_t *owner)
{
    assert_int_equal(tp.ops->grant(owner->worker, window->memory, WHOLE, NULL, window->key,
                                   &window->key_bytes, &window->grant),
                     R2_OK);
    assert_in_range(window->key_bytes, 1, R2_TP_KEY_MAX);
}

static void on_sent(r2_tp_send_t *op, r2_status_t status)
{
    packet_t *packet = r2_container_of(op, packet_t, op);

    assert_false(packet->done);
    packet->done = true;
    packet->status = status;
}

/** Puts packet n to its place in the window. */
static r2_status_t packet_put(packet_t *packet, const side_t *side, uint32_t number, uint32_t bytes,
                              const window_t *window)
{
    const r2_tp_target_t target = {.address =
                                       (uintptr_t) window->memory + (uint64_t) number * DATA_MAX,
                                   .key = window->key,
                                   .key_bytes = window->key_bytes};
    r2_status_t status;

    memset(packet, 0, sizeof(*packet));
    packet->header.number = number; /* it comes without data */
    packet->op = (r2_tp_send_t){.header = &packet->header,
                                .header_bytes = sizeof(packet->header),
                                .data = pattern + number,
                                .data_bytes = bytes,
                                .sent = on_sent};
    status = tp.ops->put(side->ep, &packet->op, &target);
    if (R2_IN_PROGRESS != status) {
        packet->done = true;
        packet->status = status;
    }
    return status;
}

static bool has_landed(const window_t *window, uint32_t number, uint32_t bytes)
{
    return 0 == memcmp(window->memory + (size_t) number * DATA_MAX, pattern + number, bytes);
}

static bool is_untouched(const window_t *window)
{
    for (size_t i = 0; i < WHOLE; ++i) {
        if (0 != window->memory[i]) {
            return false;
        }
    }
    return true;
}

/** Lets the NICs work while no process does. */
static void sleep_ms(uint32_t ms)
{
    const struct timespec pause = {ms / 1000, (long) (ms % 1000) * 1000000};

    nanosleep(&pause, NULL);
}

/** Who gets the header has the data, of packets that are sent and put in turn. */
void test_puts_land_before_their_header(void **state)
{
    packet_t packets[PUTS];
    window_t window = {.memory = pages_map(NULL)};
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    window_grant(&window, &a);
    for (uint32_t i = 0; i < PUTS; ++i) {
        const uint32_t bytes = 0 == i % 3 ? DATA_MAX : 1 + i;

        assert_true((1 == i % 5 ? packet_send(&packets[i], &b, i, bytes, pattern + i)
                                : packet_put(&packets[i], &b, i, bytes, &window)) >= 0);
    }
    for (uint32_t i = 0; i < PUTS; ++i) {
        assert_true(progress_until(&a, &b, &a.received, i + 1));
        assert_true(1 == a.last % 5 ||
                    has_landed(&window, a.last, 0 == a.last % 3 ? DATA_MAX : 1 + a.last));
    }
    for (uint32_t i = 0; i < PUTS; ++i) {
        packet_wait(&packets[i], &b);
        assert_int_equal(packets[i].status, R2_OK);
    }
    tp.ops->ungrant(a.worker, window.grant);
    pair_close(&a, &b);
    munmap(window.memory, WHOLE);
}

/** Its NIC takes them while the process computes. */
void test_puts_need_no_process(void **state)
{
    packet_t packet;
    window_t window = {.memory = pages_map(NULL)};
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    window_grant(&window, &a);
    assert_int_equal(packet_put(&packet, &b, 3, DATA_MAX, &window), R2_IN_PROGRESS);
    packet_wait(&packet, &b); /* only the sender progresses */
    assert_int_equal(packet.status, R2_OK);
    assert_true(has_landed(&window, 3, DATA_MAX));
    assert_int_equal(a.received, 0);
    assert_true(progress_until(&a, NULL, &a.received, 1));
    tp.ops->ungrant(a.worker, window.grant);
    pair_close(&a, &b);
    munmap(window.memory, WHOLE);
}

/** Puts a packet, and nothing behind it. */
static r2_status_t packet_put_silent(packet_t *packet, const side_t *side, uint32_t number,
                                     const window_t *window)
{
    const r2_tp_target_t target = {.address =
                                       (uintptr_t) window->memory + (uint64_t) number * DATA_MAX,
                                   .key = window->key,
                                   .key_bytes = window->key_bytes};

    memset(packet, 0, sizeof(*packet));
    packet->op = (r2_tp_send_t){.data = pattern + number, .data_bytes = DATA_MAX, .sent = on_sent};
    return tp.ops->put(side->ep, &packet->op, &target);
}

/** Reads into memory of its own what lies in a window. */
static r2_status_t packet_get(packet_t *packet, const side_t *side, char *to, uint32_t bytes,
                              const window_t *window)
{
    const r2_tp_target_t target = {
        .address = (uintptr_t) window->memory, .key = window->key, .key_bytes = window->key_bytes};

    memset(packet, 0, sizeof(*packet));
    packet->op = (r2_tp_send_t){.data = to, .data_bytes = bytes, .sent = on_sent};
    return tp.ops->get(side->ep, &packet->op, &target);
}

/** Reads, and writes that nobody is told of, while the other process computes. */
void test_gets_need_no_process(void **state)
{
    char *to = pages_map(NULL);
    packet_t packet;
    window_t window = {.memory = pages_map(NULL)};
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    window_grant(&window, &a);
    memcpy(window.memory, pattern + 5, DATA_MAX);
    assert_int_equal(packet_get(&packet, &b, to, DATA_MAX, &window), R2_IN_PROGRESS);
    packet_wait(&packet, &b); /* only the reader progresses */
    assert_int_equal(packet.status, R2_OK);
    assert_memory_equal(to, pattern + 5, DATA_MAX);
    assert_int_equal(packet_put_silent(&packet, &b, 3, &window), R2_IN_PROGRESS);
    packet_wait(&packet, &b);
    assert_int_equal(packet.status, R2_OK);
    assert_true(has_landed(&window, 3, DATA_MAX));
    for (uint32_t i = 0; i < 100; ++i) {
        tp.ops->worker_progress(a.worker);
    }
    assert_int_equal(a.received, 0);
    tp.ops->ungrant(a.worker, window.grant);
    pair_close(&a, &b);
    munmap(window.memory, WHOLE);
    munmap(to, WHOLE);
}

/** Nothing of a read is written here after its endpoint is closed. */
void test_gets_end_with_their_endpoint(void **state)
{
    char *to = pages_map(NULL);
    packet_t packet;
    window_t window = {.memory = pages_map(NULL)};
    side_t a, b;
    char fault[32];

    (void) state;
    pair_open(&a, &b);
    window_grant(&window, &a);
    memset(window.memory, 'w', WHOLE);
    snprintf(fault, sizeof(fault), "delay 1 %u", LATE_MS);
    nic_fault(fault);
    assert_int_equal(packet_get(&packet, &b, to, DATA_MAX, &window), R2_IN_PROGRESS);
    sleep_ms(100);
    tp.ops->ep_close(b.ep);
    assert_true(packet.done);
    assert_int_equal(packet.status, R2_ERR_CANCELED);
    sleep_ms(SETTLED_MS);
    for (size_t i = 0; i < WHOLE; ++i) {
        assert_int_equal(to[i], 0);
    }
    nic_fault("heal");
    tp.ops->ungrant(a.worker, window.grant);
    pair_close(&a, &b);
    munmap(window.memory, WHOLE);
    munmap(to, WHOLE);
}

/** With more puts under way than UCX has room for, all come back when the lane is closed. */
void test_close_with_puts_pending(void **state)
{
    enum { COUNT = 3000 };
    packet_t *packets = calloc(COUNT, sizeof(*packets));
    window_t window = {.memory = pages_map(NULL)};
    side_t a, b;

    (void) state;
    assert_non_null(packets);
    pair_open(&a, &b);
    window_grant(&window, &a);
    nic_fault("drop 1");
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_int_equal(packet_put(&packets[i], &b, i % PUTS, DATA_MAX, &window), R2_IN_PROGRESS);
    }
    tp.ops->ep_close(b.ep);
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_true(packets[i].done);
    }
    nic_fault("heal");
    tp.ops->ungrant(a.worker, window.grant);
    pair_close(&a, &b);
    free(packets);
    munmap(window.memory, WHOLE);
}

/** What the sender's end has closed may still land, at any time; until the receiver's end is. */
void test_late_puts_land_until_the_receiver_closes(void **state)
{
    (void) state;
    for (int closes = 0; closes <= 1; ++closes) {
        packet_t packet;
        window_t window = {.memory = pages_map(NULL)};
        side_t a, b;
        char fault[32];

        pair_open(&a, &b);
        window_grant(&window, &a);
        snprintf(fault, sizeof(fault), "delay 1 %u", LATE_MS);
        nic_fault(fault);
        assert_int_equal(packet_put(&packet, &b, 7, DATA_MAX, &window), R2_IN_PROGRESS);
        sleep_ms(100);
        tp.ops->ep_close(b.ep);
        assert_true(packet.done);
        if (1 == closes) {
            tp.ops->ep_close(a.ep);
        }
        tp.ops->ungrant(a.worker, window.grant);
        assert_true(is_untouched(&window));
        sleep_ms(SETTLED_MS);
        assert_int_equal(is_untouched(&window), 1 == closes);
        nic_fault("heal");
        pair_close(&a, &b);
        munmap(window.memory, WHOLE);
    }
}

/** Closing what was opened of a dead device is as good: it writes nothing any more. */
void test_late_puts_end_with_the_device(void **state)
{
    packet_t packet;
    window_t window = {.memory = pages_map(NULL)};
    side_t a, b;
    char fault[32];

    (void) state;
    pair_open(&a, &b);
    window_grant(&window, &a);
    snprintf(fault, sizeof(fault), "delay 1 %u", LATE_MS);
    nic_fault(fault);
    assert_int_equal(packet_put(&packet, &b, 7, DATA_MAX, &window), R2_IN_PROGRESS);
    sleep_ms(100);
    nic_fault("fatal");
    tp.ops->ep_close(a.ep);
    tp.ops->ungrant(a.worker, window.grant);
    nic_fault("heal");
    sleep_ms(SETTLED_MS);
    assert_true(is_untouched(&window));
    tp.ops->ep_close(b.ep);
    pair_close(&a, &b);
    munmap(window.memory, WHOLE);
}

/** A grant of memory that was unmapped since the last one is of what lies there now: it has another
 * key. */
void test_granted_memory_is_unmapped(void **state)
{
    char last[R2_TP_KEY_MAX] = {0};
    window_t window = {.memory = pages_map(NULL)};
    packet_t packet;
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    for (uint32_t i = 0; i < 4; ++i) {
        window_grant(&window, &a);
        assert_memory_not_equal(window.key, last, window.key_bytes);
        memcpy(last, window.key, window.key_bytes);
        a.received = 0;
        assert_int_equal(packet_put(&packet, &b, i, DATA_MAX, &window), R2_IN_PROGRESS);
        packet_wait(&packet, &b);
        assert_true(progress_until(&a, &b, &a.received, 1));
        assert_true(has_landed(&window, i, DATA_MAX));
        tp.ops->ungrant(a.worker, window.grant);
        munmap(window.memory, WHOLE);
        assert_ptr_equal(pages_map(window.memory), window.memory);
    }
    pair_close(&a, &b);
    munmap(window.memory, WHOLE);
}

/** Memory that is taken back, against the rules, while a put to it is under way: what lies there
 * now is not written, and the sender is told. */
void test_puts_end_with_their_memory(void **state)
{
    window_t window = {.memory = pages_map(NULL)};
    packet_t packet;
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    window_grant(&window, &a);
    nic_fault("delay 1 300"); /* less than the sender's NIC is patient */
    assert_int_equal(packet_put(&packet, &b, 7, DATA_MAX, &window), R2_IN_PROGRESS);
    sleep_ms(100);
    tp.ops->ungrant(a.worker, window.grant);
    munmap(window.memory, WHOLE);
    assert_ptr_equal(pages_map(window.memory), window.memory);
    tp.ops->worker_progress(a.worker); /* looks at what was unmapped */
    assert_false(packet.done);
    packet_wait(&packet, &b);
    assert_true(packet.status < 0);
    sleep_ms(400);
    assert_true(is_untouched(&window));
    assert_int_equal(a.received, 0);
    nic_fault("heal");
    pair_close(&a, &b);
    munmap(window.memory, WHOLE);
}

/** Other transports grant nothing. */
void test_nothing_is_granted(void **state)
{
    window_t window = {.memory = pages_map(NULL)};
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    assert_int_equal(tp.ops->grant(a.worker, window.memory, WHOLE, NULL, window.key,
                                   &window.key_bytes, &window.grant),
                     R2_ERR_UNSUPPORTED);
    pair_close(&a, &b);
    munmap(window.memory, WHOLE);
}
