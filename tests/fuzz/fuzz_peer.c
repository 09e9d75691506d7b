/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What processes publish, as it is read by others.
 */
#include "r2_config.h"

#include "ctx/host_table.h"
#include "fuzz.h"
#include "link/peer_info.h"
#include "oob/post.h"
#include "rail/hello.h"

static void touch(const uint8_t *bytes, uint32_t count, uint32_t most)
{
    uint32_t sum = 0;

    fuzz_check(count <= most);
    for (uint32_t i = 0; i < count; ++i) {
        sum += bytes[i];
    }
    fuzz_check(sum <= 255u * count);
}

static void touch_rail(const r2_peer_rail_t *rail)
{
    fuzz_check(strlen(rail->name) < R2_NIC_NAME_MAX);
    touch(rail->address, rail->address_bytes, R2_HELLO_ADDRESS_MAX);
    touch(rail->probe, rail->probe_bytes, R2_PROBE_ADDRESS_MAX);
}

/* A process takes part, or refuses, or nothing is taken. */
static void touch_refusal(const uint8_t *data, size_t bytes, bool takes_part)
{
    r2_peer_refusal_t refusal;
    uint8_t again[sizeof(refusal) + 64];
    const r2_status_t status = r2_peer_refusal_decode(data, bytes, &refusal);
    uint32_t users = 0;
    uint64_t host_id = 0;

    fuzz_check(!takes_part ||
               (R2_OK == r2_peer_users(data, bytes, &users, &host_id) && 0 != users));
    if (R2_OK == status) {
        fuzz_check(!takes_part && strlen(refusal.host_name) < sizeof(refusal.host_name));
        /* shorter: of a reason with zeros within */
        fuzz_check(bytes >= r2_peer_refusal_encode(&refusal, again));
    }
}

/* What is taken is in memory of its own, within bounds, and written again gives the same bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint8_t again[R2_PEER_INFO_BYTES_MAX], *exact = malloc(bytes + (0 == bytes));
    r2_cost_params_t cost;
    r2_peer_info_t info, copy;
    r2_status_t status;

    memcpy(exact, data, bytes);
    status = r2_peer_info_decode(exact, bytes, &info);
    touch_refusal(exact, bytes, R2_OK == status);
    if (R2_OK != status) {
        fuzz_check(R2_ERR_VERSION == status || R2_ERR_WIRE == status);
        free(exact);
        return 0;
    }
    memset(exact, 0xee, bytes);
    free(exact);
    copy = r2_peer_info_get(&info);
    r2_peer_info_put(&info);
    fuzz_check(strlen(copy.host_name) < R2_PEER_HOST_NAME_MAX && copy.rail_count <= R2_RAILS_MAX);
    touch_rail(&copy.local);
    for (uint32_t i = 0; i < copy.rail_count; ++i) {
        touch_rail(&copy.rails[i]);
    }
    touch(copy.post, copy.post_bytes, R2_POST_ADDRESS_MAX);
    touch(copy.cost, copy.cost_bytes, R2_PEER_COST_BYTES);
    touch(copy.inbox, copy.inbox_bytes, R2_PEER_INBOX_BYTES);
    r2_hosts_cost_decode(copy.cost, copy.cost_bytes, &cost);
    fuzz_check(bytes == r2_peer_info_encode(&copy, again) && 0 == memcmp(again, data, bytes));
    r2_peer_info_put(&copy);
    return 0;
}
