/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory that NICs read and write by themselves: registered, moved, and what they leave behind.
 *
 *   reads or writes                        has the memory
 *                                          registers it, tells its keys
 *   its NICs read or write pieces     ...  computes, is stopped
 *   of a lane that failed:
 *   read:  GET (p2p_get.c)            -->  when our end of the lane is closed
 *   write: FENCED (p2p_rma.c)         -->  closes its end, then gets it
 *
 * So nothing is written here or there after the operation is done, by no NIC.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ctx/p2p_state.h"

/* ---- registered memory ---- */

/** What was granted of a rail. */
typedef struct r2_region_grant {
    r2_rail_worker_t *worker; /* borrowed: counted as a user */
    void *grant;              /* owned by the transport */
} r2_region_grant_t;

struct r2_p2p_region {
    r2_p2p_region_t *prev, *next; /* in p2p->regions */
    r2_p2p_t *p2p;                /* borrowed; NULL: it is no more, and nothing is registered */
    uint32_t count;
    r2_region_grant_t grants[R2_P2P_KEYS_MAX];
};

static bool r2_region_may(const r2_rail_t *rail)
{
    return '\0' != rail->nic.rdma[0] && !rail->nic.rdma_lost && !rail->alone &&
           NULL != rail->tp->ops->grant && NULL != rail->tp->ops->get;
}

/* Pages are pinned without the engine lock: that takes as long as there are many. */
static void r2_region_pin(r2_core_t *core, const r2_rail_worker_t *worker, void *data,
                          uint64_t bytes)
{
    const r2_tp_ops_t *ops = worker->rail->tp->ops;
    void *pin = NULL == ops->pin_begin ? NULL : ops->pin_begin(worker->worker, data, bytes);

    if (NULL != pin) {
        r2_core_leave(core);
        ops->pin(worker->worker, pin);
        r2_core_enter(core);
        core->net.now_ns = r2_now_ns(core->clock);
        ops->pin_end(worker->worker, pin);
    }
}

/* @return false: there is no key to it on this rail. */
static bool r2_region_grant(r2_p2p_region_t *region, r2_rail_t *rail, void *data, uint64_t bytes,
                            r2_tp_key_t *key)
{
    r2_core_t *core = region->p2p->core;
    r2_net_t *net = &core->net;
    r2_region_grant_t *grant = &region->grants[region->count];
    size_t key_bytes = 0;

    if (!r2_region_may(rail) ||
        R2_OK != r2_rail_get(rail, true, net->rank, 0, net->now_ns, &grant->worker)) {
        return false;
    }
    r2_region_pin(core, grant->worker, data, bytes);
    if (R2_OK != rail->tp->ops->grant(grant->worker->worker, data, bytes, NULL, key->key,
                                      &key_bytes, &grant->grant)) {
        r2_rail_put(grant->worker);
        return false;
    }
    key->bytes = (uint32_t) key_bytes;
    key->domain = r2_rail_domain(grant->worker, net->clock);
    ++region->count;
    return true;
}

static void r2_region_release(r2_p2p_region_t *region)
{
    for (uint32_t i = 0; i < region->count; ++i) {
        r2_rail_worker_t *worker = region->grants[i].worker;

        worker->rail->tp->ops->ungrant(worker->worker, region->grants[i].grant);
        r2_rail_put(worker);
    }
    DL_DELETE(region->p2p->regions, region);
    region->p2p = NULL;
}

/* Only what the CPU has: others tell when it is freed, and to whom it belongs. */
static bool r2_region_is_hosts(r2_core_t *core, const void *data)
{
    r2_mem_at_t at;

    return R2_OK == r2_mem_look(&core->mem, data, &at) && R2_MEM_HOST == at.kind;
}

r2_status_t r2_p2p_register(r2_p2p_t *p2p, void *data, uint64_t bytes, r2_p2p_memory_t *memory_p,
                            r2_p2p_region_t **region_p)
{
    r2_core_t *core = p2p->core;
    r2_p2p_region_t *region = calloc(1, sizeof(*region));

    if (NULL == region) {
        return R2_ERR_NO_MEMORY;
    }
    memset(memory_p, 0, sizeof(*memory_p));
    memory_p->address = (uint64_t) (uintptr_t) data;
    memory_p->bytes = bytes;
    region->p2p = p2p;
    r2_core_enter(core);
    core->net.now_ns = r2_now_ns(core->clock);
    DL_APPEND(p2p->regions, region);
    for (uint32_t i = 0;
         core->params.direct && bytes > 0 && !r2_is_forked() && i < core->net.rail_count &&
         region->count < R2_P2P_KEYS_MAX && r2_region_is_hosts(core, data);
         ++i) {
        (void) r2_region_grant(region, &core->net.rails[i], data, bytes,
                               &memory_p->keys[region->count]);
    }
    memory_p->count = region->count;
    r2_core_leave(core);
    *region_p = region;
    return R2_OK;
}

void r2_p2p_deregister(r2_p2p_region_t *region)
{
    r2_p2p_t *p2p = region->p2p;

    if (NULL != p2p) {
        r2_core_t *core = p2p->core;

        r2_core_enter(core);
        r2_region_release(region);
        r2_core_leave(core);
    }
    free(region);
}

/* ---- reading and writing ---- */

static void r2_direct_closes(r2_p2p_direct_t *direct, r2_status_t status)
{
    direct->status = R2_OK == direct->status ? status : direct->status;
    if (0 == --direct->open) {
        DL_DELETE(direct->p2p->directs, direct);
        r2_p2p_finish(direct->op, direct->status);
        free(direct);
    }
}

static void r2_direct_done(void *arg, r2_status_t status)
{
    r2_direct_closes(arg, status);
}

/* An application thread, no lock. */
static void r2_part_done(r2_p2p_op_t *op, r2_status_t status)
{
    r2_p2p_part_t *part = op->arg;
    r2_core_t *core = op->p2p->core;

    r2_core_enter(core);
    DL_DELETE(op->p2p->parts, part);
    r2_direct_closes(part->direct, status);
    r2_core_leave(core);
    free(part);
}

static bool r2_direct_lost(void *arg, uint64_t offset, uint64_t bytes, uint64_t connection)
{
    r2_p2p_direct_t *direct = arg;
    r2_p2p_part_t *part = calloc(1, sizeof(*part));

    if (NULL == part) {
        return false;
    }
    *part = (r2_p2p_part_t){.op = {.done = r2_part_done, .arg = part},
                            .direct = direct,
                            .offset = offset,
                            .bytes = bytes,
                            .connection = connection};
    ++direct->open;
    DL_APPEND(direct->p2p->lost_parts, part);
    return true;
}

static r2_status_t r2_part_start(r2_p2p_t *p2p, r2_p2p_part_t *part)
{
    const r2_p2p_direct_t *direct = part->direct;
    char *local = direct->local + part->offset;
    const uint64_t remote = direct->remote + part->offset;

    return direct->writes
               ? r2_p2p_put_fenced(p2p, direct->rank, local, remote, part->bytes, part->connection,
                                   &part->op)
               : r2_p2p_get_long(p2p, direct->rank, local, remote, part->bytes, &part->op);
}

unsigned r2_p2p_parts_start(r2_p2p_t *p2p)
{
    r2_p2p_part_t *part, *next;
    unsigned started = 0;

    DL_FOREACH_SAFE(p2p->lost_parts, part, next) {
        const r2_status_t status = r2_part_start(p2p, part);

        if (R2_ERR_NO_MEMORY == status) {
            break; /* again with the next pass */
        }
        DL_DELETE(p2p->lost_parts, part);
        if (R2_IN_PROGRESS == status) {
            DL_APPEND(p2p->parts, part);
        } else {
            r2_direct_closes(part->direct, status);
            free(part);
        }
        ++started;
    }
    return started;
}

/* What a peer has told may be anything. */
static bool r2_memory_has(const r2_p2p_memory_t *memory, uint64_t remote, uint64_t bytes)
{
    bool valid = NULL != memory && 0 != memory->count && memory->count <= R2_P2P_KEYS_MAX &&
                 remote >= memory->address && bytes <= memory->bytes &&
                 remote - memory->address <= memory->bytes - bytes;

    for (uint64_t i = 0; valid && i < memory->count; ++i) {
        valid = memory->keys[i].bytes <= R2_TP_KEY_MAX;
    }
    return valid;
}

/* Engine lock. @return R2_IN_PROGRESS; else nothing is done: messages do it, or tell why not. */
static r2_status_t r2_direct_start(r2_p2p_direct_t *direct, const r2_p2p_memory_t *memory,
                                   uint64_t bytes)
{
    const r2_link_direct_t args = {.writes = direct->writes,
                                   .local = direct->local,
                                   .remote = direct->remote,
                                   .bytes = bytes,
                                   .keys = memory->keys,
                                   .key_count = (uint32_t) memory->count,
                                   .lost = r2_direct_lost,
                                   .done = r2_direct_done,
                                   .arg = direct};
    r2_link_t *link;
    r2_status_t status = r2_p2p_link(direct->p2p, direct->rank, &link);

    return R2_OK == status ? r2_link_direct(link, &args) : status;
}

/* @return R2_IN_PROGRESS, or R2_ERR_UNSUPPORTED: messages are to do it. */
static r2_status_t r2_p2p_direct(r2_p2p_t *p2p, const r2_p2p_direct_t *wanted, uint64_t bytes,
                                 const r2_p2p_memory_t *memory)
{
    r2_p2p_direct_t *direct;
    r2_status_t status;

    if (!p2p->core->params.direct || bytes <= R2_P2P_SHORT_BYTES || r2_is_forked() ||
        wanted->rank == p2p->core->net.rank || !r2_memory_has(memory, wanted->remote, bytes) ||
        !r2_region_is_hosts(p2p->core, wanted->local)) {
        return R2_ERR_UNSUPPORTED;
    }
    direct = malloc(sizeof(*direct));
    if (NULL == direct) {
        return R2_ERR_UNSUPPORTED;
    }
    *direct = *wanted;
    direct->p2p = p2p;
    direct->open = 1;
    direct->status = R2_OK;
    direct->op->p2p = p2p;
    r2_core_enter(p2p->core);
    p2p->core->net.now_ns = r2_now_ns(p2p->core->clock);
    status = r2_direct_start(direct, memory, bytes);
    if (R2_IN_PROGRESS == status) {
        DL_APPEND(p2p->directs, direct);
    }
    r2_core_leave_started(p2p->core);
    if (R2_IN_PROGRESS != status) {
        free(direct);
        status = R2_ERR_UNSUPPORTED;
    }
    return status;
}

r2_status_t r2_p2p_read(r2_p2p_t *p2p, uint32_t rank, void *local, uint64_t remote, uint64_t bytes,
                        const r2_p2p_memory_t *memory, r2_p2p_op_t *op)
{
    const r2_p2p_direct_t direct = {.rank = rank, .local = local, .remote = remote, .op = op};

    return R2_IN_PROGRESS == r2_p2p_direct(p2p, &direct, bytes, memory)
               ? R2_IN_PROGRESS
               : r2_p2p_get(p2p, rank, local, remote, bytes, op);
}

r2_status_t r2_p2p_write(r2_p2p_t *p2p, uint32_t rank, const void *local, uint64_t remote,
                         uint64_t bytes, const r2_p2p_memory_t *memory, r2_p2p_op_t *op)
{
    const r2_p2p_direct_t direct = {
        .rank = rank,
        .writes = true,
        .local = (char *) (uintptr_t) local, /* only read */
        .remote = remote,
        .op = op,
    };

    return R2_IN_PROGRESS == r2_p2p_direct(p2p, &direct, bytes, memory)
               ? R2_IN_PROGRESS
               : r2_p2p_put(p2p, rank, local, remote, bytes, op);
}

/* ---- the end ---- */

static void r2_parts_free(r2_p2p_part_t **list)
{
    while (NULL != *list) {
        r2_p2p_part_t *part = *list;

        DL_DELETE(*list, part);
        free(part);
    }
}

void r2_p2p_direct_fini(r2_p2p_t *p2p)
{
    r2_parts_free(&p2p->lost_parts);
    r2_parts_free(&p2p->parts);
    while (NULL != p2p->directs) {
        r2_p2p_direct_t *direct = p2p->directs;

        DL_DELETE(p2p->directs, direct);
        free(direct);
    }
    while (NULL != p2p->regions) {
        r2_region_release(p2p->regions);
    }
}
