/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The transport alone, beside UCX alone: two processes, stacks in turn.
 *
 *     pair [--nic NIC] [--netns A,B] [--rounds N] [--pings N] [--mb N] [STACK...]
 *
 * Short messages: half a round trip of 8 bytes, the median of --pings. Long ones: CPU seconds, of
 * both processes, for each GB of --mb megabytes, with one copy out of the callback at the receiver.
 * Each measurement has two new processes. Prints a Markdown table: medians over rounds, and ratios
 * round by round.
 */
#include "r2_config.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/transport/pair.h"
#include "r2/macros.h"

#define WARM_PINGS 500
#define ROUNDS_MAX 64
#define POOL       32 /* buffers that are sent in turn */

static const pair_stack_t *const stacks[] = {&pair_r2, &pair_uct_short, &pair_uct_bcopy,
                                             &pair_uct_zcopy, &pair_ucp};
enum { STACKS = r2_array_count(stacks) };
static const size_t sizes[] = {PAIR_SHORT_BYTES, 65536, 131072};
enum { SIZES = r2_array_count(sizes) };
/** What the others are compared with: UCT where it counts time, UCP where it counts work. */
static const pair_stack_t *const references[] = {&pair_uct_short, &pair_ucp, &pair_ucp};

static struct {
    const char *nic, *netns[2];
    unsigned rounds, pings, mb;
    bool wanted[STACKS];
} options = {.nic = "lo", .rounds = 9, .pings = 5000, .mb = 1000};

/* ---- one process of a pair ---- */

static struct {
    uint64_t received, sent;
    char *target; /* owned: where received data goes */
} me;

void pair_die(const char *what, const char *why)
{
    fprintf(stderr, "pair: %s: %s\n", what, why);
    exit(1);
}

void pair_poll(int fd)
{
    struct pollfd input = {.fd = fd, .events = POLLIN};

    poll(&input, 1, 100);
}

void pair_sent(void)
{
    ++me.sent;
}

void pair_received(const void *header, size_t header_bytes, const void *data, size_t data_bytes)
{
    (void) header;
    (void) header_bytes;
    if (0 != data_bytes) {
        memcpy(me.target, data, data_bytes);
    }
    ++me.received;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static double cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void exchange(int socket, const void *mine, void *its_p, size_t bytes)
{
    if ((ssize_t) bytes != send(socket, mine, bytes, MSG_NOSIGNAL) ||
        (ssize_t) bytes != recv(socket, its_p, bytes, MSG_WAITALL)) {
        pair_die("the other process", "is gone");
    }
}

static void send_one(const pair_stack_t *stack, size_t header_bytes, const void *data,
                     size_t data_bytes)
{
    static const char header[PAIR_HEADER_BYTES];

    while (!stack->send(header, header_bytes, data, data_bytes)) {
        if (0 == stack->progress()) {
            stack->sleep();
        }
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(values[0]), by_value);
    return values[count / 2];
}

/** @return half a round trip, us; the echo's is not looked at. */
static double ping(const pair_stack_t *stack, bool first)
{
    double *times = calloc(options.pings, sizeof(*times)), result;

    for (unsigned i = 0; i < WARM_PINGS + options.pings; ++i) {
        const double start = now_s();

        if (first) {
            send_one(stack, PAIR_SHORT_BYTES, NULL, 0);
        }
        while (me.received <= i) {
            stack->progress();
        }
        if (!first) {
            send_one(stack, PAIR_SHORT_BYTES, NULL, 0);
        }
        if (i >= WARM_PINGS) {
            times[i - WARM_PINGS] = (now_s() - start) / 2 * 1e6;
        }
    }
    result = median(times, options.pings);
    free(times);
    return result;
}

static void wait_for(const pair_stack_t *stack, const uint64_t *count, uint64_t target)
{
    while (*count < target) {
        if (0 == stack->progress()) {
            stack->sleep();
        }
    }
}

/** @return CPU seconds of this process for each GB. */
static double stream(const pair_stack_t *stack, bool first, size_t bytes)
{
    const uint64_t count = (uint64_t) options.mb * 1000000 / bytes;
    char *pool = malloc(POOL * bytes);
    double start;

    memset(pool, 7, POOL * bytes);
    start = cpu_s();
    for (uint64_t i = 0; first && i < count; ++i) {
        wait_for(stack, &me.sent, i < PAIR_WINDOW ? 0 : i - PAIR_WINDOW + 1);
        send_one(stack, PAIR_HEADER_BYTES, pool + i % POOL * bytes, bytes);
        if (0 == i % 16) {
            stack->progress();
        }
    }
    wait_for(stack, &me.received, first ? 1 : count);
    if (!first) {
        me.sent = 0;
        send_one(stack, PAIR_HEADER_BYTES, pool, bytes);
        wait_for(stack, &me.sent, 1);
    }
    start = cpu_s() - start;
    free(pool);
    return start / (1e-9 * (double) (count * bytes));
}

/** @return what the pair measures; the same in both processes. */
static double process(const pair_stack_t *stack, size_t bytes, bool first, int socket)
{
    char addresses[2][PAIR_ADDRESS_BYTES] = {{0}};
    double mine, its;

    me.target = malloc(PAIR_DATA_MAX);
    memset(me.target, 1, PAIR_DATA_MAX);
    stack->open(options.nic);
    stack->address(addresses[0]);
    exchange(socket, addresses[0], addresses[1], sizeof(addresses[0]));
    stack->connect(addresses[1]);
    send_one(stack, PAIR_HEADER_BYTES, me.target, bytes); /* the connection is set up with it */
    while (0 == me.received || 0 == me.sent) {
        stack->progress();
    }
    exchange(socket, addresses[0], addresses[1], 1);
    me.received = me.sent = 0;
    mine = PAIR_SHORT_BYTES == bytes ? ping(stack, first) : stream(stack, first, bytes);
    exchange(socket, &mine, &its, sizeof(mine));
    return PAIR_SHORT_BYTES == bytes ? (first ? mine : its) : mine + its;
}

static void enter_netns(const char *name)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "/run/netns/%s", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    /* UCX looks for NICs in /sys, which shows those of whoever mounted it. */
    if (fd < 0 || 0 != setns(fd, CLONE_NEWNET) || 0 != unshare(CLONE_NEWNS) ||
        0 != mount("", "/", "none", MS_SLAVE | MS_REC, NULL) ||
        0 != mount("sysfs", "/sys", "sysfs", 0, NULL)) {
        pair_die(path, "cannot be entered");
    }
    close(fd);
}

/* ---- pairs in turn ---- */

static double measure(const pair_stack_t *stack, size_t bytes)
{
    int ends[2], results[2], status, bad = 0;
    double result = 0;

    if (0 != socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || 0 != pipe(results)) {
        pair_die("sockets", "none");
    }
    for (int i = 0; i < 2; ++i) {
        if (0 == fork()) {
            close(ends[1 - i]);
            if (NULL != options.netns[i]) {
                enter_netns(options.netns[i]);
            }
            result = process(stack, bytes, 0 == i, ends[i]);
            if (0 == i && sizeof(result) != write(results[1], &result, sizeof(result))) {
                _exit(1);
            }
            _exit(0);
        }
    }
    close(ends[0]);
    close(ends[1]);
    close(results[1]);
    if (sizeof(result) != read(results[0], &result, sizeof(result))) {
        bad = 1;
    }
    close(results[0]);
    while (wait(&status) > 0) {
        bad |= status;
    }
    if (0 != bad) {
        pair_die(stack->name, "a process failed");
    }
    return result;
}

static void print_row(size_t size, double rows[STACKS][ROUNDS_MAX], size_t stack)
{
    double sorted[ROUNDS_MAX], ratios[ROUNDS_MAX];
    size_t reference = 0;

    while (stacks[reference] != references[size]) {
        ++reference;
    }
    for (unsigned i = 0; i < options.rounds; ++i) {
        sorted[i] = rows[stack][i];
        ratios[i] = options.wanted[reference] ? rows[stack][i] / rows[reference][i] : 0;
    }
    median(sorted, options.rounds);
    median(ratios, options.rounds);
    printf("| %zu B, %s | %s | %.3f (%.3f to %.3f) | %.3f (%.3f to %.3f) |\n", sizes[size],
           0 == size ? "us" : "CPU s / GB", stacks[stack]->name, sorted[options.rounds / 2],
           sorted[0], sorted[options.rounds - 1], ratios[options.rounds / 2], ratios[0],
           ratios[options.rounds - 1]);
}

static void run_size(size_t size)
{
    static double rows[STACKS][ROUNDS_MAX];

    for (unsigned round = 0; round < options.rounds; ++round) {
        for (size_t i = 0; i < STACKS; ++i) {
            if (options.wanted[i] && stacks[i]->lengths[0 != size]) {
                rows[i][round] = measure(stacks[i], sizes[size]);
            }
        }
    }
    for (size_t i = 0; i < STACKS; ++i) {
        if (options.wanted[i] && stacks[i]->lengths[0 != size]) {
            print_row(size, rows, i);
        }
    }
    fflush(stdout);
}

static bool set_option(const char *name, char *value)
{
    if (0 == strcmp(name, "--nic")) {
        options.nic = value;
    } else if (0 == strcmp(name, "--netns")) {
        options.netns[0] = strtok(value, ",");
        options.netns[1] = strtok(NULL, ",");
    } else if (0 == strcmp(name, "--rounds")) {
        options.rounds = r2_min((unsigned) atoi(value), ROUNDS_MAX);
    } else if (0 == strcmp(name, "--pings")) {
        options.pings = (unsigned) atoi(value);
    } else if (0 == strcmp(name, "--mb")) {
        options.mb = (unsigned) atoi(value);
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    int i = 1;

    for (; i + 1 < argc && 0 == strncmp(argv[i], "--", 2); i += 2) {
        if (!set_option(argv[i], argv[i + 1])) {
            fprintf(stderr, "pair: no option is called %s\n", argv[i]);
            return 2;
        }
    }
    for (size_t k = 0; k < STACKS; ++k) {
        options.wanted[k] = i == argc;
        for (int j = i; j < argc; ++j) {
            options.wanted[k] |= 0 == strcmp(argv[j], stacks[k]->name);
        }
    }
    printf("| message | stack | median (least to most) | against %s or %s |\n|---|---|---|---|\n",
           references[0]->name, references[1]->name);
    fflush(stdout);
    for (size_t size = 0; size < SIZES; ++size) {
        run_size(size);
    }
    return 0;
}
