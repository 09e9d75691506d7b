/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The NIC of softverbs: how connections fail, what queues and events tell, datagrams, and the NIC's
 * own faults.
 */
#include "softverbs/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static pair_t pair;

static const pair_how_t rc = {.type = IBV_QPT_RC};

/* ---- how it fails */

static pair_fate_t all_lost(uint32_t number, const sv_packet_t *packet)
{
    (void) number;
    (void) packet;
    return PAIR_LOST;
}

static void retry_exceeded_after_its_time(void **state)
{
    (void) state;
    pair_init(&pair, &(pair_how_t){.type = IBV_QPT_RC, .timeout = 10, .retry_cnt = 3}); /* 4.2 ms */
    pair.fate = all_lost;
    pair_post_recv(&pair, 0, 70, 0, 10);
    for (uint64_t i = 0; i < 3; ++i) {
        pair_post(&pair, 0, i, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 500});
    }
    pair_pass_ms(&pair, 16);
    pair_expect_none(&pair, 0);
    pair_pass_ms(&pair, 5);
    pair_expect(&pair, 0, 0, IBV_WC_RETRY_EXC_ERR);
    pair_expect(&pair, 0, 1, IBV_WC_WR_FLUSH_ERR);
    pair_expect(&pair, 0, 2, IBV_WC_WR_FLUSH_ERR);
    pair_expect(&pair, 0, 70, IBV_WC_WR_FLUSH_ERR);
    pair_post(&pair, 0, 4, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 1});
    pair_expect(&pair, 0, 4, IBV_WC_WR_FLUSH_ERR);
    pair_expect_none(&pair, 0);
    pair_fini(&pair);
}

static bool is_cut;

static pair_fate_t lost_while_cut(uint32_t number, const sv_packet_t *packet)
{
    (void) number;
    (void) packet;
    return is_cut ? PAIR_LOST : PAIR_ARRIVES;
}

/* What has been lost is forgotten once something arrives. */
static void retries_begin_anew(void **state)
{
    (void) state;
    pair_init(&pair, &(pair_how_t){.type = IBV_QPT_RC, .timeout = 10, .retry_cnt = 3});
    pair.fate = lost_while_cut;
    for (uint64_t i = 0; i < 4; ++i) {
        is_cut = true;
        pair_post(&pair, 0, i, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 500});
        pair_pass_ms(&pair, 10);
        is_cut = false;
        pair_pass_ms(&pair, 5);
        pair_expect(&pair, 0, i, IBV_WC_SUCCESS);
    }
    assert_int_equal(pair.ends[0].dev->counters.timeouts, 12);
    pair_fini(&pair);
}

static void receiver_not_ready(void **state)
{
    (void) state;
    pair_init(&pair, &(pair_how_t){.type = IBV_QPT_RC, .rnr_retry = 2});
    pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 300});
    pair_run(&pair);
    assert_int_equal(pair.ends[1].dev->counters.naks, 1); /* once for all that is in flight */
    pair_pass_ms(&pair, 1);
    pair_expect_none(&pair, 0);
    pair_post_recv(&pair, 1, 2, 0, 300);
    pair_pass_ms(&pair, 5);
    pair_expect(&pair, 0, 1, IBV_WC_SUCCESS);
    pair_expect(&pair, 1, 2, IBV_WC_SUCCESS);
    pair_post(&pair, 0, 3, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 300});
    pair_pass_ms(&pair, 10);
    pair_expect(&pair, 0, 3, IBV_WC_RNR_RETRY_EXC_ERR);
    pair_fini(&pair);

    pair_init(&pair, &rc); /* 7: for ever */
    pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .length = 300});
    pair_pass_ms(&pair, 500);
    pair_expect_none(&pair, 0);
    pair_post_recv(&pair, 1, 2, 0, 0);
    pair_pass_ms(&pair, 5);
    pair_expect(&pair, 0, 1, IBV_WC_SUCCESS);
    pair_expect(&pair, 1, 2, IBV_WC_SUCCESS);
    pair_fini(&pair);
}

/* A receiver that is not ready is not sent all that waits again and again. */
static void receiver_asked_by_one(void **state)
{
    enum { SENDS = 60 };
    uint32_t sent;

    (void) state;
    pair_init(&pair, &rc);
    for (uint32_t i = 1; i <= SENDS; ++i) {
        pair_post(&pair, 0, i, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 8});
    }
    pair_pass_ms(&pair, 1);
    sent = pair.ends[0].dev->counters.sent;
    pair_pass_ms(&pair, 100);
    assert_in_range(pair.ends[0].dev->counters.sent - sent, 1, 100);
    for (uint32_t i = 1; i <= SENDS; ++i) {
        pair_post_recv(&pair, 1, i, 0, 8);
    }
    pair_pass_ms(&pair, 20);
    for (uint32_t i = 1; i <= SENDS; ++i) {
        pair_expect(&pair, 0, i, IBV_WC_SUCCESS);
        pair_expect(&pair, 1, i, IBV_WC_SUCCESS);
    }
    assert_int_equal(pair.ends[0].dev->counters.timeouts, 0);
    pair_fini(&pair);
}

/* A request that the other side has to refuse, whose memory stays as it is. */
static void refused(const pair_send_t *send)
{
    static uint8_t before[PAIR_MEMORY];

    pair_fill(pair.ends[0].memory, 0, 1000, 4);
    memcpy(before, pair.ends[1].memory, sizeof(before));
    pair_post(&pair, 0, 1, send);
    pair_post(&pair, 0, 2, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 10});
    pair_run(&pair);
    pair_expect(&pair, 0, 1, IBV_WC_REM_ACCESS_ERR);
    pair_expect(&pair, 0, 2, IBV_WC_WR_FLUSH_ERR);
    assert_memory_equal(before, pair.ends[1].memory, sizeof(before));
    assert_true(pair_was_told(&pair, 1, IBV_EVENT_QP_ACCESS_ERR));
    assert_int_equal(pair.ends[1].qp->attr.qp_state, IBV_QPS_ERR);
    pair_fini(&pair);
}

static uint32_t other_region(uint32_t pd, uint32_t access)
{
    sv_request_t request = {.verb = SV_REG_MR};
    uint32_t key;

    request.u.mr.addr = request.u.mr.iova = (uintptr_t) pair.ends[1].memory;
    request.u.mr.length = PAIR_MEMORY;
    request.u.mr.pd = pd;
    request.u.mr.access = access;
    assert_int_equal(sv_mr_create(pair.ends[1].context, &request, &key), 0);
    return key;
}

static void keys_are_checked(void **state)
{
    pair_send_t write = {.opcode = IBV_WR_RDMA_WRITE, .length = 100};
    uint32_t all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

    (void) state;
    pair_init(&pair, &rc);
    write.rkey = pair.ends[1].key + 1;
    refused(&write);
    pair_init(&pair, &rc);
    write.rkey = 0;
    write.to = PAIR_MEMORY - 99;
    refused(&write);
    pair_init(&pair, &rc);
    write.to = 0;
    write.rkey = other_region(1, all); /* another protection domain */
    refused(&write);
    pair_init(&pair, &rc);
    write.rkey = other_region(0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    refused(&write);
    pair_init(&pair, &rc);
    write.rkey = other_region(0, all);
    assert_int_equal(sv_mr_destroy(pair.ends[1].context, write.rkey), 0);
    assert_int_not_equal(other_region(0, all), write.rkey); /* same place, another key */
    refused(&write);
    pair_init(&pair, &rc);
    refused(&(pair_send_t){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .to = 4});
}

/* Packets of somebody else who knows the number. */
static void strangers_are_not_heard(void **state)
{
    sv_packet_t packet = {.ip = 0x0900000au};

    (void) state;
    pair_init(&pair, &rc);
    packet.head.magic = SV_MAGIC;
    packet.head.op = SV_OP_WRITE;
    packet.head.dest_qpn = pair.ends[1].qp->number;
    packet.head.source_qpn = pair.ends[0].qp->number;
    packet.head.psn = 100;
    packet.head.length = packet.head.message_length = 1;
    packet.head.remote_addr = (uintptr_t) pair.ends[1].memory;
    packet.head.rkey = pair.ends[1].key;
    packet.payload[0] = 1;
    sv_arrived(pair.ends[1].dev, &packet);
    packet.ip = pair.ends[0].dev->about.ip;
    ++packet.head.source_qpn;
    sv_arrived(pair.ends[1].dev, &packet);
    assert_int_equal(pair.ends[1].memory[0], 0);
    --packet.head.source_qpn;
    sv_arrived(pair.ends[1].dev, &packet);
    assert_int_equal(pair.ends[1].memory[0], 1); /* it was right otherwise */
    pair_fini(&pair);
}

static void own_keys_are_checked(void **state)
{
    (void) state;
    pair_init(&pair, &rc);
    pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 10});
    pair_post(&pair, 0, 2, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 10, .lkey = 1});
    pair_run(&pair);
    pair_expect(&pair, 0, 1, IBV_WC_SUCCESS); /* what was before is done first */
    pair_expect(&pair, 0, 2, IBV_WC_LOC_PROT_ERR);
    pair_fini(&pair);
}

static void receive_too_short(void **state)
{
    (void) state;
    pair_init(&pair, &rc);
    pair_post_recv(&pair, 1, 5, 0, 100);
    pair_post_recv(&pair, 1, 6, 0, 100);
    pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 101});
    pair_run(&pair);
    pair_expect(&pair, 0, 1, IBV_WC_REM_INV_REQ_ERR);
    pair_expect(&pair, 1, 5, IBV_WC_LOC_LEN_ERR);
    pair_expect(&pair, 1, 6, IBV_WC_WR_FLUSH_ERR);
    pair_fini(&pair);
}

static void the_peer_is_gone(void **state)
{
    (void) state;
    pair_init(&pair, &(pair_how_t){.type = IBV_QPT_RC, .retry_cnt = 2});
    pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 1000});
    sv_qp_destroy(pair.ends[1].qp);
    pair_pass_ms(&pair, 10);
    pair_expect(&pair, 0, 1, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(pair.ends[1].memory[0], 0);
    pair_fini(&pair);
}

/* ---- queues and events */

static void shared_receives(void **state)
{
    (void) state;
    pair_init(&pair, &(pair_how_t){.type = IBV_QPT_RC, .has_srq = true});
    pair.ends[1].qp->srq->limit = 2;
    for (uint32_t i = 0; i < 3; ++i) {
        pair_post_recv(&pair, 1, i, 1000 * i, 1000);
    }
    for (uint32_t i = 0; i < 2; ++i) {
        assert_false(pair_was_told(&pair, 1, IBV_EVENT_SRQ_LIMIT_REACHED));
        pair_post(&pair, 0, 10 + i, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 10});
        pair_run(&pair);
        pair_expect(&pair, 1, i, IBV_WC_SUCCESS);
    }
    assert_true(pair_was_told(&pair, 1, IBV_EVENT_SRQ_LIMIT_REACHED));
    sv_rc_error(pair.ends[1].qp, IBV_WC_WR_FLUSH_ERR);
    assert_true(pair_was_told(&pair, 1, IBV_EVENT_QP_LAST_WQE_REACHED));
    pair_expect_none(&pair, 1); /* the third is another queue pair's, maybe */
    pair_fini(&pair);
}

static void channels_are_told_once(void **state)
{
    uint32_t *armed;

    (void) state;
    pair_init(&pair, &rc);
    armed = &pair.ends[1].cq->ring.shared->armed;
    for (uint64_t i = 0; i < 8; ++i) {
        pair_post_recv(&pair, 1, i, 0, 10);
    }
    pair_post(&pair, 0, 0, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 1});
    pair_run(&pair);
    assert_int_equal(pair.ends[1].told, 0);
    *armed = 2;
    pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 1});
    pair_post(&pair, 0, 2, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 1});
    pair_run(&pair);
    assert_int_equal(pair.ends[1].told, 1);
    *armed = 1;
    pair_post(&pair, 0, 3, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 1});
    pair_run(&pair);
    assert_int_equal(pair.ends[1].told, 1);
    pair_post(&pair, 0, 4, &(pair_send_t){.opcode = IBV_WR_SEND, .length = 1,
                                          .flags = IBV_SEND_SOLICITED});
    pair_run(&pair);
    assert_int_equal(pair.ends[1].told, 2);
    pair_fini(&pair);
}

static void overrun_is_told(void **state)
{
    (void) state;
    pair_init(&pair, &(pair_how_t){.type = IBV_QPT_RC, .cq_items = 4});
    for (uint64_t i = 0; i < 6; ++i) {
        pair_post(&pair, 0, i, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 1});
        pair_run(&pair);
    }
    assert_true(pair_was_told(&pair, 0, IBV_EVENT_CQ_ERR));
    assert_int_equal(pair.ends[0].dev->counters.overruns, 2);
    pair_fini(&pair);
}

static void datagrams(void **state)
{
    pair_send_t send = {.opcode = IBV_WR_SEND, .length = 100, .rkey = 7};
    struct ibv_wc wc;

    (void) state;
    pair_init(&pair, &(pair_how_t){.type = IBV_QPT_UD});
    pair_fill(pair.ends[0].memory, 0, 100, 8);
    pair_post(&pair, 0, 1, &send); /* no receive: lost, and nobody is told */
    pair_run(&pair);
    pair_expect(&pair, 0, 1, IBV_WC_SUCCESS);
    pair_post_recv(&pair, 1, 2, 1000, 200);
    send.rkey = 8; /* another queue key */
    pair_post(&pair, 0, 3, &send);
    pair_run(&pair);
    pair_expect_none(&pair, 1);
    send.rkey = 7;
    pair_post(&pair, 0, 4, &send);
    pair_run(&pair);
    assert_true(pair_poll(&pair, 1, &wc));
    assert_int_equal(wc.byte_len, 100 + SV_GRH_BYTES);
    assert_int_equal(wc.src_qp, pair.ends[0].qp->number);
    assert_int_equal(wc.wc_flags, IBV_WC_GRH);
    assert_memory_equal(pair.ends[1].memory + 1000 + SV_GRH_BYTES, pair.ends[0].memory, 100);
    assert_memory_equal(pair.ends[1].memory + 1032, &pair.ends[0].dev->about.ip, 4);
    pair_fini(&pair);
}

/* ---- faults of the NIC's own */

static void fatal_is_silent(void **state)
{
    (void) state;
    pair_init(&pair, &(pair_how_t){.type = IBV_QPT_RC, .retry_cnt = 2});
    pair_post(&pair, 1, 1, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 100});
    pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 100});
    pair_inject(&pair, 0, SV_FAULT_FATAL, 0, 0);
    pair_pass_ms(&pair, 20);
    assert_true(pair_was_told(&pair, 0, IBV_EVENT_DEVICE_FATAL));
    pair_expect_none(&pair, 0); /* not even a flush */
    pair_expect(&pair, 1, 1, IBV_WC_RETRY_EXC_ERR);
    pair_fini(&pair);
}

static void late_writes(void **state)
{
    (void) state;
    for (int how = 0; how < 3; ++how) { /* nothing done; region gone; queue pair gone */
        pair_init(&pair, &rc);
        pair_inject(&pair, 1, SV_FAULT_LATE_WRITE, 1000000, 5);
        pair_fill(pair.ends[0].memory, 0, 100, 1);
        pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 100});
        pair_pass_ms(&pair, 1);
        pair_expect(&pair, 0, 1, IBV_WC_SUCCESS);
        memset(pair.ends[1].memory, 0, 100); /* it is somebody else's now */
        if (1 == how) {
            assert_int_equal(sv_mr_destroy(pair.ends[1].context, pair.ends[1].key), 0);
        } else if (2 == how) {
            sv_qp_destroy(pair.ends[1].qp);
        }
        pair_pass_ms(&pair, 10);
        assert_int_equal(pair.ends[1].memory[9], 0 == how ? pair.ends[0].memory[9] : 0);
        assert_int_equal(pair.ends[1].dev->counters.late_landed, 0 == how ? 2 : 0);
        assert_int_equal(pair.ends[1].dev->counters.late_refused, 0 == how ? 0 : 2);
        pair_fini(&pair);
    }
}

/* A write to memory that its process has back is counted, whoever sends it; one beside it is
 * not. */
static void given_back(void **state)
{
    sv_given_t given = {.of = {{0}}};

    (void) state;
    pair_init(&pair, &rc);
    pair.ends[1].context->given = (uintptr_t) &given;
    given.of[5].addr = (uintptr_t) pair.ends[1].memory + 1000;
    given.of[5].length = 500;
    for (uint32_t i = 0; i < 3; ++i) { /* up to it, into its first byte, behind it */
        pair_post(&pair, 0, i,
                  &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE,
                                 .length = 100,
                                 .to = (const uint32_t[]){900, 901, 1500}[i]});
        pair_run(&pair);
        pair_expect(&pair, 0, i, IBV_WC_SUCCESS);
        assert_int_equal(pair.ends[1].dev->counters.given_back, 0 == i ? 0 : 1);
    }
    given.of[5].length = 0; /* taken */
    pair_post(&pair, 0, 3, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 100, .to = 1000});
    pair_run(&pair);
    assert_int_equal(pair.ends[1].dev->counters.given_back, 1);
    pair_fini(&pair);
}

/* A switch keeps a stream until its sender has given up: its writes land then, unless the receiver
 * has destroyed its queue pair. */
static void writes_outlive_their_sender(void **state)
{
    (void) state;
    for (int is_fenced = 0; is_fenced < 2; ++is_fenced) {
        pair_init(&pair, &(pair_how_t){.type = IBV_QPT_RC, .retry_cnt = 2});
        pair_inject(&pair, 1, SV_FAULT_DELAY, 1000000, 50);
        pair_fill(pair.ends[0].memory, 0, 1000, 1);
        pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 1000});
        pair_pass_ms(&pair, 20);
        pair_expect(&pair, 0, 1, IBV_WC_RETRY_EXC_ERR);
        assert_int_equal(pair.ends[1].memory[999], 0);
        if (is_fenced) {
            sv_qp_destroy(pair.ends[1].qp);
        }
        pair_pass_ms(&pair, 100);
        assert_int_equal(pair.ends[1].memory[999], is_fenced ? 0 : pair.ends[0].memory[999]);
        assert_int_equal(pair.ends[1].dev->counters.late_refused > 0, is_fenced);
        pair_fini(&pair);
    }
}

static void other_faults(void **state)
{
    pair_send_t write = {.opcode = IBV_WR_RDMA_WRITE, .length = 10};

    (void) state;
    pair_init(&pair, &rc);
    pair_inject(&pair, 0, SV_FAULT_NO_COMPLETION, 1000000, 0);
    pair_post(&pair, 0, 1, &write);
    pair_run(&pair);
    pair_expect_none(&pair, 0);
    pair_inject(&pair, 0, SV_FAULT_HEAL, 0, 0);
    pair_inject(&pair, 0, SV_FAULT_ERROR, 1000000, IBV_WC_REM_OP_ERR);
    pair_post(&pair, 0, 2, &write);
    pair_run(&pair);
    pair_expect(&pair, 0, 2, IBV_WC_REM_OP_ERR);
    pair_inject(&pair, 0, SV_FAULT_HEAL, 0, 0);
    pair_inject(&pair, 1, SV_FAULT_DELAY, 1000000, 3);
    pair_post(&pair, 0, 3, &write);
    pair_pass_ms(&pair, 2);
    assert_int_equal(pair.ends[1].dev->counters.delayed, 2); /* once more by the timeout */
    pair_inject(&pair, 1, SV_FAULT_HEAL, 0, 0);
    pair_pass_ms(&pair, 10);
    pair_expect(&pair, 0, 3, IBV_WC_SUCCESS);
    pair_inject(&pair, 1, SV_FAULT_GID, 0, 2);
    assert_true(pair_was_told(&pair, 1, IBV_EVENT_GID_CHANGE));
    pair_inject(&pair, 1, SV_FAULT_PORT_DOWN, 0, 0);
    assert_true(pair_was_told(&pair, 1, IBV_EVENT_PORT_ERR));
    pair_inject(&pair, 1, SV_FAULT_HEAL, 0, 0);
    assert_true(pair_was_told(&pair, 1, IBV_EVENT_PORT_ACTIVE));
    pair_inject(&pair, 1, SV_FAULT_KEY, 1000000, 0);
    refused(&write);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_exceeded_after_its_time),
        cmocka_unit_test(retries_begin_anew),
        cmocka_unit_test(receiver_not_ready),
        cmocka_unit_test(receiver_asked_by_one),
        cmocka_unit_test(keys_are_checked),
        cmocka_unit_test(strangers_are_not_heard),
        cmocka_unit_test(own_keys_are_checked),
        cmocka_unit_test(receive_too_short),
        cmocka_unit_test(the_peer_is_gone),
        cmocka_unit_test(shared_receives),
        cmocka_unit_test(channels_are_told_once),
        cmocka_unit_test(overrun_is_told),
        cmocka_unit_test(datagrams),
        cmocka_unit_test(fatal_is_silent),
        cmocka_unit_test(late_writes),
        cmocka_unit_test(given_back),
        cmocka_unit_test(writes_outlive_their_sender),
        cmocka_unit_test(other_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
