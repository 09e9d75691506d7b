/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Lanes that close at the worst moment, between processes, on any transport.
 *
 *     closing [--transport NAME] [--device NIC|-] [--netns A,B,C] [--rounds N] [--seed S]
 *             [--first N] [SCENARIO[/SIZE]...]
 *
 * A's lane to B is closed by A, by B or by both, while messages are stuck in it half written, B
 * does not progress, is stopped or dead, or while the lane is being connected. Nobody may crash,
 * hang or spin; every send is told once; memory is free when close has returned; what arrives is
 * whole, right and in order; A's lane to C goes on; no descriptor is left. Without --device in a
 * network namespace of its own, over its loopback device, with small socket buffers.
 */
#include "r2_config.h"

#include "director.h"

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

static const closing_transport_t transports[] = {
    {"ucx", r2_tp_create, r2_tp_destroy},
};

static const char *const size_names[] = {"short", "bcopy", "zcopy", "mixed"};

/* ---- the run ---- */

typedef struct run {
    uint32_t rounds, first;
    uint64_t seed;
    char **patterns; /* borrowed */
    int pattern_count;
    uint32_t tests, failures;
} run_t;

static bool wanted(const run_t *run, const char *title)
{
    bool found = 0 == run->pattern_count;

    for (int i = 0; i < run->pattern_count; ++i) {
        const size_t length = strlen(run->patterns[i]);

        found |= 0 == strncmp(title, run->patterns[i], length) &&
                 ('/' == title[length] || '\0' == title[length]);
    }
    return found;
}

static void play(run_t *run, stage_t *stage, const scenario_t *scenario, size_kind_t size)
{
    const time_t start = time(NULL);
    uint32_t bad = 0, crashes = 0;
    char title[64], reason[sizeof(stage->reason) + 64] = "";

    snprintf(title, sizeof(title), "%s/%s", scenario->name, size_names[size]);
    if (!wanted(run, title)) {
        return;
    }
    stage->stuck = 0;
    for (uint32_t round = run->first; round < run->first + run->rounds; ++round) {
        r2_prng_seed(&stage->prng, (run->seed * 1000 + (uint64_t) size) * 1000003 + round);
        play_round(stage, scenario, size);
        if (stage->broken && 0 == bad++) {
            snprintf(reason, sizeof(reason), ", first in round %u: %s", round, stage->reason);
        }
        crashes += stage->broken && stage->crashed;
    }
    stage->broken = false;
    stage_clear(stage, true);
    if (stage->broken && 0 == bad++) {
        snprintf(reason, sizeof(reason), ", at the end: %s", stage->reason);
    }
    run->failures += bad > 0;
    printf(
        "%s %u - %s %s: %u rounds in %d s, %llu messages stuck, %u crashes, %u other failures%s\n",
        bad > 0 ? "not ok" : "ok", ++run->tests, stage->transport->name, title, run->rounds,
        (int) (time(NULL) - start), (unsigned long long) stage->stuck, crashes, bad - crashes,
        reason);
    fflush(stdout);
}

/** Small buffers, so that few messages fill a lane. */
static void set_number(const char *path, const char *numbers)
{
    FILE *file = fopen(path, "w");

    if (NULL != file) {
        fputs(numbers, file);
        fclose(file);
    }
}

/** A network of our own, or else the machine's loopback device. */
static void own_network(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd;

    if (0 != unshare(CLONE_NEWNET)) {
        return;
    }
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || 0 != ioctl(fd, SIOCSIFFLAGS, &lo)) {
        perror("lo");
        exit(2);
    }
    close(fd);
    set_number("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 262144");
    set_number("/proc/sys/net/ipv4/tcp_rmem", "4096 65536 262144");
}

static void set_netns(stage_t *stage, char *names)
{
    static char paths[NODES][128];
    int node = 0;

    for (char *name = strtok(names, ","); NULL != name && node < NODES; name = strtok(NULL, ",")) {
        snprintf(paths[node], sizeof(paths[node]), "/run/netns/%s", name);
        stage->netns[node] = paths[node];
        ++node;
    }
}

static bool set_transport(stage_t *stage, const char *name)
{
    for (size_t i = 0; i < r2_array_count(transports); ++i) {
        if (0 == strcmp(name, transports[i].name)) {
            stage->transport = &transports[i];
            return true;
        }
    }
    fprintf(stderr, "no transport is called %s\n", name);
    return false;
}

static bool set_option(run_t *run, stage_t *stage, const char *name, char *value)
{
    if (0 == strcmp(name, "--transport")) {
        return set_transport(stage, value);
    }
    if (0 == strcmp(name, "--device")) {
        stage->device = 0 == strcmp(value, "-") ? NULL : value;
    } else if (0 == strcmp(name, "--netns")) {
        set_netns(stage, value);
    } else if (0 == strcmp(name, "--rounds")) {
        run->rounds = (uint32_t) atoi(value);
    } else if (0 == strcmp(name, "--first")) {
        run->first = (uint32_t) atoi(value);
    } else if (0 == strcmp(name, "--seed")) {
        run->seed = (uint64_t) atoll(value);
    } else {
        fprintf(stderr, "no option is called %s\n", name);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    run_t run = {.rounds = 3, .seed = 1};
    stage_t stage = {.transport = &transports[0], .device = "lo"};
    int i = 1;

    for (; i + 1 < argc && 0 == strncmp(argv[i], "--", 2); i += 2) {
        if (!set_option(&run, &stage, argv[i], argv[i + 1])) {
            return 2;
        }
    }
    run.patterns = &argv[i];
    run.pattern_count = argc - i;
    /* A crash is looked at here: UCX is not to print stacks for seconds. */
    setenv("UCX_HANDLE_ERRORS", "none", 0);
    if (NULL != stage.device && 0 == strcmp(stage.device, "lo")) {
        own_network();
    }
    printf("seed %llu\n", (unsigned long long) run.seed);
    for (size_t s = 0; s < scenario_count; ++s) {
        for (int size = 0; size < SIZE_KINDS; ++size) {
            play(&run, &stage, &scenarios[s], (size_kind_t) size);
        }
    }
    printf("1..%u\n", run.tests);
    return run.failures > 0 || 0 == run.tests;
}
