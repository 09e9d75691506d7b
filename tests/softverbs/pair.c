/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two NICs in one process.
 */
#include "softverbs/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct pair_flying {
    struct pair_flying *next;
    int to;
    sv_packet_t packet;
};

static pair_t *world; /* of the test that runs */

static int end_of(const sv_nic_t *nic)
{
    return nic == &world->ends[1].nic;
}

/* Puts a packet behind those that fly, or `before` it the last of them. */
static void fly(int to, const sv_packet_t *packet)
{
    struct pair_flying **place = &world->flying, *flying = malloc(sizeof(*flying));

    assert_non_null(flying);
    while (NULL != *place) {
        place = &(*place)->next;
    }
    flying->next = NULL;
    flying->to = to;
    flying->packet = *packet;
    flying->packet.ip = world->ends[1 - to].dev->about.ip;
    *place = flying;
}

static void world_send(sv_dev_t *dev, sv_packet_t *packets, int count)
{
    static sv_packet_t late;
    static bool has_late;
    int to = 1 - end_of(dev->nic);

    has_late = false;
    for (int i = 0; i < count; ++i) {
        pair_fate_t fate =
            NULL == world->fate ? PAIR_ARRIVES : world->fate(world->number, &packets[i]);
        ++world->number;
        if (PAIR_LATE == fate && !has_late) {
            late = packets[i];
            has_late = true;
        } else if (PAIR_LOST != fate) {
            fly(to, &packets[i]);
        }
        if (PAIR_TWICE == fate) {
            fly(to, &packets[i]);
        }
    }
    if (has_late) { /* behind the rest of its batch */
        fly(to, &late);
    }
}

static bool world_read(sv_context_t *context, void *to, const struct iovec *from, int count)
{
    uint8_t *at = to;

    (void) context;
    for (int i = 0; i < count; ++i) {
        memcpy(at, from[i].iov_base, from[i].iov_len);
        at += from[i].iov_len;
    }
    return true;
}

static bool world_write(sv_context_t *context, uint64_t to, const void *from, size_t size)
{
    (void) context;
    memcpy((void *) (uintptr_t) to, from, size);
    return true;
}

/* Descriptors are numbers of ends: 10 and 11 for events, 20 and 21 for channels. */
static void world_tell(int fd, const void *what, size_t size)
{
    pair_end_t *end = &world->ends[11 == fd || 21 == fd];

    if (fd >= 20) {
        ++end->told;
    } else if (end->event_count < PAIR_EVENTS) {
        assert_int_equal(size, sizeof(sv_event_t));
        memcpy(&end->events[end->event_count++], what, size);
    }
}

static const sv_world_t test_world = {world_send, world_read, world_write, world_tell};

/* ---- making ends */

static void make_ring(sv_ring_t *ring, uint32_t items, uint32_t item_bytes)
{
    int fd = sv_ring_create(ring, items, item_bytes);

    assert_true(fd >= 0);
    close(fd);
}

static void make_context(pair_end_t *end, int which)
{
    sv_device_t about = {.name = "soft0", .netdev = "none", .ip = 0x0100000au + (uint32_t) which};

    end->nic.world = &test_world;
    end->nic.segment = PAIR_SEGMENT;
    end->nic.now_ns = 1;
    end->dev = sv_dev_create(&end->nic, &about);
    assert_non_null(end->dev);
    end->dev->has_carrier = true;
    end->nic.devices[end->nic.device_count++] = end->dev;
    end->context = calloc(1, sizeof(*end->context));
    assert_non_null(end->context);
    end->context->nic = &end->nic;
    end->context->dev = end->dev;
    end->context->events = 10 + which;
    end->context->qps = calloc(SV_CONTEXT_QPS, sizeof(sv_qp_t *));
    end->nic.contexts = end->context;
}

static void make_queues(pair_end_t *end, int which, const pair_how_t *how)
{
    sv_request_t request = {.verb = SV_REG_MR};
    sv_ring_t ring, sends, recvs = {.shared = NULL};
    uint32_t channel, number;

    request.u.mr.addr = request.u.mr.iova = (uintptr_t) end->memory;
    request.u.mr.length = PAIR_MEMORY;
    request.u.mr.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    assert_int_equal(sv_mr_create(end->context, &request, &end->key), 0);
    assert_int_equal(sv_channel_create(end->context, 20 + which, &channel), 0);
    make_ring(&ring, 0 == how->cq_items ? 2 * PAIR_QUEUE : how->cq_items, sizeof(sv_cqe_t));
    assert_int_equal(sv_cq_create(end->context, &ring, channel, &number), 0);
    end->cq = sv_table_get(&end->context->cqs, number);
    memset(&request, 0, sizeof(request));
    request.u.qp.send_cq = request.u.qp.recv_cq = number;
    request.u.qp.type = how->type;
    make_ring(&sends, PAIR_QUEUE, sizeof(sv_send_t));
    make_ring(&recvs, PAIR_QUEUE, sizeof(sv_recv_t));
    if (how->has_srq) {
        sv_request_t srq = {.verb = SV_SRQ};
        assert_int_equal(sv_srq_create(end->context, &recvs, &srq, &request.u.qp.srq), 0);
        recvs.shared = NULL;
    }
    assert_int_equal(sv_qp_create(end->context, &request, &sends, &recvs, &end->qp), 0);
}

static void connect_end(pair_end_t *end, const pair_end_t *other, const pair_how_t *how)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .qkey = 7, .port_num = 1};
    uint32_t mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    attr.qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    assert_int_equal(sv_qp_modify(end->qp, &attr, mask | IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    attr.dest_qp_num = other->qp->number;
    attr.rq_psn = 100;
    attr.min_rnr_timer = 13; /* 1 ms */
    attr.max_dest_rd_atomic = attr.max_rd_atomic = SV_RD_ATOMICS;
    attr.ah_attr.grh.sgid_index = (uint8_t) end->dev->gid_index;
    memcpy(attr.ah_attr.grh.dgid.raw + 12, &other->dev->about.ip, 4);
    mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    assert_int_equal(sv_qp_modify(end->qp, &attr, mask), 0);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 100;
    attr.timeout = (uint8_t) how->timeout;
    attr.retry_cnt = (uint8_t) how->retry_cnt;
    attr.rnr_retry = (uint8_t) how->rnr_retry;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
           IBV_QP_MAX_QP_RD_ATOMIC;
    assert_int_equal(sv_qp_modify(end->qp, &attr, mask), 0);
}

void pair_init(pair_t *pair, const pair_how_t *given)
{
    pair_how_t how = *given;

    how.timeout = 0 == how.timeout ? 8 : how.timeout;
    how.retry_cnt = 0 == how.retry_cnt ? 7 : how.retry_cnt;
    how.rnr_retry = 0 == how.rnr_retry ? 7 : how.rnr_retry;
    memset(pair, 0, sizeof(*pair));
    world = pair;
    for (int i = 0; i < 2; ++i) {
        make_context(&pair->ends[i], i);
        make_queues(&pair->ends[i], i, &how);
    }
    for (int i = 0; i < 2; ++i) {
        connect_end(&pair->ends[i], &pair->ends[1 - i], &how);
    }
}

void pair_fini(pair_t *pair)
{
    while (NULL != pair->flying) {
        struct pair_flying *flying = pair->flying;
        pair->flying = flying->next;
        free(flying);
    }
    for (int i = 0; i < 2; ++i) {
        sv_context_fini(pair->ends[i].context);
        sv_dev_destroy(pair->ends[i].dev);
        free(pair->ends[i].context);
    }
}

/* ---- running */

void pair_fill(uint8_t *memory, uint32_t at, uint32_t length, uint32_t seed)
{
    for (uint32_t i = 0; i < length; ++i) {
        memory[at + i] = (uint8_t) (i * 7 + i / 251 + seed);
    }
}

void pair_run(pair_t *pair)
{
    while (NULL != pair->flying) {
        struct pair_flying *flying = pair->flying;
        sv_dev_t *dev = pair->ends[flying->to].dev;
        pair->flying = flying->next;
        sv_arrived(dev, &flying->packet);
        sv_round_end(dev);
        free(flying);
    }
}

void pair_pass_ms(pair_t *pair, unsigned ms)
{
    for (unsigned i = 0; i < ms; ++i) {
        for (int end = 0; end < 2; ++end) {
            pair->ends[end].nic.now_ns += 1000000;
            sv_timers(pair->ends[end].dev);
        }
        pair_run(pair);
    }
}

void pair_post(pair_t *pair, int which, uint64_t wr_id, const pair_send_t *how)
{
    pair_end_t *end = &pair->ends[which], *other = &pair->ends[1 - which];
    sv_send_t *send = sv_ring_at(&end->qp->sends, sv_ring_tail(&end->qp->sends));

    memset(send, 0, sizeof(*send));
    send->wr_id = wr_id;
    send->opcode = how->opcode;
    send->flags = IBV_SEND_SIGNALED | how->flags;
    send->imm = 42;
    send->remote_addr = (uintptr_t) other->memory + how->to;
    send->rkey = 0 == how->rkey ? other->key : how->rkey;
    send->compare_add = how->compare_add;
    send->swap = how->swap;
    send->length = how->length;
    send->sge_count = how->length > 0 ? 1 : 0;
    send->data.sge[0].addr = (uintptr_t) end->memory + how->from;
    send->data.sge[0].length = how->length;
    send->data.sge[0].lkey = 0 == how->lkey ? end->key : how->lkey;
    send->dest_ip = other->dev->about.ip;
    send->dest_qpn = other->qp->number;
    send->qkey = how->rkey;
    sv_ring_put(&end->qp->sends);
    sv_posted(end->qp);
    sv_packet_flush(end->dev);
}

void pair_post_recv(pair_t *pair, int which, uint64_t wr_id, uint32_t at, uint32_t length)
{
    pair_end_t *end = &pair->ends[which];
    sv_ring_t *ring = NULL == end->qp->srq ? &end->qp->recvs : &end->qp->srq->ring;
    sv_recv_t *recv = sv_ring_at(ring, sv_ring_tail(ring));

    recv->wr_id = wr_id;
    recv->sge_count = 1;
    recv->sge[0].addr = (uintptr_t) end->memory + at;
    recv->sge[0].length = length;
    recv->sge[0].lkey = end->key;
    sv_ring_put(ring);
}

bool pair_poll(pair_t *pair, int end, struct ibv_wc *wc_p)
{
    sv_ring_t *ring = &pair->ends[end].cq->ring;

    if (sv_ring_tail(ring) == sv_ring_head(ring)) {
        return false;
    }
    *wc_p = ((sv_cqe_t *) sv_ring_at(ring, sv_ring_head(ring)))->wc;
    sv_ring_take(ring);
    return true;
}

void pair_expect(pair_t *pair, int end, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc;

    assert_true(pair_poll(pair, end, &wc));
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
}

void pair_expect_none(pair_t *pair, int end)
{
    struct ibv_wc wc;

    assert_false(pair_poll(pair, end, &wc));
}

bool pair_was_told(const pair_t *pair, int end, uint32_t type)
{
    for (uint32_t i = 0; i < pair->ends[end].event_count; ++i) {
        if (pair->ends[end].events[i].type == type) {
            return true;
        }
    }
    return false;
}

void pair_inject(pair_t *pair, int end, sv_fault_kind_t kind, uint32_t per_million, uint32_t value)
{
    sv_fault_t fault = {
        .device = "soft0", .kind = kind, .per_million = per_million, .value = value, .seed = 5};

    assert_int_equal(sv_inject(&pair->ends[end].nic, &fault), 0);
}
