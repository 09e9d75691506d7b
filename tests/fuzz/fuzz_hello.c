/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The TCP hello driver: listener addresses, and both ends of a connection whose other end sends
 * anything, with and without the job key.
 */
#include "r2_config.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "fuzz.h"
#include "rail/hello_tcp.h"

static const uint8_t job_key[R2_JOB_KEY_BYTES] = "the key of the job that is tried";

/** One connection: the driver's end and ours. */
typedef struct trial {
    r2_hello_t hello;
    int fd; /* ours */
    unsigned requests, results;
    r2_hello_session_t session;
    bool keyed; /* session is set */
    uint8_t heard[R2_HELLO_STREAM_MAX];
    size_t heard_bytes;
} trial_t;

static uint64_t time_ns;

static uint64_t trial_now(void *arg)
{
    (void) arg;
    return time_ns;
}

static uint64_t trial_random(void *arg)
{
    (void) arg;
    return 4;
}

static void trial_request(void *arg, uint32_t rail_idx, uint64_t token, const void *request,
                          size_t bytes)
{
    trial_t *trial = arg;
    uint8_t copy[R2_HELLO_BYTES_MAX];

    fuzz_check(rail_idx <= R2_RAILS_MAX && bytes <= R2_HELLO_BYTES_MAX);
    fuzz_check(trial->keyed); /* nobody gets here without the key */
    if (bytes > 0) {
        memcpy(copy, request, bytes);
    }
    ++trial->requests;
    if (0 == bytes % 2) {
        trial->hello.ops->reply(trial->hello.instance, token, copy, bytes);
    }
}

static void trial_result(void *arg, uint64_t connect_id, r2_status_t status, const void *reply,
                         size_t bytes)
{
    trial_t *trial = arg;
    uint8_t copy[R2_HELLO_BYTES_MAX];

    fuzz_check(77 == connect_id && bytes <= R2_HELLO_BYTES_MAX);
    fuzz_check(R2_OK != status || trial->keyed);
    if (bytes > 0) {
        memcpy(copy, reply, bytes);
    }
    ++trial->results;
}

static void try_address(fuzz_input_t *input)
{
    uint8_t bytes[R2_HELLO_ADDRESS_MAX], again[R2_HELLO_ADDRESS_MAX];
    size_t length = fuzz_u8(input) % (sizeof(bytes) + 1);
    r2_hello_address_t address, twice;
    uint8_t *exact = malloc(length + 1);

    fuzz_take(input, bytes, length);
    memcpy(exact, bytes, length);
    if (R2_OK == r2_hello_address_decode(exact, length, &address)) {
        fuzz_check(address.rail_idx <= R2_RAILS_MAX);
        length = r2_hello_address_encode(&address, again);
        fuzz_check(length <= sizeof(again));
        fuzz_check(R2_OK == r2_hello_address_decode(again, length, &twice));
        fuzz_check(twice.family == address.family && twice.port == address.port &&
                   twice.rail_idx == address.rail_idx);
    }
    if (R2_OK == r2_hello_tcp_address_fill(exact, length <= sizeof(bytes) ? length : 0, 1)) {
        fuzz_check(R2_OK == r2_hello_address_decode(exact, length, &address));
    }
    free(exact);
}

static void say(trial_t *trial, const void *bytes, size_t count)
{
    (void) !send(trial->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void hear(trial_t *trial)
{
    ssize_t got = recv(trial->fd, trial->heard + trial->heard_bytes,
                       sizeof(trial->heard) - trial->heard_bytes, MSG_DONTWAIT);

    trial->heard_bytes += got > 0 ? (size_t) got : 0;
}

/* A right frame, perhaps in pieces, perhaps with a byte changed. */
static void say_frame(trial_t *trial, fuzz_input_t *input, r2_hello_role_t role)
{
    uint8_t frame[R2_HELLO_FRAME_MAX], text[R2_HELLO_BYTES_MAX];
    size_t length = fuzz_u32(input) % (sizeof(text) + 1), bytes, cut, change;

    memset(text, 0x11, sizeof(text));
    bytes = r2_hello_frame_seal(&trial->session, role, text, length, frame);
    cut = fuzz_u32(input) % (bytes + 1);
    change = fuzz_u32(input);
    if (0 != (change & 1)) {
        frame[change % bytes] ^= (uint8_t) (1u << (change >> 16) % 8);
    }
    say(trial, frame, cut);
    trial->hello.ops->poll(trial->hello.instance);
    say(trial, frame + cut, bytes - cut);
}

/* One thing that the other end does. `role` is its own. */
static void act(trial_t *trial, fuzz_input_t *input, r2_hello_role_t role)
{
    static const uint8_t id[R2_HELLO_ID_BYTES];
    uint8_t nonce[R2_HELLO_NONCE_BYTES], frame[R2_HELLO_FRAME_MAX], text[R2_HELLO_BYTES_MAX];
    size_t bytes;

    hear(trial);
    memset(nonce, 7, sizeof(nonce));
    memset(text, 0x11, sizeof(text));
    switch (fuzz_u8(input) % 8) {
    case 0: /* anything */
        bytes = fuzz_u8(input);
        fuzz_take(input, frame, bytes);
        say(trial, frame, bytes);
        break;
    case 1: /* a right greeting */
        say(trial, R2_HELLO_MAGIC, R2_HELLO_MAGIC_BYTES);
        say(trial, nonce, sizeof(nonce));
        break;
    case 2: /* the session, once the nonce of the driver is known */
        if (!trial->keyed && trial->heard_bytes >= R2_HELLO_MAGIC_BYTES + sizeof(nonce)) {
            const uint8_t *theirs = trial->heard + R2_HELLO_MAGIC_BYTES;

            r2_hello_session_init(&trial->session, job_key, 0, id,
                                  R2_HELLO_CLIENT == role ? nonce : theirs,
                                  R2_HELLO_CLIENT == role ? theirs : nonce);
            trial->keyed = true;
        }
        break;
    case 3: /* a right proof */
        if (trial->keyed) {
            say(trial, trial->session.proof[role], R2_HELLO_PROOF_BYTES);
        }
        break;
    case 4:
        if (trial->keyed) {
            say_frame(trial, input, role);
        }
        break;
    case 5: /* time passes */
        time_ns += fuzz_u32(input);
        break;
    case 6: /* it goes away */
        shutdown(trial->fd, 0 != (fuzz_u8(input) & 1) ? SHUT_WR : SHUT_RDWR);
        break;
    case 7: /* the answer to a request that nobody made */
        trial->hello.ops->reply(trial->hello.instance, fuzz_u8(input), text, 10);
        break;
    }
    trial->hello.ops->poll(trial->hello.instance);
}

/* Input: an address, which end the driver is, then what the other end does. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const r2_clock_t clock = {.now_ns = trial_now, .random_u64 = trial_random};
    static const r2_log_t log = {.level = -1};
    fuzz_input_t input = {data, bytes};
    trial_t trial = {.fd = -1};
    r2_hello_upcalls_t upcalls = {
        .request = trial_request, .result = trial_result, .arg = &trial};
    r2_hello_address_t address = {.family = R2_HELLO_INET};
    r2_hello_listener_t listener = {.source = R2_HELLO_LISTENER};
    int fds[2];
    bool server;

    try_address(&input);
    server = 0 != (fuzz_u8(&input) & 1);
    time_ns = R2_NS_PER_S;
    if (0 != socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds)) {
        return 0;
    }
    fuzz_check(R2_OK == r2_hello_tcp_create(&clock, &log, &trial.hello));
    trial.hello.ops->bind(trial.hello.instance, &upcalls);
    trial.hello.ops->key(trial.hello.instance, job_key);
    trial.fd = fds[0];
    if (server) {
        listener.hello = trial.hello.instance;
        r2_hello_conn_accept(&listener, fds[1], time_ns);
    } else {
        (void) r2_hello_conn_call(trial.hello.instance, 0, fds[1], true, &address, "request", 7,
                                  R2_NS_PER_S, 77);
    }
    for (int i = 0; i < 64 && input.left > 0; ++i) {
        act(&trial, &input, server ? R2_HELLO_CLIENT : R2_HELLO_SERVER);
        fuzz_check(trial.requests <= (server ? 1u : 0u) && trial.results <= (server ? 0u : 1u));
    }
    r2_hello_tcp_destroy(&trial.hello);
    close(fds[0]);
    return 0;
}
