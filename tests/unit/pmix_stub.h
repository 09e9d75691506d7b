/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A PMIx server in the test's own process, which answers when told: for tests linked with --wrap of
 * the functions that pmix_stub.c has.
 */
#ifndef R2_TESTS_PMIX_STUB_H
#define R2_TESTS_PMIX_STUB_H

#include <pmix.h>
#include <stdbool.h>
#include <stdint.h>

#define PMIX_STUB_MAX       16
#define PMIX_STUB_WAITS_MAX 5000 /* then somebody waits for ever */

/** A question that nobody has answered. */
typedef struct pmix_stub_question {
    pmix_proc_t proc;
    char name[PMIX_MAX_KEYLEN + 1];
    pmix_value_cbfunc_t got;      /* of a value; NULL: of a table */
    pmix_info_cbfunc_t table_got; /* of a table */
    void *arg;                    /* borrowed: of who asks */
} pmix_stub_question_t;

/** The server, and what it was asked. */
typedef struct pmix_stub {
    const char *server; /* its name */
    const char *self;   /* the job of this process; it is its rank 0 */
    pmix_stub_question_t questions[PMIX_STUB_MAX];
    unsigned open;                /* questions without an answer */
    unsigned asked;               /* PMIx_Get_nb() */
    unsigned tables;              /* PMIx_Query_info_nb() */
    pmix_status_t refuses;        /* of both, when they are asked; PMIX_SUCCESS: none */
    unsigned waits;               /* times that somebody waited in vain, or was woken */
    unsigned freed;               /* questions that were wiped */
    uint64_t limit_ns;            /* of the last wait */
    void (*meanwhile)(void);      /* called by who waits, without locks; NULL: nothing comes */
    pmix_notification_fn_t heard; /* the last handler that was registered */
    void *heard_arg;              /* borrowed: its object */
    unsigned handlers;
    unsigned stored; /* values that PMIx_Put() was given since the last commit */
    unsigned seen;   /* values that others see: those before it */
} pmix_stub_t;

extern pmix_stub_t pmix_stub;

/** Everything as at first, by a server of this name. */
void pmix_stub_reset(const char *server, const char *self);
/** The server answers all that it was asked, by errors. @return whether all questions are gone. */
bool pmix_stub_ends(void);
/** Answers the oldest question: a number. @param rc PMIX_SUCCESS: else the error. */
void pmix_stub_number(pmix_status_t rc, uint32_t number);
/** ... bytes. */
void pmix_stub_bytes(const void *bytes, size_t count);
/** ... a text. */
void pmix_stub_text(const char *text);
/** ... a table with one row. */
void pmix_stub_table(pmix_status_t rc, uint32_t rank, pmix_proc_state_t state);
/** The launcher's word that a job has ended. */
void pmix_stub_end(const char *nspace);

#endif
