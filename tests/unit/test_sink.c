/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receives whose bytes go to a function: which messages it takes, and who may call it.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "link/state.h"
#include "stub_net.h"

#define GRAIN  64u
#define CHUNKS 3u

static uint64_t sunk; /* bytes */

static void take(void *arg, uint64_t offset, const void *data, uint64_t bytes)
{
    (void) arg;
    (void) offset;
    (void) data;
    sunk += bytes;
}

static void ended(void *arg, r2_status_t status)
{
    (void) arg;
    (void) status;
}

static void peer_sends(stub_net_t *stub, uint32_t chunk, uint32_t chunk_bytes)
{
    static const char data[CHUNKS * 2 * GRAIN] = {'r', '2'};
    r2_lane_t *lane = &stub->link->lanes[0];
    r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                               .kind = R2_WIRE_DATA,
                               .connection = lane->connect.rx_connection,
                               .lane_seq = lane->rx.next,
                               .ack_next = lane->tx.seq,
                               .message = stub->net.first_seq,
                               .tag = {.comm_key = 1, .coll_seq = 1},
                               .message_bytes = CHUNKS * (uint64_t) chunk_bytes,
                               .chunk_bytes = chunk_bytes,
                               .chunk = chunk,
                               .length = chunk_bytes};

    header.flags = R2_WIRE_EAGER;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), data, header.length);
}

/* @param app whether an application thread drives. */
static void run(uint32_t grain_bytes, uint32_t chunk_bytes, bool app, uint64_t sunk_then,
                bool in_data)
{
    char data[CHUNKS * 2 * GRAIN] = {0};
    stub_net_t *stub = stub_net_create();
    const r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .sink = take,
                                 .grain_bytes = grain_bytes,
                                 .bytes = CHUNKS * (uint64_t) chunk_bytes,
                                 .done = ended};

    stub_lane_up(stub, 0);
    sunk = 0;
    assert_int_equal(r2_link_recv(stub->link, &args), R2_IN_PROGRESS);
    stub->net.may_deliver = true;
    stub->net.app_drives = app;
    for (uint32_t chunk = 0; chunk < CHUNKS; ++chunk) {
        peer_sends(stub, chunk, chunk_bytes);
    }
    assert_int_equal(stub->counters.rx_malformed, 0);
    assert_int_equal(sunk, sunk_then);
    assert_int_equal('r' == data[0], in_data);
    stub->net.app_drives = true;
    stub_net_destroy(stub);
}

static void whole_grains_are_taken(void **state)
{
    (void) state;
    run(GRAIN, GRAIN, true, CHUNKS * GRAIN, false);
    run(GRAIN, 2 * GRAIN, true, CHUNKS * 2 * GRAIN, false);
    run(0, GRAIN + 1, true, CHUNKS * (GRAIN + 1), false);
}

/* All of such a message, or parts of an element would be missed. */
static void parts_of_grains_are_copied(void **state)
{
    (void) state;
    run(GRAIN, GRAIN + 1, true, 0, true);
    run(GRAIN, GRAIN / 2, true, 0, true);
}

/* Code of the user waits for his threads. */
static void any_thread_gives_grains(void **state)
{
    (void) state;
    run(GRAIN, GRAIN, false, CHUNKS * GRAIN, false);
    run(0, GRAIN, false, 0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_grains_are_taken),
        cmocka_unit_test(parts_of_grains_are_copied),
        cmocka_unit_test(any_thread_gives_grains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
