/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Questions to a PMIx server whose thread answers them whenever it likes: while somebody waits,
 * when that has just ended, and when nobody will ask again.
 */
#include "r2_config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "oob/pmix_request.h"
#include "r2/prng.h"

#define T_ROUNDS  3000
#define T_WAIT_NS 40000 /* as long as the server takes, or half of it */

/** The server: one question at a time. */
static struct {
    pthread_mutex_t mutex; /* protects the rest */
    pthread_cond_t changed;
    r2_pmix_request_t *request; /* NULL: it has nothing to do */
    uint32_t number;            /* its answer */
    uint64_t delay_ns;
    bool over;
} server = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool short_waits;
static bool clock_woke; /* somebody waited for all of the time */

int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);

/* It waits as ever, but not for seconds where a test wants that. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    struct timespec soon;

    if (!short_waits) {
        const int rc = __real_pthread_cond_timedwait(cond, mutex, until);

        clock_woke = clock_woke || 0 != rc;
        return rc;
    }
    clock_gettime(CLOCK_MONOTONIC, &soon);
    soon.tv_nsec += T_WAIT_NS;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    return __real_pthread_cond_timedwait(cond, mutex, &soon);
}

static void *serve(void *arg)
{
    pthread_mutex_lock(&server.mutex);
    while (!server.over) {
        r2_pmix_request_t *request = server.request;
        const struct timespec delay = {.tv_nsec = (long) server.delay_ns};

        if (NULL == request) {
            pthread_cond_wait(&server.changed, &server.mutex);
            continue;
        }
        memcpy(request->answer, &server.number, sizeof(server.number));
        request->bytes = sizeof(server.number);
        pthread_mutex_unlock(&server.mutex);
        nanosleep(&delay, NULL);
        r2_pmix_request_answer(request, R2_OK);
        pthread_mutex_lock(&server.mutex);
        server.request = NULL;
        pthread_cond_broadcast(&server.changed);
    }
    pthread_mutex_unlock(&server.mutex);
    return arg;
}

/* Gives the server a question, once it is through with the one before. */
static void give(r2_pmix_request_t *request, uint32_t number, uint64_t delay_ns)
{
    pthread_mutex_lock(&server.mutex);
    while (NULL != server.request) {
        pthread_cond_wait(&server.changed, &server.mutex);
    }
    r2_pmix_request_goes(request);
    server.request = request;
    server.number = number;
    server.delay_ns = delay_ns;
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.mutex);
}

/* Asks for number `number` of a process, or waits again. */
static r2_status_t ask(r2_pmix_asked_t *asked, uint32_t number, uint64_t delay_ns)
{
    const pmix_proc_t proc = {.nspace = "job", .rank = number};
    r2_pmix_request_t *request = r2_pmix_request_get(asked, &proc, "value", "");
    uint32_t got = UINT32_MAX;
    size_t bytes = 0;
    r2_status_t status;

    assert_non_null(request);
    if (!r2_pmix_request_is_asked(request)) {
        give(request, number, delay_ns);
    }
    status = r2_pmix_request_wait(asked, request, &got, sizeof(got), &bytes);
    if (R2_OK == status) {
        assert_int_equal(bytes, sizeof(got));
        assert_int_equal(got, number);
    }
    return status;
}

/* Each answer wakes who waits: nobody waits for the clock. */
static void answers_wake(void **state)
{
    r2_pmix_asked_t *asked = r2_pmix_asked_new();
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 5);
    short_waits = false;
    for (uint32_t i = 0; i < 300; ++i) {
        assert_int_equal(ask(asked, i, r2_prng_below(&prng, 2 * T_WAIT_NS)), R2_OK);
        assert_false(clock_woke);
    }
    r2_pmix_asked_free(asked);
}

/* Answers that come about when a wait ends, or when the list of late ones is given up. */
static void answers_meet_ends(void **state)
{
    r2_pmix_asked_t *asked = r2_pmix_asked_new();
    uint32_t late = 0, given_up = 0;
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 6);
    short_waits = true;
    for (uint32_t i = 0; i < T_ROUNDS; ++i) {
        const uint64_t delay_ns = r2_prng_below(&prng, 2 * T_WAIT_NS);

        while (R2_ERR_TIMEOUT == ask(asked, i, delay_ns)) {
            ++late;
            if (0 == r2_prng_below(&prng, 3)) {
                r2_pmix_asked_free(asked);
                asked = r2_pmix_asked_new();
                ++given_up;
                break;
            }
        }
    }
    r2_pmix_asked_free(asked);
    assert_true(late > 0 && given_up > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_wake),
        cmocka_unit_test(answers_meet_ends),
    };
    pthread_t thread;
    int failed;

    if (0 != pthread_create(&thread, NULL, serve, NULL)) {
        return 1;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pthread_mutex_lock(&server.mutex);
    while (NULL != server.request) {
        pthread_cond_wait(&server.changed, &server.mutex);
    }
    server.over = true;
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.mutex);
    pthread_join(thread, NULL);
    return failed;
}
