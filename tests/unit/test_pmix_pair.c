/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two jobs that meet while the launcher is silent: who is waited for, and until when.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "oob/oob.h"
#include "oob/pmix_value.h"
#include "pmix_stub.h"

#define T_SERVER "prterun-here-7@0"
#define T_SELF   "prterun-here-7@1"
#define T_OTHER  "prterun-here-7@2"
#define T_FAR    "prterun-there-9@1"

static unsigned t_lines;
static char t_line[512];
static unsigned t_silent; /* waits for which nothing comes */
static pmix_status_t t_table_rc;
static uint32_t t_row; /* of the table */
static pmix_proc_state_t t_state;
static bool t_ends; /* the job ends while it is waited for */

static void t_log_line(void *arg, int level, const char *line)
{
    (void) arg;
    assert_int_equal(level, R2_LOG_INFO);
    snprintf(t_line, sizeof(t_line), "%s", line);
    ++t_lines;
}

static const r2_log_t t_log = {.level = R2_LOG_INFO, .fn = t_log_line};

static int t_setup(void **state)
{
    (void) state;
    pmix_stub_reset(T_SERVER, T_SELF);
    t_lines = t_silent = 0;
    t_table_rc = PMIX_SUCCESS;
    t_row = 0;
    t_state = PMIX_PROC_STATE_RUNNING;
    t_ends = false;
    return 0;
}

static void t_answer_value(void)
{
    const pmix_stub_question_t *oldest = &pmix_stub.questions[0];

    if (0 == strcmp(oldest->name, PMIX_LOCAL_PEERS)) {
        pmix_stub_text("0");
    } else if (0 != strcmp(oldest->name, PMIX_JOB_SIZE)) {
        pmix_stub_number(PMIX_ERR_NOT_FOUND, 0);
    } else if (0 == strcmp(oldest->proc.nspace, T_SELF)) {
        pmix_stub_number(PMIX_SUCCESS, 1);
    } else if (t_silent > 0) {
        --t_silent;
        if (t_ends) {
            pmix_stub_end(T_OTHER);
        }
    } else {
        pmix_stub_number(PMIX_SUCCESS, 2);
    }
}

/* Tables are asked for last: answered at once. */
static void t_answer(void)
{
    const unsigned last = pmix_stub.open - 1;
    const pmix_stub_question_t question = pmix_stub.questions[last];

    if (0 != strcmp(question.name, PMIX_QUERY_PROC_TABLE)) {
        t_answer_value();
        return;
    }
    memmove(&pmix_stub.questions[1], &pmix_stub.questions[0], last * sizeof(question));
    pmix_stub.questions[0] = question;
    pmix_stub_table(t_table_rc, t_row, t_state);
}

static r2_status_t t_create(const char *other, r2_oob_t *oob_p)
{
    pmix_stub.meanwhile = t_answer;
    return r2_oob_pair_create(other, &t_log, oob_p);
}

static void test_meets(void **state)
{
    r2_oob_t oob;
    uint32_t rank = 9, size = 0;

    (void) state;
    assert_int_equal(t_create(T_OTHER, &oob), R2_OK);
    assert_int_equal(oob.ops->identity(oob.instance, &rank, &size), R2_OK);
    assert_int_equal(rank, 0);
    assert_int_equal(size, 3);
    assert_int_equal(r2_oob_pair_first(&oob), 1);
    assert_int_equal(t_lines, 0);
    r2_oob_pair_destroy(&oob);
    assert_int_equal(pmix_stub.handlers, 0);
}

static void test_late_launcher_is_told_once(void **state)
{
    r2_oob_t oob;

    (void) state;
    t_silent = 5;
    assert_int_equal(t_create(T_OTHER, &oob), R2_OK);
    assert_int_equal(pmix_stub.asked, 4); /* size and ranks of both */
    assert_int_equal(pmix_stub.tables, 5);
    assert_int_equal(t_lines, 1);
    assert_non_null(strstr(t_line, "rank 0 waits for rank 0 of job " T_OTHER));
    assert_non_null(strstr(t_line, T_SERVER));
    r2_oob_pair_destroy(&oob);
}

static void test_job_that_is_forgotten_has_ended(void **state)
{
    r2_oob_t oob;

    (void) state;
    t_silent = 1000;
    t_table_rc = PMIX_ERR_NOT_FOUND;
    assert_int_equal(t_create(T_OTHER, &oob), R2_ERR_PEER_GONE);
    assert_int_equal(pmix_stub.tables, 1);
}

/* Who is dead in it does not matter to those that live. */
static void test_job_with_a_dead_process_is_waited_for(void **state)
{
    r2_oob_t oob;

    (void) state;
    t_silent = 5;
    t_state = PMIX_PROC_STATE_ABORTED_BY_SIG;
    assert_int_equal(t_create(T_OTHER, &oob), R2_OK);
    assert_int_equal(pmix_stub.tables, 5);
    r2_oob_pair_destroy(&oob);
}

/* Both do without r2. */
static void test_job_of_another_launcher(void **state)
{
    r2_oob_t oob;

    (void) state;
    t_silent = 1000;
    t_table_rc = PMIX_ERR_NOT_FOUND;
    assert_int_equal(t_create(T_FAR, &oob), R2_ERR_NOT_FOUND);
    assert_int_equal(t_lines, 1);
    assert_non_null(strstr(t_line, "job " T_FAR));
}

static void test_job_that_ends_meanwhile(void **state)
{
    r2_oob_t oob;

    (void) state;
    t_silent = 1000;
    t_ends = true;
    assert_int_equal(t_create(T_OTHER, &oob), R2_ERR_PEER_GONE);
    assert_int_equal(pmix_stub.tables, 0);
}

static void test_process_that_published_nothing(void **state)
{
    uint8_t blob[R2_OOB_BLOB_MAX];
    size_t bytes;
    r2_oob_t oob;

    (void) state;
    assert_int_equal(t_create(T_OTHER, &oob), R2_OK);
    assert_int_equal(r2_oob_pair_home(&oob, 0, blob, &bytes), R2_ERR_NOT_FOUND); /* it lives */
    assert_int_equal(pmix_stub.tables, 1);
    assert_int_equal(r2_oob_pair_home(&oob, 1, blob, &bytes), R2_ERR_NOT_FOUND); /* elsewhere */
    assert_int_equal(r2_oob_pair_home(&oob, 2, blob, &bytes), R2_ERR_NOT_FOUND); /* nobody */
    assert_int_equal(pmix_stub.tables, 1);
    t_table_rc = PMIX_ERR_NOT_FOUND;
    assert_int_equal(r2_oob_pair_home(&oob, 0, blob, &bytes), R2_ERR_PEER_GONE);
    t_table_rc = PMIX_SUCCESS;
    assert_int_equal(r2_oob_pair_home(&oob, 0, blob, &bytes), R2_ERR_NOT_FOUND);
    assert_false(r2_oob_pair_other_ended(&oob));
    pmix_stub_end(T_SELF);
    assert_false(r2_oob_pair_other_ended(&oob));
    pmix_stub_end(T_OTHER);
    assert_true(r2_oob_pair_other_ended(&oob));
    assert_int_equal(r2_oob_pair_home(&oob, 1, blob, &bytes), R2_ERR_PEER_GONE);
    r2_oob_pair_destroy(&oob);
}

static void t_answer_nothing(void)
{
}

static void test_silence_about_a_process(void **state)
{
    uint8_t blob[R2_OOB_BLOB_MAX];
    size_t bytes;
    r2_oob_t oob;

    (void) state;
    assert_int_equal(t_create(T_OTHER, &oob), R2_OK);
    pmix_stub.asked = pmix_stub.freed = 0;
    pmix_stub.meanwhile = t_answer_nothing;
    for (int i = 0; i < 10; ++i) {
        assert_int_equal(r2_oob_pair_ask(&oob, 1, blob, &bytes), R2_ERR_TIMEOUT);
    }
    assert_int_equal(pmix_stub.asked, 1);
    assert_int_equal(t_lines, 1);
    assert_non_null(strstr(t_line, "waits for rank 1 of job " T_OTHER));
    assert_int_equal(r2_oob_pair_home(&oob, 0, blob, &bytes), R2_ERR_TIMEOUT);
    assert_int_equal(t_lines, 1);
    r2_oob_pair_destroy(&oob);
}

/* It has said nothing, and never will: its job goes on, so nobody tells of an end. */
static void test_process_that_dies_in_a_job_that_goes_on(void **state)
{
    enum { ASKS = 256 };
    uint8_t blob[R2_OOB_BLOB_MAX];
    size_t bytes;
    r2_oob_t oob;

    (void) state;
    assert_int_equal(t_create(T_OTHER, &oob), R2_OK);
    for (int i = 0; i < 3 * ASKS; ++i) { /* it lives, and is slow */
        assert_int_equal(r2_oob_pair_ask(&oob, 0, blob, &bytes), R2_ERR_NOT_FOUND);
    }
    assert_int_equal(pmix_stub.tables, 3);
    t_state = PMIX_PROC_STATE_ABORTED_BY_SIG;
    assert_int_equal(r2_oob_pair_home(&oob, 0, blob, &bytes), R2_ERR_PEER_GONE);
    assert_int_equal(pmix_stub.tables, 4);
    for (int i = 1; i < ASKS; ++i) {
        assert_int_equal(r2_oob_pair_ask(&oob, 0, blob, &bytes), R2_ERR_NOT_FOUND);
    }
    assert_int_equal(r2_oob_pair_ask(&oob, 0, blob, &bytes), R2_ERR_PEER_GONE);
    assert_int_equal(pmix_stub.tables, 5);
    assert_false(r2_oob_pair_other_ended(&oob));
    r2_oob_pair_destroy(&oob);
}

/* A table is of all: it is asked for once for all that are silent, and kept. */
static void test_one_table_for_all(void **state)
{
    enum { ASKS = 256 };
    uint8_t blob[R2_OOB_BLOB_MAX];
    size_t bytes;
    r2_oob_t oob;

    (void) state;
    assert_int_equal(t_create(T_OTHER, &oob), R2_OK);
    for (int i = 0; i < 3 * ASKS; ++i) {
        assert_int_equal(r2_oob_pair_ask(&oob, 0, blob, &bytes), R2_ERR_NOT_FOUND);
        assert_int_equal(r2_oob_pair_ask(&oob, 1, blob, &bytes), R2_ERR_NOT_FOUND);
    }
    assert_int_equal(pmix_stub.tables, 3);
    t_row = 1;
    t_state = PMIX_PROC_STATE_ABORTED_BY_SIG;
    for (int i = 0; i < ASKS; ++i) {
        assert_int_equal(r2_oob_pair_ask(&oob, 0, blob, &bytes), R2_ERR_NOT_FOUND);
    }
    assert_int_equal(pmix_stub.tables, 4);
    assert_int_equal(r2_oob_pair_ask(&oob, 1, blob, &bytes), R2_ERR_PEER_GONE);
    assert_int_equal(r2_oob_pair_ask(&oob, 0, blob, &bytes), R2_ERR_NOT_FOUND);
    assert_int_equal(pmix_stub.tables, 4);
    r2_oob_pair_destroy(&oob);
}

/* Of values, but it tells who lives. */
static void t_answer_tables(void)
{
    if (0 == strcmp(pmix_stub.questions[pmix_stub.open - 1].name, PMIX_QUERY_PROC_TABLE)) {
        t_answer();
    }
}

/* As the server of a process of another host is when that is dead. */
static void test_silence_about_a_dead_process(void **state)
{
    uint8_t blob[R2_OOB_BLOB_MAX];
    size_t bytes;
    r2_oob_t oob;

    (void) state;
    assert_int_equal(t_create(T_OTHER, &oob), R2_OK);
    pmix_stub.meanwhile = t_answer_tables;
    t_row = 1;
    assert_int_equal(r2_oob_pair_home(&oob, 1, blob, &bytes), R2_ERR_TIMEOUT);
    assert_int_equal(r2_oob_pair_ask(&oob, 1, blob, &bytes), R2_ERR_TIMEOUT);
    assert_int_equal(pmix_stub.tables, 2);
    t_state = PMIX_PROC_STATE_ABORTED_BY_SIG;
    assert_int_equal(r2_oob_pair_home(&oob, 1, blob, &bytes), R2_ERR_PEER_GONE);
    assert_int_equal(r2_oob_pair_ask(&oob, 1, blob, &bytes), R2_ERR_PEER_GONE);
    r2_oob_pair_destroy(&oob);
}

/* Whoever was last has freed each question. */
static int t_teardown(void **state)
{
    (void) state;
    return pmix_stub_ends() ? 0 : -1;
}

#define T(name) cmocka_unit_test_setup_teardown(name, t_setup, t_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_meets),
        T(test_late_launcher_is_told_once),
        T(test_job_that_is_forgotten_has_ended),
        T(test_job_with_a_dead_process_is_waited_for),
        T(test_job_of_another_launcher),
        T(test_job_that_ends_meanwhile),
        T(test_process_that_published_nothing),
        T(test_silence_about_a_process),
        T(test_process_that_dies_in_a_job_that_goes_on),
        T(test_silence_about_a_dead_process),
        T(test_one_table_for_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
