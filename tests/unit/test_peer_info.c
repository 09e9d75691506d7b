/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a process publishes: written and read, and nothing that is not there.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "ctx/host_table.h"
#include "link/peer_info.h"
#include "link/wire.h"
#include "oob/post.h"
#include "rail/hello.h"

static const uint8_t address[R2_POST_ADDRESS_MAX] = {0, 0, 7, 0}; /* zeros within, too */

static r2_peer_info_t info_of(r2_peer_rail_t *rails, uint32_t count)
{
    static char names[R2_RAILS_MAX][8];

    for (uint32_t i = 0; i < count; ++i) {
        snprintf(names[i], sizeof(names[i]), "rail%u", i);
        rails[i] = (r2_peer_rail_t){.name = names[i], .ipv4 = 0x0100a8c0 + (i << 24),
                                    .prefix_bits = 24, .mbytes_per_s = 0x12345678u + i,
                                    .address = address, .address_bytes = 26, .probe = address,
                                    .probe_bytes = 6};
        if (1 == i % 2) { /* RDMA ports on some */
            rails[i].rdma = "rc_verbs@ib:fe80000000000000";
            rails[i].port = "mlx5_0:1";
        }
    }
    return (r2_peer_info_t){.users = 3, .host_id = 0x1122334455667788ull, .host_name = "h17",
                            .rails = rails, .rail_count = count,
                            .local = {.address = address, .address_bytes = R2_HELLO_ADDRESS_MAX},
                            .post = address, .post_bytes = 100, .inbox = address,
                            .inbox_bytes = 24};
}

static void assert_same(const r2_peer_rail_t *a, const r2_peer_rail_t *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->ipv4, b->ipv4);
    assert_int_equal(a->prefix_bits, b->prefix_bits);
    assert_int_equal(a->mbytes_per_s, b->mbytes_per_s);
    assert_int_equal(a->address_bytes, b->address_bytes);
    assert_memory_equal(a->address, b->address, a->address_bytes);
    assert_int_equal(a->probe_bytes, b->probe_bytes);
    assert_memory_equal(a->probe, b->probe, a->probe_bytes);
    assert_string_equal(a->rdma, NULL == b->rdma ? "" : b->rdma);
    assert_string_equal(a->port, NULL == b->port ? "" : b->port);
}

static void comes_back_as_it_was(void **state)
{
    r2_peer_rail_t rails[R2_RAILS_MAX];
    uint8_t blob[R2_PEER_INFO_BYTES_MAX];

    (void) state;
    for (uint32_t count = 0; count <= R2_RAILS_MAX; ++count) {
        const r2_peer_info_t info = info_of(rails, count);
        const size_t bytes = r2_peer_info_encode(&info, blob);
        r2_peer_info_t read;
        uint8_t again[R2_PEER_INFO_BYTES_MAX];

        assert_int_equal(r2_peer_info_decode(blob, bytes, &read), R2_OK);
        assert_int_equal(r2_peer_info_encode(&read, again), bytes);
        assert_memory_equal(again, blob, bytes);
        assert_int_equal(read.users, 3);
        assert_true(read.host_id == info.host_id);
        assert_string_equal(read.host_name, "h17");
        assert_int_equal(read.rail_count, count);
        for (uint32_t i = 0; i < count; ++i) {
            assert_same(&read.rails[i], &rails[i]);
        }
        assert_int_equal(read.local.address_bytes, R2_HELLO_ADDRESS_MAX);
        assert_string_equal(read.local.name, "");
        assert_int_equal(read.post_bytes, 100);
        assert_int_equal(read.cost_bytes, 0);
        assert_int_equal(read.inbox_bytes, 24);
        assert_memory_equal(read.inbox, address, 24);
        r2_peer_info_put(&read);
    }
}

/* Bytes follow what there is. With the addresses of the TCP drivers a process with 4 rails has
 * under 600. */
static void publishes_what_exists(void **state)
{
    r2_peer_rail_t rails[R2_RAILS_MAX];
    uint8_t blob[R2_PEER_INFO_BYTES_MAX];
    r2_peer_info_t info = info_of(rails, 4);
    size_t four, five;

    (void) state;
    info.local.address_bytes = 61;
    info.post_bytes = 180;
    four = r2_peer_info_encode(&info, blob);
    info = info_of(rails, 5);
    info.local.address_bytes = 61;
    info.post_bytes = 180;
    five = r2_peer_info_encode(&info, blob);
    assert_true(four < 600);
    assert_int_equal(five - four, 1 + 5 + 1 + 4 + 1 + 4 + 1 + 26 + 1 + 6 + 2 + 2);
}

/* Both ends come to the same: RDMA where both have the same on one network, else TCP. */
static void rails_agree_on_transport(void **state)
{
    const r2_nic_t nics[] = {
        {.tls = ""},
        {.tls = "rc_verbs", .port = {.link = R2_LINK_ETHERNET}},
        {.tls = "rc_verbs", .port = {.link = R2_LINK_ETHERNET, .state = R2_PORT_ACTIVE}},
        {.tls = "rc_mlx5", .port = {.link = R2_LINK_ETHERNET}},
        {.tls = "rc_verbs", .port = {R2_PORT_ACTIVE, R2_LINK_INFINIBAND, .gid = {7}}},
        {.tls = "rc_verbs", .port = {R2_PORT_ACTIVE, R2_LINK_INFINIBAND, .gid = {8}}},
        {.tls = "rc_verbs", .port = {R2_PORT_DOWN, R2_LINK_INFINIBAND, .gid = {9}}},
    };
    static const char wanted[][8] = {"-------", "-rr----", "-rr----", "---r---",
                                     "----r-r", "-----rr", "----rrr"};

    (void) state;
    for (size_t i = 0; i < r2_array_count(nics); ++i) {
        for (size_t j = 0; j < r2_array_count(nics); ++j) {
            char texts[2][R2_PEER_RDMA_MAX];
            const r2_peer_rail_t a = {.rdma = texts[0]}, b = {.rdma = texts[1]};

            r2_peer_rdma_text(&nics[i], texts[0]);
            r2_peer_rdma_text(&nics[j], texts[1]);
            assert_int_equal(r2_peer_rails_have_rdma(&a, &b), 'r' == wanted[i][j]);
        }
    }
}

/* Ports without IP are paired with each other alone, and only where both offer RDMA in one subnet
 * of InfiniBand: nothing else could go over them. */
static void bare_rails_pair(void **state)
{
    static const r2_peer_rail_t rails[] = {
        {.name = "ib0", .ipv4 = 0x0100000a, .prefix_bits = 24, .rdma = "rc_verbs@ib:aa"},
        {.name = "ib1", .rdma = "rc_verbs@ib:aa"},
        {.name = "mlx5_0:1", .rdma = "rc_verbs@ib:aa"},
        {.name = "mlx5_1:1", .rdma = "rc_verbs@ib:bb"},
        {.name = "mlx5_2:1", .rdma = "rc_verbs@ib"},
        {.name = "mlx5_3:1", .rdma = ""},
    };
    /* the first pass that makes them a pair where their index is the same; else 1 or none */
    static const char wanted[][7] = {"02----", "22----", "--0-0-", "---00-", "--000-", "------"};

    (void) state;
    for (size_t i = 0; i < r2_array_count(rails); ++i) {
        for (size_t j = 0; j < r2_array_count(rails); ++j) {
            const int first = '-' == wanted[i][j] ? 3 : wanted[i][j] - '0';

            for (int pass = 0; pass < 3; ++pass) {
                const bool at = r2_peer_rails_pair(&rails[i], &rails[j], true, pass);
                const bool other = r2_peer_rails_pair(&rails[i], &rails[j], false, pass);

                assert_int_equal(at, pass == first || (0 == first && 1 == pass));
                assert_int_equal(other, 0 == first && 1 == pass);
            }
        }
    }
}

/* Each byte cut off or added, and each byte changed: nothing is taken, or it is still within
 * bounds. */
static void broken_bytes_are_refused(void **state)
{
    r2_peer_rail_t rails[R2_RAILS_MAX];
    uint8_t blob[R2_PEER_INFO_BYTES_MAX];
    const r2_peer_info_t info = info_of(rails, 3);
    const size_t bytes = r2_peer_info_encode(&info, blob);
    r2_peer_info_t read;

    (void) state;
    for (size_t i = 0; i < bytes; ++i) {
        uint8_t *exact = malloc(i + 1);

        assert_non_null(exact);
        memcpy(exact, blob, i);
        assert_true(0 > r2_peer_info_decode(exact, i, &read));
        free(exact);
    }
    blob[bytes] = 0;
    assert_int_equal(r2_peer_info_decode(blob, bytes + 1, &read), R2_ERR_WIRE);
    for (size_t i = 0; i < bytes * 8; ++i) {
        blob[i / 8] ^= (uint8_t) (1u << i % 8);
        if (R2_OK == r2_peer_info_decode(blob, bytes, &read)) {
            assert_true(read.rail_count <= R2_RAILS_MAX &&
                        strlen(read.host_name) < R2_PEER_HOST_NAME_MAX);
            r2_peer_info_put(&read);
        }
        blob[i / 8] ^= (uint8_t) (1u << i % 8);
    }
    for (size_t i = 4; i < 6; ++i) { /* of what is published, of the wire format */
        blob[i] ^= 1;
        assert_int_equal(r2_peer_info_decode(blob, bytes, &read), R2_ERR_VERSION);
        blob[i] ^= 1;
    }
    assert_int_equal(blob[5], R2_WIRE_VERSION);
}

static void refusals_travel(void **state)
{
    r2_peer_rail_t rails[R2_RAILS_MAX];
    r2_peer_refusal_t refusal = {.expected = true, .host_name = "h17"}, read;
    uint8_t blob[R2_PEER_INFO_BYTES_MAX];
    r2_peer_info_t info = info_of(rails, 2);
    uint32_t users = 7;
    uint64_t host_id = 0;
    size_t bytes;

    (void) state;
    memset(refusal.why, 'x', sizeof(refusal.why) - 1);
    bytes = r2_peer_refusal_encode(&refusal, blob);
    assert_int_equal(r2_peer_users(blob, bytes, &users, &host_id), R2_OK);
    assert_int_equal(users, 0);
    assert_int_equal(r2_peer_refusal_decode(blob, bytes, &read), R2_OK);
    assert_memory_equal(&read, &refusal, sizeof(read));
    assert_int_equal(r2_peer_info_decode(blob, bytes, &info), R2_ERR_WIRE);
    for (size_t i = 0; i < bytes; ++i) {
        assert_true(0 > r2_peer_refusal_decode(blob, i, &read));
    }
    info.users = 2;
    bytes = r2_peer_info_encode(&info, blob);
    assert_int_equal(r2_peer_users(blob, bytes, &users, &host_id), R2_OK);
    assert_int_equal(users, 2);
    assert_int_equal(host_id, info.host_id);
    assert_int_equal(r2_peer_refusal_decode(blob, bytes, &read), R2_ERR_WIRE);
}

static void cost_travels(void **state)
{
    const r2_cost_params_t cost = {.alpha_ns = 0x01020304, .rate_ppm = 990000,
                                   .reduce_mbytes_per_s = {8000}, .crowded = 1};
    const r2_cost_params_t usual = {.alpha_ns = 0};
    uint8_t bytes[R2_PEER_COST_BYTES];
    r2_cost_params_t read;

    (void) state;
    assert_int_equal(r2_hosts_cost_encode(&cost, bytes), 16);
    assert_int_equal(bytes[0], 4); /* little endian */
    r2_hosts_cost_decode(bytes, 16, &read);
    assert_memory_equal(&read, &cost, sizeof(cost));
    assert_int_equal(r2_hosts_cost_encode(&usual, bytes), 0);
    r2_hosts_cost_decode(bytes, 0, &read);
    assert_memory_equal(&read, &usual, sizeof(usual));
    r2_hosts_cost_decode(bytes, 3, &read); /* torn: as if it was not there */
    assert_int_equal(read.alpha_ns, 0);
}

/* The transport follows the word, and by itself the size of the job. */
static void words_are_transports(void **state)
{
    static const struct {
        const char *word;
        uint32_t ranks;
        const char *tls;
    } rows[] = {{"auto", 0, "rc_verbs"},    {"auto", 1024, "rc_verbs"}, {"auto", 1025, "ud_verbs"},
                {"rc", 100000, "rc_verbs"}, {"ud", 2, "ud_verbs"},      {"tcp", 100000, ""}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        assert_string_equal(r2_rdma_tls(rows[i].word, rows[i].ranks), rows[i].tls);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back_as_it_was),
        cmocka_unit_test(publishes_what_exists),
        cmocka_unit_test(broken_bytes_are_refused),
        cmocka_unit_test(rails_agree_on_transport), cmocka_unit_test(bare_rails_pair),
        cmocka_unit_test(words_are_transports),
        cmocka_unit_test(refusals_travel),
        cmocka_unit_test(cost_travels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
