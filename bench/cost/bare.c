/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A bare UCX driver: workers, packets, the ring.
 */
#include "r2_config.h"

#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <ucp/api/ucp.h>

#include "bench/cost/bare.h"
#include "r2/nic.h"
#include "r2/transport.h"

enum {
    ADDRESS_BYTES = 512,
    SPIN_NS = 20000, /* as r2's default of spin_us */
    SLEEP_MS = 1,    /* as r2 */
    /* of a share, as r2's ring (r2_segment_bytes_from() in plan/layout.c) */
    SEGMENTS_MOST = 64,
    SEGMENTS_FEWEST = 16,
    SEGMENT_SHORT = 32768
};

/** In front of a packet. As long as r2's, so that the same number of bytes travels. */
typedef struct packet {
    uint32_t call, step;
    uint64_t offset; /* in the share of that step */
    uint8_t rest[72];
} packet_t;

typedef struct rail {
    struct bare *bare; /* borrowed */
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h next; /* to the next rank */
    int fd;
} rail_t;

/** A packet that came before its call began. */
typedef struct early {
    struct early *next;
    packet_t packet;
    size_t bytes;
    char data[];
} early_t;

struct bare {
    int rank, size, epoll_fd;
    rail_t rails[R2_RAILS_MAX];
    int rail_count;
    size_t chunk_bytes, segment_bytes;
    early_t *early; /* owned list, newest first */
    /* the call under way */
    uint32_t call;
    bool exchange;
    const float *in;
    float *out;
    size_t count, share_count;
    uint32_t steps, segments; /* of a share */
    uint64_t *got;            /* owned: [step * segments + segment] bytes that came */
    size_t missing;           /* bytes, over all steps */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* ---- the ring ---- */

static size_t share_of(const bare_t *bare, uint32_t step, int back)
{
    int share = (bare->rank - (int) step - back) % bare->size;

    return bare->exchange ? 0 : (size_t) (share < 0 ? share + bare->size : share);
}

/** Bytes of a share. */
static size_t share_bytes(const bare_t *bare, size_t share)
{
    size_t first = share * bare->share_count;
    size_t left = first < bare->count ? bare->count - first : 0;

    return (left < bare->share_count ? left : bare->share_count) * sizeof(float);
}

static size_t segment_length(const bare_t *bare, size_t share, uint32_t segment)
{
    size_t bytes = share_bytes(bare, share), from = segment * bare->segment_bytes;

    return from >= bytes                        ? 0
           : bytes - from < bare->segment_bytes ? bytes - from
                                                : bare->segment_bytes;
}

static bool reduces(const bare_t *bare, uint32_t step)
{
    return (int) step < bare->size - 1;
}

static void arrived(bare_t *bare, const packet_t *packet, const void *data, size_t bytes)
{
    size_t share = share_of(bare, packet->step, 1);
    uint32_t segment = (uint32_t) (packet->offset / bare->segment_bytes);
    uint64_t *got = &bare->got[packet->step * bare->segments + segment];
    size_t length = segment_length(bare, share, segment);
    size_t start = share * bare->share_count + segment * bare->segment_bytes / sizeof(float);

    memcpy((char *) bare->out + share * bare->share_count * sizeof(float) + packet->offset, data,
           bytes);
    *got += bytes;
    if (*got == length && reduces(bare, packet->step)) {
        MPI_Reduce_local(bare->in + start, bare->out + start, (int) (length / sizeof(float)),
                         MPI_FLOAT, MPI_SUM);
    }
    bare->missing -= bytes;
}

static void keep(bare_t *bare, const packet_t *packet, const void *data, size_t bytes)
{
    early_t *early = malloc(sizeof(*early) + bytes);

    if (NULL == early) {
        abort();
    }
    early->packet = *packet;
    early->bytes = bytes;
    memcpy(early->data, data, bytes);
    early->next = bare->early;
    bare->early = early;
}

static ucs_status_t on_packet(void *arg, const void *header, size_t header_bytes, void *data,
                              size_t bytes, const ucp_am_recv_param_t *param)
{
    bare_t *bare = ((rail_t *) arg)->bare;
    packet_t packet;

    (void) param;
    if (sizeof(packet) != header_bytes) {
        abort();
    }
    memcpy(&packet, header, sizeof(packet));
    if (packet.call == bare->call && bare->missing > 0) {
        arrived(bare, &packet, data, bytes);
    } else {
        keep(bare, &packet, data, bytes);
    }
    return UCS_OK;
}

/** Sends over the first rail with room. @return false: none has. */
static bool send_packet(bare_t *bare, const packet_t *packet, const void *data, size_t bytes,
                        int *rail)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER};

    for (int tries = 0; tries < bare->rail_count; ++tries) {
        rail_t *at = &bare->rails[*rail];
        void *request = ucp_am_send_nbx(at->next, 1, packet, sizeof(*packet), data, bytes, &param);

        *rail = (*rail + 1) % bare->rail_count;
        if (NULL == request) {
            return true;
        }
        if (UCS_ERR_NO_RESOURCE != UCS_PTR_STATUS(request)) {
            fprintf(stderr, "send: %s\n", ucs_status_string(UCS_PTR_STATUS(request)));
            abort();
        }
    }
    return false;
}

static unsigned progress(bare_t *bare)
{
    unsigned events = 0;

    for (int i = 0; i < bare->rail_count; ++i) {
        events += ucp_worker_progress(bare->rails[i].worker);
    }
    return events;
}

/** Polls for a while, then sleeps until a rail has news. @param busy_ns_p when there was something
 * to do. */
static void wait_for_news(bare_t *bare, uint64_t *busy_ns_p)
{
    struct epoll_event event;
    int i;

    if (progress(bare) > 0) {
        *busy_ns_p = now_ns();
        return;
    }
    if (now_ns() - *busy_ns_p < SPIN_NS) {
        sched_yield();
        return;
    }
    for (i = 0; i < bare->rail_count; ++i) {
        if (UCS_OK != ucp_worker_arm(bare->rails[i].worker)) {
            return;
        }
    }
    (void) epoll_wait(bare->epoll_fd, &event, 1, SLEEP_MS);
}

/** Where sending is. */
typedef struct cursor {
    uint32_t step, segment;
    size_t sent; /* of the segment, bytes */
    int rail;
} cursor_t;

/** Sends what is complete and has not been sent, in order, as far as there is room. @return any
 * sent. */
static bool push(bare_t *bare, cursor_t *at)
{
    bool any = false;

    while (at->step < bare->steps) {
        size_t share = share_of(bare, at->step, 0);
        size_t length = segment_length(bare, share, at->segment);
        const float *from = 0 == at->step ? bare->in : bare->out;
        packet_t packet = {.call = bare->call, .step = at->step,
                           .offset = at->segment * bare->segment_bytes + at->sent};
        size_t bytes =
            length - at->sent < bare->chunk_bytes ? length - at->sent : bare->chunk_bytes;

        if (0 != at->step && bare->got[(at->step - 1) * bare->segments + at->segment] < length) {
            break;
        }
        if (bytes > 0 && !send_packet(bare, &packet,
                                      (const char *) from +
                                          share * bare->share_count * sizeof(float) + packet.offset,
                                      bytes, &at->rail)) {
            break;
        }
        any = true;
        at->sent += bytes;
        if (at->sent == length) {
            at->sent = 0;
            at->step += at->segment + 1 == bare->segments;
            at->segment = (at->segment + 1) % bare->segments;
        }
    }
    return any;
}

static void take_early(bare_t *bare)
{
    while (NULL != bare->early) {
        early_t *early = bare->early;

        bare->early = early->next;
        arrived(bare, &early->packet, early->data, early->bytes);
        free(early);
    }
}

static size_t segment_of(size_t share)
{
    size_t fewest = share / SEGMENTS_FEWEST, segment = share / SEGMENTS_MOST;

    fewest = fewest < SEGMENT_SHORT ? fewest : SEGMENT_SHORT;
    segment = segment > fewest ? segment : fewest;
    return segment > 0 ? (segment + 63) / 64 * 64 : 64;
}

static void run(bare_t *bare, const float *in, float *out, size_t count)
{
    cursor_t at = {.step = 0};
    uint64_t busy_ns = now_ns();

    bare->in = in;
    bare->out = out;
    bare->count = count;
    bare->share_count =
        bare->exchange ? count : (count + (size_t) bare->size - 1) / (size_t) bare->size;
    bare->steps = bare->exchange ? 1 : 2 * (uint32_t) bare->size - 2;
    bare->segment_bytes = segment_of(bare->share_count * sizeof(float));
    bare->segments = (uint32_t) ((bare->share_count * sizeof(float) + bare->segment_bytes - 1) /
                                 bare->segment_bytes);
    bare->got = calloc((size_t) bare->steps * bare->segments, sizeof(*bare->got));
    if (NULL == bare->got) {
        abort();
    }
    bare->missing = 0;
    for (uint32_t step = 0; step < bare->steps; ++step) {
        bare->missing += share_bytes(bare, share_of(bare, step, 1));
    }
    ++bare->call;
    take_early(bare);
    while (at.step < bare->steps || bare->missing > 0) {
        if (!push(bare, &at) || at.step == bare->steps) {
            wait_for_news(bare, &busy_ns);
        }
    }
    free(bare->got);
    bare->got = NULL;
}

void bare_barrier(bare_t *bare)
{
    MPI_Request request;
    int done = 0;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!done) {
        progress(bare);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

void bare_allreduce(bare_t *bare, const float *in, float *out, size_t count)
{
    bare->exchange = false;
    run(bare, in, out, count);
}

void bare_exchange(bare_t *bare, const float *in, float *out, size_t count)
{
    bare->exchange = true;
    run(bare, in, out, count);
}

/* ---- life ---- */

/** UCX's settings that suit chunks of this size best: one segment takes a packet, all at once. */
static ucs_status_t rail_config(const char *name, size_t chunk_bytes, ucp_config_t **config_p)
{
    char segment[32];
    const char *const settings[][3] = {
        {"TLS", NULL, "tcp"},
        {"NET_DEVICES", NULL, name},
        {"ZCOPY_THRESH", NULL, "inf"},
        {"RNDV_THRESH", NULL, "inf"},
        {"PROTO_ENABLE", NULL, "n"},
        {"TCP_TX_SEG_SIZE", "TX_SEG_SIZE", segment}, /* before 1.17 without the prefix */
        {"TCP_RX_SEG_SIZE", "RX_SEG_SIZE", segment},
    };
    ucs_status_t rc = ucp_config_read(NULL, NULL, config_p);
    unsigned major, minor, release;

    ucp_get_version(&major, &minor, &release);
    snprintf(segment, sizeof(segment), "%zu", (chunk_bytes + R2_TP_HEADER_MAX + 4608) & ~4095ul);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]) && UCS_OK == rc; ++i) {
        bool bare = NULL != settings[i][1] && 1 == major && minor < 17;

        rc = ucp_config_modify(*config_p, settings[i][bare ? 1 : 0], settings[i][2]);
    }
    return rc;
}

static ucs_status_t rail_open(rail_t *rail, const char *name, size_t chunk_bytes)
{
    const ucp_params_t context = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                  .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    const ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = 1, .flags = UCP_AM_FLAG_WHOLE_MSG, .cb = on_packet, .arg = rail};
    ucp_config_t *config;
    ucs_status_t rc = rail_config(name, chunk_bytes, &config);

    if (UCS_OK != rc) {
        return rc;
    }
    rc = ucp_init(&context, config, &rail->context);
    ucp_config_release(config);
    rc = UCS_OK == rc ? ucp_worker_create(rail->context, &worker, &rail->worker) : rc;
    rc = UCS_OK == rc ? ucp_worker_set_am_recv_handler(rail->worker, &handler) : rc;
    return UCS_OK == rc ? ucp_worker_get_efd(rail->worker, &rail->fd) : rc;
}

/** Tells all ranks our address and takes that of the next rank. */
static ucs_status_t rail_connect(rail_t *rail)
{
    const bare_t *bare = rail->bare;
    char mine[ADDRESS_BYTES] = {0}, *all = calloc((size_t) bare->size, ADDRESS_BYTES);
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER};
    ucp_address_t *address;
    size_t bytes;
    ucs_status_t rc = ucp_worker_get_address(rail->worker, &address, &bytes);

    if (UCS_OK != rc || NULL == all || bytes > ADDRESS_BYTES) {
        return UCS_OK == rc ? UCS_ERR_NO_MEMORY : rc;
    }
    memcpy(mine, address, bytes);
    ucp_worker_release_address(rail->worker, address);
    MPI_Allgather(mine, ADDRESS_BYTES, MPI_BYTE, all, ADDRESS_BYTES, MPI_BYTE, MPI_COMM_WORLD);
    params.address =
        (const ucp_address_t *) (const void *) (all + (size_t) ((bare->rank + 1) % bare->size) *
                                                          ADDRESS_BYTES);
    rc = ucp_ep_create(rail->worker, &params, &rail->next);
    free(all);
    return rc;
}

bare_t *bare_create(const char *rails, size_t chunk_bytes)
{
    bare_t *bare = calloc(1, sizeof(*bare));
    char *names = strdup(rails), *rest = names, *name;

    if (NULL == bare || NULL == names) {
        abort();
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &bare->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bare->size);
    bare->chunk_bytes = chunk_bytes;
    bare->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    while (NULL != (name = strsep(&rest, ",")) && bare->rail_count < R2_RAILS_MAX) {
        rail_t *rail = &bare->rails[bare->rail_count++];
        struct epoll_event event = {.events = EPOLLIN};
        ucs_status_t rc;

        rail->bare = bare;
        rc = rail_open(rail, name, chunk_bytes);
        rc = UCS_OK == rc ? rail_connect(rail) : rc;
        if (UCS_OK != rc || 0 != epoll_ctl(bare->epoll_fd, EPOLL_CTL_ADD, rail->fd, &event)) {
            fprintf(stderr, "rail %s: %s\n", name, ucs_status_string(rc));
            free(names);
            return NULL; /* the program ends */
        }
    }
    free(names);
    return bare;
}

void bare_destroy(bare_t *bare)
{
    bare_barrier(bare); /* everybody has everything: nothing is to be flushed */
    for (int i = 0; i < bare->rail_count; ++i) {
        ucp_worker_destroy(bare->rails[i].worker);
        ucp_cleanup(bare->rails[i].context);
    }
    free(bare);
}
