/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Beacons as UDP datagrams: signed with a key derived from the job key.
 */
#ifndef R2_RAIL_PROBE_BEACON_H
#define R2_RAIL_PROBE_BEACON_H

#include <stddef.h>
#include <stdint.h>

#include "rail/hello.h"

/*
 * Little endian:
 *   magic[8] | rank u32 | beacon id u64 | mac[32]
 *   mac = BLAKE2b(beacon key; magic | rank | beacon id | rail u32 | ipv4[4] | port u16)
 *   beacon key = subkey 1 of the job key (libsodium's KDF, context "r2beacon")
 *
 * Rail, address and port are the receiver's, and are not in the datagram: one that was sent
 * elsewhere, for example caught on one rail and put on another, is refused.
 */

#define R2_BEACON_BYTES 52

/** Where a beacon goes. */
typedef struct r2_beacon_place {
    uint32_t rail_idx; /* of the receiver */
    uint32_t ipv4;     /* network byte order */
    uint16_t port;     /* host byte order */
} r2_beacon_place_t;

/** @param beacon_key_p R2_JOB_KEY_BYTES. */
void r2_beacon_key(const uint8_t *job_key, uint8_t *beacon_key_p);
/** @param to_p R2_BEACON_BYTES. */
void r2_beacon_seal(const uint8_t *beacon_key, const r2_beacon_place_t *place, uint32_t rank,
                    uint64_t beacon_id, uint8_t *to_p);
/** Never trusts the bytes. @return R2_OK, R2_ERR_WIRE (no beacon), R2_ERR_AUTH (forged, or for
 * another). */
r2_status_t r2_beacon_open(const uint8_t *beacon_key, const r2_beacon_place_t *place,
                           const void *from, size_t bytes, uint32_t *rank_p, uint64_t *beacon_id_p);

#endif
