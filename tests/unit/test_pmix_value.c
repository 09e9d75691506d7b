/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Questions to a PMIx server that is silent, late, or does not know the job: one of each is under
 * way, and nothing is kept or freed that should not be.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "oob/oob.h"
#include "oob/pmix_request.h"
#include "oob/pmix_value.h"
#include "pmix_stub.h"

#define T_SERVER "prterun-here-7@0"
#define T_OTHER  "prterun-here-7@2"

static r2_pmix_job_t t_job;

static int t_setup(void **state)
{
    (void) state;
    pmix_stub_reset(T_SERVER, "prterun-here-7@1");
    t_job = (r2_pmix_job_t){.size = 0};
    return 0;
}

/* The size, and then who is on this host. */
static void t_answer_job(void)
{
    if (0 == strcmp(pmix_stub.questions[0].name, PMIX_JOB_SIZE)) {
        pmix_stub_number(PMIX_SUCCESS, 3);
    } else {
        pmix_stub_text("0,2");
    }
}

static void t_open(void)
{
    pmix_stub.meanwhile = t_answer_job;
    assert_int_equal(r2_pmix_job_open(T_OTHER, &t_job), R2_OK);
    assert_int_equal(t_job.size, 3);
    assert_true(r2_pmix_is_local(&t_job, 2) && !r2_pmix_is_local(&t_job, 1));
    pmix_stub.meanwhile = NULL;
    pmix_stub.asked = pmix_stub.freed = 0;
}

static void test_silence_is_one_question(void **state)
{
    (void) state;
    for (int i = 0; i < 100; ++i) {
        assert_int_equal(r2_pmix_job_open(T_OTHER, &t_job), R2_ERR_TIMEOUT);
    }
    assert_int_equal(pmix_stub.waits, 100);
    assert_int_equal(pmix_stub.asked, 1);
    assert_true(pmix_stub.limit_ns / 1000000000u >= R2_PMIX_WAIT_S - 1 &&
                pmix_stub.limit_ns / 1000000000u <= R2_PMIX_WAIT_S);
    pmix_stub.meanwhile = t_answer_job;
    assert_int_equal(r2_pmix_job_open(T_OTHER, &t_job), R2_OK);
    assert_int_equal(t_job.size, 3);
    assert_int_equal(pmix_stub.asked, 2);
    r2_pmix_job_close(&t_job);
    assert_int_equal(pmix_stub.freed, 2);
}

static void test_answer_while_nobody_waits(void **state)
{
    (void) state;
    assert_int_equal(r2_pmix_job_open(T_OTHER, &t_job), R2_ERR_TIMEOUT);
    pmix_stub_number(PMIX_SUCCESS, 3);
    pmix_stub.meanwhile = t_answer_job;
    assert_int_equal(r2_pmix_job_open(T_OTHER, &t_job), R2_OK);
    assert_int_equal(t_job.size, 3);
    assert_int_equal(pmix_stub.asked, 2);
    r2_pmix_job_close(&t_job);
    assert_int_equal(pmix_stub.freed, 2);
}

/* It may be known by now. */
static void test_error_while_nobody_waits(void **state)
{
    (void) state;
    assert_int_equal(r2_pmix_job_open(T_OTHER, &t_job), R2_ERR_TIMEOUT);
    pmix_stub_number(PMIX_ERR_NOT_FOUND, 0);
    assert_int_equal(pmix_stub.freed, 0);
    t_open();
    r2_pmix_job_close(&t_job);
}

static void test_answer_after_the_end(void **state)
{
    (void) state;
    assert_int_equal(r2_pmix_job_open(T_OTHER, &t_job), R2_ERR_TIMEOUT);
    r2_pmix_job_close(&t_job);
    assert_int_equal(pmix_stub.freed, 0);
    pmix_stub_number(PMIX_SUCCESS, 3);
    assert_int_equal(pmix_stub.freed, 1);
}

static void test_end_after_the_answer(void **state)
{
    (void) state;
    assert_int_equal(r2_pmix_job_open(T_OTHER, &t_job), R2_ERR_TIMEOUT);
    pmix_stub_number(PMIX_SUCCESS, 3);
    assert_int_equal(pmix_stub.freed, 0);
    r2_pmix_job_close(&t_job);
    assert_int_equal(pmix_stub.freed, 1);
}

static r2_status_t t_get(uint32_t rank, const char *name)
{
    char text[8];
    size_t bytes = 0;

    return r2_pmix_get(&t_job, rank, name, text, sizeof(text), &bytes);
}

static void test_questions_are_told_apart(void **state)
{
    (void) state;
    t_open();
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(t_get(1, "a"), R2_ERR_TIMEOUT);
        assert_int_equal(t_get(1, "b"), R2_ERR_TIMEOUT);
        assert_int_equal(t_get(2, "a"), R2_ERR_TIMEOUT);
    }
    assert_int_equal(pmix_stub.asked, 3);
    assert_string_equal(pmix_stub.questions[1].name, "b");
    assert_int_equal(pmix_stub.questions[2].proc.rank, 2);
    for (int i = 0; i < 3; ++i) {
        pmix_stub_bytes("1234", 4);
    }
    r2_pmix_job_close(&t_job);
    assert_int_equal(pmix_stub.freed, 3);
}

/* This host's server first, then that of the process, of whose silence it knows nothing. */
static void t_answer_not_here(void)
{
    if (1 == pmix_stub.asked) {
        pmix_stub_number(PMIX_ERR_NOT_FOUND, 0);
    }
}

static void test_directives_are_told_apart(void **state)
{
    (void) state;
    t_open();
    pmix_stub.meanwhile = t_answer_not_here;
    assert_int_equal(t_get(1, "a"), R2_ERR_TIMEOUT);
    assert_int_equal(pmix_stub.asked, 2);
    pmix_stub.meanwhile = NULL;
    assert_int_equal(t_get(1, "a"), R2_ERR_TIMEOUT);
    assert_int_equal(pmix_stub.asked, 3); /* this host's server may have it now */
    pmix_stub_bytes("1234", 4);
    pmix_stub_bytes("1234", 4);
    assert_int_equal(t_get(1, "a"), R2_OK);
    assert_int_equal(pmix_stub.asked, 3);
    r2_pmix_job_close(&t_job);
    assert_int_equal(pmix_stub.freed, 3);
}

static void t_answer_too_long(void)
{
    pmix_stub_bytes("123456789", 9);
}

static void test_answers_that_do_not_fit(void **state)
{
    (void) state;
    t_open();
    pmix_stub.meanwhile = t_answer_too_long;
    assert_int_equal(t_get(2, "a"), R2_ERR_WIRE);
    pmix_stub.meanwhile = NULL;
    pmix_stub.refuses = PMIX_ERR_NOMEM;
    assert_int_equal(t_get(2, "a"), R2_ERR_NO_MEMORY);
    assert_int_equal(r2_pmix_ask_after(&t_job, 2), R2_ERR_UNSUPPORTED);
    r2_pmix_job_close(&t_job);
    assert_int_equal(pmix_stub.freed, 3);
}

/* Somebody else asks for the same while one waits: each has a question of its own. */
static void t_ask_meanwhile(void)
{
    pmix_stub.meanwhile = NULL;
    assert_int_equal(t_get(2, "a"), R2_ERR_TIMEOUT);
}

static void test_two_wait(void **state)
{
    (void) state;
    t_open();
    pmix_stub.meanwhile = t_ask_meanwhile;
    assert_int_equal(t_get(2, "a"), R2_ERR_TIMEOUT);
    pmix_stub.meanwhile = t_ask_meanwhile;
    assert_int_equal(t_get(2, "a"), R2_ERR_TIMEOUT);
    assert_int_equal(pmix_stub.asked, 2);
    r2_pmix_job_close(&t_job);
    pmix_stub_bytes("1234", 4);
    pmix_stub_bytes("1234", 4);
    assert_int_equal(pmix_stub.freed, 2);
}

/* ---- who lives ---- */

static pmix_status_t t_table_rc;
static pmix_proc_state_t t_state;
static uint32_t t_row;

static void t_answer_table(void)
{
    pmix_stub_table(t_table_rc, t_row, t_state);
}

static r2_status_t t_ask_after(const char *nspace, pmix_status_t rc, uint32_t row,
                               pmix_proc_state_t state)
{
    t_table_rc = rc;
    t_row = row;
    t_state = state;
    PMIX_LOAD_NSPACE(t_job.nspace, nspace);
    pmix_stub.meanwhile = t_answer_table;
    return r2_pmix_ask_after(&t_job, 1);
}

static void test_table(void **state)
{
    (void) state;
    t_open();
    assert_int_equal(t_ask_after(T_OTHER, PMIX_SUCCESS, 1, PMIX_PROC_STATE_RUNNING), R2_OK);
    assert_int_equal(t_ask_after(T_OTHER, PMIX_SUCCESS, 1, PMIX_PROC_STATE_CONNECTED), R2_OK);
    assert_int_equal(t_ask_after(T_OTHER, PMIX_SUCCESS, 0, PMIX_PROC_STATE_RUNNING), R2_ERR_AGAIN);
    assert_int_equal(t_ask_after(T_OTHER, PMIX_ERR_TIMEOUT, 1, 0), R2_ERR_UNSUPPORTED);
    r2_pmix_job_close(&t_job);
}

/* A dead process is in the table of a job that goes on; one that has no state may yet speak. */
static void test_states(void **state)
{
    static const pmix_proc_state_t dead[] = {
        PMIX_PROC_STATE_TERMINATED,     PMIX_PROC_STATE_KILLED_BY_CMD,
        PMIX_PROC_STATE_ABORTED,        PMIX_PROC_STATE_FAILED_TO_START,
        PMIX_PROC_STATE_ABORTED_BY_SIG, PMIX_PROC_STATE_TERM_WO_SYNC,
        PMIX_PROC_STATE_CALLED_ABORT,   PMIX_PROC_STATE_CANNOT_RESTART,
        PMIX_PROC_STATE_TERM_NON_ZERO,  PMIX_PROC_STATE_FAILED_TO_LAUNCH};
    static const pmix_proc_state_t others[] = {
        PMIX_PROC_STATE_UNDEF,   PMIX_PROC_STATE_LAUNCH_UNDERWAY, PMIX_PROC_STATE_RESTART,
        PMIX_PROC_STATE_PREPPED, PMIX_PROC_STATE_TERMINATE,       PMIX_PROC_STATE_MIGRATING};

    (void) state;
    t_open();
    for (size_t i = 0; i < sizeof(dead) / sizeof(dead[0]); ++i) {
        assert_int_equal(t_ask_after(T_OTHER, PMIX_SUCCESS, 1, dead[i]), R2_ERR_PEER_GONE);
        assert_int_equal(t_ask_after("prterun-there-9@1", PMIX_SUCCESS, 1, dead[i]),
                         R2_ERR_PEER_GONE); /* in the table, so it is known */
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
        assert_int_equal(t_ask_after(T_OTHER, PMIX_SUCCESS, 1, others[i]), R2_ERR_AGAIN);
    }
    r2_pmix_job_close(&t_job);
}

/* A job of which somebody is dead is one that the launcher knows. */
static void test_job_with_a_dead_process(void **state)
{
    (void) state;
    t_open();
    pmix_stub.meanwhile = t_answer_table;
    t_row = 0;
    t_state = PMIX_PROC_STATE_ABORTED_BY_SIG;
    t_table_rc = PMIX_SUCCESS;
    assert_int_equal(r2_pmix_ask_after(&t_job, PMIX_RANK_WILDCARD), R2_OK);
    t_table_rc = PMIX_ERR_TIMEOUT;
    assert_int_equal(r2_pmix_ask_after(&t_job, PMIX_RANK_WILDCARD), R2_ERR_UNSUPPORTED);
    t_table_rc = PMIX_ERR_NOT_FOUND;
    assert_int_equal(r2_pmix_ask_after(&t_job, PMIX_RANK_WILDCARD), R2_ERR_PEER_GONE);
    r2_pmix_job_close(&t_job);
}

/* Only who started a job, and does not know it any more, knows that it has ended. */
static void test_jobs_that_are_not_known(void **state)
{
    static const char *const others[] = {"prterun-there-9@1", "prterun-here-71@1", "prterun-here-7",
                                         "prterun-here-@7", "917700608"};
    unsigned tables;

    (void) state;
    t_open();
    assert_int_equal(t_ask_after(T_OTHER, PMIX_ERR_NOT_FOUND, 0, 0), R2_ERR_PEER_GONE);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
        assert_int_equal(t_ask_after(others[i], PMIX_ERR_NOT_FOUND, 0, 0), R2_ERR_NOT_FOUND);
    }
    assert_int_equal(t_ask_after("prterun-there-9@1", PMIX_SUCCESS, 1, PMIX_PROC_STATE_RUNNING),
                     R2_OK);
    pmix_stub.server = "prterun";
    assert_int_equal(t_ask_after("prterun-there-9@1", PMIX_ERR_NOT_FOUND, 0, 0), R2_ERR_NOT_FOUND);
    pmix_stub.server = "slurm.pmix.12.0";
    tables = pmix_stub.tables;
    assert_int_equal(t_ask_after(T_OTHER, PMIX_ERR_NOT_FOUND, 0, 0), R2_ERR_UNSUPPORTED);
    assert_int_equal(pmix_stub.tables, tables);
    r2_pmix_job_close(&t_job);
}

/* A server that has dropped a question is asked again, each time later; each question is freed when
 * it is answered after all. */
static void test_silence_about_who_lives(void **state)
{
    static const unsigned last[] = {R2_PMIX_PATIENCE, 3 * R2_PMIX_PATIENCE, 7 * R2_PMIX_PATIENCE};
    unsigned wait = 0;

    (void) state;
    t_open();
    pmix_stub.tables = 0;
    for (unsigned i = 0; i < sizeof(last) / sizeof(last[0]); ++i) {
        for (; wait < last[i]; ++wait) {
            assert_int_equal(r2_pmix_ask_after(&t_job, 1), R2_ERR_TIMEOUT);
            assert_int_equal(pmix_stub.tables, i + 1);
        }
    }
    pmix_stub_table(PMIX_ERR_NOT_FOUND, 0, 0);
    pmix_stub_table(PMIX_ERR_NOT_FOUND, 0, 0);
    assert_int_equal(pmix_stub.freed, 2);
    pmix_stub.meanwhile = t_answer_table;
    t_table_rc = PMIX_ERR_NOT_FOUND;
    assert_int_equal(r2_pmix_ask_after(&t_job, 1), R2_ERR_TIMEOUT); /* the third is answered */
    assert_int_equal(pmix_stub.freed, 3);
    assert_int_equal(r2_pmix_ask_after(&t_job, 1), R2_ERR_PEER_GONE);
    assert_int_equal(pmix_stub.tables, 4);
    pmix_stub.meanwhile = NULL;
    r2_pmix_job_close(&t_job);
}

/* That it ran when nobody waited says nothing of now. */
static void test_who_lived_is_asked_anew(void **state)
{
    (void) state;
    t_open();
    pmix_stub.tables = 0;
    assert_int_equal(r2_pmix_ask_after(&t_job, 1), R2_ERR_TIMEOUT);
    pmix_stub_table(PMIX_SUCCESS, 1, PMIX_PROC_STATE_RUNNING);
    assert_int_equal(r2_pmix_ask_after(&t_job, 1), R2_ERR_TIMEOUT);
    assert_int_equal(pmix_stub.tables, 2);
    r2_pmix_job_close(&t_job);
}

/* Rank 0 has the job key: alone it would be all that others see of this process. */
static void test_key_goes_with_the_blob(void **state)
{
    r2_oob_t oob;

    (void) state;
    pmix_stub.meanwhile = t_answer_job;
    assert_int_equal(r2_oob_pmix_create(&oob), R2_OK);
    assert_int_equal(pmix_stub.stored, 1);
    assert_int_equal(pmix_stub.seen, 0);
    assert_int_equal(oob.ops->publish(oob.instance, "1234", 4), R2_OK);
    assert_int_equal(pmix_stub.seen, 2);
    r2_oob_pmix_destroy(&oob);
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
        T(test_silence_is_one_question),
        T(test_answer_while_nobody_waits),
        T(test_error_while_nobody_waits),
        T(test_answer_after_the_end),
        T(test_end_after_the_answer),
        T(test_questions_are_told_apart),
        T(test_directives_are_told_apart),
        T(test_answers_that_do_not_fit),
        T(test_two_wait),
        T(test_table),
        T(test_states),
        T(test_job_with_a_dead_process),
        T(test_jobs_that_are_not_known),
        T(test_silence_about_who_lives),
        T(test_who_lived_is_asked_anew),
        T(test_key_goes_with_the_blob),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
