/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two hosts with probe drivers, for the tests of probes.
 */
#ifndef R2_TESTS_PROBE_ENDS_H
#define R2_TESTS_PROBE_ENDS_H

#include "two_hosts.h"

#include "base/util.h"
#include "rail/hello_tcp.h"
#include "rail/probe_beacon.h"
#include "rail/probe_limit.h"
#include "rail/probe_tcp.h"

#define T_STEP_NS (R2_NS_PER_S / (R2_PROBE_RATE - R2_PROBE_RATE / R2_PROBE_BURSTS))

/** One process: hello and probe driver on rail 0 and rail 1. */
typedef struct t_end {
    r2_tp_t tp;
    r2_hello_t hello;
    r2_probe_t probe;
    uint8_t hello_address[2][R2_HELLO_ADDRESS_MAX];
    uint8_t address[2][R2_PROBE_ADDRESS_MAX];
    size_t hello_bytes, bytes;
    uint32_t results, heard;
    r2_probe_answer_t answer;
    uint32_t rank, rail_idx;
    uint64_t beacon_id;
} t_end_t;

/* addresses of the other host; over there: the process itself */
static t_end_t t_far;
static const char *t_choice = "connect"; /* of the ends that are opened */
static uint64_t t_timeout_ns = R2_NS_PER_S;

static inline uint32_t t_far_ask(const char *words); /* the test's answers to '!' lines */

static inline void t_result(void *arg, uint64_t probe_id, r2_probe_answer_t answer, uint64_t rtt_ns)
{
    t_end_t *end = arg;

    (void) rtt_ns;
    assert_int_equal(probe_id, 77);
    ++end->results;
    end->answer = answer;
}

static inline void t_heard(void *arg, uint32_t rank, uint32_t rail_idx, uint64_t beacon_id)
{
    t_end_t *end = arg;

    ++end->heard;
    end->rank = rank;
    end->rail_idx = rail_idx;
    end->beacon_id = beacon_id;
}

static inline void t_request(void *arg, uint32_t rail_idx, uint64_t token, const void *request,
                             size_t bytes)
{
    (void) arg;
    (void) rail_idx;
    (void) token;
    (void) request;
    (void) bytes;
}

static inline void t_reply(void *arg, uint64_t connect_id, r2_status_t status, const void *reply,
                           size_t bytes)
{
    (void) arg;
    (void) connect_id;
    (void) status;
    (void) reply;
    (void) bytes;
}

static inline void t_end_open(t_end_t *end)
{
    const r2_hello_upcalls_t hello_upcalls = {
        .request = t_request, .result = t_reply, .arg = end};
    const r2_probe_upcalls_t upcalls = {t_result, t_heard, end};

    r2_put_t put;

    memset(end, 0, sizeof(*end));
    if (R2_OK != r2_tp_create(&end->tp)) {
        abort();
    }
    put = r2_put_ucx(r2_tp_ucx(&end->tp));
    if (R2_OK != r2_hello_tcp_create(&t_clock, &t_log, &end->hello) ||
        R2_OK != r2_probe_tcp_create(&t_clock, &t_log, &put, t_choice, &end->probe)) {
        abort();
    }
    end->hello.ops->bind(end->hello.instance, &hello_upcalls);
    end->probe.ops->bind(end->probe.instance, &upcalls);
    end->hello.ops->key(end->hello.instance, t_key);
    end->probe.ops->key(end->probe.instance, t_key);
    for (uint32_t rail = 0; rail < 2; ++rail) {
        const r2_nic_t nic = t_nic(0 == rail ? "rail0" : "rail1");

        if (R2_OK != end->hello.ops->listen(end->hello.instance, rail, &nic,
                                            end->hello_address[rail], &end->hello_bytes) ||
            R2_OK != end->probe.ops->listen(end->probe.instance, rail, &nic, end->address[rail],
                                            &end->bytes)) {
            abort();
        }
    }
}

static inline t_end_t *t_here(void)
{
    t_end_t *end = malloc(sizeof(*end));

    t_end_open(end);
    return end;
}

static inline void t_end_free(t_end_t *end)
{
    r2_probe_tcp_destroy(&end->probe);
    r2_hello_tcp_destroy(&end->hello);
    r2_tp_destroy(&end->tp);
    free(end);
}

/* The other host. */

static inline void t_far_open(int out)
{
    t_end_open(&t_far);
    if (sizeof(t_far) != write(out, &t_far, sizeof(t_far))) {
        _exit(1);
    }
}

static inline int t_far_fd(size_t idx)
{
    if (0 == idx) {
        return t_far.hello.ops->fd(t_far.hello.instance);
    }
    return 1 == idx ? t_far.probe.ops->fd(t_far.probe.instance) : -1;
}

static inline void t_far_poll(void)
{
    t_far.hello.ops->poll(t_far.hello.instance);
    t_far.probe.ops->poll(t_far.probe.instance);
}

static inline int t_set_up_with(const t_server_t *server, void **state)
{
    (void) state;
    if (0 != t_hosts_up(server)) {
        return -1;
    }
    t_read(&t_far, sizeof(t_far));
    return 0;
}

static inline r2_status_t t_try(t_end_t *end, uint32_t rail)
{
    return end->probe.ops->probe(end->probe.instance, rail, t_far.hello_address[rail],
                                 t_far.hello_bytes, t_far.address[rail], t_far.bytes, t_timeout_ns,
                                 77);
}

/** Runs until `results`; time passes only when nothing has come for `idle_ms`. */
static inline void t_run(t_end_t *end, uint32_t results, int idle_ms)
{
    struct pollfd fd = {end->probe.ops->fd(end->probe.instance), POLLIN, 0};

    while (end->results < results) {
        const uint64_t due_ns = end->probe.ops->deadline_ns(end->probe.instance);

        if (due_ns > t_time_ns && 0 == poll(&fd, 1, idle_ms)) {
            t_time_ns = due_ns;
        }
        end->probe.ops->poll(end->probe.instance);
    }
}

static inline r2_probe_answer_t t_ask_rail(t_end_t *end, uint32_t rail, int idle_ms)
{
    assert_int_equal(t_try(end, rail), R2_OK);
    t_run(end, end->results + 1, idle_ms);
    return end->answer;
}

/**
 * For a question that is answered: waits long, so that a busy machine makes no silence. A host
 * learns of its carrier a little after the link is up.
 */
static inline r2_probe_answer_t t_probe_alive(t_end_t *end, uint32_t rail)
{
    r2_probe_answer_t answer = t_ask_rail(end, rail, T_WAIT_MS);

    for (int tries = 0; tries < 200 && R2_PROBE_UNABLE == answer; ++tries) {
        usleep(5000);
        t_time_ns += T_STEP_NS; /* the pace allows one more */
        answer = t_ask_rail(end, rail, T_WAIT_MS);
    }
    return answer;
}

static inline r2_probe_answer_t t_probe(t_end_t *end, uint32_t rail)
{
    return t_ask_rail(end, rail, T_IDLE_MS);
}

#endif
