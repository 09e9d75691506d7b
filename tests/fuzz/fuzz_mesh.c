/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Bytes of others beside the lanes: addresses and requests of the mesh, beacons.
 */
#include "r2_config.h"

#include "fuzz.h"
#include "oob/mesh_address.h"
#include "rail/probe_beacon.h"

#define RANKS 5

/** What the messages of a request added up to. */
typedef struct trial {
    size_t messages, bytes;
} trial_t;

static void trial_received(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    trial_t *trial = arg;
    uint8_t copy[R2_POST_BYTES_MAX];

    fuzz_check(rank < RANKS && bytes <= sizeof(copy));
    if (bytes > 0) {
        memcpy(copy, data, bytes);
    }
    ++trial->messages;
    trial->bytes += bytes;
}

static void try_places(const uint8_t *bytes, size_t count)
{
    r2_mesh_places_t places;
    uint8_t again[R2_MESH_ADDRESS_MAX];

    if (R2_OK == r2_mesh_places_decode(bytes, count, &places)) {
        fuzz_check(places.count >= 1 && places.count <= 1 + R2_MESH_PLACES_MAX);
        fuzz_check(count == r2_mesh_places_encode(&places, again));
        fuzz_check(0 == memcmp(again, bytes, count));
    }
}

static void try_request(const uint8_t *bytes, size_t count)
{
    trial_t trial = {0};
    const r2_post_upcalls_t upcalls = {.received = trial_received, .arg = &trial};

    if (R2_OK == r2_mesh_request_read(bytes, count, RANKS, &upcalls)) {
        fuzz_check(count ==
                   R2_MESH_HEADER_BYTES + trial.messages * R2_MESH_LENGTH_BYTES + trial.bytes);
    } else {
        fuzz_check(0 == trial.messages); /* all or nothing */
    }
}

static void try_beacon(const uint8_t *bytes, size_t count)
{
    static const uint8_t key[R2_JOB_KEY_BYTES] = "the key of the job that is tried";
    const r2_beacon_place_t place = {1, 2, 3};
    uint64_t id;
    uint32_t rank;

    fuzz_check(R2_OK != r2_beacon_open(key, &place, bytes, count, &rank, &id));
}

/* Input: which of them, then its bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static void (*const targets[])(const uint8_t *bytes, size_t count) = {try_places, try_request,
                                                                          try_beacon};
    uint8_t *exact;

    if (0 == bytes || bytes > R2_HELLO_BYTES_MAX) {
        return 0;
    }
    exact = malloc(bytes - 1 + (1 == bytes)); /* so that reading past the end is noticed */
    memcpy(exact, data + 1, bytes - 1);
    targets[data[0] % 3](exact, bytes - 1);
    free(exact);
    return 0;
}
