/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A PMIx server in the test's own process, in place of PMIx's client.
 */
#include "r2_config.h"

#include "pmix_stub.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

pmix_stub_t pmix_stub;

void pmix_stub_reset(const char *server, const char *self)
{
    pmix_stub = (pmix_stub_t){.server = server, .self = self};
}

/* ---- what the server says ---- */

static pmix_stub_question_t pmix_stub_oldest(void)
{
    pmix_stub_question_t question = pmix_stub.questions[0];

    if (0 == pmix_stub.open) {
        fprintf(stderr, "nothing was asked\n");
        abort();
    }
    --pmix_stub.open;
    memmove(&pmix_stub.questions[0], &pmix_stub.questions[1],
            pmix_stub.open * sizeof(pmix_stub.questions[0]));
    return question;
}

static void pmix_stub_value(pmix_status_t rc, pmix_value_t *value)
{
    const pmix_stub_question_t question = pmix_stub_oldest();

    question.got(rc, PMIX_SUCCESS == rc ? value : NULL, question.arg);
}

void pmix_stub_number(pmix_status_t rc, uint32_t number)
{
    pmix_value_t value = {.type = PMIX_UINT32, .data.uint32 = number};

    pmix_stub_value(rc, &value);
}

void pmix_stub_bytes(const void *bytes, size_t count)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};

    value.data.bo.bytes = (char *) (uintptr_t) bytes;
    value.data.bo.size = count;
    pmix_stub_value(PMIX_SUCCESS, &value);
}

void pmix_stub_text(const char *text)
{
    pmix_value_t value = {.type = PMIX_STRING};

    value.data.string = (char *) (uintptr_t) text;
    pmix_stub_value(PMIX_SUCCESS, &value);
}

void pmix_stub_table(pmix_status_t rc, uint32_t rank, pmix_proc_state_t state)
{
    const pmix_stub_question_t question = pmix_stub_oldest();
    pmix_proc_info_t row = {.state = state};
    pmix_data_array_t table = {.type = PMIX_PROC_INFO, .size = 1, .array = &row};
    pmix_info_t info = {.value.type = PMIX_DATA_ARRAY};

    row.proc = question.proc;
    row.proc.rank = rank;
    info.value.data.darray = &table;
    question.table_got(rc, PMIX_SUCCESS == rc ? &info : NULL, PMIX_SUCCESS == rc, question.arg,
                       NULL, NULL);
}

bool pmix_stub_ends(void)
{
    while (pmix_stub.open > 0) {
        if (NULL != pmix_stub.questions[0].got) {
            pmix_stub_number(PMIX_ERR_UNREACH, 0);
        } else {
            pmix_stub_table(PMIX_ERR_UNREACH, 0, 0);
        }
    }
    return pmix_stub.freed == pmix_stub.asked + pmix_stub.tables;
}

void pmix_stub_end(const char *nspace)
{
    pmix_proc_t proc;
    pmix_info_t info[2];

    memset(info, 0, sizeof(info));
    PMIX_LOAD_PROCID(&proc, nspace, PMIX_RANK_WILDCARD);
    PMIX_LOAD_KEY(info[0].key, PMIX_EVENT_RETURN_OBJECT);
    info[0].value.type = PMIX_POINTER;
    info[0].value.data.ptr = pmix_stub.heard_arg;
    PMIX_LOAD_KEY(info[1].key, PMIX_EVENT_AFFECTED_PROC);
    info[1].value.type = PMIX_PROC;
    info[1].value.data.proc = &proc;
    pmix_stub.heard(1, PMIX_EVENT_JOB_END, &proc, info, 2, NULL, 0, NULL, NULL);
}

/* ---- in place of PMIx's functions ---- */

static void pmix_stub_ask(const pmix_stub_question_t *question)
{
    if (pmix_stub.open >= PMIX_STUB_MAX) {
        fprintf(stderr, "too many questions are open\n");
        abort();
    }
    pmix_stub.questions[pmix_stub.open++] = *question;
}

pmix_status_t __wrap_PMIx_Get_nb(const pmix_proc_t *proc, const char key[],
                                 const pmix_info_t info[], size_t ninfo, pmix_value_cbfunc_t got,
                                 void *arg);
pmix_status_t __wrap_PMIx_Get_nb(const pmix_proc_t *proc, const char key[],
                                 const pmix_info_t info[], size_t ninfo, pmix_value_cbfunc_t got,
                                 void *arg)
{
    pmix_stub_question_t question = {.proc = *proc, .got = got, .arg = arg};

    (void) info, (void) ninfo;
    ++pmix_stub.asked;
    if (PMIX_SUCCESS == pmix_stub.refuses) {
        snprintf(question.name, sizeof(question.name), "%s", key);
        pmix_stub_ask(&question);
    }
    return pmix_stub.refuses;
}

pmix_status_t __wrap_PMIx_Query_info_nb(pmix_query_t queries[], size_t count,
                                        pmix_info_cbfunc_t got, void *arg);
pmix_status_t __wrap_PMIx_Query_info_nb(pmix_query_t queries[], size_t count,
                                        pmix_info_cbfunc_t got, void *arg)
{
    pmix_stub_question_t question = {.table_got = got, .arg = arg};

    (void) count;
    ++pmix_stub.tables;
    if (PMIX_SUCCESS == pmix_stub.refuses) {
        PMIX_LOAD_PROCID(&question.proc, queries[0].qualifiers[0].value.data.string, 0);
        snprintf(question.name, sizeof(question.name), "%s", queries[0].keys[0]);
        pmix_stub_ask(&question);
    }
    return pmix_stub.refuses;
}

/* Here since PMIx_Init(): the server's name. */
pmix_status_t __wrap_PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                              size_t ninfo, pmix_value_t **value_p);
pmix_status_t __wrap_PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                              size_t ninfo, pmix_value_t **value_p)
{
    (void) proc, (void) info, (void) ninfo;
    if (0 != strcmp(key, PMIX_SERVER_NSPACE) && 0 != strcmp(key, PMIX_SESSION_ID)) {
        return PMIX_ERR_NOT_FOUND;
    }
    *value_p = calloc(1, sizeof(**value_p));
    if (NULL == *value_p) {
        return PMIX_ERR_NOMEM;
    }
    (*value_p)->type = PMIX_STRING;
    (*value_p)->data.string = strdup(pmix_stub.server);
    return PMIX_SUCCESS;
}

pmix_status_t __wrap_PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *value);
pmix_status_t __wrap_PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *value)
{
    (void) scope, (void) key, (void) value;
    ++pmix_stub.stored;
    return PMIX_SUCCESS;
}

pmix_status_t __wrap_PMIx_Commit(void);
pmix_status_t __wrap_PMIx_Commit(void)
{
    pmix_stub.seen += pmix_stub.stored;
    pmix_stub.stored = 0;
    return PMIX_SUCCESS;
}

pmix_status_t __wrap_PMIx_Init(pmix_proc_t *self, pmix_info_t info[], size_t ninfo);
pmix_status_t __wrap_PMIx_Init(pmix_proc_t *self, pmix_info_t info[], size_t ninfo)
{
    (void) info, (void) ninfo;
    PMIX_LOAD_PROCID(self, pmix_stub.self, 0);
    return PMIX_SUCCESS;
}

pmix_status_t __wrap_PMIx_Finalize(const pmix_info_t info[], size_t ninfo);
pmix_status_t __wrap_PMIx_Finalize(const pmix_info_t info[], size_t ninfo)
{
    (void) info, (void) ninfo;
    return PMIX_SUCCESS;
}

pmix_status_t __wrap_PMIx_Register_event_handler(pmix_status_t codes[], size_t ncodes,
                                                 pmix_info_t info[], size_t ninfo,
                                                 pmix_notification_fn_t fn,
                                                 pmix_hdlr_reg_cbfunc_t done, void *arg);
pmix_status_t __wrap_PMIx_Register_event_handler(pmix_status_t codes[], size_t ncodes,
                                                 pmix_info_t info[], size_t ninfo,
                                                 pmix_notification_fn_t fn,
                                                 pmix_hdlr_reg_cbfunc_t done, void *arg)
{
    (void) codes, (void) ncodes, (void) ninfo;
    pmix_stub.heard = fn;
    pmix_stub.heard_arg = info[0].value.data.ptr;
    done(PMIX_SUCCESS, ++pmix_stub.handlers, arg);
    return PMIX_SUCCESS;
}

pmix_status_t __wrap_PMIx_Deregister_event_handler(size_t id, pmix_op_cbfunc_t done, void *arg);
pmix_status_t __wrap_PMIx_Deregister_event_handler(size_t id, pmix_op_cbfunc_t done, void *arg)
{
    (void) id;
    --pmix_stub.handlers;
    done(PMIX_SUCCESS, arg);
    return PMIX_SUCCESS;
}

/* ---- in place of others ---- */

static uint64_t pmix_stub_ns(const struct timespec *at)
{
    return (uint64_t) at->tv_sec * 1000000000u + (uint64_t) at->tv_nsec;
}

/* Time passes without a wait: an answer comes at once, or not in time. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    struct timespec now;

    (void) changed;
    if (++pmix_stub.waits > PMIX_STUB_WAITS_MAX) {
        fprintf(stderr, "somebody waits for ever\n");
        abort();
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    pmix_stub.limit_ns = pmix_stub_ns(until) - pmix_stub_ns(&now);
    if (NULL != pmix_stub.meanwhile) {
        pthread_mutex_unlock(mutex);
        pmix_stub.meanwhile();
        pthread_mutex_lock(mutex);
    }
    return ETIMEDOUT;
}

/* An answer is wiped where its question is freed. */
void __wrap_sodium_memzero(void *at, size_t bytes);
void __wrap_sodium_memzero(void *at, size_t bytes)
{
    pmix_stub.freed += bytes > 4096;
    explicit_bzero(at, bytes);
}
