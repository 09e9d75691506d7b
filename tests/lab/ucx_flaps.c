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

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utlist.h>

#include "../open_files.h"
#include "ucx_flaps.h"

/** Now and then closes a lane that has packets in flight. */
static void flap_at_will(void)
{
    lane_t *lane = &me.lanes[random_u64() % me.ranks];

    if (me.now_ns < me.flap_ns || me.now_ns + QUIET_NS > me.end_ns) {
        return;
    }
    if (UP == lane->state && lane->sent != lane->acked) {
        ++me.at_will;
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
        for (uint32_t i = 0; i < me.ranks; ++i) {
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

    for (uint32_t i = 0; i < me.ranks; ++i) {
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
    for (size_t i = 0; NULL != me.pattern && i < BUFFER_BYTES + 256; ++i) {
        me.pattern[i] = (char) (i * 2654435761u >> 13);
    }
    for (size_t i = 0; i < PACKETS; ++i) {
        LL_PREPEND(me.spare, &me.packets[i]);
    }
    for (uint32_t i = 0; i < RANKS_MAX; ++i) {
        me.lanes[i].rank = i;
    }
    me.control = socket(AF_UNIX, SOCK_DGRAM, 0);
    snprintf(self.sun_path, sizeof(self.sun_path), "%s/%u", me.folder, me.rank);
    return me.ranks <= RANKS_MAX && me.rank < me.ranks && NULL != me.pattern &&
           0 == bind(me.control, (struct sockaddr *) &self, sizeof(self)) &&
           R2_OK == r2_tp_create(&me.tp) &&
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
