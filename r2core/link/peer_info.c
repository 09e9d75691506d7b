/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What processes publish: writing and reading it.
 */
#include "r2_config.h"

#include "link/peer_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "link/wire.h"
#include "oob/post.h"
#include "rail/hello.h"
#include "rail/probe.h"

#define R2_PEER_LENGTH_AT 6  /* of the bytes of all of it */
#define R2_PEER_EXPECTED  1u /* flag of a refusal */

/** Memory that infos share: the rails, then the bytes that texts and addresses are in. */
typedef struct r2_peer_store {
    uint32_t users;
    size_t bytes;
    uint8_t *blob; /* behind the rails */
    r2_peer_rail_t rails[];
} r2_peer_store_t;

void r2_peer_rdma_text(const r2_nic_t *nic, char *text_p)
{
    const uint8_t *gid = nic->port.gid; /* its prefix comes from the subnet manager */

    if ('\0' == nic->tls[0]) {
        text_p[0] = '\0';
    } else if (R2_LINK_INFINIBAND != nic->port.link) {
        snprintf(text_p, R2_PEER_RDMA_MAX, "%s@roce", nic->tls);
    } else if (R2_PORT_ACTIVE != nic->port.state) {
        snprintf(text_p, R2_PEER_RDMA_MAX, "%s@ib", nic->tls);
    } else {
        snprintf(text_p, R2_PEER_RDMA_MAX, "%s@ib:%02x%02x%02x%02x%02x%02x%02x%02x", nic->tls,
                 gid[0], gid[1], gid[2], gid[3], gid[4], gid[5], gid[6], gid[7]);
    }
}

bool r2_peer_rails_have_rdma(const r2_peer_rail_t *a, const r2_peer_rail_t *b)
{
    const size_t bytes = strcspn(a->rdma, ":");
    const bool untold = '\0' == a->rdma[bytes] || NULL == strchr(b->rdma, ':');

    return bytes > 0 && bytes == strcspn(b->rdma, ":") && 0 == strncmp(a->rdma, b->rdma, bytes) &&
           (untold || 0 == strcmp(a->rdma + bytes, b->rdma + bytes));
}

bool r2_peer_rail_is_bare(const r2_peer_rail_t *rail)
{
    return NULL != strchr(rail->name, ':');
}

static bool r2_same_subnet(const r2_peer_rail_t *own, const r2_peer_rail_t *remote)
{
    uint32_t mask;

    if (0 == own->ipv4 || 0 == remote->ipv4 || own->prefix_bits != remote->prefix_bits ||
        0 == own->prefix_bits || own->prefix_bits > 32) {
        return false;
    }
    mask = __builtin_bswap32((uint32_t) (0xffffffffull << (32 - own->prefix_bits)));
    return (own->ipv4 & mask) == (remote->ipv4 & mask);
}

bool r2_peer_rails_pair(const r2_peer_rail_t *own, const r2_peer_rail_t *remote, bool same_idx,
                        int pass)
{
    const bool bare = r2_peer_rail_is_bare(own);
    const bool subnet = bare ? r2_peer_rails_have_rdma(own, remote) : r2_same_subnet(own, remote);
    const bool untold = !bare && (0 == own->ipv4 || 0 == remote->ipv4);

    if (bare != r2_peer_rail_is_bare(remote)) {
        return false;
    }
    return 0 == pass ? same_idx && subnet : 1 == pass ? subnet : same_idx && untold;
}

/* ---- writing ---- */

typedef struct r2_peer_writer {
    uint8_t *to; /* borrowed: R2_PEER_INFO_BYTES_MAX */
    size_t used;
    bool full;
} r2_peer_writer_t;

static void r2_put_bytes(r2_peer_writer_t *writer, const void *from, size_t bytes)
{
    writer->full = writer->full || bytes > R2_PEER_INFO_BYTES_MAX - writer->used;
    if (!writer->full && bytes > 0) {
        memcpy(writer->to + writer->used, from, bytes);
        writer->used += bytes;
    }
}

/* The lowest `bytes` bytes. */
static void r2_put_number(r2_peer_writer_t *writer, uint64_t value, size_t bytes)
{
    uint8_t text[sizeof(value)];

    for (size_t i = 0; i < bytes; ++i) {
        text[i] = (uint8_t) (value >> (8 * i));
    }
    r2_put_bytes(writer, text, bytes);
}

static void r2_put_text(r2_peer_writer_t *writer, const char *text, size_t most)
{
    const size_t bytes = NULL == text ? 0 : strnlen(text, most - 1);

    r2_put_number(writer, bytes, 1);
    r2_put_bytes(writer, text, bytes);
    r2_put_number(writer, 0, 1);
}

static void r2_put_rail(r2_peer_writer_t *writer, const r2_peer_rail_t *rail)
{
    r2_put_text(writer, rail->name, R2_NIC_NAME_MAX);
    r2_put_bytes(writer, &rail->ipv4, sizeof(rail->ipv4));
    r2_put_number(writer, rail->prefix_bits, 1);
    r2_put_number(writer, rail->mbytes_per_s, 4);
    r2_put_number(writer, rail->address_bytes, 1);
    r2_put_bytes(writer, rail->address, rail->address_bytes);
    r2_put_number(writer, rail->probe_bytes, 1);
    r2_put_bytes(writer, rail->probe, rail->probe_bytes);
    r2_put_text(writer, rail->rdma, R2_PEER_RDMA_MAX);
    r2_put_text(writer, rail->port, R2_NIC_NAME_MAX);
}

static void r2_put_head(r2_peer_writer_t *writer, uint32_t users, uint32_t flags)
{
    r2_put_number(writer, R2_PEER_INFO_MAGIC, 4);
    r2_put_number(writer, R2_PEER_INFO_VERSION, 1);
    r2_put_number(writer, R2_WIRE_VERSION, 1);
    r2_put_number(writer, 0, 2);
    r2_put_number(writer, users, 1);
    r2_put_number(writer, flags, 1);
}

/* @return bytes written, 0: too long. */
static size_t r2_put_length(r2_peer_writer_t *writer)
{
    if (writer->full) {
        return 0;
    }
    writer->to[R2_PEER_LENGTH_AT] = (uint8_t) writer->used;
    writer->to[R2_PEER_LENGTH_AT + 1] = (uint8_t) (writer->used >> 8);
    return writer->used;
}

size_t r2_peer_refusal_encode(const r2_peer_refusal_t *refusal, uint8_t *to)
{
    r2_peer_writer_t writer = {.to = to};
    const size_t bytes = strnlen(refusal->why, sizeof(refusal->why) - 1);

    r2_put_head(&writer, 0, refusal->expected ? R2_PEER_EXPECTED : 0);
    r2_put_text(&writer, refusal->host_name, R2_PEER_HOST_NAME_MAX);
    r2_put_number(&writer, bytes, 2);
    r2_put_bytes(&writer, refusal->why, bytes);
    return r2_put_length(&writer);
}

size_t r2_peer_info_encode(const r2_peer_info_t *info, uint8_t *to)
{
    r2_peer_writer_t writer = {.to = to};

    r2_put_head(&writer, info->users, 0);
    r2_put_number(&writer, info->host_id, 8);
    r2_put_text(&writer, info->host_name, R2_PEER_HOST_NAME_MAX);
    r2_put_number(&writer, info->rail_count, 1);
    r2_put_rail(&writer, &info->local);
    for (uint32_t i = 0; i < info->rail_count; ++i) {
        r2_put_rail(&writer, &info->rails[i]);
    }
    r2_put_number(&writer, info->post_bytes, 2);
    r2_put_bytes(&writer, info->post, info->post_bytes);
    r2_put_number(&writer, info->cost_bytes, 1);
    r2_put_bytes(&writer, info->cost, info->cost_bytes);
    r2_put_number(&writer, info->inbox_bytes, 1);
    r2_put_bytes(&writer, info->inbox, info->inbox_bytes);
    return r2_put_length(&writer);
}

/* ---- reading ---- */

typedef struct r2_peer_reader {
    const uint8_t *at; /* borrowed */
    size_t left;
    bool broken; /* something did not fit: nothing that was read counts */
} r2_peer_reader_t;

static const uint8_t *r2_take_bytes(r2_peer_reader_t *reader, size_t bytes)
{
    const uint8_t *at = reader->at;

    if (reader->broken || bytes > reader->left) {
        reader->broken = true;
        return NULL;
    }
    reader->at += bytes;
    reader->left -= bytes;
    return at;
}

static uint64_t r2_take_number(r2_peer_reader_t *reader, size_t bytes)
{
    const uint8_t *at = r2_take_bytes(reader, bytes);
    uint64_t value = 0;

    for (size_t i = 0; NULL != at && i < bytes; ++i) {
        value |= (uint64_t) at[i] << (8 * i);
    }
    return value;
}

static const char *r2_take_text(r2_peer_reader_t *reader, size_t most)
{
    const size_t bytes = (size_t) r2_take_number(reader, 1);
    const uint8_t *at = r2_take_bytes(reader, bytes + 1);

    reader->broken =
        reader->broken || bytes >= most || strnlen((const char *) at, bytes + 1) != bytes;
    return reader->broken ? "" : (const char *) at;
}

static const uint8_t *r2_take_counted(r2_peer_reader_t *reader, size_t width, size_t most,
                                      uint32_t *bytes_p)
{
    *bytes_p = (uint32_t) r2_take_number(reader, width);
    reader->broken = reader->broken || *bytes_p > most;
    return r2_take_bytes(reader, *bytes_p);
}

static void r2_take_rail(r2_peer_reader_t *reader, r2_peer_rail_t *rail_p)
{
    const uint8_t *ipv4;
    uint32_t address_bytes, probe_bytes;

    rail_p->name = r2_take_text(reader, R2_NIC_NAME_MAX);
    ipv4 = r2_take_bytes(reader, sizeof(rail_p->ipv4));
    if (NULL != ipv4) {
        memcpy(&rail_p->ipv4, ipv4, sizeof(rail_p->ipv4));
    }
    rail_p->prefix_bits = (uint16_t) r2_take_number(reader, 1);
    rail_p->mbytes_per_s = (uint32_t) r2_take_number(reader, 4);
    rail_p->address = r2_take_counted(reader, 1, R2_HELLO_ADDRESS_MAX, &address_bytes);
    rail_p->address_bytes = (uint16_t) address_bytes;
    rail_p->probe = r2_take_counted(reader, 1, R2_PROBE_ADDRESS_MAX, &probe_bytes);
    rail_p->probe_bytes = (uint16_t) probe_bytes;
    rail_p->rdma = r2_take_text(reader, R2_PEER_RDMA_MAX);
    rail_p->port = r2_take_text(reader, R2_NIC_NAME_MAX);
}

/* @param reader behind the head. @param rails room for all that there can be. */
static void r2_take_info(r2_peer_reader_t *reader, r2_peer_rail_t *rails, r2_peer_info_t *info_p)
{
    info_p->host_id = r2_take_number(reader, 8);
    info_p->host_name = r2_take_text(reader, R2_PEER_HOST_NAME_MAX);
    info_p->rail_count = (uint32_t) r2_take_number(reader, 1);
    reader->broken = reader->broken || info_p->rail_count > R2_RAILS_MAX;
    r2_take_rail(reader, &info_p->local);
    for (uint32_t i = 0; !reader->broken && i < info_p->rail_count; ++i) {
        r2_take_rail(reader, &rails[i]);
    }
    info_p->rails = rails;
    info_p->post = r2_take_counted(reader, 2, R2_POST_ADDRESS_MAX, &info_p->post_bytes);
    info_p->cost = r2_take_counted(reader, 1, R2_PEER_COST_BYTES, &info_p->cost_bytes);
    info_p->inbox = r2_take_counted(reader, 1, R2_PEER_INBOX_BYTES, &info_p->inbox_bytes);
    reader->broken = reader->broken || 0 != reader->left;
}

static r2_status_t r2_peer_head(r2_peer_reader_t *reader, size_t bytes, uint32_t *users_p,
                                uint32_t *flags_p)
{
    const uint64_t magic = r2_take_number(reader, 4);
    const uint64_t version = r2_take_number(reader, 1);
    const uint64_t wire = r2_take_number(reader, 1); /* no lane comes up with another */
    const uint64_t length = r2_take_number(reader, 2);

    if (!reader->broken && (R2_PEER_INFO_MAGIC != magic || R2_PEER_INFO_VERSION != version ||
                            R2_WIRE_VERSION != wire)) {
        return R2_ERR_VERSION;
    }
    *users_p = (uint32_t) r2_take_number(reader, 1);
    *flags_p = (uint32_t) r2_take_number(reader, 1);
    return reader->broken || length != bytes ? R2_ERR_WIRE : R2_OK;
}

r2_status_t r2_peer_users(const void *from, size_t bytes, uint32_t *users_p, uint64_t *host_id_p)
{
    r2_peer_reader_t reader = {.at = from, .left = bytes};
    uint32_t flags;
    const r2_status_t status = r2_peer_head(&reader, bytes, users_p, &flags);

    if (R2_OK != status || 0 == *users_p) {
        return status;
    }
    *host_id_p = r2_take_number(&reader, 8);
    return reader.broken ? R2_ERR_WIRE : R2_OK;
}

r2_status_t r2_peer_refusal_decode(const void *from, size_t bytes, r2_peer_refusal_t *refusal_p)
{
    r2_peer_reader_t reader = {.at = from, .left = bytes};
    uint32_t users, flags, why_bytes;
    r2_status_t status = r2_peer_head(&reader, bytes, &users, &flags);
    const char *host_name;
    const uint8_t *why;

    if (R2_OK != status) {
        return status;
    }
    host_name = r2_take_text(&reader, R2_PEER_HOST_NAME_MAX);
    why = r2_take_counted(&reader, 2, sizeof(refusal_p->why) - 1, &why_bytes);
    if (reader.broken || 0 != reader.left || 0 != users) {
        return R2_ERR_WIRE;
    }
    memset(refusal_p, 0, sizeof(*refusal_p));
    refusal_p->expected = 0 != (flags & R2_PEER_EXPECTED);
    strcpy(refusal_p->host_name, host_name);
    memcpy(refusal_p->why, why, why_bytes);
    return R2_OK;
}

r2_status_t r2_peer_info_decode(const void *from, size_t bytes, r2_peer_info_t *info_p)
{
    r2_peer_reader_t reader = {.at = from, .left = bytes};
    r2_peer_rail_t rails[R2_RAILS_MAX] = {0};
    r2_peer_info_t info = {0};
    r2_peer_store_t *store;
    uint32_t flags;
    r2_status_t status = r2_peer_head(&reader, bytes, &info.users, &flags);
    size_t rail_bytes;

    if (R2_OK != status) {
        return status;
    }
    r2_take_info(&reader, rails, &info);
    if (reader.broken || 0 == info.users || 0 != flags) {
        return R2_ERR_WIRE;
    }
    rail_bytes = info.rail_count * sizeof(rails[0]);
    store = malloc(sizeof(*store) + rail_bytes + bytes);
    if (NULL == store) {
        return R2_ERR_NO_MEMORY;
    }
    store->users = 1;
    store->bytes = bytes;
    store->blob = (uint8_t *) store->rails + rail_bytes;
    memcpy(store->blob, from, bytes);
    reader = (r2_peer_reader_t){.at = store->blob, .left = bytes};
    (void) r2_peer_head(&reader, bytes, &info.users, &flags);
    r2_take_info(&reader, store->rails, &info); /* once more: what is found is in our memory now */
    info.store = store;
    *info_p = info;
    return R2_OK;
}

r2_peer_info_t r2_peer_info_get(const r2_peer_info_t *info)
{
    ++info->store->users;
    return *info;
}

void r2_peer_info_put(r2_peer_info_t *info)
{
    if (NULL != info->store && 0 == --info->store->users) {
        free(info->store);
    }
    info->store = NULL;
}
