/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Addresses and requests of the mesh: making and checking them.
 */
#include "r2_config.h"

#include "oob/mesh_address.h"

#include <string.h>

#define R2_MESH_VERSION 1

size_t r2_mesh_places_encode(const r2_mesh_places_t *places, void *blob_p)
{
    uint8_t *at = blob_p;

    *at++ = R2_MESH_VERSION;
    *at++ = (uint8_t) (places->count - 1);
    for (size_t i = 0; i < places->count; ++i) {
        const r2_mesh_place_t *place = &places->places[i];

        if (i > 0) {
            *at++ = place->kind;
        }
        *at++ = place->bytes;
        memcpy(at, place->address, place->bytes);
        at += place->bytes;
    }
    return (size_t) (at - (uint8_t *) blob_p);
}

/** Takes the next place. @return bytes taken, 0: malformed. */
static size_t r2_mesh_place_decode(const uint8_t *at, size_t left, bool local,
                                   r2_mesh_place_t *place_p)
{
    const size_t head = local ? 1 : 2;

    if (left < head || at[head - 1] > sizeof(place_p->address) || at[head - 1] > left - head) {
        return 0;
    }
    place_p->kind = local ? 0 : at[0];
    place_p->bytes = at[head - 1];
    memcpy(place_p->address, at + head, place_p->bytes);
    return head + place_p->bytes;
}

r2_status_t r2_mesh_places_decode(const void *blob, size_t bytes, r2_mesh_places_t *places_p)
{
    const uint8_t *at = blob;
    r2_mesh_places_t places = {0};
    size_t used = 2;

    if (bytes < 2 || bytes > R2_MESH_ADDRESS_MAX || R2_MESH_VERSION != at[0] ||
        at[1] > R2_MESH_PLACES_MAX) {
        return R2_ERR_WIRE;
    }
    for (; places.count < 1u + at[1]; ++places.count) {
        const size_t taken = r2_mesh_place_decode(at + used, bytes - used, 0 == places.count,
                                                  &places.places[places.count]);

        if (0 == taken) {
            return R2_ERR_WIRE;
        }
        used += taken;
    }
    if (used != bytes) {
        return R2_ERR_WIRE;
    }
    *places_p = places;
    return R2_OK;
}

size_t r2_mesh_request_begin(uint32_t rank, uint8_t *request_p)
{
    for (size_t i = 0; i < R2_MESH_HEADER_BYTES; ++i) {
        request_p[i] = (uint8_t) (rank >> (8 * i));
    }
    return R2_MESH_HEADER_BYTES;
}

size_t r2_mesh_request_add(uint8_t *request, size_t used, const void *data, size_t bytes)
{
    if (used + R2_MESH_LENGTH_BYTES + bytes > R2_HELLO_BYTES_MAX) {
        return 0;
    }
    request[used] = (uint8_t) bytes;
    request[used + 1] = (uint8_t) (bytes >> 8);
    if (bytes > 0) {
        memcpy(request + used + R2_MESH_LENGTH_BYTES, data, bytes);
    }
    return used + R2_MESH_LENGTH_BYTES + bytes;
}

/** Bytes of the message at `used` with its length, 0: malformed. */
static size_t r2_mesh_message(const uint8_t *at, size_t used, size_t bytes)
{
    size_t length;

    if (bytes - used < R2_MESH_LENGTH_BYTES) {
        return 0;
    }
    length = (size_t) (at[used] | at[used + 1] << 8);
    return length > R2_POST_BYTES_MAX || length > bytes - used - R2_MESH_LENGTH_BYTES
               ? 0
               : R2_MESH_LENGTH_BYTES + length;
}

r2_status_t r2_mesh_request_read(const void *request, size_t bytes, uint32_t size,
                                 const r2_post_upcalls_t *upcalls)
{
    const uint8_t *at = request;
    uint32_t rank;
    size_t used, taken;

    if (bytes < R2_MESH_HEADER_BYTES) {
        return R2_ERR_WIRE;
    }
    rank =
        (uint32_t) at[0] | (uint32_t) at[1] << 8 | (uint32_t) at[2] << 16 | (uint32_t) at[3] << 24;
    if (rank >= size) {
        return R2_ERR_WIRE;
    }
    for (used = R2_MESH_HEADER_BYTES; used < bytes; used += taken) {
        taken = r2_mesh_message(at, used, bytes);
        if (0 == taken) {
            return R2_ERR_WIRE;
        }
    }
    for (used = R2_MESH_HEADER_BYTES; used < bytes; used += taken) {
        taken = r2_mesh_message(at, used, bytes);
        upcalls->received(upcalls->arg, rank, at + used + R2_MESH_LENGTH_BYTES,
                          taken - R2_MESH_LENGTH_BYTES);
    }
    return R2_OK;
}
