/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The receive path of a link: an authenticated peer that does anything at all. Whatever it sends,
 * rows get each byte once, memory stays bounded, and the books agree.
 */
#include "r2_config.h"

#include <utlist.h>

#include "base/util.h"
#include "fuzz.h"
#include "stub_net.h"

#define ROWS      16 /* tags: rows 0 .. 15 of 4 communicators */
#define COMMS     4
#define STEPS_MAX 400
#define BYTES_MAX 200000
#define SENDS_MAX 64

/** A posted row. */
typedef struct row {
    bool posted, sink;
    uint64_t bytes, held;
    uint8_t *data;   /* owned: memory to receive into */
    uint8_t *counts; /* owned: how often each byte came, with a sink */
} row_t;

/** A message of ours. */
typedef struct sending {
    bool busy;
    uint8_t *data; /* owned while busy */
} sending_t;

typedef struct world {
    stub_net_t *stub;
    row_t rows[COMMS][ROWS];
    sending_t sends[SENDS_MAX];
    uint32_t next_row; /* of our messages */
} world_t;

static const uint64_t lengths[] = {0,    1,     7,     300,   1024,   5000,
                                   8192, 20000, 65536, 70000, 131072, BYTES_MAX};
static const uint32_t units[] = {1, 64, 1024, 8192, 16384, 65536, 131072, UINT32_MAX};

static uint8_t pattern(uint64_t offset)
{
    return (uint8_t) (offset * 7 + offset / 251);
}

static r2_tag_t tag_of(uint32_t comm, uint32_t row)
{
    return (r2_tag_t){.comm_key = 1ull << comm, .coll_seq = 3, .id = row};
}

static void row_sink(void *arg, uint64_t offset, const void *data, uint64_t bytes)
{
    row_t *row = arg;

    fuzz_check(row->posted && offset + bytes <= row->bytes);
    for (uint64_t i = 0; i < bytes; ++i) {
        fuzz_check(0 == row->counts[offset + i]++);
        fuzz_check(((const uint8_t *) data)[i] == pattern(offset + i));
    }
    row->held += bytes;
}

static void row_end(row_t *row, r2_status_t status)
{
    fuzz_check(row->posted);
    if (R2_OK == status && row->sink) {
        fuzz_check(row->held == row->bytes);
    }
    for (uint64_t i = 0; R2_OK == status && !row->sink && i < row->bytes; ++i) {
        fuzz_check(row->data[i] == pattern(i));
    }
    free(row->data);
    free(row->counts);
    memset(row, 0, sizeof(*row));
}

static void row_done(void *arg, r2_status_t status)
{
    row_end(arg, status);
}

static void post_row(world_t *world, fuzz_input_t *input)
{
    uint32_t comm = fuzz_u8(input) % COMMS, idx = fuzz_u8(input) % ROWS;
    row_t *row = &world->rows[comm][idx];
    r2_link_recv_t args = {.tag = tag_of(comm, idx), .done = row_done, .arg = row};
    bool sink = 0 != (fuzz_u8(input) & 1);
    r2_status_t status;

    args.bytes = lengths[fuzz_u8(input) % r2_array_count(lengths)];
    if (row->posted) {
        return;
    }
    row->posted = true;
    row->sink = sink;
    row->bytes = args.bytes;
    row->data = malloc(args.bytes + (0 == args.bytes));
    row->counts = calloc(1, args.bytes + 1);
    args.data = row->sink ? NULL : row->data;
    args.sink = row->sink ? row_sink : NULL;
    status = r2_link_recv(world->stub->link, &args);
    if (R2_IN_PROGRESS != status) {
        row_end(row, status);
    }
}

static void withdraw(world_t *world, uint32_t comm)
{
    r2_link_withdraw(world->stub->link, 1ull << comm);
    for (uint32_t i = 0; i < ROWS; ++i) {
        row_t *row = &world->rows[comm][i];

        free(row->data);
        free(row->counts);
        memset(row, 0, sizeof(*row));
    }
}

static void send_done(void *arg, r2_status_t status)
{
    sending_t *sending = arg;

    (void) status;
    fuzz_check(sending->busy);
    free(sending->data);
    sending->data = NULL;
    sending->busy = false;
}

static void send_message(world_t *world, fuzz_input_t *input)
{
    r2_link_send_t args = {.tag = tag_of(COMMS, world->next_row++), .done = send_done};
    sending_t *sending = NULL;
    r2_status_t status;

    args.bytes = lengths[fuzz_u8(input) % r2_array_count(lengths)];
    args.chunk_bytes = 8192u << (fuzz_u8(input) % 5);
    for (uint32_t i = 0; i < SENDS_MAX && NULL == sending; ++i) {
        sending = world->sends[i].busy ? NULL : &world->sends[i];
    }
    if (NULL == sending) {
        return;
    }
    sending->busy = true;
    sending->data = calloc(1, args.bytes + 1);
    args.data = sending->data;
    args.arg = sending;
    status = r2_link_send(world->stub->link, &args);
    if (R2_IN_PROGRESS != status) {
        send_done(sending, status);
    }
}

/* To us, or to be forwarded, to nobody; packets may be of any lane, or relayed twice. */
static void relay_frame(world_t *world, fuzz_input_t *input, r2_wire_header_t *header,
                        uint8_t *payload)
{
    uint8_t what = fuzz_u8(input);
    r2_wire_relay_t frame = {.source = fuzz_u8(input) % 4, .op = what & 7, .id = fuzz_u8(input)};
    r2_wire_header_t inner = {.version = R2_WIRE_VERSION, .kind = fuzz_u8(input)};
    r2_lane_t *lane = &world->stub->link->lanes[fuzz_u8(input) % world->stub->link->lane_count];

    inner.connection = lane->connect.rx_connection;
    inner.lane_seq = lane->rx.next;
    header->destination = (what >> 3) & 3;
    header->hop = (what >> 5) & 1;
    header->length = sizeof(frame) + (0 != (what & 64) ? sizeof(inner) : fuzz_u8(input));
    memcpy(payload, &frame, sizeof(frame));
    memcpy(payload + sizeof(frame), &inner, sizeof(inner));
}

/* As a peer tells it: a message given up, an error, or a lane that is over. @return bytes. */
static uint32_t news_of(const r2_link_t *link, const r2_wire_header_t *header, uint8_t what,
                        void *payload)
{
    const r2_wire_abort_t error = {.comm_key = header->tag.comm_key, .status = -(int) what};
    const r2_lane_t *lane = &link->lanes[what % STUB_RAILS];
    const r2_wire_lane_down_t down = {lane->connect.tx_connection, what >> 7, 0};

    static_assert(sizeof(error) == sizeof(down), "either");
    if (R2_WIRE_VOID == header->kind) {
        memcpy(payload, &header->message, sizeof(header->message));
        return sizeof(header->message);
    }
    memcpy(payload, R2_WIRE_ABORT == header->kind ? (const void *) &error : &down, sizeof(down));
    return sizeof(down);
}

/* A chunk length, or that of a message that is one chunk. */
static uint32_t unit_of(uint64_t message_bytes, uint8_t choice)
{
    const uint32_t unit = units[choice % r2_array_count(units)];

    return choice >= 128 && message_bytes <= unit ? r2_wire_chunk_only((uint32_t) message_bytes)
                                                  : unit;
}

/* In the short form where there is one, but not always. */
static void send_packet(world_t *world, const r2_wire_header_t *header, const uint8_t *payload)
{
    r2_wire_short_t brief;

    if (0 == (header->ack_next & 1) && r2_wire_shorten(header, &brief)) {
        stub_packet(world->stub, &brief, sizeof(brief), payload, header->length);
    } else {
        stub_packet(world->stub, header, sizeof(*header), payload,
                    header->flags & R2_WIRE_PLACED ? 0 : header->length);
    }
}

/* A header that is more or less what a peer could send now. */
static void packet(world_t *world, fuzz_input_t *input)
{
    static uint8_t payload[BYTES_MAX + 1];
    r2_link_t *link = world->stub->link;
    r2_lane_t *lane = &link->lanes[fuzz_u8(input) % STUB_RAILS];
    uint8_t lies = fuzz_u8(input);
    r2_wire_header_t header = {.version = R2_WIRE_VERSION};
    uint64_t offset, rest;

    header.kind = 0 != (lies & 1) ? fuzz_u8(input) : (uint8_t) R2_WIRE_DATA;
    header.flags = fuzz_u8(input) & R2_WIRE_FLAGS_ALL;
    header.connection =
        0 != lane->connect.rx_connection ? lane->connect.rx_connection : fuzz_u64(input);
    header.lane_seq = lane->rx.next + (0 != (lies & 2) ? fuzz_u8(input) - 40u : 0);
    header.ack_next = lane->tx.seq - fuzz_u8(input) % 8 + (0 != (lies & 4) ? fuzz_u32(input) : 0);
    header.ack_bits = fuzz_u8(input);
    header.consumed = 0 != (lies & 8) ? fuzz_u32(input) : (uint32_t) link->tx.eager_sent;
    header.message =
        link->rx.watermark + (0 != (lies & 16) ? fuzz_u64(input) : fuzz_u8(input) % 16);
    header.tag = tag_of(fuzz_u8(input) % COMMS, fuzz_u8(input) % ROWS);
    if (0 != (lies & 32)) {
        header.tag.id = fuzz_u32(input) & 0xffff;
    }
    header.message_bytes = 0 != (lies & 64) ? fuzz_u64(input) & (R2_WIRE_MESSAGE_MAX - 1)
                                            : lengths[fuzz_u8(input) % r2_array_count(lengths)];
    header.chunk_bytes = unit_of(header.message_bytes, fuzz_u8(input));
    header.chunk =
        (uint32_t) (fuzz_u8(input) % r2_wire_chunks(header.message_bytes, header.chunk_bytes));
    header.digest = 0 != (lies & 128) ? 1 : 0;
    offset = (uint64_t) header.chunk * header.chunk_bytes;
    rest = header.message_bytes - offset;
    if (R2_WIRE_DATA == header.kind) {
        header.length =
            (uint32_t) r2_min(r2_min(rest, (uint64_t) header.chunk_bytes), (uint64_t) BYTES_MAX);
        for (uint32_t i = 0; i < header.length; ++i) {
            payload[i] = pattern(offset + i);
        }
    } else if (R2_WIRE_CREDIT == header.kind) {
        r2_wire_credit_t credit = {.tag = tag_of(COMMS, fuzz_u8(input)), .heard = lies >> 6 & 1};

        header.length = sizeof(credit) * (1 + fuzz_u8(input) % R2_WIRE_CREDITS_MAX);
        for (uint32_t at = 0; at < header.length; at += sizeof(credit), ++credit.tag.id) {
            credit.bytes = 0 != (lies & 32) ? fuzz_u64(input)
                                            : lengths[fuzz_u8(input) % r2_array_count(lengths)];
            memcpy(payload + at, &credit, sizeof(credit));
        }
    } else if (R2_WIRE_LANE_DOWN == header.kind || R2_WIRE_ABORT == header.kind ||
               R2_WIRE_VOID == header.kind) {
        header.length = news_of(link, &header, fuzz_u8(input), payload);
    } else if (R2_WIRE_RELAY == header.kind) {
        relay_frame(world, input, &header, payload);
    }
    send_packet(world, &header, payload);
}

static void raw_packet(world_t *world, fuzz_input_t *input)
{
    r2_wire_header_t header;
    uint8_t data[256];
    size_t data_bytes = fuzz_u8(input);
    const uint8_t form = fuzz_u8(input) & 7;
    size_t header_bytes = 0 == form   ? fuzz_u8(input) % sizeof(header)
                          : form == 1 ? sizeof(r2_wire_short_t)
                                      : sizeof(header);
    uint64_t offset = 0;

    fuzz_take(input, &header, sizeof(header));
    fuzz_take(input, data, data_bytes);
    header.version = R2_WIRE_VERSION;
    header.connection = world->stub->link->lanes[0].connect.rx_connection;
    if (1 == form) {
        header.kind = R2_WIRE_SHORT | (header.kind & R2_WIRE_FLAGS_ALL);
    } else if (R2_WIRE_DATA == header.kind) {
        offset = (uint64_t) header.chunk * header.chunk_bytes;
    }
    for (size_t i = 0; (1 == form || R2_WIRE_DATA == header.kind) && i < data_bytes; ++i) {
        data[i] = pattern(offset + i);
    }
    stub_packet(world->stub, &header, header_bytes, data, data_bytes);
}

static void hello(world_t *world, fuzz_input_t *input)
{
    stub_net_t *stub = world->stub;
    uint8_t offer[R2_HELLO_BYTES_MAX] = {0}, what = fuzz_u8(input);
    uint32_t rail = (what >> 4) % (STUB_RAILS + 1);
    size_t bytes = stub_offer(stub, rail, 1 + (what >> 6), offer);

    for (uint8_t changes = fuzz_u8(input) % 4; changes > 0; --changes) {
        offer[fuzz_u8(input)] ^= fuzz_u8(input);
    }
    bytes = 0 != (what & 8) ? fuzz_u32(input) % sizeof(offer) : bytes;
    if (0 != (what & 1)) {
        stub_hello(stub, rail, offer, bytes);
    } else {
        r2_hello_result(&stub->net, stub->connect_id, 0 != (what & 2) ? R2_ERR_REFUSED : R2_OK,
                        offer, bytes);
    }
}

static void check_lanes(const r2_link_t *link)
{
    uint64_t packets = 0;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        uint64_t bytes = 0;
        const r2_packet_t *entry;

        DL_FOREACH(link->lanes[i].tx.in_flight, entry) {
            bytes += entry->bytes;
            ++packets;
            fuzz_check(entry->lane == &link->lanes[i] && !entry->settled);
        }
        fuzz_check(bytes == link->lanes[i].tx.in_flight_bytes);
        fuzz_check(NULL == link->lanes[i].conn ||
                   link->lanes[i].conn->unsequenced <= R2_UNSEQUENCED_MAX);
    }
    fuzz_check(packets == link->tx.in_flight_packets);
}

/* What may come for posted rows is bounded, however long nothing is delivered. */
static void check_grants(const world_t *world, const r2_link_t *link, const uint64_t *open,
                         uint32_t asking, uint64_t unexpected_bytes)
{
    const r2_params_t *params = &world->stub->params;
    uint64_t most = params->credit_bytes / 4 + 2 * params->chunk_max_bytes;
    uint32_t listed = 0;
    const r2_rx_match_t *match;

    for (uint32_t i = 0; i < R2_GRANT_KINDS; ++i) {
        fuzz_check(open[i] == link->rx.grants.open_bytes[i]);
        DL_FOREACH(link->rx.grants.recvs[i], match) {
            ++listed;
        }
    }
    fuzz_check(listed == asking && (asking > 0 ? 1u : 0u) == link->net->asking_links);
    fuzz_check(open[0] + open[1] == link->net->open_bytes && link->net->open_bytes <= most);
    fuzz_check(unexpected_bytes <= open[0] + open[1]);
}

static void check_books(const world_t *world)
{
    const r2_link_t *link = world->stub->link;
    const r2_rx_match_t *match;
    const r2_rx_message_t *message;
    uint64_t bytes = 0, cost = 0, cost_bytes = 0, open_cost = 0, bitmaps = 0,
             open[R2_GRANT_KINDS] = {0};
    uint32_t unposted = 0, asking = 0;

    for (match = (const void *) link->rx.matches.first; NULL != match;
         match = r2_table_next(match)) {
        const r2_early_chunk_t *early = NULL != match->message ? match->message->early : NULL;

        unposted += match->posted ? 0 : 1;
        for (; NULL != early; early = early->next) {
            uint64_t own = early->eager ? early->bytes + R2_EAGER_COST_BYTES : 0;

            bytes += early->bytes;
            cost += own;
            cost_bytes += early->eager ? early->bytes : 0;
            open_cost += match->posted ? 0 : own;
            fuzz_check(match->posted || early->eager);
        }
        open[0 == match->chunk_bytes ? R2_GRANT_UNHEARD : R2_GRANT_HEARD] += match->open_bytes;
        asking += match->asking ? 1 : 0;
        fuzz_check(0 == match->open_bytes || match->posted);
        if (NULL != match->message && match->message->held == match->message->chunk_count) {
            bitmaps += (match->message->chunk_count + 63) / 64 * 8;
        }
    }
    for (message = (const void *) link->rx.arriving.first; NULL != message;
         message = r2_table_next(message)) {
        fuzz_check(message->held < message->chunk_count);
        bitmaps += (message->chunk_count + 63) / 64 * 8;
    }
    fuzz_check(bytes == link->rx.unexpected_bytes && bytes == world->stub->net.unexpected_bytes);
    fuzz_check(cost == link->rx.unexpected_cost &&
               open_cost <= world->stub->params.unexpected_bytes);
    check_grants(world, link, open, asking, bytes - cost_bytes);
    fuzz_check(unposted == link->rx.unposted && unposted <= R2_RX_UNPOSTED_MAX + 1024);
    /* one message may have a longer one than the bound, alone */
    fuzz_check(bitmaps == link->rx.bitmap_bytes);
    fuzz_check(bitmaps <= R2_RX_BITMAPS_MAX || 1 == link->rx.arriving.count ||
               0 == link->rx.arriving.count);
    fuzz_check(link->rx.completed.count <= 2 * R2_RX_GAPS_MAX);
    fuzz_check(link->tx.credits.count <= R2_CREDITS_MAX + 1);
    check_lanes(link);
}

/* A lane opens, its rail loses or finds carrier, or its transport fails. */
static void lane_event(stub_net_t *stub, uint8_t what)
{
    r2_lane_t *lane = &stub->link->lanes[what / 16 % STUB_RAILS];

    if (0 != (what & 128)) {
        stub_lane_up(stub, lane->idx);
    } else if (0 != (what & 64)) {
        r2_net_rail_event(&stub->net, lane->idx, !lane->rail->nic.carrier);
    } else if (NULL != lane->conn) {
        r2_lane_failed(NULL, lane->conn, R2_ERR_LANE_DOWN);
    }
}

static void step(world_t *world, fuzz_input_t *input)
{
    stub_net_t *stub = world->stub;
    uint8_t what = fuzz_u8(input);

    switch (what % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        packet(world, input);
        break;
    case 5:
        raw_packet(world, input);
        break;
    case 6:
    case 7:
        post_row(world, input);
        break;
    case 8:
        send_message(world, input);
        break;
    case 9:
        withdraw(world, fuzz_u8(input) % COMMS);
        break;
    case 10:
        stub->time_ns += (uint64_t) fuzz_u8(input) * R2_NS_PER_MS * (0 != (what & 16) ? 40 : 1);
        break;
    case 11:
        stub->net.may_deliver = !stub->net.may_deliver;
        stub->net.app_drives = stub->net.may_deliver;
        break;
    case 12:
        stub->mode = (stub_mode_t) (fuzz_u8(input) % 4);
        stub->complete = 0 != (what & 16);
        break;
    case 13:
        hello(world, input);
        break;
    case 14:
        lane_event(stub, what);
        break;
    case 15: { /* a communicator is freed: what is still on its way is dropped */
        uint32_t comm = fuzz_u8(input) % COMMS;

        withdraw(world, comm);
        stub->over_key ^= 1ull << comm;
        break;
    }
    }
    r2_net_progress(&stub->net);
}

/* Input: steps of the peer and of this process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_input_t input = {data, bytes};
    world_t *world = calloc(1, sizeof(*world));

    world->stub = stub_net_create();
    world->stub->params.credit_bytes = 262144; /* so that it is used up */
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        stub_lane_up(world->stub, i);
        fuzz_check(r2_lane_is_up(&world->stub->link->lanes[i]));
    }
    for (int i = 0; i < STEPS_MAX && input.left > 0; ++i) {
        step(world, &input);
        check_books(world);
    }
    for (uint32_t comm = 0; comm < COMMS; ++comm) {
        withdraw(world, comm);
    }
    stub_net_destroy(world->stub);
    for (uint32_t i = 0; i < SENDS_MAX; ++i) {
        free(world->sends[i].data);
    }
    free(world);
    return 0;
}
