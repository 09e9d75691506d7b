/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Proof of the job key and authenticated frames on one connection of the TCP hello driver.
 */
#ifndef R2_RAIL_HELLO_AUTH_H
#define R2_RAIL_HELLO_AUTH_H

#include <stddef.h>
#include <stdint.h>

#include "rail/hello.h"

/*
 * One connection (client = caller, server = listener); all numbers little endian:
 *
 *   client                                   server
 *   magic[8] nonce_c[32]            ->
 *                                   <-       magic[8] nonce_s[32] proof_s[32]
 *   proof_c[32] frame(request)      ->
 *                                   <-       frame(reply), close
 *
 *   frame   = length u32 | counter u64 | payload[length] | mac[32]
 *   session = BLAKE2b(job key; magic | server's rail u32 | listener id[16] | nonce_c | nonce_s)
 *   proof_s, proof_c and one MAC key per direction = subkeys 1..4 of session (libsodium's KDF)
 *   mac     = BLAKE2b(MAC key of the direction; length | counter | payload)
 *
 * Both ends prove the key before a request is parsed; nonces of both ends make a recorded
 * connection worthless; the roles, the rail and the listener id keep a proof from being used
 * elsewhere. Frames are not encrypted: this keeps strangers out, it does not hide anything from who
 * can read the wire.
 */

#define R2_HELLO_MAGIC              "r2hello1"
#define R2_HELLO_MAGIC_BYTES        8
#define R2_HELLO_NONCE_BYTES        32
#define R2_HELLO_PROOF_BYTES        32
#define R2_HELLO_MAC_BYTES          32
#define R2_HELLO_ID_BYTES           16
#define R2_HELLO_FRAME_HEADER_BYTES 12

#define R2_HELLO_FRAME_MAX (R2_HELLO_FRAME_HEADER_BYTES + R2_HELLO_BYTES_MAX + R2_HELLO_MAC_BYTES)

/** The two ends of a connection: who called and who listened. */
typedef enum r2_hello_role { R2_HELLO_CLIENT = 0, R2_HELLO_SERVER = 1 } r2_hello_role_t;

/** Secrets of one connection, arrays by role of the end that proves or sends. */
typedef struct r2_hello_session {
    uint8_t proof[2][R2_HELLO_PROOF_BYTES];
    uint8_t mac_key[2][32];
    uint64_t counter[2]; /* next frame's number */
} r2_hello_session_t;

/** Fills a nonce or an id with unpredictable bytes. */
void r2_hello_random(void *bytes_p, size_t bytes);

/**
 * Derives the secrets of a connection.
 * @param key job key. @param rail_idx the server's rail. @param listener_id of the server.
 */
void r2_hello_session_init(r2_hello_session_t *session, const uint8_t *key, uint32_t rail_idx,
                           const uint8_t *listener_id, const uint8_t *client_nonce,
                           const uint8_t *server_nonce);
/** Wipes the secrets. */
void r2_hello_session_fini(r2_hello_session_t *session);

/** Checks the proof that the end `role` sent. @return R2_OK or R2_ERR_AUTH. */
r2_status_t r2_hello_proof_check(const r2_hello_session_t *session, r2_hello_role_t role,
                                 const uint8_t *proof);

/**
 * Makes the next frame of the end `role`.
 * @param frame_p R2_HELLO_FRAME_MAX bytes. @return bytes of the frame. bytes <= R2_HELLO_BYTES_MAX.
 */
size_t r2_hello_frame_seal(r2_hello_session_t *session, r2_hello_role_t role, const void *payload,
                           size_t bytes, uint8_t *frame_p);

/** Bytes of a whole frame, from its header. @return R2_OK or R2_ERR_WIRE (too long). */
r2_status_t r2_hello_frame_length(const uint8_t *header, size_t *bytes_p);

/**
 * Checks a whole frame from the end `role`: MAC, then counter.
 * @param payload_p points into `frame`. @return R2_OK or R2_ERR_AUTH (forged, replayed).
 */
r2_status_t r2_hello_frame_open(r2_hello_session_t *session, r2_hello_role_t role,
                                const uint8_t *frame, size_t frame_bytes, const uint8_t **payload_p,
                                size_t *bytes_p);

#endif
