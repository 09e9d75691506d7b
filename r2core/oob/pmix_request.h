/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Questions to the PMIx server that may never be answered. For oob/pmix*.c only.
 */
#ifndef R2_OOB_PMIX_REQUEST_H
#define R2_OOB_PMIX_REQUEST_H

#include <pmix.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oob/oob.h"
#include "r2/status.h"

#define R2_PMIX_WAIT_S   10 /* for a value that is not on this host */
#define R2_PMIX_PATIENCE 3  /* waits for a table of processes, at first */

/**
 * One question. PMIX_TIMEOUT is not always kept by the server (seen with Open MPI 4.1.4 and PMIx
 * 4.2.2, pmix_base_async_modex, and with PRRTE 3 where the job of the process has ended), so the
 * waiting thread has a clock of its own and may leave. The library does not take a question back:
 * who asks again waits for the answer to the first one, so there is one for each thread that waits,
 * however long the server is silent. A question for a table of processes it does send again; a
 * server that has dropped one, as when a daemon on the way dies, would never answer it, so it is
 * asked anew after R2_PMIX_PATIENCE waits, then after twice as many. Of requests that nobody will
 * ask for again whoever is last frees them.
 */
typedef struct r2_pmix_request {
    struct r2_pmix_request *prev, *next; /* r2_pmix_asked_t's */
    uint32_t waits;                      /* in vain, so far; of who waits */
    uint32_t patience;     /* waits until it is asked anew, if that is of use; of who waits */
    pthread_mutex_t mutex; /* protects what follows, up to `answer` */
    pthread_cond_t changed;
    bool asked;
    bool answered;
    bool left; /* nobody waits for it, or will */
    r2_status_t status;
    size_t bytes; /* before it is asked: of a list of the dead, how long it may be */
    uint8_t answer[R2_OOB_BLOB_MAX];
    /* what is asked: the library may read it until it answers */
    pmix_proc_t proc;
    pmix_data_type_t type;
    char name[PMIX_MAX_KEYLEN + 1];
    char directive[PMIX_MAX_KEYLEN + 1]; /* "": none */
    char *names[2];
    pmix_info_t info[2];
    pmix_query_t query;
} r2_pmix_request_t;

/** Questions that are late, and nobody waits for at present. */
typedef struct r2_pmix_asked r2_pmix_asked_t;

/** @return NULL: no memory. */
r2_pmix_asked_t *r2_pmix_asked_new(void);
/** Nobody asks again. NULL: does nothing. */
void r2_pmix_asked_free(r2_pmix_asked_t *asked);

/**
 * A question about a process: the one that is under way if there is one, which has all that is to
 * be set already, else a new one. The caller has it until it waits for it, or drops it.
 * @param directive tells questions for one name apart. @return NULL: no memory.
 */
r2_pmix_request_t *r2_pmix_request_get(r2_pmix_asked_t *asked, const pmix_proc_t *proc,
                                       const char *name, const char *directive);
/** Is it under way? Else it is to be asked. */
bool r2_pmix_request_is_asked(r2_pmix_request_t *request);
/** It is asked now: PMIx's thread may answer it. */
void r2_pmix_request_goes(r2_pmix_request_t *request);
/** It was not asked after all. */
void r2_pmix_request_drop(r2_pmix_request_t *request);
/** The answer, of bytes that are in `answer` already. By PMIx's thread, once. */
void r2_pmix_request_answer(r2_pmix_request_t *request, r2_status_t status);
/**
 * Waits for the answer, for R2_PMIX_WAIT_S. The caller does not have the request afterwards.
 * @return R2_ERR_TIMEOUT: there is none yet; R2_ERR_WIRE: longer than `space`; else the answer's.
 */
r2_status_t r2_pmix_request_wait(r2_pmix_asked_t *asked, r2_pmix_request_t *request, void *to,
                                 size_t space, size_t *bytes_p);

#endif
