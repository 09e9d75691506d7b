/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The TCP transport: what strangers say to it, and bytes that come in any portions.
 */
#include "r2_config.h"

#include "tp_sides.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../open_files.h"
#include "transport/tcp.h"

static r2_tcp_address_t address_of(const side_t *side)
{
    char bytes[R2_TP_ADDRESS_MAX];
    r2_tcp_address_t address;
    size_t length;

    assert_int_equal(tp.ops->ep_address(side->ep, bytes, &length), R2_OK);
    assert_int_equal(length, sizeof(address));
    memcpy(&address, bytes, sizeof(address));
    return address;
}

/** A socket that is connected to a worker. */
static int dial(const r2_tcp_address_t *to)
{
    const struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = to->port, .sin_addr = {to->ipv4}};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *) &in, sizeof(in)), 0);
    return fd;
}

static void progress(side_t *side)
{
    for (int i = 0; i < 32; ++i) {
        tp.ops->worker_progress(side->worker);
    }
}

/** Says something in portions of so many bytes, and lets the worker look at each. */
void say(int fd, const void *what, size_t bytes, size_t portion, side_t *hearer)
{
    for (size_t at = 0; at < bytes; at += portion) {
        const size_t now = r2_min(portion, bytes - at);

        assert_int_equal(send(fd, (const char *) what + at, now, MSG_NOSIGNAL), (ssize_t) now);
        progress(hearer);
    }
}

/** Waits until the other end has closed the connection. */
static bool is_closed(int fd, side_t *hearer)
{
    const uint64_t end_ns = now_ns() + 5 * R2_NS_PER_S;
    char byte;

    do {
        ssize_t got;

        progress(hearer);
        got = recv(fd, &byte, 1, MSG_DONTWAIT);
        if (0 == got || (got < 0 && ECONNRESET == errno)) {
            return true;
        }
    } while (now_ns() < end_ns);
    return false;
}

/** A side whose peer is played by this test. @return the peer's socket. */
int play_peer(side_t *side, size_t portion)
{
    const r2_tcp_address_t us = {.token = {0, 1}};
    r2_tcp_greeting_t greeting = {.magic = R2_TCP_MAGIC, .from = us.token};
    r2_tcp_address_t to;
    int fd;

    side_open(side);
    side_offer(side);
    to = address_of(side);
    greeting.to = to.token;
    fd = dial(&to);
    say(fd, &greeting, sizeof(greeting), portion, side);
    /* the smaller token dials: ours */
    assert_int_equal(tp.ops->ep_connect(side->ep, &us, sizeof(us)), R2_OK);
    return fd;
}

/** Packets of the test, one behind the other, as they travel. @return bytes. */
size_t write_packets(char *to, const uint32_t *lengths, uint32_t count)
{
    char *end = to;

    for (uint32_t i = 0; i < count; ++i) {
        const r2_tcp_frame_t frame = {.header_bytes = sizeof(header_t),
                                      .data_bytes = lengths[i] & R2_TCP_DATA_MAX};
        const header_t header = {.number = i, .bytes = lengths[i]};

        memcpy(end, &frame, sizeof(frame));
        memcpy(end + sizeof(frame), &header, sizeof(header));
        memcpy(end + sizeof(frame) + sizeof(header), pattern + i % 251, lengths[i]);
        end += sizeof(frame) + sizeof(header) + lengths[i];
    }
    return (size_t) (end - to);
}

/** Whatever portions bytes come in, packets are whole. */
void test_portions(void **state)
{
    static const uint32_t lengths[] = {0, 8, 4096, 1, 70000, 3, DATA_MAX, DATA_MAX, 0, 17, 65536};
    static const size_t portions[] = {1 << 20, 1021, 65536, 7};
    enum { COUNT = r2_array_count(lengths) };
    char *bytes = malloc(COUNT * (size_t) SEGMENT_MAX);

    (void) state;
    assert_non_null(bytes);
    for (size_t round = 0; round < 2 * r2_array_count(portions); ++round) {
        const size_t length = write_packets(bytes, lengths, COUNT), i = round / 2;
        side_t side;
        const int fd = play_peer(&side, r2_min(portions[i], (size_t) 64));

        side.takes_more = 0 != round % 2;
        say(fd, bytes, r2_min(length, 3000 * portions[i]), portions[i], &side);
        assert_int_equal(side.wrong, 0);
        assert_true(side.received > 0);
        if (3000 * portions[i] >= length) {
            assert_true(progress_until(&side, NULL, &side.received, COUNT));
            assert_int_equal(side.last, COUNT - 1);
        }
        assert_int_equal(side.failed, 0);
        close(fd);
        assert_true(progress_until(&side, NULL, &side.failed, 1));
        side_close(&side);
    }
    free(bytes);
}

/** A frame that cannot be true ends the lane, and nothing of it is handed up. */
void test_wrong_frames(void **state)
{
    static const r2_tcp_frame_t frames[] = {
        {8, SEGMENT_MAX + 1}, {8, R2_TCP_DATA_MAX}, {R2_TP_HEADER_MAX + 1, 8}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(frames); ++i) {
        for (size_t portion = 1; portion <= sizeof(frames[i]); portion *= 4) {
            side_t side;
            const int fd = play_peer(&side, sizeof(r2_tcp_greeting_t));

            say(fd, &frames[i], sizeof(frames[i]), portion, &side);
            assert_true(progress_until(&side, NULL, &side.failed, 1));
            assert_int_equal(side.received, 0);
            close(fd);
            side_close(&side);
        }
    }
}

/** Who greets nobody, or says something else, or nothing, changes nothing for others. */
void test_strangers(void **state)
{
    enum { SILENT = R2_TCP_GUESTS_MAX + 8 };
    r2_tcp_greeting_t greeting = {.magic = R2_TCP_MAGIC, .from = {0, 1}};
    const size_t before = open_files();
    r2_tcp_address_t to;
    int silent[SILENT], fd;
    packet_t packet;
    side_t a, b;

    (void) state;
    side_open(&a);
    side_open(&b);
    side_offer(&b);
    to = address_of(&b);
    for (int i = 0; i < SILENT; ++i) {
        silent[i] = dial(&to);
        progress(&b);
    }
    assert_true(is_closed(silent[0], &b)); /* the oldest made room */
    fd = dial(&to);
    greeting.to = (r2_tcp_token_t){to.token.worker, to.token.number + 1};
    say(fd, &greeting, sizeof(greeting), sizeof(greeting), &b);
    assert_true(is_closed(fd, &b)); /* no such endpoint */
    close(fd);
    fd = dial(&to);
    greeting.to = to.token;
    greeting.magic ^= 1;
    say(fd, &greeting, sizeof(greeting), sizeof(greeting), &b);
    assert_true(is_closed(fd, &b)); /* another protocol */
    close(fd);
    tp.ops->ep_close(b.ep);
    b.ep = NULL;
    side_connect(&a, &b);
    assert_true(packet_send(&packet, &a, 1, 8, pattern + 1) >= 0);
    assert_true(progress_until(&a, &b, &b.received, 1));
    side_close(&a);
    side_close(&b);
    for (int i = 0; i < SILENT; ++i) {
        close(silent[i]);
    }
    assert_int_equal(open_files(), before);
}

/** The token is the key: another peer's greeting does not take the place of the right one. */
void test_wrong_peer(void **state)
{
    const r2_tcp_address_t right = {.token = {0, 1}};
    r2_tcp_greeting_t greeting = {.magic = R2_TCP_MAGIC, .from = {0, 2}};
    r2_tcp_address_t to;
    side_t side;
    int fd;

    (void) state;
    side_open(&side);
    side_offer(&side);
    to = address_of(&side);
    assert_int_equal(tp.ops->ep_connect(side.ep, &right, sizeof(right)), R2_OK);
    greeting.to = to.token;
    fd = dial(&to);
    say(fd, &greeting, sizeof(greeting), sizeof(greeting), &side);
    assert_true(is_closed(fd, &side));
    close(fd);
    greeting.from = right.token;
    fd = dial(&to);
    say(fd, &greeting, sizeof(greeting), sizeof(greeting), &side);
    assert_int_equal(side.failed, 0);
    close(fd);
    assert_true(progress_until(&side, NULL, &side.failed, 1));
    side_close(&side);
}

/** An endpoint that somebody waits for is asked itself; its end is told by the worker. */
void test_one_endpoint(void **state)
{
    static const uint32_t lengths[] = {8, 0, 4096, 70000, 16};
    enum { COUNT = r2_array_count(lengths) };
    char *bytes = malloc(COUNT * (size_t) SEGMENT_MAX);
    side_t side, other;
    size_t length;
    int fd, elsewhere;

    (void) state;
    assert_non_null(bytes);
    fd = play_peer(&side, sizeof(r2_tcp_greeting_t));
    elsewhere = play_peer(&other, sizeof(r2_tcp_greeting_t));
    assert_int_equal(tp.ops->ep_progress(side.worker, side.ep), 0);
    length = write_packets(bytes, lengths, COUNT);
    assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), (ssize_t) length);
    for (const uint64_t end_ns = now_ns() + 5 * R2_NS_PER_S;
         side.received < COUNT && now_ns() < end_ns;) {
        (void) tp.ops->ep_progress(side.worker, side.ep);
    }
    assert_int_equal(side.received, COUNT);
    assert_int_equal(side.wrong, 0);
    close(fd);
    for (const uint64_t end_ns = now_ns() + 5 * R2_NS_PER_S;
         tp.ops->worker_signals(side.worker) && now_ns() < end_ns;) {
        (void) tp.ops->ep_progress(side.worker, side.ep);
    }
    assert_int_equal(side.failed, 0);
    assert_int_equal(tp.ops->ep_progress(side.worker, side.ep), 0);  /* it is over, and quiet */
    assert_int_equal(tp.ops->worker_arm(side.worker), R2_ERR_AGAIN); /* nobody sleeps over it */
    assert_true(progress_until(&side, NULL, &side.failed, 1));
    close(elsewhere);
    side_close(&side);
    side_close(&other);
    free(bytes);
}

/** Packets that one look hands up of `count` that have come, after one as long. */
static uint32_t handed_up_at_once(bool takes_more, uint32_t count)
{
    static const uint32_t lengths[] = {16000, 16000, 16000, 16000, 16000, 16000};
    char *bytes = malloc(r2_array_count(lengths) * (size_t) SEGMENT_MAX);
    uint32_t handed_up;
    side_t side;
    const int fd = play_peer(&side, sizeof(r2_tcp_greeting_t));
    size_t length;

    assert_non_null(bytes);
    say(fd, bytes, write_packets(bytes, lengths, 1), SEGMENT_MAX, &side);
    assert_int_equal(side.received, 1);
    side.takes_more = takes_more;
    length = write_packets(bytes, lengths, count);
    assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT), (ssize_t) length);
    (void) tp.ops->ep_progress(side.worker, side.ep);
    handed_up = side.received - 1;
    assert_true(progress_until(&side, NULL, &side.received, 1 + count));
    assert_int_equal(side.wrong + side.failed, 0);
    close(fd);
    assert_true(progress_until(&side, NULL, &side.failed, 1));
    side_close(&side);
    free(bytes);
    return handed_up;
}

/** A packet, a part of the next and the end, or what is no packet, in one turn. */
static void ends_in_a_turn(size_t part, bool wrong)
{
    static const uint32_t lengths[] = {16000, 16000};
    char *bytes = malloc(r2_array_count(lengths) * (size_t) SEGMENT_MAX);
    const r2_tcp_frame_t no_frame = {R2_TP_HEADER_MAX + 1, 8};
    side_t side;
    const int fd = play_peer(&side, sizeof(r2_tcp_greeting_t));
    size_t length;

    assert_non_null(bytes);
    length = write_packets(bytes, lengths, 1);
    say(fd, bytes, length, SEGMENT_MAX, &side);
    side.takes_more = true;
    (void) write_packets(bytes, lengths, 2);
    assert_int_equal(send(fd, bytes, length + part, MSG_NOSIGNAL), (ssize_t) (length + part));
    if (wrong) {
        assert_int_equal(send(fd, &no_frame, sizeof(no_frame), MSG_NOSIGNAL), sizeof(no_frame));
    }
    close(fd);
    assert_true(progress_until(&side, NULL, &side.failed, 1));
    progress(&side);
    assert_int_equal(side.failed, 1);
    assert_int_equal(side.received, 2 + part / length);
    assert_int_equal(side.wrong, 0);
    side_close(&side);
    free(bytes);
}

/** What came together is handed up together where that is wanted, but not without end. */
void test_reading_on(void **state)
{
    (void) state;
    assert_int_equal(handed_up_at_once(false, 3), 1);
    assert_int_equal(handed_up_at_once(true, 3), 3);
    assert_in_range(handed_up_at_once(true, 6), 4, 5);
    ends_in_a_turn(0, false);
    ends_in_a_turn(R2_TCP_AHEAD_BYTES, false); /* all that is asked for, then the end */
    ends_in_a_turn(sizeof(r2_tcp_frame_t) + sizeof(header_t) + 16000, true);
}
