/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Beacons as UDP datagrams: making and checking them.
 */
#include "r2_config.h"

#include "rail/probe_beacon.h"

#include <sodium.h>
#include <string.h>

#define R2_BEACON_MAGIC       "r2beacn1"
#define R2_BEACON_MAGIC_BYTES 8
#define R2_BEACON_BODY_BYTES  (R2_BEACON_MAGIC_BYTES + 4 + 8)
#define R2_BEACON_MAC_BYTES   32
#define R2_BEACON_KDF_CONTEXT "r2beacon"

_Static_assert(R2_BEACON_BYTES == R2_BEACON_BODY_BYTES + R2_BEACON_MAC_BYTES, "layout");

static void r2_beacon_put(uint8_t *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i) {
        to[i] = (uint8_t) (value >> (8 * i));
    }
}

static uint64_t r2_beacon_get(const uint8_t *from, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; ++i) {
        value |= (uint64_t) from[i] << (8 * i);
    }
    return value;
}

void r2_beacon_key(const uint8_t *job_key, uint8_t *beacon_key_p)
{
    crypto_kdf_derive_from_key(beacon_key_p, R2_JOB_KEY_BYTES, 1, R2_BEACON_KDF_CONTEXT, job_key);
}

static void r2_beacon_mac(const uint8_t *beacon_key, const r2_beacon_place_t *place,
                          const uint8_t *body, uint8_t *mac_p)
{
    uint8_t text[R2_BEACON_BODY_BYTES + 4 + 4 + 2];
    uint8_t *at = text + R2_BEACON_BODY_BYTES;

    memcpy(text, body, R2_BEACON_BODY_BYTES);
    r2_beacon_put(at, place->rail_idx, 4);
    memcpy(at + 4, &place->ipv4, 4);
    r2_beacon_put(at + 8, place->port, 2);
    crypto_generichash(mac_p, R2_BEACON_MAC_BYTES, text, sizeof(text), beacon_key,
                       R2_JOB_KEY_BYTES);
}

void r2_beacon_seal(const uint8_t *beacon_key, const r2_beacon_place_t *place, uint32_t rank,
                    uint64_t beacon_id, uint8_t *to_p)
{
    memcpy(to_p, R2_BEACON_MAGIC, R2_BEACON_MAGIC_BYTES);
    r2_beacon_put(to_p + R2_BEACON_MAGIC_BYTES, rank, 4);
    r2_beacon_put(to_p + R2_BEACON_MAGIC_BYTES + 4, beacon_id, 8);
    r2_beacon_mac(beacon_key, place, to_p, to_p + R2_BEACON_BODY_BYTES);
}

r2_status_t r2_beacon_open(const uint8_t *beacon_key, const r2_beacon_place_t *place,
                           const void *from, size_t bytes, uint32_t *rank_p, uint64_t *beacon_id_p)
{
    const uint8_t *at = from;
    uint8_t mac[R2_BEACON_MAC_BYTES];

    if (R2_BEACON_BYTES != bytes || 0 != memcmp(at, R2_BEACON_MAGIC, R2_BEACON_MAGIC_BYTES)) {
        return R2_ERR_WIRE;
    }
    r2_beacon_mac(beacon_key, place, at, mac);
    if (0 != sodium_memcmp(mac, at + R2_BEACON_BODY_BYTES, sizeof(mac))) {
        return R2_ERR_AUTH;
    }
    *rank_p = (uint32_t) r2_beacon_get(at + R2_BEACON_MAGIC_BYTES, 4);
    *beacon_id_p = r2_beacon_get(at + R2_BEACON_MAGIC_BYTES + 4, 8);
    return R2_OK;
}
