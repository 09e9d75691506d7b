/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A net with a peer that the caller plays.
 */
#include "r2_config.h"

#include "stub_net.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fuzz.h"
#include "link/offer.h"
#include "local/inbox.h"

/* ---- hello */

static void stub_hello_bind(void *hello, const r2_hello_upcalls_t *upcalls)
{
    ((stub_net_t *) hello)->upcalls = *upcalls;
}

static void stub_hello_key(void *hello, const uint8_t *key)
{
    (void) hello;
    (void) key;
}

static r2_status_t stub_hello_listen(void *hello, uint32_t rail_idx, const r2_nic_t *nic,
                                     void *address_p, size_t *bytes_p)
{
    (void) hello;
    (void) nic;
    memcpy(address_p, &rail_idx, sizeof(rail_idx));
    *bytes_p = sizeof(rail_idx);
    return R2_OK;
}

static r2_status_t stub_hello_call(void *hello, uint32_t rail_idx, const void *address,
                                   size_t address_bytes, const void *request, size_t bytes,
                                   uint64_t timeout_ns, uint64_t connect_id)
{
    stub_net_t *stub = hello;

    (void) rail_idx;
    (void) address;
    (void) address_bytes;
    (void) request;
    (void) timeout_ns;
    fuzz_check(bytes <= R2_HELLO_BYTES_MAX);
    stub->connect_id = connect_id;
    return STUB_BROKEN == stub->mode ? R2_ERR_REFUSED : R2_OK;
}

static bool stub_hello_cancel(void *hello, uint64_t connect_id)
{
    (void) hello;
    (void) connect_id;
    return false;
}

static bool stub_hello_connected(void *hello, uint64_t connect_id)
{
    (void) connect_id;
    return !((const stub_net_t *) hello)->unconnected;
}

static void stub_hello_reply(void *hello, uint64_t token, const void *reply, size_t bytes)
{
    (void) hello;
    (void) token;
    (void) reply;
    fuzz_check(bytes <= R2_HELLO_BYTES_MAX);
}

static int stub_hello_fd(void *hello)
{
    (void) hello;
    return -1;
}

static void stub_hello_poll(void *hello)
{
    (void) hello;
}

static uint64_t stub_hello_deadline_ns(void *hello)
{
    (void) hello;
    return R2_NEVER_NS;
}

static const r2_hello_ops_t stub_hello_ops = {
    .name = "stub",
    .bind = stub_hello_bind,
    .key = stub_hello_key,
    .listen = stub_hello_listen,
    .call = stub_hello_call,
    .cancel = stub_hello_cancel,
    .connected = stub_hello_connected,
    .reply = stub_hello_reply,
    .fd = stub_hello_fd,
    .poll = stub_hello_poll,
    .deadline_ns = stub_hello_deadline_ns,
};

/* ---- exchange: the peer publishes what we do */

static r2_status_t stub_lookup(void *oob, uint32_t rank, void *blob_p, size_t *bytes_p)
{
    stub_net_t *stub = oob;
    r2_peer_info_t info = stub->net.info;
    uint8_t blob[R2_PEER_INFO_BYTES_MAX];

    info.host_id = NULL == stub->inbox ? rank + 1 : info.host_id; /* a host for each */
    info.inbox = stub->inbox;
    info.inbox_bytes = NULL == stub->inbox ? 0 : R2_INBOX_ADDRESS_BYTES;
    *bytes_p = r2_peer_info_encode(&info, blob);
    memcpy(blob_p, blob, *bytes_p);
    return R2_OK;
}

static const r2_oob_ops_t stub_oob_ops = {.name = "stub", .lookup = stub_lookup};

static bool stub_over(void *arg, const r2_tag_t *tag)
{
    const stub_net_t *stub = arg;

    return 0 != (tag->comm_key & stub->over_key);
}

static void stub_aborted(void *arg, uint32_t rank, uint64_t comm_key, r2_status_t status)
{
    (void) comm_key;
    fuzz_check(NULL != arg && 1 == rank && status < 0);
}

static void stub_lost(void *arg, uint32_t rank, r2_status_t status)
{
    fuzz_check(NULL != arg && 1 == rank && status < 0);
}

static uint64_t stub_now(void *arg)
{
    return ((const stub_net_t *) arg)->time_ns;
}

static uint64_t stub_random(void *arg)
{
    return ++((stub_net_t *) arg)->random;
}

static void stub_quiet(void *arg, int level, const char *line)
{
    (void) arg;
    (void) level;
    (void) line;
}

static stub_net_t *stub_net_make(uint32_t size, uint32_t rails, const uint8_t *inbox)
{
    stub_net_t *stub = calloc(1, sizeof(*stub));
    r2_nic_t nics[R2_RAILS_MAX];
    r2_net_t *net = &stub->net;

    memset(nics, 0, sizeof(nics));
    for (uint32_t i = 0; i < rails; ++i) {
        snprintf(nics[i].name, sizeof(nics[i].name), "rail%u", i);
        nics[i].carrier = true;
    }
    r2_params_init(&stub->params);
    stub->params.unexpected_bytes = 65536;
    stub->clock = (r2_clock_t){.now_ns = stub_now, .random_u64 = stub_random, .arg = stub};
    stub->log.level = R2_LOG_DEBUG; /* so that the text is made, too */
    stub->log.fn = stub_quiet;
    stub->time_ns = R2_NS_PER_S;
    stub->random = 1000;
    net->clock = &stub->clock;
    net->params = &stub->params;
    net->log = &stub->log;
    net->counters = &stub->counters;
    net->tp = (r2_tp_t){&stub_tp_ops, stub};
    net->hello = (r2_hello_t){&stub_hello_ops, stub};
    net->oob = (r2_oob_t){&stub_oob_ops, stub};
    net->upcalls = (r2_net_upcalls_t){
        .over = stub_over, .aborted = stub_aborted, .lost = stub_lost, .arg = stub};
    net->size = size;
    net->extra.users = 3;
    net->extra.local = NULL != inbox;
    stub->inbox = inbox;
    net->epoll_fd = -1;
    net->first_seq = UINT64_MAX - 20; /* counters wrap early */
    net->may_deliver = net->app_drives = true;
    fuzz_check(R2_OK == r2_net_init(net, nics, rails, 1, "here"));
    fuzz_check(R2_OK == r2_net_link(net, 1, &stub->link));
    fuzz_check((NULL == inbox ? rails : 1) == stub->link->lane_count);
    return stub;
}

stub_net_t *stub_net_create(void)
{
    return stub_net_make(2, STUB_RAILS, NULL);
}

stub_net_t *stub_net_create_wide(uint32_t rails)
{
    return stub_net_make(2, rails, NULL);
}

stub_net_t *stub_net_create_of(uint32_t size)
{
    return stub_net_make(size, STUB_RAILS, NULL);
}

stub_net_t *stub_net_create_local(const uint8_t *inbox)
{
    return stub_net_make(2, STUB_RAILS, inbox);
}

void stub_net_destroy(stub_net_t *stub)
{
    stub->mode = STUB_AT_ONCE;
    stub->complete = true;
    r2_net_progress(&stub->net);
    r2_net_fini(&stub->net);
    if (0 <= stub->net.epoll_fd) {
        close(stub->net.epoll_fd);
    }
    fuzz_check(0 == stub->workers && 0 == stub->grants);
    free(stub);
}

size_t stub_offer(stub_net_t *stub, uint32_t rail, uint32_t verdict, void *offer_p)
{
    const r2_hello_offer_t offer = {
        .magic = R2_HELLO_MAGIC,
        .version = R2_WIRE_VERSION,
        .verdict = verdict,
        .rank = 1,
        .rail_idx = rail,
        .remote_idx = rail,
        .attempt = ++stub->hellos,
        .segment_bytes = stub->net.segment_bytes,
        .unexpected_bytes = stub->params.unexpected_bytes,
        .first_seq = stub->net.first_seq,
        .domain = stub->peer_domain,
        .direct = stub->params.direct,
        .connection = 0x1234567800000000ull + stub->hellos,
        .address_bytes = 16,
    };

    memcpy(offer_p, &offer, r2_hello_offer_size(&offer));
    return r2_hello_offer_size(&offer);
}

void stub_hello(stub_net_t *stub, uint32_t rail, const void *bytes, size_t count)
{
    uint8_t *exact = malloc(count + (0 == count));

    if (count > 0) {
        memcpy(exact, bytes, count);
    }
    stub->upcalls.request(stub->upcalls.arg, rail, 1, exact, count);
    free(exact);
}

void stub_packet(stub_net_t *stub, const void *header, size_t header_bytes, const void *data,
                 size_t data_bytes)
{
    uint8_t *exact = malloc(header_bytes + 1), *payload = malloc(data_bytes + 1);

    memcpy(exact + 1, header, header_bytes); /* misaligned, as transports may give it */
    if (data_bytes > 0) {
        memcpy(payload + 1, data, data_bytes);
    }
    stub->header = exact + 1;
    stub->header_bytes = header_bytes;
    stub->data = payload + 1;
    stub->data_bytes = data_bytes;
    r2_net_progress(&stub->net);
    stub->header = NULL;
    free(exact);
    free(payload);
}

void stub_net_watch(stub_net_t *stub)
{
    stub->net.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t i = 0; i < stub->net.rail_count; ++i) {
        fuzz_check(NULL == stub->net.rails[i].workers);
        stub->net.rails[i].epoll_fd = stub->net.epoll_fd;
    }
}

void stub_net_signal(stub_net_t *stub, uint32_t rail, bool event)
{
    int fd = stub_tp_ops.worker_fd(stub->net.rails[rail].workers->worker);
    eventfd_t count = 1;

    fuzz_check(0 == (event ? eventfd_write(fd, count) : eventfd_read(fd, &count)));
}

void stub_lane_wire(stub_net_t *stub, uint32_t lane)
{
    const uint32_t rail = stub->link->same_host ? R2_RAILS_MAX : lane;
    uint8_t offer[R2_HELLO_BYTES_MAX];
    size_t bytes = stub_offer(stub, rail, 1, offer);

    if (0 != stub->link->lanes[lane].connect.connect_id) { /* the lower rank's call counts */
        r2_hello_result(&stub->net, stub->link->lanes[lane].connect.connect_id, R2_OK, offer,
                        bytes);
    } else {
        stub_hello(stub, rail, offer, bytes);
    }
}

void stub_lane_up(stub_net_t *stub, uint32_t lane)
{
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = R2_WIRE_HELLO};

    stub_lane_wire(stub, lane);
    header.connection = stub->link->lanes[lane].connect.rx_connection;
    header.ack_next = (uint32_t) stub->net.first_seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), NULL, 0);
    header.kind = R2_WIRE_HELLO_ACK;
    stub_packet(stub, &header, sizeof(header), NULL, 0);
}

void stub_acknowledge(stub_net_t *stub, const r2_lane_t *lane)
{
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = R2_WIRE_ACK};

    header.connection = lane->connect.rx_connection;
    header.ack_next = lane->tx.seq;
    header.consumed = (uint32_t) stub->link->tx.eager_sent;
    stub_packet(stub, &header, sizeof(header), NULL, 0);
}

void stub_speak(stub_net_t *stub, const r2_lane_t *lane)
{
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = R2_WIRE_ACK};

    header.unread_at = r2_unread_stamp(stub->old_words ? R2_NS_PER_S : stub->time_ns);
    header.connection = lane->connect.rx_connection;
    header.ack_next =
        NULL == lane->tx.in_flight ? lane->tx.seq : lane->tx.in_flight->header.lane_seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), NULL, 0);
}

void stub_refuse(stub_net_t *stub, uint64_t ns)
{
    const uint64_t end_ns = stub->time_ns + ns;

    while (stub->time_ns < end_ns) {
        stub->time_ns += 10 * R2_NS_PER_MS;
        r2_net_progress(&stub->net);
        for (uint32_t i = 0; i < stub->net.rail_count; ++i) {
            r2_hello_result(&stub->net, stub->link->lanes[i].connect.connect_id, R2_ERR_REFUSED,
                            NULL, 0);
        }
    }
}
