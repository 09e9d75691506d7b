/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Exchange between the processes of two jobs, through PMIx.
 */
#include "r2_config.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "oob/oob.h"
#include "oob/pmix_event.h"
#include "oob/pmix_port.h"
#include "oob/pmix_value.h"

/*
 * Processes are numbered as if the two jobs were one: first those of the job whose name space comes
 * first in the alphabet. Each process publishes its blob for this pair under a name of its own, and
 * reads those of the other job; processes of its own job it reaches elsewhere. There is no fence:
 * who asks too early asks again. The key of the pair is made of those of both jobs, so nobody else
 * has it.
 */

/** A blob of the other job. */
typedef struct r2_pair_blob {
    void *data; /* owned; NULL: not kept */
    size_t bytes;
    bool lacked;        /* it was asked for */
    uint32_t unwritten; /* times that the launcher had nothing for this job, since... */
    uint32_t table;     /* ... this table of who lives; both atomic */
    bool dead;          /* by the newest table; atomic */
} r2_pair_blob_t;

/** The instance. What is kept belongs to the engine lock of the context; the rest is constant, but
 * for what is atomic and for questions that are late, which have a lock of their own. */
typedef struct r2_oob_pair {
    pmix_proc_t self;
    r2_pmix_job_t own, other;
    uint32_t first, other_first;   /* number of rank 0 of each job */
    char publishes[64], reads[64]; /* names of the blobs: the server's values are per process */
    uint8_t key[R2_JOB_KEY_BYTES];
    bool have_key;
    bool lacks;            /* some blob was lacked; atomic */
    bool ended;            /* the other job; atomic */
    uint32_t tables;       /* asked for because of silent processes; atomic */
    bool said;             /* the user was told that the launcher is late; atomic */
    const r2_log_t *log;   /* borrowed: outlives this */
    char server[256];      /* its name */
    r2_pmix_port_t *end;   /* owned; NULL: nobody tells of its end */
    r2_pair_blob_t *blobs; /* owned, by rank of the other job */
} r2_oob_pair_t;

static r2_status_t r2_pair_identity(void *instance, uint32_t *rank_p, uint32_t *size_p)
{
    const r2_oob_pair_t *oob = instance;

    *rank_p = oob->first + oob->self.rank;
    *size_p = oob->own.size + oob->other.size;
    return R2_OK;
}

static r2_status_t r2_pair_key_of(const r2_pmix_job_t *job, uint8_t *key_p)
{
    size_t bytes = 0;
    r2_status_t status = r2_pmix_get(job, 0, R2_PMIX_JOB_KEY, key_p, R2_JOB_KEY_BYTES, &bytes);

    return R2_OK == status && R2_JOB_KEY_BYTES != bytes ? R2_ERR_WIRE : status;
}

r2_status_t r2_oob_pair_ask_key(const r2_oob_t *oob, uint8_t *key_p)
{
    const r2_oob_pair_t *pair = oob->instance;
    const bool first = 0 == pair->first;
    uint8_t keys[2][R2_JOB_KEY_BYTES];
    r2_status_t status = r2_pair_key_of(&pair->own, keys[first ? 0 : 1]);

    if (R2_OK == status) {
        status = r2_pair_key_of(&pair->other, keys[first ? 1 : 0]);
    }
    if (R2_OK == status) {
        crypto_generichash(key_p, R2_JOB_KEY_BYTES, keys[0], sizeof(keys), NULL, 0);
    }
    sodium_memzero(keys, sizeof(keys));
    return status;
}

static r2_status_t r2_pair_job_key(void *instance, uint8_t *key_p)
{
    const r2_oob_pair_t *oob = instance;

    if (!oob->have_key) {
        return R2_ERR_NOT_FOUND;
    }
    memcpy(key_p, oob->key, R2_JOB_KEY_BYTES);
    return R2_OK;
}

static r2_status_t r2_pair_publish(void *instance, const void *blob, size_t bytes)
{
    const r2_oob_pair_t *oob = instance;

    return bytes > R2_OOB_BLOB_MAX ? R2_ERR_PARAM : r2_pmix_put(oob->publishes, blob, bytes);
}

static r2_status_t r2_pair_lookup(void *instance, uint32_t rank, void *blob_p, size_t *bytes_p)
{
    r2_oob_pair_t *oob = instance;
    const uint32_t other = rank - oob->other_first;
    r2_pair_blob_t *blob;

    if (rank < oob->other_first || other >= oob->other.size) {
        return R2_ERR_NOT_FOUND; /* of this job */
    }
    blob = &oob->blobs[other];
    if (NULL == blob->data) {
        blob->lacked = true;
        __atomic_store_n(&oob->lacks, true, __ATOMIC_RELEASE);
        return R2_ERR_NOT_FOUND;
    }
    memcpy(blob_p, blob->data, blob->bytes);
    *bytes_p = blob->bytes;
    return R2_OK;
}

static const r2_oob_ops_t r2_oob_pair_ops = {
    .name = "pmix, two jobs",
    .identity = r2_pair_identity,
    .job_key = r2_pair_job_key,
    .publish = r2_pair_publish,
    .lookup = r2_pair_lookup,
};

/* A short name for a name space of any length. */
static void r2_pair_name(const char *nspace, char *name_p, size_t space)
{
    uint8_t digest[16];
    char hex[2 * sizeof(digest) + 1];

    crypto_generichash(digest, sizeof(digest), (const uint8_t *) nspace, strlen(nspace), NULL, 0);
    sodium_bin2hex(hex, sizeof(hex), digest, sizeof(digest));
    snprintf(name_p, space, "r2.for.%s", hex);
}

/* Without, who waits does so until the launcher ends it. */
static void r2_pair_watch(r2_oob_pair_t *oob, const char *other)
{
    if (R2_PMIX_SERVER_CARRIES == r2_pmix_server_find(oob->server, sizeof(oob->server))) {
        (void) r2_pmix_port_open_end(other, &oob->end);
    }
}

static void r2_pair_free(r2_oob_pair_t *oob)
{
    if (NULL != oob->end) {
        r2_pmix_port_close(oob->end);
    }
    for (uint32_t i = 0; NULL != oob->blobs && i < oob->other.size; ++i) {
        free(oob->blobs[i].data);
    }
    free(oob->blobs);
    sodium_memzero(oob->key, sizeof(oob->key));
    r2_pmix_job_close(&oob->own);
    r2_pmix_job_close(&oob->other);
    free(oob);
}

static bool r2_pair_has_ended(r2_oob_pair_t *pair)
{
    r2_pmix_parcel_t *parcel, *next, *parcels;

    if (NULL == pair->end) {
        return false;
    }
    parcels = r2_pmix_port_empty(pair->end);
    if (NULL != parcels) {
        __atomic_store_n(&pair->ended, true, __ATOMIC_RELEASE);
    }
    DL_FOREACH_SAFE(parcels, parcel, next) {
        DL_DELETE(parcels, parcel);
        free(parcel);
    }
    return __atomic_load_n(&pair->ended, __ATOMIC_ACQUIRE);
}

/* Who waits for the launcher says so once. */
static r2_status_t r2_pair_note_late(r2_oob_pair_t *oob, uint32_t rank, r2_status_t status)
{
    if (R2_ERR_TIMEOUT == status && !__atomic_exchange_n(&oob->said, true, __ATOMIC_RELAXED)) {
        r2_info(oob->log,
                "rank %u waits for rank %u of job %s: PMIx server %s has not answered for %d s",
                oob->self.rank, rank, oob->other.nspace, oob->server, R2_PMIX_WAIT_S);
    }
    return status;
}

/* A server that is late is waited for, unless it is known otherwise that the job has ended, or is
 * none of its own. A job some of whose processes are dead goes on. */
static r2_status_t r2_pair_open_other(r2_oob_pair_t *oob, const char *other)
{
    r2_status_t known, status = r2_pmix_job_open(other, &oob->other);

    while (R2_ERR_TIMEOUT == r2_pair_note_late(oob, 0, status)) {
        if (r2_pair_has_ended(oob)) {
            return R2_ERR_PEER_GONE;
        }
        known = r2_pmix_ask_after(&oob->other, PMIX_RANK_WILDCARD);
        if (R2_ERR_PEER_GONE == known || R2_ERR_NOT_FOUND == known) {
            return known;
        }
        status = r2_pmix_job_open(other, &oob->other);
    }
    return status;
}

static r2_status_t r2_pair_open(r2_oob_pair_t *oob, const char *other)
{
    r2_status_t status = r2_pmix_job_open(oob->self.nspace, &oob->own);
    const bool first = strcmp(oob->self.nspace, other) < 0;

    if (R2_OK == status) {
        status = r2_pair_open_other(oob, other);
    }
    if (R2_OK != status) {
        return status;
    }
    oob->first = first ? 0 : oob->other.size;
    oob->other_first = first ? oob->own.size : 0;
    r2_pair_name(other, oob->publishes, sizeof(oob->publishes));
    r2_pair_name(oob->self.nspace, oob->reads, sizeof(oob->reads));
    oob->blobs = calloc(oob->other.size, sizeof(*oob->blobs));
    return NULL == oob->blobs ? R2_ERR_NO_MEMORY : R2_OK;
}

r2_status_t r2_oob_pair_create(const char *other, const r2_log_t *log, r2_oob_t *oob_p)
{
    r2_oob_pair_t *oob;
    r2_status_t status;

    if (sodium_init() < 0) {
        return R2_ERR_SYSTEM;
    }
    oob = calloc(1, sizeof(*oob));
    if (NULL == oob) {
        return R2_ERR_NO_MEMORY;
    }
    if (PMIX_SUCCESS != PMIx_Init(&oob->self, NULL, 0)) {
        free(oob);
        return R2_ERR_UNSUPPORTED;
    }
    oob->log = log;
    r2_pair_watch(oob, other);
    status = r2_pair_open(oob, other);
    if (R2_OK != status) {
        r2_pair_free(oob);
        PMIx_Finalize(NULL, 0);
        return status;
    }
    oob_p->ops = &r2_oob_pair_ops;
    oob_p->instance = oob;
    return R2_OK;
}

void r2_oob_pair_destroy(r2_oob_t *oob)
{
    if (NULL != oob->instance) {
        r2_pair_free(oob->instance);
        PMIx_Finalize(NULL, 0);
        *oob = (r2_oob_t){NULL, NULL};
    }
}

uint32_t r2_oob_pair_first(const r2_oob_t *oob)
{
    return ((const r2_oob_pair_t *) oob->instance)->other_first;
}

bool r2_oob_pair_leads(const r2_oob_t *oob)
{
    return 0 == ((const r2_oob_pair_t *) oob->instance)->self.rank;
}

/* The launcher has nothing of it. It says so, too, when a job has ended, some time before it tells
 * of the end; of a process of another host its server there would not answer. */
static r2_status_t r2_pair_has_nothing(r2_oob_pair_t *pair, uint32_t rank)
{
    r2_status_t status;

    if (r2_pair_has_ended(pair)) {
        return R2_ERR_PEER_GONE;
    }
    status = r2_pmix_is_local(&pair->other, rank) ? r2_pmix_ask_after(&pair->other, rank) : R2_OK;
    return R2_OK == status || R2_ERR_UNSUPPORTED == status ? R2_ERR_NOT_FOUND : status;
}

/* Between two of such answers the asker pauses for some milliseconds, and the table is of all
 * processes of the job: it is asked for when somebody was silent so often since the last one. */
#define R2_PAIR_ASKS_AFTER 256

static bool r2_pair_is_due(r2_oob_pair_t *pair, uint32_t rank, r2_status_t status)
{
    r2_pair_blob_t *blob = &pair->blobs[rank];
    const uint32_t tables = __atomic_load_n(&pair->tables, __ATOMIC_RELAXED);

    if (R2_ERR_TIMEOUT == status) {
        return true;
    }
    if (tables != __atomic_exchange_n(&blob->table, tables, __ATOMIC_RELAXED)) {
        __atomic_store_n(&blob->unwritten, 0, __ATOMIC_RELAXED);
    }
    return __atomic_add_fetch(&blob->unwritten, 1, __ATOMIC_RELAXED) >= R2_PAIR_ASKS_AFTER;
}

/* Keeps who is dead: they stay so. */
static r2_status_t r2_pair_ask_dead(r2_oob_pair_t *pair)
{
    const size_t bytes = (pair->other.size + 7) / 8;
    uint8_t *dead = calloc(1, bytes);
    r2_status_t status = R2_ERR_NO_MEMORY;

    if (NULL != dead) {
        __atomic_add_fetch(&pair->tables, 1, __ATOMIC_RELAXED);
        status = r2_pmix_ask_dead(&pair->other, dead, bytes);
    }
    for (uint32_t i = 0; R2_OK == status && i < pair->other.size; ++i) {
        if (0 != (dead[i / 8] & (1u << (i % 8)))) {
            __atomic_store_n(&pair->blobs[i].dead, true, __ATOMIC_RELAXED);
        }
    }
    free(dead);
    return status;
}

/* Who has said nothing may be dead, while its job goes on: then nothing ever comes. */
static r2_status_t r2_pair_if_alive(r2_oob_pair_t *pair, uint32_t rank, r2_status_t status)
{
    const bool *dead = &pair->blobs[rank].dead;

    if (R2_ERR_TIMEOUT != status && R2_ERR_NOT_FOUND != status) {
        return status;
    }
    if (!__atomic_load_n(dead, __ATOMIC_RELAXED) && r2_pair_is_due(pair, rank, status) &&
        R2_ERR_PEER_GONE == r2_pair_ask_dead(pair)) {
        return R2_ERR_PEER_GONE;
    }
    return __atomic_load_n(dead, __ATOMIC_RELAXED) ? R2_ERR_PEER_GONE : status;
}

r2_status_t r2_oob_pair_home(const r2_oob_t *oob, uint32_t rank, void *blob_p, size_t *bytes_p)
{
    r2_oob_pair_t *pair = oob->instance;
    r2_status_t status;

    if (rank >= pair->other.size) {
        return R2_ERR_NOT_FOUND;
    }
    status = r2_pmix_get(&pair->other, rank, R2_PMIX_BLOB_KEY, blob_p, R2_OOB_BLOB_MAX, bytes_p);
    if (R2_ERR_NOT_FOUND == status) {
        return r2_pair_has_nothing(pair, rank);
    }
    return r2_pair_if_alive(pair, rank, r2_pair_note_late(pair, rank, status));
}

r2_status_t r2_oob_pair_ask(const r2_oob_t *oob, uint32_t rank, void *blob_p, size_t *bytes_p)
{
    r2_oob_pair_t *pair = oob->instance;
    r2_status_t status;

    if (rank >= pair->other.size) {
        return R2_ERR_NOT_FOUND;
    }
    status = r2_pmix_get(&pair->other, rank, pair->reads, blob_p, R2_OOB_BLOB_MAX, bytes_p);
    return r2_pair_if_alive(pair, rank, r2_pair_note_late(pair, rank, status));
}

bool r2_oob_pair_other_ended(const r2_oob_t *oob)
{
    return r2_pair_has_ended(oob->instance);
}

void r2_oob_pair_keep_key(r2_oob_t *oob, const uint8_t *key)
{
    r2_oob_pair_t *pair = oob->instance;

    memcpy(pair->key, key, sizeof(pair->key));
    pair->have_key = true;
}

r2_status_t r2_oob_pair_keep(r2_oob_t *oob, uint32_t rank, const void *blob, size_t bytes)
{
    r2_oob_pair_t *pair = oob->instance;
    r2_pair_blob_t *kept = &pair->blobs[rank];

    if (NULL != kept->data) {
        return R2_OK; /* it does not change */
    }
    kept->data = malloc(bytes);
    if (NULL == kept->data) {
        return R2_ERR_NO_MEMORY;
    }
    memcpy(kept->data, blob, bytes);
    kept->bytes = bytes;
    return R2_OK;
}

bool r2_oob_pair_lacks(const r2_oob_t *oob)
{
    const r2_oob_pair_t *pair = oob->instance;

    return __atomic_load_n(&pair->lacks, __ATOMIC_ACQUIRE);
}

bool r2_oob_pair_next_lack(r2_oob_t *oob, uint32_t *rank_p)
{
    r2_oob_pair_t *pair = oob->instance;

    for (uint32_t rank = 0; rank < pair->other.size; ++rank) {
        r2_pair_blob_t *blob = &pair->blobs[rank];

        if (blob->lacked) {
            blob->lacked = false;
            *rank_p = rank;
            return true;
        }
    }
    __atomic_store_n(&pair->lacks, false, __ATOMIC_RELEASE);
    return false;
}
