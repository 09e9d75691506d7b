/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One of several processes that open, load and close lanes of the UCX transport again and again.
 *
 *     ucx_flaps RANK RANKS FOLDER DEVICE SECONDS SEED
 *
 * Processes find each other by datagrams over Unix sockets in FOLDER: the control path that does
 * not depend on the rail. Lanes are closed by timeout, by UCX's error, by the peer's notice, and at
 * will with packets pending; the memory that those packets point to is unmapped at once. For the
 * last seconds nothing is closed at will. Exit status 0: every lane is up and moving at the end, no
 * byte was wrong, no call blocked or spun, and nothing leaked. Prints one line.
 */
#include "r2_config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#include "../open_files.h"
#include "base/clock.h"
#include "base/util.h"
#include "r2/transport.h"

#define RANKS_MAX    8
#define DATA_MAX     131072u
#define WINDOW       4
#define PACKETS      256
#define BUFFER_BYTES (DATA_MAX + 256)
#define CALL_NS      (500 * R2_NS_PER_MS)
#define WIRING_NS    (1500 * R2_NS_PER_MS)
#define SILENCE_NS   (600 * R2_NS_PER_MS)
#define RETRY_NS     (5 * R2_NS_PER_MS)
#define QUIET_NS     (5 * R2_NS_PER_S) /* at the end */
#define PERIOD_NS    (4 * R2_NS_PER_S) /* calm, hectic, calm, .. */
#define CPU_MAX_NS   (300 * R2_NS_PER_MS)
#define WALL_MAX_NS  (2 * R2_NS_PER_S)
#define WORKERS_MAX  64

#define MAGIC 0x7532666cu

typedef enum kind { HELLO, HELLO_ACK, DATA, ACK, CALL, ANSWER, NOTICE } kind_t;

/** Header of a packet. */
typedef struct header {
    uint32_t magic, kind;
    uint64_t id; /* what the receiver of this connection chose */
    uint32_t seq, bytes, acked, pad;
} header_t;

/** A datagram on the control path. */
typedef struct control {
    uint32_t kind, from;
    uint64_t id;       /* packets to the sender of this carry it */
    uint64_t reply_to; /* ANSWER: id of the call; NOTICE: id that is closed */
    uint64_t address_bytes;
    char address[R2_TP_ADDRESS_MAX];
} control_t;

typedef struct packet {
    r2_tp_send_t op;
    struct packet *next;
    header_t header;
} packet_t;

/** A worker generation. */
typedef struct generation {
    struct generation *next;
    r2_tp_worker_t *worker;
    uint32_t served; /* bit per rank that had an endpoint here */
    uint32_t users;
} generation_t;

typedef enum state { DOWN, CALLING, WIRING, UP } state_t;

typedef struct lane {
    uint32_t rank;
    state_t state;
    uint64_t since_ns, retry_ns;
    generation_t *generation; /* from CALLING on */
    r2_tp_ep_t *ep; /* from CALLING on */
    uint64_t tx_id, rx_id;
    bool hello_seen, hello_acked, hello_owed, ack_owed, failed;
    uint32_t sent, acked, got; /* data packets */
    uint64_t progress_ns;      /* something was acknowledged, or nothing was outstanding */
    char *buffer;              /* owned: mapped while the endpoint is connected */
} lane_t;

static struct {
    uint32_t rank, ranks;
    const char *folder;
    r2_tp_t tp;
    r2_tp_device_t *device;
    generation_t *generations; /* newest first */
    lane_t lanes[RANKS_MAX];
    packet_t packets[PACKETS], *spare;
    char *pattern;
    int control;
    uint64_t random, now_ns, start_ns, end_ns, flap_ns;
    char carrier[64];
    /* results */
    uint64_t ups, at_will, timeouts, failures, notices, wiring, delivered, bytes, ghosts, wrong;
    uint64_t cpu_max_ns, wall_max_ns;
    uint32_t workers, workers_max;
} me;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t) now.tv_sec * R2_NS_PER_S + (uint64_t) now.tv_nsec;
}

static uint64_t random_u64(void)
{
    me.random = me.random * 6364136223846793005u + 1442695040888963407u;
    return me.random >> 20 ^ me.random << 40;
}

/* ---- how long calls of the transport take ---- */

typedef struct watch {
    uint64_t cpu_ns, wall_ns;
} watch_t;

static watch_t watch_start(void)
{
    return (watch_t){clock_ns(CLOCK_THREAD_CPUTIME_ID), clock_ns(CLOCK_MONOTONIC)};
}

static void watch_end(watch_t start)
{
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start.cpu_ns;
    uint64_t wall_ns = clock_ns(CLOCK_MONOTONIC) - start.wall_ns;

    me.cpu_max_ns = r2_max(me.cpu_max_ns, cpu_ns);
    me.wall_max_ns = r2_max(me.wall_max_ns, wall_ns);
}

/* ---- worker generations ---- */

static const r2_tp_callbacks_t callbacks;

static generation_t *generation_get(uint32_t rank)
{
    generation_t *g = me.generations;

    if (NULL == g || 0 != (g->served & 1u << rank)) {
        watch_t watch = watch_start();
        r2_status_t status;

        g = calloc(1, sizeof(*g));
        status = NULL == g ? R2_ERR_NO_MEMORY
                           : me.tp.ops->worker_create(me.device, &callbacks, g, &g->worker);
        watch_end(watch);
        if (R2_OK != status) {
            free(g);
            return NULL;
        }
        LL_PREPEND(me.generations, g);
        me.workers++;
        me.workers_max = r2_max(me.workers_max, me.workers);
    }
    g->users++;
    return g;
}

static void generations_sweep(void)
{
    generation_t *g, *next;

    LL_FOREACH_SAFE(me.generations, g, next) {
        if (0 == g->users && g != me.generations) {
            watch_t watch = watch_start();

            LL_DELETE(me.generations, g);
            me.tp.ops->worker_destroy(g->worker);
            free(g);
            me.workers--;
            watch_end(watch);
        }
    }
}

/* ---- control path ---- */

static void control_send(uint32_t rank, uint32_t kind, uint64_t id, uint64_t reply_to,
                         r2_tp_ep_t *ep)
{
    control_t message = {.kind = kind, .from = me.rank, .id = id, .reply_to = reply_to};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t bytes = 0;

    if (NULL != ep) {
        me.tp.ops->ep_address(ep, message.address, &bytes);
        message.address_bytes = bytes;
    }
    snprintf(to.sun_path, sizeof(to.sun_path), "%s/%u", me.folder, rank);
    /* Lost when the peer is not there: calls are repeated. */
    sendto(me.control, &message, sizeof(message), MSG_DONTWAIT, (struct sockaddr *) &to,
           sizeof(to));
}

/* ---- packets ---- */

static void on_sent(r2_tp_send_t *op, r2_status_t status)
{
    packet_t *packet = r2_container_of(op, packet_t, op);

    (void) status;
    LL_PREPEND(me.spare, packet);
}

/** @return false: no packet to spare, or the lane is broken. */
static bool packet_send(lane_t *lane, uint32_t kind, uint32_t seq, uint32_t bytes, const char *data)
{
    packet_t *packet = me.spare;
    r2_status_t status;

    if (NULL == packet) {
        return false;
    }
    me.spare = packet->next;
    packet->header = (header_t){.magic = MAGIC,
                                .kind = kind,
                                .id = lane->tx_id,
                                .seq = seq,
                                .bytes = bytes,
                                .acked = lane->got};
    packet->op = (r2_tp_send_t){.header = &packet->header,
                                .header_bytes = sizeof(packet->header),
                                .data = 0 == bytes ? NULL : data,
                                .data_bytes = bytes,
                                .sent = on_sent};
    status = me.tp.ops->send(lane->ep, &packet->op);
    if (R2_IN_PROGRESS != status) {
        LL_PREPEND(me.spare, packet);
    }
    lane->failed = lane->failed || status < 0;
    return status >= 0;
}

static void on_failed(void *arg, void *ep_arg, r2_status_t status)
{
    lane_t *lane = ep_arg;

    (void) arg;
    (void) status;
    lane->failed = true;
}

static void on_data(lane_t *lane, const header_t *header, const void *data, size_t data_bytes)
{
    if (header->seq != lane->got || header->bytes != data_bytes || data_bytes > DATA_MAX ||
        (0 != data_bytes && 0 != memcmp(data, me.pattern + header->seq % 251, data_bytes))) {
        me.wrong++;
    }
    lane->got++;
    lane->ack_owed = true;
    me.delivered++;
    me.bytes += data_bytes;
}

static void on_received(void *arg, const void *bytes, size_t header_bytes, const void *data,
                        size_t data_bytes)
{
    lane_t *lane = NULL;
    header_t header;

    (void) arg;
    if (sizeof(header) != header_bytes) {
        me.wrong++;
        return;
    }
    memcpy(&header, bytes, sizeof(header));
    if (MAGIC != header.magic) {
        me.wrong++;
        return;
    }
    for (uint32_t i = 0; i < me.ranks; i++) {
        if (me.lanes[i].state >= WIRING && me.lanes[i].rx_id == header.id) {
            lane = &me.lanes[i];
        }
    }
    if (NULL == lane) {
        me.ghosts++;
        return;
    }
    lane->hello_seen = lane->hello_seen || HELLO == header.kind;
    lane->hello_owed = lane->hello_owed || HELLO == header.kind;
    lane->hello_acked = lane->hello_acked || HELLO != header.kind;
    if (DATA == header.kind) {
        on_data(lane, &header, data, data_bytes);
    }
    if (lane->acked < header.acked) {
        lane->acked = header.acked;
        lane->progress_ns = me.now_ns;
    }
}

static const r2_tp_callbacks_t callbacks = {.received = on_received, .failed = on_failed};

/* ---- lanes ---- */

static void lane_enter(lane_t *lane, state_t state)
{
    lane->state = state;
    lane->since_ns = lane->progress_ns = me.now_ns;
}

static void lane_close(lane_t *lane, bool tell)
{
    if (NULL != lane->ep) {
        watch_t watch = watch_start();

        me.tp.ops->ep_close(lane->ep);
        watch_end(watch);
        if (NULL != lane->buffer) {
            munmap(lane->buffer, BUFFER_BYTES);
        }
        lane->buffer = NULL;
        lane->ep = NULL;
        if (tell && lane->state >= WIRING) {
            control_send(lane->rank, NOTICE, 0, lane->tx_id, NULL);
        }
    }
    if (NULL != lane->generation) {
        lane->generation->users--;
        lane->generation = NULL;
    }
    lane_enter(lane, DOWN);
    lane->failed = false;
    lane->retry_ns = me.now_ns + RETRY_NS + random_u64() % RETRY_NS;
}

static bool has_carrier(void)
{
    char text[4] = "";
    FILE *file = fopen(me.carrier, "r");

    if (NULL != file) {
        if (NULL == fgets(text, sizeof(text), file)) {
            text[0] = '\0';
        }
        fclose(file);
    }
    return '1' == text[0];
}

/** Opens an endpoint to be offered, on a worker that has not served this peer. */
static bool lane_offer(lane_t *lane)
{
    lane->generation = has_carrier() ? generation_get(lane->rank) : NULL;
    if (NULL == lane->generation) {
        return false;
    }
    if (R2_OK != me.tp.ops->ep_open(lane->generation->worker, lane, &lane->ep)) {
        lane->generation->users--;
        lane->generation = NULL;
        lane->ep = NULL;
        return false;
    }
    lane->rx_id = random_u64();
    return true;
}

static void lane_call(lane_t *lane)
{
    if (!lane_offer(lane)) {
        lane->retry_ns = me.now_ns + RETRY_NS;
        return;
    }
    control_send(lane->rank, CALL, lane->rx_id, 0, lane->ep);
    lane_enter(lane, CALLING);
}

/** Connects the endpoint and says HELLO. The lane has made its offer. */
static void lane_wire(lane_t *lane, const control_t *message)
{
    watch_t watch = watch_start();
    r2_status_t status;

    lane->generation->served |= 1u << lane->rank;
    status = me.tp.ops->ep_connect(lane->ep, message->address, message->address_bytes);
    watch_end(watch);
    if (R2_OK != status) {
        lane_close(lane, false);
        return;
    }
    lane->buffer =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == lane->buffer) {
        abort();
    }
    memcpy(lane->buffer, me.pattern, BUFFER_BYTES);
    lane->tx_id = message->id;
    lane->hello_seen = lane->hello_acked = lane->hello_owed = lane->ack_owed = false;
    lane->sent = lane->acked = lane->got = 0;
    lane_enter(lane, WIRING);
    packet_send(lane, HELLO, 0, 0, NULL);
}

static void lane_answer(lane_t *lane, const control_t *message)
{
    if (CALLING == lane->state) {
        return; /* the lower rank calls */
    }
    lane_close(lane, false);
    if (!lane_offer(lane)) {
        return;
    }
    control_send(lane->rank, ANSWER, lane->rx_id, message->id, lane->ep);
    lane_wire(lane, message);
}

static void control_receive(void)
{
    control_t message;

    while (sizeof(message) == recv(me.control, &message, sizeof(message), MSG_DONTWAIT)) {
        lane_t *lane = &me.lanes[message.from % RANKS_MAX];

        if (CALL == message.kind) {
            lane_answer(lane, &message);
        } else if (ANSWER == message.kind && CALLING == lane->state &&
                   message.reply_to == lane->rx_id) {
            lane_wire(lane, &message);
        } else if (NOTICE == message.kind && lane->state >= WIRING &&
                   message.reply_to == lane->rx_id) {
            me.notices++;
            lane_close(lane, false);
        }
    }
}

static void lane_load(lane_t *lane)
{
    while (lane->sent - lane->acked < WINDOW) {
        uint32_t bytes = 0 == random_u64() % 3 ? (uint32_t) (random_u64() % 200)
                                               : (uint32_t) (random_u64() % (DATA_MAX + 1));

        if (!packet_send(lane, DATA, lane->sent, bytes, lane->buffer + lane->sent % 251)) {
            return;
        }
        lane->ack_owed = false;
        lane->sent++;
    }
}

static void lane_step(lane_t *lane)
{
    bool late;

    if (lane->failed) {
        me.failures++;
        lane_close(lane, true);
        return;
    }
    if (lane->hello_owed && packet_send(lane, HELLO_ACK, 0, 0, NULL)) {
        lane->hello_owed = false;
    }
    if (WIRING == lane->state && lane->hello_seen && lane->hello_acked) {
        lane_enter(lane, UP);
        me.ups++;
    }
    if (UP == lane->state) {
        lane_load(lane);
    }
    if (lane->ack_owed && packet_send(lane, ACK, 0, 0, NULL)) {
        lane->ack_owed = false;
    }
    late = UP == lane->state && me.now_ns - lane->progress_ns > SILENCE_NS;
    if (late || (WIRING == lane->state && me.now_ns - lane->since_ns > WIRING_NS)) {
        me.timeouts += late;
        me.wiring += !late;
        lane_close(lane, true);
    }
}

static void lane_turn(lane_t *lane)
{
    switch (lane->state) {
    case DOWN:
        if (me.rank < lane->rank && me.now_ns >= lane->retry_ns) {
            lane_call(lane);
        }
        break;
    case CALLING:
        if (me.now_ns - lane->since_ns > CALL_NS) {
            lane_close(lane, false);
        }
        break;
    case WIRING:
    case UP:
        lane_step(lane);
        break;
    }
}

/** Now and then closes a lane that has packets in flight. */
static void flap_at_will(void)
{
    lane_t *lane = &me.lanes[random_u64() % me.ranks];

    if (me.now_ns < me.flap_ns || me.now_ns + QUIET_NS > me.end_ns) {
        return;
    }
    if (UP == lane->state && lane->sent != lane->acked) {
        me.at_will++;
        lane_close(lane, true);
        me.flap_ns = me.now_ns + (0 != (me.now_ns - me.start_ns) / PERIOD_NS % 2
                                      ? random_u64() % (20 * R2_NS_PER_MS)
                                      : R2_NS_PER_S + random_u64() % R2_NS_PER_S);
    }
}

/** Sleeps up to a millisecond if there is nothing to do. */
static void rest(void)
{
    struct pollfd inputs[WORKERS_MAX + 1] = {{.fd = me.control, .events = POLLIN}};
    nfds_t count = 1;
    generation_t *g;

    LL_FOREACH(me.generations, g) {
        if (count > WORKERS_MAX || R2_OK != me.tp.ops->worker_arm(g->worker)) {
            return;
        }
        inputs[count++] = (struct pollfd){.fd = me.tp.ops->worker_fd(g->worker), .events = POLLIN};
    }
    poll(inputs, count, 1);
}

static void run(uint64_t until_ns)
{
    while ((me.now_ns = clock_ns(CLOCK_MONOTONIC)) < until_ns) {
        unsigned events = 0;
        generation_t *g;

        LL_FOREACH(me.generations, g) {
            watch_t watch = watch_start();

            events += me.tp.ops->worker_progress(g->worker);
            watch_end(watch);
        }
        control_receive();
        for (uint32_t i = 0; i < me.ranks; i++) {
            if (i != me.rank) {
                lane_turn(&me.lanes[i]);
            }
        }
        flap_at_will();
        generations_sweep();
        if (0 == events) {
            rest();
        }
    }
}

/* ---- what is left ---- */

static uint64_t resident_kib(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (NULL == file || 1 != fscanf(file, "%*u %llu", &pages)) {
        pages = 0;
    }
    if (NULL != file) {
        fclose(file);
    }
    return pages * (uint64_t) sysconf(_SC_PAGESIZE) / 1024;
}

static bool report(uint32_t early_descriptors, uint64_t early_kib)
{
    uint32_t descriptors = open_files(), up = 0;
    uint64_t kib = resident_kib();
    bool good;

    for (uint32_t i = 0; i < me.ranks; i++) {
        /* Moving: something was acknowledged a moment ago. */
        up += UP == me.lanes[i].state && me.now_ns - me.lanes[i].progress_ns < SILENCE_NS;
    }
    good = up == me.ranks - 1 && 0 == me.wrong && me.cpu_max_ns < CPU_MAX_NS &&
           me.wall_max_ns < WALL_MAX_NS && me.workers <= 2 * me.ranks &&
           descriptors < early_descriptors + 60 && kib < early_kib + 32 * 1024;
    printf("rank %u: %s: up %u ups %llu at-will %llu timeouts %llu failures %llu notices %llu "
           "wiring %llu packets %llu mb %llu ghosts %llu wrong %llu workers %u/%u fds %u/%u "
           "rss-kib %llu/%llu cpu-max-us %llu wall-max-us %llu\n",
           me.rank, good ? "good" : "BAD", up, (unsigned long long) me.ups,
           (unsigned long long) me.at_will, (unsigned long long) me.timeouts,
           (unsigned long long) me.failures, (unsigned long long) me.notices,
           (unsigned long long) me.wiring, (unsigned long long) me.delivered,
           (unsigned long long) me.bytes / 1000000, (unsigned long long) me.ghosts,
           (unsigned long long) me.wrong, me.workers, me.workers_max, early_descriptors,
           descriptors, (unsigned long long) early_kib, (unsigned long long) kib,
           (unsigned long long) me.cpu_max_ns / 1000, (unsigned long long) me.wall_max_ns / 1000);
    fflush(stdout);
    return good;
}

static bool set_up(char **argv)
{
    r2_tp_device_config_t config = {.name = argv[4], .segment_bytes = DATA_MAX + sizeof(header_t)};
    struct sockaddr_un self = {.sun_family = AF_UNIX};

    me.rank = (uint32_t) atoi(argv[1]);
    me.ranks = (uint32_t) atoi(argv[2]);
    me.folder = argv[3];
    me.random = (uint64_t) atoll(argv[6]) * 1000 + me.rank;
    snprintf(me.carrier, sizeof(me.carrier), "/sys/class/net/%s/carrier", argv[4]);
    me.pattern = malloc(BUFFER_BYTES + 256);
    for (size_t i = 0; NULL != me.pattern && i < BUFFER_BYTES + 256; i++) {
        me.pattern[i] = (char) (i * 2654435761u >> 13);
    }
    for (size_t i = 0; i < PACKETS; i++) {
        LL_PREPEND(me.spare, &me.packets[i]);
    }
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        me.lanes[i].rank = i;
    }
    me.control = socket(AF_UNIX, SOCK_DGRAM, 0);
    snprintf(self.sun_path, sizeof(self.sun_path), "%s/%u", me.folder, me.rank);
    return me.ranks <= RANKS_MAX && me.rank < me.ranks && NULL != me.pattern &&
           0 == bind(me.control, (struct sockaddr *) &self, sizeof(self)) &&
           R2_OK == r2_tp_ucx_create(&me.tp) &&
           R2_OK == me.tp.ops->device_open(me.tp.instance, &config, &me.device);
}

int main(int argc, char **argv)
{
    uint32_t descriptors;
    uint64_t kib;
    bool good;

    if (7 != argc) {
        fprintf(stderr, "usage: ucx_flaps RANK RANKS FOLDER DEVICE SECONDS SEED\n");
        return 2;
    }
    if (!set_up(argv)) {
        fprintf(stderr, "ucx_flaps: cannot start\n");
        return 2;
    }
    me.start_ns = clock_ns(CLOCK_MONOTONIC);
    me.end_ns = me.start_ns + (uint64_t) atoi(argv[5]) * R2_NS_PER_S;
    me.flap_ns = me.start_ns + 2 * R2_NS_PER_S;
    run(me.start_ns + (me.end_ns - me.start_ns) / 3);
    descriptors = open_files();
    kib = resident_kib();
    run(me.end_ns);
    good = report(descriptors, kib);
    run(me.end_ns + R2_NS_PER_S); /* the others still look at their lanes */
    return good ? 0 : 1;
}
