/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The TCP hello driver among peers: calls, sizes, timeouts, addresses, many at once.
 */
#include "hello_ends.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rail/hello_tcp.h"

static void test_call(void **state)
{
    static const size_t sizes[] = {1, 0, 17, R2_HELLO_BYTES_MAX};
    t_end_t *a = t_end_new(0), *b = t_end_new(0);
    uint8_t request[R2_HELLO_BYTES_MAX];

    (void) state;
    for (size_t i = 0; i < sizeof(request); ++i) {
        request[i] = (uint8_t) (i * 7 + 1);
    }
    for (unsigned i = 0; i < r2_array_count(sizes); ++i) {
        assert_int_equal(t_call(a, 0, b, request, sizes[i], i), R2_OK);
        t_run(a, b, i + 1);
        assert_int_equal(a->status[i], R2_OK);
        assert_int_equal(b->request_bytes, sizes[i]);
        assert_memory_equal(b->request, request, sizes[i]);
        assert_int_equal(a->reply_bytes, sizes[i]);
        assert_memory_equal(a->reply, request, sizes[i]);
    }
    assert_int_equal(b->requests, r2_array_count(sizes));
    assert_int_equal(b->rail_idx, 0);
    t_drain(b);
    assert_true(R2_NEVER_NS == a->hello.ops->deadline_ns(a->hello.instance));
    t_end_free(a);
    t_end_free(b);
}

static void test_call_too_long(void **state)
{
    static const uint8_t request[R2_HELLO_BYTES_MAX + 1];
    t_end_t *a = t_end_new(0);

    (void) state;
    assert_int_equal(t_call(a, 0, a, request, sizeof(request), 0), R2_ERR_PARAM);
    assert_int_equal(t_call(a, R2_RAILS_MAX + 1, a, request, 1, 0), R2_ERR_PARAM);
    t_end_free(a);
}

static void test_two_at_each_other(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);

    (void) state;
    assert_int_equal(t_call(a, 0, b, "ab", 2, 0), R2_OK);
    assert_int_equal(t_call(b, 0, a, "ba", 2, 0), R2_OK);
    t_run(a, b, 1);
    t_run(b, a, 1);
    assert_memory_equal(a->request, "ba", 2);
    assert_memory_equal(b->request, "ab", 2);
    t_end_free(a);
    t_end_free(b);
}

static void test_late_reply(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);

    (void) state;
    b->hold = true;
    assert_int_equal(t_call(a, 0, b, "x", 1, 3), R2_OK);
    while (0 == b->requests) {
        t_poll(a);
        t_poll(b);
    }
    b->hello.ops->reply(b->hello.instance, b->token + 1, "no", 2); /* unknown token */
    b->hello.ops->reply(b->hello.instance, b->token, "late", 4);
    b->hello.ops->reply(b->hello.instance, b->token, "again", 5);
    t_run(a, b, 1);
    assert_int_equal(a->status[3], R2_OK);
    assert_int_equal(a->reply_bytes, 4);
    assert_memory_equal(a->reply, "late", 4);
    t_end_free(a);
    t_end_free(b);
}

/** A call can be taken back until its request is sent: it has no result then, and the peer no
 * request. */
static void test_cancel(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);

    (void) state;
    assert_int_equal(t_call(a, 0, b, "x", 1, 1), R2_OK);
    assert_false(a->hello.ops->cancel(a->hello.instance, 2));
    assert_true(a->hello.ops->cancel(a->hello.instance, 1));
    assert_false(a->hello.ops->cancel(a->hello.instance, 1));
    b->hold = true;
    assert_int_equal(t_call(a, 0, b, "y", 1, 1), R2_OK);
    while (0 == b->requests) {
        t_poll(a);
        t_poll(b);
    }
    assert_memory_equal(b->request, "y", 1);
    assert_false(a->hello.ops->cancel(a->hello.instance, 1));
    assert_false(b->hello.ops->cancel(b->hello.instance, b->token));
    b->hello.ops->reply(b->hello.instance, b->token, "late", 4);
    t_run(a, b, 1);
    assert_int_equal(a->status[1], R2_OK);
    t_drain(b);
    assert_int_equal(b->requests, 1);
    t_end_free(a);
    t_end_free(b);
}

/** The peer accepts, but its process does not get round to answering. */
static void test_timeout(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);

    (void) state;
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    assert_true(a->hello.ops->deadline_ns(a->hello.instance) <= t_time_ns + R2_NS_PER_S);
    t_drain(a);
    t_time_ns += R2_NS_PER_S - 1;
    t_poll(a);
    assert_int_equal(a->results, 0);
    t_time_ns += 1;
    t_poll(a);
    assert_int_equal(a->status[0], R2_ERR_UNRESPONSIVE);
    assert_true(R2_NEVER_NS == a->hello.ops->deadline_ns(a->hello.instance));
    t_drain(b);
    assert_int_equal(b->requests, 0);
    t_end_free(a);
    t_end_free(b);
}

/** Calls to a process that is stopped stay where they are: one place in its queue, however long. */
static void test_waits(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);

    (void) state;
    a->stay = true;
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    assert_int_equal(t_call(a, 0, b, "y", 1, 1), R2_OK);
    t_drain(a);
    for (int i = 0; i < 100; ++i) {
        t_time_ns += 10 * R2_NS_PER_S;
        t_poll(a);
    }
    assert_int_equal(a->waits, 200);
    assert_int_equal(a->results, 0);
    assert_true(a->hello.ops->cancel(a->hello.instance, 1)); /* not asked for any more */
    t_time_ns += R2_NS_PER_S;
    t_run(a, b, 1); /* continued */
    assert_int_equal(a->status[0], R2_OK);
    t_drain(b);
    assert_int_equal(b->requests, 1);
    assert_int_equal(t_call(a, 0, b, "z", 1, 2), R2_OK);
    t_drain(a);
    a->stay = false;
    t_time_ns += 10 * R2_NS_PER_S;
    t_poll(a);
    assert_int_equal(a->status[2], R2_ERR_UNRESPONSIVE);
    t_end_free(a);
    t_end_free(b);
}

/** A process that has said a word is not stopped: it had its time. */
static void test_mismatch_for_no_answer(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);

    (void) state;
    a->stay = b->hold = true;
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    while (0 == b->requests) {
        t_poll(a);
        t_poll(b);
    }
    t_time_ns += R2_NS_PER_S;
    t_poll(a);
    assert_int_equal(a->waits, 0);
    assert_int_equal(a->status[0], R2_ERR_UNRESPONSIVE);
    t_end_free(a);
    t_end_free(b);
}

/** A listener whose queue is full: the kernel drops first packets and says nothing. */
static void t_deaf_listener(t_end_t *end, int *fds, size_t count)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(at);
    r2_hello_address_t address;

    for (size_t i = 0; i < count; ++i) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_true(fds[i] >= 0);
    }
    assert_int_equal(bind(fds[0], (struct sockaddr *) &at, sizeof(at)), 0);
    assert_int_equal(listen(fds[0], 0), 0);
    assert_int_equal(getsockname(fds[0], (struct sockaddr *) &at, &bytes), 0);
    for (size_t i = 1; i < count; ++i) {
        (void) connect(fds[i], (struct sockaddr *) &at, sizeof(at));
    }
    assert_int_equal(r2_hello_address_decode(end->address, end->address_bytes, &address), R2_OK);
    address.port = ntohs(at.sin_port);
    address.ipv4 = at.sin_addr.s_addr;
    end->address_bytes = r2_hello_address_encode(&address, end->address);
}

/** A first packet without an answer is sent again long before the kernel would, then less often. */
static void test_dials_again(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);
    uint64_t start_ns = t_time_ns;
    int fds[5];

    (void) state;
    t_deaf_listener(b, fds, r2_array_count(fds));
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    t_drain(a);
    for (uint64_t due_ns = R2_HELLO_DIAL_NS; due_ns < R2_NS_PER_S; due_ns *= 3) {
        assert_true(a->hello.ops->deadline_ns(a->hello.instance) == start_ns + due_ns);
        t_time_ns = start_ns + due_ns;
        t_drain(a);
        assert_int_equal(a->results, 0);
    }
    assert_true(a->hello.ops->deadline_ns(a->hello.instance) == start_ns + R2_NS_PER_S);
    t_time_ns = start_ns + R2_NS_PER_S;
    t_poll(a);
    assert_int_equal(a->status[0], R2_ERR_TIMEOUT);
    assert_true(R2_NEVER_NS == a->hello.ops->deadline_ns(a->hello.instance));
    for (size_t i = 0; i < r2_array_count(fds); ++i) {
        close(fds[i]);
    }
    t_end_free(a);
    t_end_free(b);
}

/** An authenticated request that nobody answers is given up; its token is void. */
static void test_request_expires(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);

    (void) state;
    b->hold = true;
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    while (0 == b->requests) {
        t_poll(a);
        t_poll(b);
    }
    t_time_ns += 31 * R2_NS_PER_S;
    t_poll(b);
    b->hello.ops->reply(b->hello.instance, b->token, "late", 4);
    t_run(a, b, 1);
    assert_true(R2_OK != a->status[0]);
    assert_true(R2_NEVER_NS == b->hello.ops->deadline_ns(b->hello.instance));
    t_end_free(a);
    t_end_free(b);
}

static void test_refused(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);
    r2_status_t status;

    (void) state;
    r2_hello_tcp_destroy(&b->hello);
    status = t_call(a, 0, b, "x", 1, 0);
    if (R2_OK == status) {
        t_run(a, NULL, 1);
        status = a->status[0];
    }
    assert_int_equal(status, R2_ERR_REFUSED);
    t_end_free(a);
    free(b);
}

static void test_local_rail(void **state)
{
    t_end_t *a = t_end_new(R2_RAILS_MAX), *b = t_end_new(R2_RAILS_MAX);

    (void) state;
    assert_int_equal(t_call(a, R2_RAILS_MAX, b, "local", 5, 0), R2_OK);
    t_run(a, b, 1);
    assert_int_equal(a->status[0], R2_OK);
    assert_int_equal(b->rail_idx, R2_RAILS_MAX);
    assert_memory_equal(a->reply, "local", 5);
    assert_int_equal(t_call(a, 0, b, "x", 1, 1), R2_ERR_WIRE); /* not a NIC's address */
    r2_hello_tcp_destroy(&b->hello);
    assert_int_equal(t_call(a, R2_RAILS_MAX, b, "x", 1, 1), R2_ERR_REFUSED);
    t_end_free(a);
    free(b);
}

static void test_key_comes_late(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_bare();

    (void) state;
    t_listen(b, 0);
    assert_int_equal(t_call(b, 0, a, "x", 1, 0), R2_ERR_AGAIN);
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    t_drain(a);
    t_drain(b);
    assert_int_equal(b->requests + a->results, 0);
    b->hello.ops->key(b->hello.instance, t_key);
    t_run(a, b, 1);
    assert_int_equal(a->status[0], R2_OK);
    t_end_free(a);
    t_end_free(b);
}

static void test_wrong_key(void **state)
{
    static const uint8_t other[R2_JOB_KEY_BYTES] = "key of another job";
    t_end_t *a = t_bare(), *b = t_end_new(0);

    (void) state;
    a->hello.ops->key(a->hello.instance, other);
    t_listen(a, 0);
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    t_run(a, b, 1);
    assert_int_equal(a->status[0], R2_ERR_AUTH);
    t_drain(b);
    assert_int_equal(b->requests, 0);
    t_end_free(a);
    t_end_free(b);
}

/** A proof is good for one listener on one rail only. */
static void test_wrong_listener(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);

    (void) state;
    b->address[10] ^= 1; /* id */
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    t_run(a, b, 1);
    assert_int_equal(a->status[0], R2_ERR_AUTH);
    b->address[10] ^= 1;
    b->address[2] = 3; /* rail */
    assert_int_equal(t_call(a, 0, b, "x", 1, 1), R2_OK);
    t_run(a, b, 2);
    assert_int_equal(a->status[1], R2_ERR_AUTH);
    t_drain(b);
    assert_int_equal(b->requests, 0);
    t_end_free(a);
    t_end_free(b);
}

/** Two hundred calls in one go, more than there are slots for strangers. */
static void test_many(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);

    (void) state;
    for (unsigned i = 0; i < 200; ++i) {
        assert_int_equal(t_call(a, 0, b, &i, sizeof(i), i), R2_OK);
    }
    t_run(a, b, 200);
    for (unsigned i = 0; i < 200; ++i) {
        assert_int_equal(a->status[i], R2_OK);
    }
    assert_int_equal(b->requests, 200);
    t_end_free(a);
    t_end_free(b);
}

/** Every malformed address is refused without a connection. */
static void test_bad_addresses(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } edits[] = {{0, 2},   {1, 0}, {1, 1},   {1, 5},   {2, R2_RAILS_MAX},
                 {2, 255}, {3, 1}, {4, 224}, {4, 255}, {4, 0}};
    t_end_t *a = t_end_new(0), *b = t_end_new(0);
    uint8_t good[R2_HELLO_ADDRESS_MAX] = {0};

    (void) state;
    memcpy(good, b->address, b->address_bytes);
    for (size_t i = 0; i < r2_array_count(edits); ++i) {
        b->address[edits[i].at] = edits[i].value;
        assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_ERR_WIRE);
        memcpy(b->address, good, b->address_bytes);
    }
    b->address[8] = b->address[9] = 0; /* port */
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_ERR_WIRE);
    memcpy(b->address, good, b->address_bytes);
    for (size_t bytes = 0; bytes <= sizeof(b->address); ++bytes) {
        const size_t right = b->address_bytes;

        if (bytes != right) {
            b->address_bytes = bytes;
            assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_ERR_WIRE);
            b->address_bytes = right;
        }
    }
    t_end_free(a);
    t_end_free(b);
}

/** A NIC without address publishes a port; the address is filled in later. */
static void test_address_later(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_bare();
    r2_nic_t nic = t_lo();
    uint8_t first[R2_HELLO_ADDRESS_MAX];

    (void) state;
    nic.ipv4 = 0;
    b->hello.ops->key(b->hello.instance, t_key);
    assert_int_equal(
        b->hello.ops->listen(b->hello.instance, 0, &nic, b->address, &b->address_bytes), R2_OK);
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_ERR_NO_DEVICE);
    assert_int_equal(t_call(b, 0, a, "x", 1, 0), R2_ERR_NO_DEVICE);
    memcpy(first, b->address, sizeof(first));
    assert_int_equal(r2_hello_tcp_address_fill(b->address, b->address_bytes, t_lo().ipv4), R2_OK);
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    t_run(a, b, 1);
    assert_int_equal(a->status[0], R2_OK);
    t_listen(b, 0); /* now with an address: same port, and calls go out */
    assert_memory_equal(first + 8, b->address + 8, b->address_bytes - 8);
    assert_int_equal(t_call(b, 0, a, "x", 1, 0), R2_OK);
    t_run(b, a, 1);
    assert_int_equal(b->status[0], R2_OK);
    assert_int_equal(r2_hello_tcp_address_fill(first, 5, 1), R2_ERR_WIRE);
    t_end_free(a);
    t_end_free(b);
}

/** The device came back with another index, or with another address: the port stays. */
static void test_listen_again(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);
    uint8_t first[R2_HELLO_ADDRESS_MAX];
    r2_nic_t nic = t_lo();

    (void) state;
    memcpy(first, b->address, sizeof(first));
    nic.ipv4 = htonl(INADDR_LOOPBACK + 1);
    assert_int_equal(
        b->hello.ops->listen(b->hello.instance, 0, &nic, b->address, &b->address_bytes), R2_OK);
    assert_memory_equal(first + 8, b->address + 8, b->address_bytes - 8);
    assert_memory_equal(b->address + 4, &nic.ipv4, 4);
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    t_run(a, b, 1);
    assert_int_equal(a->status[0], R2_OK);
    memcpy(nic.name, "nosuch0", 8);
    nic.ifindex = 99;
    assert_int_equal(b->hello.ops->listen(b->hello.instance, 0, &nic, first, &b->address_bytes),
                     R2_ERR_NO_DEVICE);
    assert_int_equal(t_call(a, 0, b, "x", 1, 1), R2_OK); /* the old listener is still there */
    t_run(a, b, 2);
    assert_int_equal(a->status[1], R2_OK);
    t_end_free(a);
    t_end_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_call_too_long),
        cmocka_unit_test(test_two_at_each_other),
        cmocka_unit_test(test_late_reply),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_mismatch_for_no_answer),
        cmocka_unit_test(test_dials_again),
        cmocka_unit_test(test_request_expires),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_local_rail),
        cmocka_unit_test(test_key_comes_late),
        cmocka_unit_test(test_wrong_key),
        cmocka_unit_test(test_wrong_listener),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_bad_addresses),
        cmocka_unit_test(test_address_later),
        cmocka_unit_test(test_listen_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
