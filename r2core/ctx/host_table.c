/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hosts of the job, from what all processes published.
 */
#include "r2_config.h"

#include "ctx/host_table.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "ctx/host_id.h"

/** A host while the table is made: by what tells hosts apart. */
typedef struct r2_host_key {
    uint64_t host_id;
    uint32_t host;
    UT_hash_handle hh;
} r2_host_key_t;

static r2_status_t r2_host_init(r2_host_t *host, const r2_peer_info_t *info, uint32_t rank)
{
    size_t bytes = strlen(info->host_name) + 1 + info->rail_count * sizeof(host->rails[0]);
    char *text;

    for (uint32_t i = 0; i < info->rail_count; ++i) {
        bytes += strlen(info->rails[i].name) + 1 + strlen(info->rails[i].port) + 1;
    }
    host->rails = malloc(bytes);
    if (NULL == host->rails) {
        return R2_ERR_NO_MEMORY;
    }
    text = (char *) &host->rails[info->rail_count];
    host->name = text;
    text = stpcpy(text, info->host_name) + 1;
    for (uint32_t i = 0; i < info->rail_count; ++i) {
        host->rails[i] = (r2_host_rail_t){.name = text,
                                          .ipv4 = info->rails[i].ipv4,
                                          .mbytes_per_s = info->rails[i].mbytes_per_s};
        text = stpcpy(text, info->rails[i].name) + 1;
        host->rails[i].port = text;
        text = stpcpy(text, info->rails[i].port) + 1;
    }
    host->rail_count = info->rail_count;
    host->leader = rank;
    host->machine = r2_host_machine(info->host_id);
    return R2_OK;
}

static r2_status_t r2_hosts_add(r2_hosts_t *hosts, r2_host_key_t **keys, const r2_peer_info_t *info,
                                uint32_t rank)
{
    r2_host_key_t *key;

    HASH_FIND(hh, *keys, &info->host_id, sizeof(info->host_id), key);
    if (NULL == key) {
        key = calloc(1, sizeof(*key));
        if (NULL == key) {
            return R2_ERR_NO_MEMORY;
        }
        key->host_id = info->host_id;
        key->host = hosts->host_count;
        HASH_ADD(hh, *keys, host_id, sizeof(key->host_id), key);
        if (!r2_hash_has(&key->hh)) {
            free(key);
            return R2_ERR_NO_MEMORY;
        }
        ++hosts->host_count;
        if (R2_OK != r2_host_init(&hosts->hosts[key->host], info, rank)) {
            return R2_ERR_NO_MEMORY;
        }
    }
    hosts->host_of[rank] = key->host;
    return R2_OK;
}

static r2_status_t r2_hosts_lookup(r2_net_t *net, uint32_t rank, r2_peer_info_t *info_p)
{
    if (rank == net->rank) {
        *info_p = r2_peer_info_get(&net->info);
        return R2_OK;
    }
    return r2_net_lookup(net, rank, info_p);
}

/* Takes in what one process published. */
static r2_status_t r2_hosts_look(r2_hosts_t *hosts, r2_host_key_t **keys, r2_net_t *net,
                                 uint32_t rank)
{
    r2_peer_info_t info;
    r2_status_t status = r2_hosts_lookup(net, rank, &info);

    if (R2_OK != status) {
        return status;
    }
    if (0 == rank) {
        r2_hosts_cost_decode(info.cost, info.cost_bytes, &hosts->cost);
    }
    status = r2_hosts_add(hosts, keys, &info, rank);
    r2_peer_info_put(&info);
    return status;
}

r2_status_t r2_hosts_create(r2_net_t *net, r2_hosts_t **hosts_p)
{
    r2_hosts_t *hosts = calloc(1, sizeof(*hosts));
    r2_host_key_t *keys = NULL, *key, *next;
    r2_status_t status = R2_OK;

    if (NULL == hosts) {
        return R2_ERR_NO_MEMORY;
    }
    hosts->rank_count = net->size;
    hosts->host_of = calloc(net->size, sizeof(*hosts->host_of));
    hosts->hosts = calloc(net->size, sizeof(*hosts->hosts));
    if (NULL == hosts->host_of || NULL == hosts->hosts) {
        status = R2_ERR_NO_MEMORY;
    }
    for (uint32_t rank = 0; R2_OK == status && rank < net->size; ++rank) {
        status = r2_hosts_look(hosts, &keys, net, rank);
    }
    HASH_ITER(hh, keys, key, next)
    {
        HASH_DEL(keys, key);
        free(key);
    }
    if (R2_OK == status) {
        r2_host_t *fewer = realloc(hosts->hosts, hosts->host_count * sizeof(*fewer));

        hosts->hosts = NULL == fewer ? hosts->hosts : fewer;
        *hosts_p = hosts;
    } else {
        r2_hosts_destroy(hosts);
    }
    return status;
}

void r2_hosts_destroy(r2_hosts_t *hosts)
{
    for (uint32_t host = 0; NULL != hosts->hosts && host < hosts->host_count; ++host) {
        free(hosts->hosts[host].rails);
    }
    free(hosts->host_of);
    free(hosts->hosts);
    free(hosts);
}

/* @return 0: none, the process does not run r2. */
static uint64_t r2_hosts_machine(const r2_hosts_t *hosts, uint32_t rank)
{
    const uint32_t host = hosts->host_of[rank];

    return host < hosts->host_count ? 1 + (uint64_t) hosts->hosts[host].machine : 0;
}

bool r2_hosts_have_cores(const r2_hosts_t *hosts, uint32_t rank)
{
    const uint64_t machine = r2_hosts_machine(hosts, rank);
    long processes = 0;

    for (uint32_t i = 0; i < hosts->rank_count; ++i) {
        processes += machine == r2_hosts_machine(hosts, i) ? 1 : 0;
    }
    return processes <= sysconf(_SC_NPROCESSORS_ONLN);
}

bool r2_hosts_together(const r2_hosts_t *hosts, const uint32_t *ranks, int32_t size)
{
    for (int32_t i = 1; i < size; ++i) {
        if (r2_hosts_machine(hosts, ranks[i]) != r2_hosts_machine(hosts, ranks[0])) {
            return false;
        }
    }
    return true;
}

static void r2_word_put(uint8_t *to, uint32_t value)
{
    for (size_t i = 0; i < sizeof(value); ++i) {
        to[i] = (uint8_t) (value >> (8 * i));
    }
}

static uint32_t r2_word_take(const uint8_t *from, size_t bytes, size_t at)
{
    uint32_t value = 0;

    for (size_t i = 0; at + sizeof(value) <= bytes && i < sizeof(value); ++i) {
        value |= (uint32_t) from[at + i] << (8 * i);
    }
    return value;
}

size_t r2_hosts_cost_encode(const r2_cost_params_t *cost, uint8_t *to)
{
    static const r2_cost_params_t usual;
    size_t bytes = 8;

    static_assert(12 + 4 * R2_MEM_RATED_COUNT <= R2_PEER_COST_BYTES, "costs are published");
    if (0 == memcmp(cost, &usual, sizeof(usual))) {
        return 0;
    }
    r2_word_put(to, cost->alpha_ns);
    r2_word_put(to + 4, cost->rate_ppm);
    for (uint32_t kind = 0; kind < R2_MEM_RATED_COUNT; ++kind, bytes += 4) {
        r2_word_put(to + bytes, cost->reduce_mbytes_per_s[kind]);
    }
    r2_word_put(to + bytes, cost->crowded);
    return bytes + 4;
}

void r2_hosts_cost_decode(const uint8_t *from, size_t bytes, r2_cost_params_t *cost_p)
{
    cost_p->alpha_ns = r2_word_take(from, bytes, 0);
    cost_p->rate_ppm = r2_word_take(from, bytes, 4);
    for (uint32_t kind = 0; kind < R2_MEM_RATED_COUNT; ++kind) {
        cost_p->reduce_mbytes_per_s[kind] = r2_word_take(from, bytes, 8 + 4 * (size_t) kind);
    }
    cost_p->crowded = r2_word_take(from, bytes, 8 + 4 * (size_t) R2_MEM_RATED_COUNT);
}

void r2_hosts_rail_text(const r2_hosts_t *hosts, uint32_t host, uint32_t rail, char *text_p,
                        size_t text_bytes)
{
    const r2_host_t *at = &hosts->hosts[host];
    char address[INET_ADDRSTRLEN] = "no address";

    if (rail >= at->rail_count) {
        snprintf(text_p, text_bytes, "all rails of %s", at->name);
        return;
    }
    if (0 != at->rails[rail].ipv4) {
        inet_ntop(AF_INET, &at->rails[rail].ipv4, address, sizeof(address));
    }
    snprintf(text_p, text_bytes, "rail %u (%s%s%s, %s) of %s", rail, at->rails[rail].name,
             '\0' == at->rails[rail].port[0] ? "" : ", ", at->rails[rail].port, address, at->name);
}
