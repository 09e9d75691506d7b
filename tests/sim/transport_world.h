/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Nodes on the simulated transport, with packets that tell whether they came whole and in order.
 */
#ifndef R2_TESTS_TRANSPORT_WORLD_H
#define R2_TESTS_TRANSPORT_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "doubles/sim.h"

#define SEGMENT   (64u << 10)
#define NODES_MAX 4

/** One process with one worker. */
typedef struct test_node {
    struct test_world *world;
    r2_tp_t tp;
    r2_tp_device_t *device;
    r2_tp_worker_t *worker;
    uint64_t received, bytes;
    uint64_t trace; /* hash of what arrived and when */
    uint32_t next[NODES_MAX];
    bool in_order, intact;
    uint32_t failures;
    r2_tp_ep_t *close_in_callback;
    bool frozen;
    bool awake;
} test_node_t;

typedef struct test_world {
    r2_sim_t *sim;
    uint32_t node_count;
    test_node_t nodes[NODES_MAX];
    uint32_t sent_ok, sent_canceled;
    uint32_t carrier_news;
} test_world_t;

/** Header of the tests' packets. */
typedef struct test_header {
    uint32_t source;
    uint32_t number;
    uint32_t application;
} test_header_t;

typedef struct test_packet {
    r2_tp_send_t op;
    test_world_t *world;
    test_header_t header;
    uint8_t data[SEGMENT];
} test_packet_t;

static const uint64_t forever = R2_NEVER_NS;

void test_received(void *arg, const void *header, size_t header_bytes, const void *data,
                   size_t data_bytes);
void test_failed(void *arg, void *ep_arg, r2_status_t status);
r2_tp_worker_t *test_new_worker(test_node_t *node);
/* Nodes with one worker each on `rail` (NULL: within the host). */
void test_world_init(test_world_t *world, r2_sim_config_t config, const char *rail);
/* The same. @param tls of the device; NULL: TCP. */
void test_world_init_over(test_world_t *world, r2_sim_config_t config, const char *rail,
                          const char *tls);
r2_sim_config_t test_two_hosts(uint64_t seed);
void test_world_fini(test_world_t *world);
r2_tp_ep_t *test_connect(test_world_t *world, uint32_t from, uint32_t to);
test_packet_t *test_packet(test_world_t *world, uint32_t source, uint32_t number,
                           size_t data_bytes);
r2_status_t test_send(test_world_t *world, uint32_t source, r2_tp_ep_t *ep, uint32_t number,
                      size_t data_bytes);
/* Has `to` grant `bytes` at `memory`, and puts a packet's data there over `ep`. */
typedef struct test_window {
    uint8_t *memory;
    uint8_t key[R2_TP_KEY_MAX];
    size_t key_bytes;
    void *grant;
} test_window_t;
void test_grant(test_world_t *world, uint32_t owner, uint8_t *memory, size_t bytes,
                test_window_t *window_p);
r2_status_t test_put(test_world_t *world, uint32_t source, r2_tp_ep_t *ep, uint32_t number,
                     size_t data_bytes, const test_window_t *window);
/* Runs until nothing happens any more, or the time has come. */
void test_run(test_world_t *world, uint64_t until_ns);
uint64_t test_in_ms(const test_world_t *world, uint64_t ms);

#endif
