/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hosts of the job, from what all processes published.
 */
#include "r2_config.h"

#include "ctx/hosts.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/** A host while the table is made: by what tells hosts apart. */
typedef struct r2_host_key {
    uint64_t host_id;
    uint32_t host;
    UT_hash_handle hh;
} r2_host_key_t;

static void r2_hosts_fill(r2_host_t *host, const r2_peer_info_t *info, uint32_t rank)
{
    memcpy(host->name, info->host_name, sizeof(host->name));
    host->leader = rank;
    host->rail_count = info->rail_count;
    for (uint32_t i = 0; i < info->rail_count; ++i) {
        memcpy(host->rail_name[i], info->rails[i].name, sizeof(host->rail_name[i]));
        host->rail_ipv4[i] = info->rails[i].ipv4;
        host->rail_mbytes_per_s[i] = info->rails[i].mbytes_per_s;
    }
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
        key->host = hosts->host_count++;
        HASH_ADD(hh, *keys, host_id, sizeof(key->host_id), key);
        r2_hosts_fill(&hosts->hosts[key->host], info, rank);
    }
    hosts->host_of[rank] = key->host;
    return R2_OK;
}

static r2_status_t r2_hosts_lookup(r2_net_t *net, uint32_t rank, r2_peer_info_t *info_p)
{
    if (rank == net->rank) {
        *info_p = net->info;
        return R2_OK;
    }
    return r2_net_lookup(net, rank, info_p);
}

r2_status_t r2_hosts_create(r2_net_t *net, r2_hosts_t **hosts_p)
{
    r2_hosts_t *hosts = calloc(1, sizeof(*hosts));
    r2_host_key_t *keys = NULL, *key, *next;
    r2_peer_info_t info;
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
        status = r2_hosts_lookup(net, rank, &info);
        if (R2_OK == status && 0 == rank) {
            memcpy(&hosts->cost, info.cost, sizeof(hosts->cost));
        }
        if (R2_OK == status) {
            status = r2_hosts_add(hosts, &keys, &info, rank);
        }
    }
    HASH_ITER(hh, keys, key, next)
    {
        HASH_DEL(keys, key);
        free(key);
    }
    if (R2_OK != status) {
        r2_hosts_destroy(hosts);
        return status;
    }
    *hosts_p = hosts;
    return R2_OK;
}

void r2_hosts_destroy(r2_hosts_t *hosts)
{
    free(hosts->host_of);
    free(hosts->hosts);
    free(hosts);
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
    if (0 != at->rail_ipv4[rail]) {
        inet_ntop(AF_INET, &at->rail_ipv4[rail], address, sizeof(address));
    }
    snprintf(text_p, text_bytes, "rail %u (%s, %s) of %s", rail, at->rail_name[rail], address,
             at->name);
}
