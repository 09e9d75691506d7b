/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages as PMIx events under mpirun, without MPI: what the server is, and where it carries
 * events a burst of every rank to every rank, each message whole and of the rank that sent it, in
 * fewer events; then one message to and fro, for the time. Or, under a launcher that lets others
 * live, the last rank is killed and the one before it exits with an error, and all others hear of
 * both from the launcher, and of nobody else. arguments: what the server has to be, "carries" or
 * "breaks"; "deaths".
 */
#include "r2_config.h"

#include <pmix.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "oob/oob.h"
#include "oob/pmix_event.h"
#include "rail/hello.h"

#define T_RANKS_MAX 64u
#define T_BURST     60u /* messages to each other rank; all may have to wait, and none is dropped */
#define T_TRIPS     20u
#define T_LIMIT_NS  (20 * R2_NS_PER_S)
#define T_VICTIMS   2u
#define T_DIE_NS    (500 * R2_NS_PER_MS) /* after the word of it, so that it is there before */
#define T_MORE_MS   500                  /* after the last death: whether somebody else is named */

static uint32_t t_rank, t_size;

#define T_CHECK(cond)                                                          \
    do {                                                                       \
        if (!(cond)) {                                                         \
            fprintf(stderr, "rank %u line %d: %s\n", t_rank, __LINE__, #cond); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

/** What a message says. */
typedef struct t_message {
    uint32_t from, to, number, trip;
    uint64_t dies_ns; /* 0: the sender does not */
    uint8_t filler[200];
} t_message_t;

static bool t_heard[T_RANKS_MAX][T_BURST];
static uint32_t t_count, t_trips, t_dead;
static uint64_t t_dies_ns[T_RANKS_MAX]; /* the clock is that of all hosts of a lab */

static uint64_t t_now(void)
{
    return r2_now_ns(r2_clock_system());
}

static void t_make(t_message_t *message_p, uint32_t to, uint32_t number, uint32_t trip)
{
    *message_p = (t_message_t){.from = t_rank, .to = to, .number = number, .trip = trip};
    for (size_t i = 0; i < sizeof(message_p->filler); ++i) {
        message_p->filler[i] = (uint8_t) (i * 7 + number + t_rank);
    }
}

static void t_received(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    t_message_t message;

    (void) arg;
    T_CHECK(sizeof(message) == bytes);
    memcpy(&message, data, bytes);
    T_CHECK(rank == message.from && t_rank == message.to && rank < t_size && rank != t_rank);
    for (size_t i = 0; i < sizeof(message.filler); ++i) {
        T_CHECK((uint8_t) (i * 7 + message.number + rank) == message.filler[i]);
    }
    if (0 != message.dies_ns) {
        t_dies_ns[rank] = message.dies_ns;
        return;
    }
    if (0 != message.trip) {
        t_trips = r2_max(t_trips, message.trip);
        return;
    }
    T_CHECK(message.number < T_BURST);
    t_count += !t_heard[rank][message.number];
    t_heard[rank][message.number] = true;
}

/** Polls the driver until a number is reached. */
static void t_until(const r2_post_t *post, const uint32_t *number, uint32_t goal)
{
    const uint64_t end_ns = t_now() + T_LIMIT_NS;

    while (*number < goal) {
        struct pollfd fd = {.fd = post->ops->fd(post->instance), .events = POLLIN};

        T_CHECK(t_now() < end_ns);
        if (poll(&fd, 1, 1000) > 0) {
            post->ops->poll(post->instance);
        }
    }
}

static void t_burst(const r2_post_t *post)
{
    r2_pmix_event_counts_t counts;
    t_message_t message;

    for (uint32_t number = 0; number < T_BURST; ++number) {
        for (uint32_t to = 0; to < t_size; ++to) {
            t_make(&message, to, number, 0);
            T_CHECK((to == t_rank ? R2_ERR_PARAM : R2_OK) ==
                    post->ops->send(post->instance, to, &message, sizeof(message)));
        }
    }
    t_until(post, &t_count, (t_size - 1) * T_BURST);
    do { /* others wait for what is still queued here */
        r2_pmix_event_counts(post, &counts);
        T_CHECK(0 == counts.dropped && 0 == counts.refused);
        post->ops->poll(post->instance);
    } while (counts.sent_messages < (t_size - 1) * T_BURST);
    T_CHECK(4 * counts.sent_events < counts.sent_messages);
    printf("oob_events: rank %u sent %u messages in %u events\n", t_rank,
           (uint32_t) counts.sent_messages, (uint32_t) counts.sent_events);
}

static int t_compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/** Between the first and the last rank. */
static void t_to_and_fro(const r2_post_t *post)
{
    const uint32_t other = 0 == t_rank ? t_size - 1 : 0;
    uint64_t took_ns[T_TRIPS];
    t_message_t message;

    for (uint32_t i = 0; i < T_TRIPS && (0 == t_rank || t_size - 1 == t_rank); ++i) {
        const uint64_t start_ns = t_now();

        if (0 != t_rank) {
            t_until(post, &t_trips, i + 1);
        }
        t_make(&message, other, i, i + 1);
        T_CHECK(R2_OK == post->ops->send(post->instance, other, &message, sizeof(message)));
        if (0 == t_rank) {
            t_until(post, &t_trips, i + 1);
            took_ns[i] = t_now() - start_ns;
            (void) poll(NULL, 0, 100);
        }
    }
    if (0 == t_rank) {
        qsort(took_ns, T_TRIPS, sizeof(took_ns[0]), t_compare);
        printf("oob_events: to and fro %.2f ms (%.2f .. %.2f)\n",
               (double) took_ns[T_TRIPS / 2] / 1e6, (double) took_ns[0] / 1e6,
               (double) took_ns[T_TRIPS - 1] / 1e6);
    }
}

/* ---- deaths ---- */

/* Told once of each victim, not before it is dead. */
static void t_died(void *arg, uint32_t rank)
{
    const uint64_t now_ns = t_now();

    (void) arg;
    T_CHECK(rank + T_VICTIMS >= t_size && rank < t_size);
    if (t_rank + T_VICTIMS >= t_size) {
        return; /* late to die on a busy machine: it hears of the other, and was told no time */
    }
    T_CHECK(0 != t_dies_ns[rank] && now_ns >= t_dies_ns[rank]);
    printf("oob_events: rank %u knows after %.1f ms that rank %u is dead\n", t_rank,
           (double) (now_ns - t_dies_ns[rank]) / 1e6, rank);
    t_dies_ns[rank] = 0;
    ++t_dead;
}

/** Says when, and dies then. */
static void t_die(const r2_post_t *post)
{
    const uint64_t dies_ns = t_now() + T_DIE_NS;
    t_message_t message;

    for (uint32_t to = 0; to + T_VICTIMS < t_size; ++to) {
        t_make(&message, to, 0, 0);
        message.dies_ns = dies_ns;
        T_CHECK(R2_OK == post->ops->send(post->instance, to, &message, sizeof(message)));
    }
    while (t_now() < dies_ns) {
        (void) poll(NULL, 0, 1);
        post->ops->poll(post->instance);
    }
    if (t_size - 1 == t_rank) {
        raise(SIGKILL);
    }
    _exit(3);
}

static void t_deaths(const r2_post_t *post)
{
    T_CHECK(t_size > T_VICTIMS);
    if (t_rank + T_VICTIMS >= t_size) {
        t_die(post);
    }
    t_until(post, &t_dead, T_VICTIMS);
    (void) poll(NULL, 0, T_MORE_MS);
    post->ops->poll(post->instance);
    T_CHECK(T_VICTIMS == t_dead);
    fflush(stdout);
}

/* ---- */

static void t_exchange(const r2_oob_t *oob, bool deaths)
{
    const r2_log_t log = {0};
    const r2_pmix_event_config_t config = {
        .clock = r2_clock_system(), .log = &log, .rank = t_rank, .size = t_size};
    const r2_post_upcalls_t upcalls = {.received = t_received, .died = t_died};
    uint8_t key[R2_JOB_KEY_BYTES];
    r2_post_t post = {0};

    T_CHECK(R2_OK == oob->ops->publish(oob->instance, "here", 4)); /* the key goes with it */
    T_CHECK(R2_OK == oob->ops->fence(oob->instance));
    T_CHECK(R2_OK == oob->ops->job_key(oob->instance, key));
    T_CHECK(R2_OK == r2_pmix_event_create(&config, &post));
    post.ops->bind(post.instance, &upcalls);
    post.ops->key(post.instance, key);
    (void) poll(NULL, 0, 300); /* the server answers registrations later */
    T_CHECK(R2_OK == oob->ops->fence(oob->instance));
    if (deaths) {
        t_deaths(&post);
    } else {
        t_burst(&post);
        T_CHECK(R2_OK == oob->ops->fence(oob->instance));
        t_to_and_fro(&post);
        T_CHECK(R2_OK == oob->ops->fence(oob->instance));
    }
    r2_pmix_event_destroy(&post);
    T_CHECK(NULL == post.ops);
}

int main(int argc, char **argv)
{
    static const char *const words[] = {"carries", "unknown", "breaks"};
    const char *wanted = argc > 1 ? argv[1] : "carries";
    r2_oob_t oob = {0};
    char name[128];
    r2_pmix_server_t server;

    T_CHECK(R2_OK == r2_oob_pmix_create(&oob));
    T_CHECK(R2_OK == oob.ops->identity(oob.instance, &t_rank, &t_size));
    T_CHECK(t_size > 1 && t_size <= T_RANKS_MAX);
    server = r2_pmix_server_find(name, sizeof(name));
    if (0 == t_rank) {
        printf("oob_events: server \"%s\" of PMIx %s %s\n", name, r2_oob_pmix_version(),
               words[server]);
    }
    T_CHECK(0 == strcmp(wanted, words[server]));
    if (R2_PMIX_SERVER_CARRIES == server) {
        t_exchange(&oob, argc > 2 && 0 == strcmp(argv[2], "deaths"));
    }
    r2_oob_pmix_destroy(&oob);
    return 0;
}
