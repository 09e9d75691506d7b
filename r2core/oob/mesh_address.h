/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Addresses and requests of the mesh: bytes that come from others.
 */
#ifndef R2_OOB_MESH_ADDRESS_H
#define R2_OOB_MESH_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oob/mesh.h"
#include "rail/hello.h"

/*
 * Published address:
 *   version u8 = 1 | places u8 | bytes of the local listener's address u8 | that address |
 *   for each place: kind u8 | bytes of the listener's address u8 | that address
 */

#define R2_MESH_RAIL 0x80u /* kind: rail number + this; else number of the management NIC */

/** One listener of a process. */
typedef struct r2_mesh_place {
    uint8_t kind;
    uint8_t bytes; /* of the address; 0: none */
    uint8_t address[64];
} r2_mesh_place_t;

/** Where a process can be reached: places[0] is within the host, the others in order of
 * preference. */
typedef struct r2_mesh_places {
    size_t count;
    r2_mesh_place_t places[1 + R2_MESH_PLACES_MAX];
} r2_mesh_places_t;

/** @param blob_p R2_MESH_ADDRESS_MAX bytes. @return bytes written. */
size_t r2_mesh_places_encode(const r2_mesh_places_t *places, void *blob_p);
/** Never trusts the bytes. @return R2_OK or R2_ERR_WIRE. */
r2_status_t r2_mesh_places_decode(const void *blob, size_t bytes, r2_mesh_places_t *places_p);

#define R2_MESH_HEADER_BYTES 4 /* of a request */
#define R2_MESH_LENGTH_BYTES 2 /* before each message */

_Static_assert(R2_MESH_HEADER_BYTES + R2_MESH_LENGTH_BYTES + R2_POST_BYTES_MAX <=
                   R2_HELLO_BYTES_MAX,
               "the longest message fits a request");

/** Begins a request. @param request_p R2_HELLO_BYTES_MAX bytes. @return bytes used. */
size_t r2_mesh_request_begin(uint32_t rank, uint8_t *request_p);
/** @return bytes used with one more message, 0: it does not fit. */
size_t r2_mesh_request_add(uint8_t *request, size_t used, const void *data, size_t bytes);

/**
 * Checks a request and calls `fn` for each message. Never trusts the bytes: all or nothing.
 * @return R2_OK, R2_ERR_WIRE.
 */
r2_status_t r2_mesh_request_read(const void *request, size_t bytes, uint32_t size,
                                 const r2_post_upcalls_t *upcalls);

#endif
