/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A receive of a stub's link that the peer may put to.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "place_receive.h"

static void receive_done(void *arg, r2_status_t status)
{
    receive_t *receive = arg;

    ++receive->done;
    receive->status = status;
}

r2_lane_t *lane_of(const receive_t *receive, uint32_t lane)
{
    return &receive->stub->link->lanes[lane];
}

r2_wire_header_t header_on(const receive_t *receive, uint32_t lane, r2_wire_kind_t kind)
{
    const r2_lane_t *on = lane_of(receive, lane);
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = (uint8_t) kind};

    header.connection = on->connect.rx_connection;
    header.lane_seq = on->rx.next;
    header.ack_next = on->tx.seq;
    header.consumed = (uint32_t) receive->stub->net.first_seq;
    header.unread_at = r2_unread_stamp(receive->stub->time_ns);
    header.message = receive->number;
    header.tag = receive->tag;
    header.message_bytes = BYTES;
    header.chunk_bytes = CHUNK;
    return header;
}

/* What of a message for a GPU is not put. */
static void receive_take(void *arg, uint64_t offset, const void *data, uint64_t bytes)
{
    memcpy(((receive_t *) arg)->data + offset, data, bytes);
}

receive_t *post(stub_net_t *stub, uint64_t coll_seq, uint64_t number, const r2_tp_memory_t *gpu)
{
    receive_t *receive = calloc(1, sizeof(*receive));
    r2_link_recv_t recv = {.bytes = BYTES, .done = receive_done, .arg = receive, .gpu = gpu};
    r2_wire_header_t header;

    receive->stub = stub;
    receive->number = number;
    receive->tag = (r2_tag_t){.comm_key = 1, .coll_seq = coll_seq};
    recv.tag = receive->tag;
    recv.data = receive->data;
    if (NULL != gpu) {
        recv.sink = receive_take;
        recv.grain_bytes = 1;
        recv.gpu_data = (void *) (uintptr_t) gpu->data;
    }
    assert_int_equal(r2_link_recv(stub->link, &recv), R2_IN_PROGRESS);
    header = header_on(receive, 0, R2_WIRE_RTS);
    stub_packet(stub, &header, sizeof(header), NULL, 0);
    r2_net_progress(&stub->net);
    return receive;
}

receive_t *start_with(const r2_tp_memory_t *gpu, bool reads_gpus)
{
    stub_net_t *stub = stub_net_create();

    stub->params.put = 1;
    stub->reads_gpus = reads_gpus;
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        stub_lane_up(stub, i);
        stub->link->lanes[i].is_rdma = true;
    }
    return post(stub, 1, stub->net.first_seq, gpu);
}

receive_t *start(void)
{
    receive_t *receive = start_with(NULL, false);

    assert_int_equal(receive->stub->grants, STUB_RAILS);
    return receive;
}

void finish(receive_t *receive)
{
    stub_net_destroy(receive->stub);
    free(receive);
}

void put_comes(receive_t *receive, uint32_t lane, uint32_t chunk)
{
    r2_wire_header_t header = header_on(receive, lane, R2_WIRE_DATA);

    header.chunk = chunk;
    header.length = CHUNK;
    header.flags = R2_WIRE_PLACED;
    stub_packet(receive->stub, &header, sizeof(header), NULL, 0);
}

void copy_comes(receive_t *receive, uint32_t lane, uint32_t chunk, uint32_t put_over)
{
    r2_wire_header_t header = header_on(receive, lane, R2_WIRE_DATA);
    char data[CHUNK];

    memset(data, 'c', sizeof(data));
    header.chunk = chunk;
    header.length = CHUNK;
    header.flags = R2_WIRE_UNSURE;
    header.destination = put_over;
    stub_packet(receive->stub, &header, sizeof(header), data, sizeof(data));
}

bool is_taken(const receive_t *receive, uint32_t chunk)
{
    return 'c' == receive->data[chunk * CHUNK] && 'c' == receive->data[(chunk + 1) * CHUNK - 1];
}

uint64_t failed(const receive_t *receive)
{
    return receive->stub->counters.lanes_failed;
}

void leave_unread_on(receive_t *receive, uint32_t lane)
{
    receive->stub->busy = lane_of(receive, lane)->conn->worker->worker;
}

void leave_unread(receive_t *receive, bool unread)
{
    receive->stub->busy = NULL;
    if (unread) {
        leave_unread_on(receive, 0);
    }
}
