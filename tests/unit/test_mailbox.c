/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Mailboxes: every record arrives once, whole and in order, whatever it holds; a full ring says so;
 * what is no record is refused.
 */
#include "r2_config.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "local/mailbox.h"
#include "r2/prng.h"

#define T_LINES   64u
#define T_RECORDS 20000u

/** Both ends of a mailbox in memory that processes share. */
typedef struct t_pair {
    r2_mailbox_t *box; /* owned */
    r2_mailbox_out_t out;
    r2_mailbox_in_t in;
    uint32_t wrong;
} t_pair_t;

static void t_open(t_pair_t *pair)
{
    void *memory = mmap(NULL, r2_mailbox_bytes(T_LINES), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(MAP_FAILED != memory);
    memset(pair, 0, sizeof(*pair));
    pair->box = memory;
    pair->out = (r2_mailbox_out_t){.box = memory, .lines = T_LINES};
    pair->in = (r2_mailbox_in_t){.box = memory, .lines = T_LINES};
}

static void t_close(t_pair_t *pair)
{
    munmap(pair->box, r2_mailbox_bytes(T_LINES));
}

/* Bytes that look like lengths and like the mark for what is left over. */
static void t_fill(unsigned char *to, uint32_t bytes, uint32_t number)
{
    r2_prng_t prng;
    uint32_t word = number;

    r2_prng_seed(&prng, number);
    for (uint32_t i = 0; i < bytes; ++i) {
        if (0 == i % 4) {
            word = (uint32_t) r2_prng_below(&prng, 3);
            word = 0 == word   ? UINT32_MAX
                   : 1 == word ? number
                               : (uint32_t) r2_prng_below(&prng, 99);
        }
        to[i] = (unsigned char) (word >> 8 * (i % 4));
    }
}

static uint32_t t_length(r2_prng_t *prng)
{
    const uint64_t most = 0 == r2_prng_below(prng, 4) ? r2_mailbox_record_max(T_LINES) : 60;

    return 1 + (uint32_t) r2_prng_below(prng, most);
}

static void *t_send_all(void *arg)
{
    t_pair_t *pair = arg;
    r2_prng_t prng;

    r2_prng_seed(&prng, 5);
    for (uint32_t i = 0; i < T_RECORDS; ++i) {
        const uint32_t bytes = t_length(&prng);
        void *room = r2_mailbox_reserve(&pair->out, bytes);

        while (NULL == room) {
            sched_yield();
            room = r2_mailbox_reserve(&pair->out, bytes);
        }
        t_fill(room, bytes, i);
        r2_mailbox_commit(&pair->out);
    }
    return NULL;
}

static void t_take_all(t_pair_t *pair)
{
    unsigned char expected[4096];
    r2_prng_t prng;

    r2_prng_seed(&prng, 5);
    for (uint32_t i = 0; i < T_RECORDS; ++i) {
        const uint32_t wanted = t_length(&prng);
        const void *record = NULL;
        uint32_t bytes = 0;
        r2_status_t status;

        while (R2_IN_PROGRESS == (status = r2_mailbox_peek(&pair->in, &record, &bytes))) {
            sched_yield();
        }
        t_fill(expected, wanted, i);
        assert_int_equal(status, R2_OK);
        assert_int_equal(bytes, wanted);
        assert_int_equal((uintptr_t) record % 8, 0);
        assert_memory_equal(record, expected, bytes);
        r2_mailbox_release(&pair->in);
    }
}

static void records_of_a_thread_arrive(void **state)
{
    pthread_t sender;
    t_pair_t pair;

    (void) state;
    t_open(&pair);
    assert_int_equal(pthread_create(&sender, NULL, t_send_all, &pair), 0);
    t_take_all(&pair);
    pthread_join(sender, NULL);
    t_close(&pair);
}

static void records_of_a_process_arrive(void **state)
{
    t_pair_t pair;
    pid_t child;
    int ended;

    (void) state;
    t_open(&pair);
    child = fork();
    assert_true(0 <= child);
    if (0 == child) {
        t_send_all(&pair);
        _exit(0);
    }
    t_take_all(&pair);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    t_close(&pair);
}

/* As many as there are lines, from each place in the ring; then none until one is read. */
static void full_is_said(void **state)
{
    const void *record;
    uint32_t bytes;
    t_pair_t pair;

    (void) state;
    t_open(&pair);
    for (uint32_t turn = 0; turn < 3 * T_LINES; ++turn) {
        uint32_t count = 0;

        while (NULL != r2_mailbox_reserve(&pair.out, 56)) {
            r2_mailbox_commit(&pair.out);
            ++count;
        }
        assert_int_equal(count, 0 == turn ? T_LINES : 1);
        assert_int_equal(r2_mailbox_peek(&pair.in, &record, &bytes), R2_OK);
        r2_mailbox_release(&pair.in);
    }
    t_close(&pair);
}

/* The longest record fits from each place in an empty ring. */
static void longest_fits_anywhere(void **state)
{
    const uint32_t most = r2_mailbox_record_max(T_LINES);
    const void *record;
    uint32_t bytes;
    t_pair_t pair;

    (void) state;
    t_open(&pair);
    for (uint32_t turn = 0; turn < 4 * T_LINES; ++turn) {
        void *room = r2_mailbox_reserve(&pair.out, 0 == turn % 2 ? most : 1);

        assert_non_null(room);
        memset(room, 0xff, 0 == turn % 2 ? most : 1);
        assert_int_equal(r2_mailbox_peek(&pair.in, &record, &bytes), R2_IN_PROGRESS);
        r2_mailbox_commit(&pair.out);
        assert_int_equal(r2_mailbox_peek(&pair.in, &record, &bytes), R2_OK);
        assert_int_equal(bytes, 0 == turn % 2 ? most : 1);
        assert_ptr_equal(record, room);
        r2_mailbox_release(&pair.in);
        assert_int_equal(r2_mailbox_peek(&pair.in, &record, &bytes), R2_IN_PROGRESS);
    }
    t_close(&pair);
}

/* Another process has write access to all of it: nothing outside of the ring is read. */
static void what_is_no_record_is_refused(void **state)
{
    const uint32_t bad[] = {r2_mailbox_record_max(T_LINES) + 1, T_LINES * R2_MAILBOX_LINE,
                            UINT32_MAX - 1, UINT32_MAX};
    const void *record;
    uint32_t bytes;
    t_pair_t pair;

    (void) state;
    for (size_t i = 0; i < r2_array_count(bad); ++i) {
        t_open(&pair);
        memcpy(pair.box->lines, &bad[i], sizeof(bad[i]));
        assert_int_equal(r2_mailbox_peek(&pair.in, &record, &bytes), R2_ERR_WIRE);
        t_close(&pair);
    }
    t_open(&pair);
    pair.in.at = T_LINES - 1; /* beyond the end */
    memcpy(&pair.box->lines[(T_LINES - 1) * R2_MAILBOX_LINE], &(uint32_t){57}, 4);
    assert_int_equal(r2_mailbox_peek(&pair.in, &record, &bytes), R2_ERR_WIRE);
    t_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_a_thread_arrive),
        cmocka_unit_test(records_of_a_process_arrive),
        cmocka_unit_test(full_is_said),
        cmocka_unit_test(longest_fits_anywhere),
        cmocka_unit_test(what_is_no_record_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
