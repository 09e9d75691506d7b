/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The TCP hello driver against strangers: garbage, silence, floods, replays, false servers.
 */
#include "hello_ends.h"

#include "rail/hello_tcp.h"

static void test_garbage(void **state)
{
    static const size_t sizes[] = {1, 39, 40, 41, 4096};
    t_end_t *b = t_end_new(0);
    uint8_t garbage[4096];

    (void) state;
    memset(garbage, 0xa5, sizeof(garbage));
    for (size_t i = 0; i < r2_array_count(sizes); ++i) {
        const int fd = t_connect(b);

        t_write(fd, garbage, sizes[i]);
        assert_int_equal(t_closed(b, fd), sizes[i] >= 40); /* before: waits for a whole greeting */
        close(fd);
        t_drain(b);
    }
    assert_int_equal(b->requests, 0);
    assert_int_equal(((r2_hello_tcp_t *) b->hello.instance)->stranger_count, 0);
    t_end_free(b);
}

/** A good greeting, then a guessed proof. */
static void test_guessed_proof(void **state)
{
    static const uint8_t guess[R2_JOB_KEY_BYTES] = "a guess";
    r2_hello_session_t session;
    uint8_t frame[R2_HELLO_FRAME_MAX];
    t_end_t *b = t_end_new(0);
    int fd;

    (void) state;
    fd = t_handshake(b, guess, &session);
    send(fd, frame, r2_hello_frame_seal(&session, R2_HELLO_CLIENT, "x", 1, frame), MSG_NOSIGNAL);
    assert_true(t_closed(b, fd));
    assert_int_equal(b->requests, 0);
    close(fd);
    t_end_free(b);
}

/** Silent strangers fill all slots; a peer gets in; the strangers are dropped in the end. */
static void test_silence(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);
    int fds[2 * R2_HELLO_STRANGERS_MAX];

    (void) state;
    for (size_t i = 0; i < r2_array_count(fds); ++i) {
        fds[i] = t_connect(b);
        if (0 == i % 2) {
            t_write(fds[i], R2_HELLO_MAGIC,
                    R2_HELLO_MAGIC_BYTES); /* one byte at a time, so to say */
        }
        t_poll(b);
    }
    t_drain(b);
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK);
    for (unsigned i = 0; i < 1000 && 0 == a->results; ++i) {
        t_poll(a);
        t_poll(b);
        t_time_ns += R2_NS_PER_MS / 2;
    }
    assert_int_equal(a->status[0], R2_OK);
    assert_int_equal(((r2_hello_tcp_t *) b->hello.instance)->stranger_count,
                     R2_HELLO_STRANGERS_MAX - 1);
    t_time_ns += R2_HELLO_STRANGER_NS;
    t_poll(b);
    t_poll(b);
    for (size_t i = 0; i < r2_array_count(fds); ++i) {
        assert_true(t_closed(b, fds[i]));
        close(fds[i]);
    }
    assert_int_equal(((r2_hello_tcp_t *) b->hello.instance)->stranger_count, 0);
    assert_true(R2_NEVER_NS == b->hello.ops->deadline_ns(b->hello.instance));
    t_end_free(a);
    t_end_free(b);
}

/** Strangers come as fast as they can while peers call: every call gets through. */
static void test_flood(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);
    int fds[400];

    (void) state;
    memset(fds, 0xff, sizeof(fds));
    for (unsigned round = 0; round < 2000; ++round) {
        const unsigned slot = round % r2_array_count(fds);

        if (fds[slot] >= 0) {
            close(fds[slot]);
        }
        fds[slot] = t_connect(b);
        if (0 == round % 20) {
            assert_int_equal(t_call(a, 0, b, "x", 1, round / 20), R2_OK);
        }
        t_time_ns += R2_NS_PER_MS / 10; /* 10,000 strangers a second */
        t_poll(a);
        t_poll(b);
        assert_true(((r2_hello_tcp_t *) b->hello.instance)->stranger_count <=
                    R2_HELLO_STRANGERS_MAX);
    }
    for (unsigned i = 0; i < 2000 && a->results < 100; ++i) {
        t_poll(a);
        t_poll(b);
        t_time_ns += R2_NS_PER_MS / 10;
    }
    for (unsigned i = 0; i < 100; ++i) {
        assert_int_equal(a->status[i], R2_OK);
    }
    for (unsigned i = 0; i < r2_array_count(fds); ++i) {
        close(fds[i]);
    }
    t_end_free(a);
    t_end_free(b);
}

/** An authenticated peer that stops in the middle of its request. */
static void test_truncated(void **state)
{
    r2_hello_session_t session;
    uint8_t frame[R2_HELLO_FRAME_MAX];
    t_end_t *b = t_end_new(0);
    const size_t whole = R2_HELLO_FRAME_HEADER_BYTES + 100 + R2_HELLO_MAC_BYTES;
    static const uint8_t payload[100];

    (void) state;
    for (size_t bytes = 0; bytes < whole; bytes += 11) {
        const int fd = t_handshake(b, t_key, &session);

        assert_int_equal(r2_hello_frame_seal(&session, R2_HELLO_CLIENT, payload, 100, frame),
                         whole);
        if (bytes > 0) {
            t_write(fd, frame, bytes);
        }
        shutdown(fd, SHUT_WR);
        assert_true(t_closed(b, fd));
        close(fd);
    }
    assert_int_equal(b->requests, 0);
    t_end_free(b);
}

static void test_oversize(void **state)
{
    static const uint8_t header[R2_HELLO_FRAME_HEADER_BYTES] = {0x01, 0x05}; /* 1281 bytes */
    static const uint8_t huge[R2_HELLO_FRAME_HEADER_BYTES] = {0xff, 0xff, 0xff, 0xff};
    const uint8_t *const headers[] = {header, huge};
    r2_hello_session_t session;
    t_end_t *b = t_end_new(0);

    (void) state;
    for (size_t i = 0; i < r2_array_count(headers); ++i) {
        const int fd = t_handshake(b, t_key, &session);

        t_write(fd, headers[i], R2_HELLO_FRAME_HEADER_BYTES);
        assert_true(t_closed(b, fd));
        close(fd);
    }
    assert_int_equal(b->requests, 0);
    t_end_free(b);
}

/** The same request twice on a connection, and a recorded connection played again. */
static void test_replay(void **state)
{
    r2_hello_session_t session;
    uint8_t stream[R2_HELLO_STREAM_MAX] = R2_HELLO_MAGIC;
    uint8_t *frame = stream + R2_HELLO_MAGIC_BYTES + R2_HELLO_NONCE_BYTES + R2_HELLO_PROOF_BYTES;
    t_end_t *b = t_end_new(0);
    size_t bytes;
    int fd;

    (void) state;
    b->hold = true;
    fd = t_handshake(b, t_key, &session);
    bytes = r2_hello_frame_seal(&session, R2_HELLO_CLIENT, "once", 4, frame);
    t_write(fd, frame, bytes);
    t_drain(b);
    assert_int_equal(b->requests, 1);
    t_write(fd, frame, bytes);
    assert_true(t_closed(b, fd));
    assert_int_equal(b->requests, 1);
    close(fd);

    stream[R2_HELLO_MAGIC_BYTES] = 7; /* the nonce of t_handshake() */
    memcpy(frame - R2_HELLO_PROOF_BYTES, session.proof[R2_HELLO_CLIENT], R2_HELLO_PROOF_BYTES);
    fd = t_connect(b);
    t_write(fd, stream, (size_t) (frame - stream) + bytes);
    assert_true(t_closed(b, fd));
    assert_int_equal(b->requests, 1);
    close(fd);
    t_end_free(b);
}

/** Frames: every flipped bit, a repeated and an early counter are refused. */
static void test_frames(void **state)
{
    r2_hello_session_t client, server;
    uint8_t frame[R2_HELLO_FRAME_MAX], nonce[2][R2_HELLO_NONCE_BYTES] = {{1}, {2}};
    const uint8_t id[R2_HELLO_ID_BYTES] = {3}, *payload;
    size_t bytes, payload_bytes;

    (void) state;
    r2_hello_session_init(&client, t_key, 5, id, nonce[0], nonce[1]);
    r2_hello_session_init(&server, t_key, 5, id, nonce[0], nonce[1]);
    bytes = r2_hello_frame_seal(&client, R2_HELLO_CLIENT, "some bytes", 10, frame);
    for (size_t bit = 0; bit < 8 * bytes; ++bit) {
        frame[bit / 8] ^= (uint8_t) (1 << bit % 8);
        assert_int_equal(
            r2_hello_frame_open(&server, R2_HELLO_CLIENT, frame, bytes, &payload, &payload_bytes),
            R2_ERR_AUTH);
        frame[bit / 8] ^= (uint8_t) (1 << bit % 8);
    }
    for (size_t cut = 0; cut < bytes; ++cut) {
        assert_int_equal(
            r2_hello_frame_open(&server, R2_HELLO_CLIENT, frame, cut, &payload, &payload_bytes),
            R2_ERR_AUTH);
    }
    /* sent back to its sender as if it were the answer */
    assert_int_equal(
        r2_hello_frame_open(&client, R2_HELLO_SERVER, frame, bytes, &payload, &payload_bytes),
        R2_ERR_AUTH);
    assert_int_equal(
        r2_hello_frame_open(&server, R2_HELLO_CLIENT, frame, bytes, &payload, &payload_bytes),
        R2_OK);
    assert_memory_equal(payload, "some bytes", 10);
    assert_int_equal(
        r2_hello_frame_open(&server, R2_HELLO_CLIENT, frame, bytes, &payload, &payload_bytes),
        R2_ERR_AUTH);
    r2_hello_frame_seal(&client, R2_HELLO_CLIENT, "lost", 4, frame);
    bytes = r2_hello_frame_seal(&client, R2_HELLO_CLIENT, "early", 5, frame);
    assert_int_equal(
        r2_hello_frame_open(&server, R2_HELLO_CLIENT, frame, bytes, &payload, &payload_bytes),
        R2_ERR_AUTH);
}

/* False servers: something else has taken the peer's port. */

static int t_false_server(t_end_t *as)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(in);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (const struct sockaddr *) &in, sizeof(in)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &in, &bytes), 0);
    memcpy(as->address + 8, &in.sin_port, 2);
    return fd;
}

static void test_false_server(void **state)
{
    t_end_t *a = t_end_new(0), *b = t_end_new(0);
    uint8_t junk[R2_HELLO_STREAM_MAX] = R2_HELLO_MAGIC;
    const int server = t_false_server(b);
    int fd;

    (void) state;
    assert_int_equal(t_call(a, 0, b, "x", 1, 0), R2_OK); /* a wrong proof */
    fd = accept(server, NULL, NULL);
    t_write(fd, junk, sizeof(junk));
    t_run(a, NULL, 1);
    assert_int_equal(a->status[0], R2_ERR_AUTH);
    close(fd);
    assert_int_equal(t_call(a, 0, b, "x", 1, 1), R2_OK); /* another protocol */
    fd = accept(server, NULL, NULL);
    memcpy(junk, "SSH-2.0-", 8);
    t_write(fd, junk, sizeof(junk));
    t_run(a, NULL, 2);
    assert_int_equal(a->status[1], R2_ERR_AUTH);
    close(fd);
    assert_int_equal(t_call(a, 0, b, "x", 1, 2), R2_OK); /* closes */
    fd = accept(server, NULL, NULL);
    t_drain(a);
    close(fd);
    t_run(a, NULL, 3);
    assert_int_equal(a->status[2], R2_ERR_LANE_DOWN);
    assert_int_equal(t_call(a, 0, b, "x", 1, 3), R2_OK); /* says nothing */
    t_drain(a);
    t_time_ns += R2_NS_PER_S;
    t_poll(a);
    assert_int_equal(a->status[3], R2_ERR_UNRESPONSIVE);
    close(server);
    t_end_free(a);
    t_end_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_garbage),      cmocka_unit_test(test_guessed_proof),
        cmocka_unit_test(test_silence),      cmocka_unit_test(test_flood),
        cmocka_unit_test(test_truncated),    cmocka_unit_test(test_oversize),
        cmocka_unit_test(test_replay),       cmocka_unit_test(test_frames),
        cmocka_unit_test(test_false_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
