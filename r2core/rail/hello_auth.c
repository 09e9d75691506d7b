/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Proof of the job key and authenticated frames on one connection of the TCP hello driver.
 */
#include "r2_config.h"

#include "rail/hello_auth.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "base/util.h"

static_assert(R2_JOB_KEY_BYTES == crypto_kdf_KEYBYTES, "the job key is a KDF key");
static_assert(R2_JOB_KEY_BYTES <= crypto_generichash_KEYBYTES_MAX, "the job key is a hash key");

/* Subkeys of a session; the context text separates them from any other use. */
#define R2_HELLO_KDF_CONTEXT "r2 hello"

enum {
    R2_HELLO_SUBKEY_PROOF = 1, /* + role */
    R2_HELLO_SUBKEY_MAC = 3    /* + role */
};

void r2_hello_random(void *bytes_p, size_t bytes)
{
    randombytes_buf(bytes_p, bytes);
}

void r2_hello_session_init(r2_hello_session_t *session, const uint8_t *key, uint32_t rail_idx,
                           const uint8_t *listener_id, const uint8_t *client_nonce,
                           const uint8_t *server_nonce)
{
    crypto_generichash_state hash;
    uint8_t master[crypto_kdf_KEYBYTES];
    uint8_t rail[4];

    r2_put_le(rail, rail_idx, sizeof(rail));
    crypto_generichash_init(&hash, key, R2_JOB_KEY_BYTES, sizeof(master));
    crypto_generichash_update(&hash, (const uint8_t *) R2_HELLO_MAGIC, R2_HELLO_MAGIC_BYTES);
    crypto_generichash_update(&hash, rail, sizeof(rail));
    crypto_generichash_update(&hash, listener_id, R2_HELLO_ID_BYTES);
    crypto_generichash_update(&hash, client_nonce, R2_HELLO_NONCE_BYTES);
    crypto_generichash_update(&hash, server_nonce, R2_HELLO_NONCE_BYTES);
    crypto_generichash_final(&hash, master, sizeof(master));
    for (uint64_t role = 0; role < 2; ++role) {
        crypto_kdf_derive_from_key(session->proof[role], sizeof(session->proof[role]),
                                   R2_HELLO_SUBKEY_PROOF + role, R2_HELLO_KDF_CONTEXT, master);
        crypto_kdf_derive_from_key(session->mac_key[role], sizeof(session->mac_key[role]),
                                   R2_HELLO_SUBKEY_MAC + role, R2_HELLO_KDF_CONTEXT, master);
        session->counter[role] = 0;
    }
    sodium_memzero(master, sizeof(master));
    sodium_memzero(&hash, sizeof(hash));
}

void r2_hello_session_fini(r2_hello_session_t *session)
{
    sodium_memzero(session, sizeof(*session));
}

r2_status_t r2_hello_proof_check(const r2_hello_session_t *session, r2_hello_role_t role,
                                 const uint8_t *proof)
{
    return 0 == sodium_memcmp(session->proof[role], proof, R2_HELLO_PROOF_BYTES) ? R2_OK
                                                                                 : R2_ERR_AUTH;
}

static void r2_hello_frame_mac(const r2_hello_session_t *session, r2_hello_role_t role,
                               const uint8_t *frame, size_t bytes, uint8_t *mac_p)
{
    crypto_generichash(mac_p, R2_HELLO_MAC_BYTES, frame, bytes, session->mac_key[role],
                       sizeof(session->mac_key[role]));
}

size_t r2_hello_frame_seal(r2_hello_session_t *session, r2_hello_role_t role, const void *payload,
                           size_t bytes, uint8_t *frame_p)
{
    const size_t signed_bytes = R2_HELLO_FRAME_HEADER_BYTES + bytes;

    r2_assert(bytes <= R2_HELLO_BYTES_MAX);
    r2_put_le(frame_p, bytes, 4);
    r2_put_le(frame_p + 4, session->counter[role]++, 8);
    if (bytes > 0) {
        memcpy(frame_p + R2_HELLO_FRAME_HEADER_BYTES, payload, bytes);
    }
    r2_hello_frame_mac(session, role, frame_p, signed_bytes, frame_p + signed_bytes);
    return signed_bytes + R2_HELLO_MAC_BYTES;
}

r2_status_t r2_hello_frame_length(const uint8_t *header, size_t *bytes_p)
{
    const uint64_t bytes = r2_get_le(header, 4);

    if (bytes > R2_HELLO_BYTES_MAX) {
        return R2_ERR_WIRE;
    }
    *bytes_p = R2_HELLO_FRAME_HEADER_BYTES + (size_t) bytes + R2_HELLO_MAC_BYTES;
    return R2_OK;
}

r2_status_t r2_hello_frame_open(r2_hello_session_t *session, r2_hello_role_t role,
                                const uint8_t *frame, size_t frame_bytes, const uint8_t **payload_p,
                                size_t *bytes_p)
{
    uint8_t mac[R2_HELLO_MAC_BYTES];
    size_t signed_bytes;

    if (frame_bytes < R2_HELLO_FRAME_HEADER_BYTES + R2_HELLO_MAC_BYTES) {
        return R2_ERR_AUTH;
    }
    signed_bytes = frame_bytes - R2_HELLO_MAC_BYTES;
    r2_hello_frame_mac(session, role, frame, signed_bytes, mac);
    if (0 != sodium_memcmp(mac, frame + signed_bytes, sizeof(mac)) ||
        r2_get_le(frame, 4) != signed_bytes - R2_HELLO_FRAME_HEADER_BYTES ||
        r2_get_le(frame + 4, 8) != session->counter[role]) {
        return R2_ERR_AUTH;
    }
    ++session->counter[role];
    *payload_p = frame + R2_HELLO_FRAME_HEADER_BYTES;
    *bytes_p = signed_bytes - R2_HELLO_FRAME_HEADER_BYTES;
    return R2_OK;
}
