/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The TCP transport: data that are read to where they belong.
 */
#include "r2_config.h"

#include "tp_sides.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp.h"

#define LONG_BYTES 100000u
#define HEAD_BYTES (sizeof(r2_tcp_frame_t) + sizeof(header_t))

static char *map(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *memory = mmap(NULL, DATA_MAX, PROT_READ | PROT_WRITE, flags, -1, 0);

    assert_true(MAP_FAILED != memory);
    return memory;
}

/* Long packets with odd numbers land, whatever portions they come in; the rest comes as ever. */
void test_landing(void **state)
{
    static const uint32_t lengths[] = {0,        LONG_BYTES, 4096,     LONG_BYTES, 8, DATA_MAX,
                                       DATA_MAX, 17,         DATA_MAX, DATA_MAX,   1, 65536};
    static const size_t portions[] = {1 << 20, 40000, 4096, 1021};
    enum { COUNT = r2_array_count(lengths) };
    char *bytes = malloc(COUNT * (size_t) SEGMENT_MAX), *memory = map();

    (void) state;
    assert_non_null(bytes);
    for (size_t i = 0; i < r2_array_count(portions); ++i) {
        const size_t length = write_packets(bytes, lengths, COUNT);
        side_t side;
        const int fd = play_peer(&side, sizeof(r2_tcp_greeting_t));

        side.landing = memory;
        say(fd, bytes, length, portions[i], &side);
        assert_true(progress_until(&side, NULL, &side.received, COUNT));
        assert_int_equal(side.wrong, 0);
        assert_int_equal(side.landed, side.landings);
        /* in small portions all long ones with odd numbers do; some others were read at once */
        assert_in_range(side.landings, portions[i] <= 4096 ? 5 : 1, 5);
        /* and the others' data are moved to where they suit every type */
        assert_in_range(side.aligned, portions[i] <= 4096 ? 7 : 1, 7);
        close(fd);
        assert_true(progress_until(&side, NULL, &side.failed, 1));
        side_close(&side);
    }
    munmap(memory, DATA_MAX);
    free(bytes);
}

/* A long packet lands though it is there whole when it is looked for, and short ones came last. */
void test_landing_behind_short(void **state)
{
    static const uint32_t lengths[] = {LONG_BYTES, 8, 8, LONG_BYTES};
    enum { COUNT = r2_array_count(lengths) };
    const size_t before = 3 * HEAD_BYTES + LONG_BYTES + 2 * 8, last = HEAD_BYTES + LONG_BYTES;
    char *bytes = malloc(COUNT * (size_t) SEGMENT_MAX), *memory = map();
    side_t side;
    int fd;

    (void) state;
    assert_non_null(bytes);
    assert_int_equal(write_packets(bytes, lengths, COUNT), before + last);
    fd = play_peer(&side, sizeof(r2_tcp_greeting_t));
    side.landing = memory;
    say(fd, bytes, before, before, &side);
    assert_true(progress_until(&side, NULL, &side.received, COUNT - 1));
    assert_int_equal(side.landings, 0);
    say(fd, bytes + before, last, last, &side);
    assert_true(progress_until(&side, NULL, &side.received, COUNT));
    assert_int_equal(side.wrong, 0);
    assert_int_equal(side.landings, 1);
    assert_int_equal(side.landed, 1);
    close(fd);
    assert_true(progress_until(&side, NULL, &side.failed, 1));
    side_close(&side);
    munmap(memory, DATA_MAX);
    free(bytes);
}

/* A side that has read so much of packet 1, which lands. @return the peer's socket. */
static int begin_landing(side_t *side, char *bytes, size_t count, char *memory)
{
    static const uint32_t lengths[] = {0, LONG_BYTES};
    const int fd = play_peer(side, sizeof(r2_tcp_greeting_t));

    assert_int_equal(write_packets(bytes, lengths, 2), 2 * HEAD_BYTES + LONG_BYTES);
    side->landing = memory;
    say(fd, bytes, 2 * HEAD_BYTES, 2 * HEAD_BYTES, side);
    if (count > HEAD_BYTES) {
        say(fd, bytes + 2 * HEAD_BYTES, count - HEAD_BYTES, count - HEAD_BYTES, side);
    }
    assert_int_equal(side->received, 1);
    return fd;
}

/* Memory that is taken back is not touched any more, and the packet is whole all the same. */
void test_landing_off(void **state)
{
    static const size_t counts[] = {HEAD_BYTES, HEAD_BYTES + 1, 5000, 70000,
                                    HEAD_BYTES + LONG_BYTES - R2_TCP_LAND_BYTES};
    char *bytes = malloc(2 * (size_t) SEGMENT_MAX), *memory = map();

    (void) state;
    assert_non_null(bytes);
    for (size_t i = 0; i < r2_array_count(counts); ++i) {
        side_t side;
        const int fd = begin_landing(&side, bytes, counts[i], memory);

        assert_int_equal(side.landings, 1);
        tp.ops->ep_land_off(side.ep);
        memset(memory, 'm', DATA_MAX);
        say(fd, bytes + HEAD_BYTES + counts[i], HEAD_BYTES + LONG_BYTES - counts[i], 30000, &side);
        assert_true(progress_until(&side, NULL, &side.received, 2));
        assert_int_equal(side.wrong, 0);
        assert_int_equal(side.landed, 0);
        assert_int_equal(side.aligned, 1);
        for (size_t at = 0; at < DATA_MAX; ++at) {
            assert_int_equal(memory[at], 'm');
        }
        tp.ops->ep_land_off(side.ep); /* nothing lands */
        close(fd);
        assert_true(progress_until(&side, NULL, &side.failed, 1));
        side_close(&side);
    }
    munmap(memory, DATA_MAX);
    free(bytes);
}

/* Neither the end of the connection in the middle, nor memory that is no more, harms anybody. */
void test_landing_fails(void **state)
{
    char *bytes = malloc(2 * (size_t) SEGMENT_MAX), *memory = map();
    side_t side;
    int fd;

    (void) state;
    assert_non_null(bytes);
    fd = begin_landing(&side, bytes, 50000, memory);
    assert_int_equal(side.landings, 1);
    close(fd);
    assert_true(progress_until(&side, NULL, &side.failed, 1));
    assert_int_equal(side.received, 1);
    side_close(&side);

    fd = begin_landing(&side, bytes, HEAD_BYTES, memory);
    assert_int_equal(mprotect(memory, DATA_MAX, PROT_READ), 0);
    say(fd, bytes + 2 * HEAD_BYTES, LONG_BYTES, 30000, &side);
    assert_true(progress_until(&side, NULL, &side.received, 2));
    assert_int_equal(side.wrong, 0);
    assert_int_equal(side.failed, 0);
    close(fd);
    side_close(&side);
    munmap(memory, DATA_MAX);
    free(bytes);
}
