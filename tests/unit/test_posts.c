/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Bundles of messages, and two out-of-band drivers as one.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "oob/both.h"
#include "oob/bundle.h"
#include "rail/hello.h"

#define T_SIZE 4

/** What an upcall was told. */
typedef struct t_heard {
    uint32_t count, rank;
    size_t bytes;
    uint8_t data[R2_POST_BYTES_MAX];
} t_heard_t;

static void t_received(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    t_heard_t *heard = arg;

    ++heard->count;
    heard->rank = rank;
    heard->bytes = bytes;
    memcpy(heard->data, data, bytes);
}

static r2_status_t t_read(const uint8_t *data, size_t bytes, const uint8_t *key, uint32_t rank,
                          t_heard_t *heard_p)
{
    const r2_post_upcalls_t upcalls = {.received = t_received, .arg = heard_p};

    memset(heard_p, 0, sizeof(*heard_p));
    return r2_bundle_read(data, bytes, key, rank, T_SIZE, &upcalls);
}

static void t_fill(r2_bundle_t *bundle, const uint8_t *key)
{
    r2_bundle_begin(bundle, 2);
    assert_true(r2_bundle_add(bundle, 0, "for 0", 5));
    assert_true(r2_bundle_add(bundle, 1, "", 0));
    assert_true(r2_bundle_add(bundle, 0, "again", 5));
    r2_bundle_seal(bundle, key);
}

static void everyone_gets_his_own(void **state)
{
    const uint8_t key[R2_JOB_KEY_BYTES] = {7};
    const uint32_t counts[T_SIZE] = {2, 1, 0, 0};
    static r2_bundle_t bundle;
    t_heard_t heard;

    (void) state;
    t_fill(&bundle, key);
    assert_int_equal(3, bundle.count);
    for (uint32_t rank = 0; rank < T_SIZE; ++rank) {
        assert_int_equal(R2_OK, t_read(bundle.data, bundle.bytes, key, rank, &heard));
        assert_int_equal(counts[rank], heard.count);
        if (0 == rank) {
            assert_int_equal(5, heard.bytes);
            assert_memory_equal("again", heard.data, 5);
        }
        assert_int_equal(0 == counts[rank] ? 0 : 2, heard.rank);
    }
}

/** Each bit that changes, each byte that is missing, another key: nothing is given. */
static void nothing_forged_is_read(void **state)
{
    const uint8_t key[R2_JOB_KEY_BYTES] = {7}, other[R2_JOB_KEY_BYTES] = {8};
    static r2_bundle_t bundle;
    t_heard_t heard;

    (void) state;
    t_fill(&bundle, key);
    assert_int_equal(R2_ERR_WIRE, t_read(bundle.data, bundle.bytes, other, 0, &heard));
    for (size_t bit = 0; bit < 8 * bundle.bytes; ++bit) {
        bundle.data[bit / 8] ^= (uint8_t) (1u << bit % 8);
        assert_int_equal(R2_ERR_WIRE, t_read(bundle.data, bundle.bytes, key, 0, &heard));
        assert_int_equal(0, heard.count);
        bundle.data[bit / 8] ^= (uint8_t) (1u << bit % 8);
    }
    for (size_t bytes = 0; bytes < bundle.bytes; ++bytes) {
        assert_int_equal(R2_ERR_WIRE, t_read(bundle.data, bytes, key, 0, &heard));
        assert_int_equal(0, heard.count);
    }
}

/** With the right key, but entries that lie, or a sender that is none. */
static void nothing_malformed_is_read(void **state)
{
    const uint8_t key[R2_JOB_KEY_BYTES] = {7};
    static r2_bundle_t bundle;
    t_heard_t heard;

    (void) state;
    for (size_t length = 4; length < 300; length += 37) {
        r2_bundle_begin(&bundle, 2);
        assert_true(r2_bundle_add(&bundle, 0, "abc", 3));
        bundle.data[bundle.bytes - 5] = (uint8_t) length; /* more than there is */
        bundle.data[bundle.bytes - 4] = (uint8_t) (length >> 8);
        r2_bundle_seal(&bundle, key);
        assert_int_equal(R2_ERR_WIRE, t_read(bundle.data, bundle.bytes, key, 0, &heard));
        assert_int_equal(0, heard.count);
    }
    r2_bundle_begin(&bundle, T_SIZE);
    assert_true(r2_bundle_add(&bundle, 0, "abc", 3));
    r2_bundle_seal(&bundle, key);
    assert_int_equal(R2_ERR_WIRE, t_read(bundle.data, bundle.bytes, key, 0, &heard));
}

static void a_bundle_has_an_end(void **state)
{
    const uint8_t key[R2_JOB_KEY_BYTES] = {7};
    static uint8_t data[R2_POST_BYTES_MAX + 1];
    static r2_bundle_t bundle;
    uint32_t count = 0;
    t_heard_t heard;

    (void) state;
    r2_bundle_begin(&bundle, 1);
    assert_false(r2_bundle_add(&bundle, 0, data, sizeof(data)));
    while (r2_bundle_add(&bundle, 3, data, R2_POST_BYTES_MAX)) {
        ++count;
    }
    assert_int_equal(R2_BUNDLE_BYTES_MAX / (R2_POST_BYTES_MAX + 6), count);
    r2_bundle_seal(&bundle, key);
    assert_true(bundle.bytes <= R2_BUNDLE_BYTES_MAX);
    assert_int_equal(R2_OK, t_read(bundle.data, bundle.bytes, key, 3, &heard));
    assert_int_equal(count, heard.count);
}

/* ---- both ---- */

/** A driver that only counts. */
typedef struct t_driver {
    uint32_t bound, keys, sent, polls, nics;
    r2_status_t status;
    uint64_t deadline_ns;
    int fd;
} t_driver_t;

static void t_bind(void *post, const r2_post_upcalls_t *upcalls)
{
    (void) upcalls;
    ++((t_driver_t *) post)->bound;
}

static void t_key(void *post, const uint8_t *key)
{
    (void) key;
    ++((t_driver_t *) post)->keys;
}

static r2_status_t t_send(void *post, uint32_t rank, const void *data, size_t bytes)
{
    t_driver_t *driver = post;

    (void) rank, (void) data, (void) bytes;
    ++driver->sent;
    return driver->status;
}

static uint64_t t_refused(void *post, uint32_t rank)
{
    (void) post;
    return 100 + rank;
}

static int t_fd(void *post)
{
    return ((t_driver_t *) post)->fd;
}

static void t_poll(void *post)
{
    t_driver_t *driver = post;
    uint64_t count;

    ++driver->polls;
    (void) !read(driver->fd, &count, sizeof(count));
}

static uint64_t t_deadline(void *post)
{
    return ((t_driver_t *) post)->deadline_ns;
}

static bool t_is_readable(const r2_post_t *post)
{
    struct pollfd fd = {.fd = post->ops->fd(post->instance), .events = POLLIN};

    return 1 == poll(&fd, 1, 0);
}

static void two_drivers_are_one(void **state)
{
    const r2_post_ops_t first_ops = {.bind = t_bind, .key = t_key, .send = t_send, .fd = t_fd,
                                     .refused_ns = t_refused, .poll = t_poll,
                                     .deadline_ns = t_deadline};
    const r2_post_ops_t second_ops = {.bind = t_bind, .send = t_send, .fd = t_fd, .poll = t_poll,
                                      .deadline_ns = t_deadline};
    const uint8_t key[R2_JOB_KEY_BYTES] = {0};
    const r2_post_upcalls_t upcalls = {.received = t_received};
    t_driver_t at[2] = {{.deadline_ns = 50, .fd = eventfd(0, EFD_NONBLOCK)},
                        {.deadline_ns = R2_NEVER_NS, .fd = eventfd(0, EFD_NONBLOCK)}};
    const r2_post_t first = {&first_ops, &at[0]}, second = {&second_ops, &at[1]};
    r2_post_t both = {0};

    (void) state;
    assert_int_equal(R2_OK, r2_post_both_create(&first, &second, &both));
    both.ops->bind(both.instance, &upcalls);
    both.ops->key(both.instance, key);
    assert_int_equal(2, at[0].bound + at[1].bound);
    assert_int_equal(1, at[0].keys);
    for (uint32_t failed = 0; failed < 4; ++failed) { /* one that takes it will do */
        at[0].status = failed & 1 ? R2_ERR_NO_PATH : R2_OK;
        at[1].status = failed & 2 ? R2_ERR_SYSTEM : R2_OK;
        assert_int_equal(3 == failed ? R2_ERR_NO_PATH : R2_OK,
                         both.ops->send(both.instance, 1, "", 0));
        assert_int_equal(failed + 1, at[0].sent);
        assert_int_equal(failed + 1, at[1].sent);
    }
    assert_int_equal(103, both.ops->refused_ns(both.instance, 3));
    assert_int_equal(50, both.ops->deadline_ns(both.instance));
    for (uint32_t i = 0; i < 2; ++i) {
        assert_false(t_is_readable(&both));
        assert_int_equal(8, write(at[i].fd, &(uint64_t){1}, 8));
        assert_true(t_is_readable(&both));
        both.ops->poll(both.instance);
        assert_int_equal(i + 1, at[0].polls);
        assert_int_equal(i + 1, at[1].polls);
    }
    r2_post_both_destroy(&both);
    close(at[0].fd);
    close(at[1].fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everyone_gets_his_own),   cmocka_unit_test(nothing_forged_is_read),
        cmocka_unit_test(nothing_malformed_is_read), cmocka_unit_test(a_bundle_has_an_end),
        cmocka_unit_test(two_drivers_are_one),
    };

    return cmocka_run_group_tests_name("posts", tests, NULL, NULL);
}
