/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Communicators: identity with incarnation, poisoning.
 */
#include "r2_config.h"

#include "ctx/coll_local.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Numbers of sequences: 0 and 1 are never given away (sequence.c). */
#define R2_SEQUENCE_FIRST 2u
#define R2_SEQUENCE_STEP  2u

/*
 * Open MPI reuses context ids, so the key of a communicator holds an incarnation number, too. Every
 * communicator with the same context id and the same members is created by all of these members in
 * the same order, so counting them locally gives equal numbers everywhere without communication.
 */
static uint64_t r2_comm_hash(r2_comm_id_t id, const uint32_t *ranks, int32_t size)
{
    static const unsigned char key[crypto_shorthash_KEYBYTES] = "r2 communicator";
    unsigned char digest[crypto_shorthash_BYTES];
    uint64_t parts[3] = {id.base, id.sub, 0};
    uint64_t hash;

    crypto_shorthash(digest, (const unsigned char *) ranks, (size_t) size * sizeof(*ranks), key);
    memcpy(&parts[2], digest, sizeof(parts[2]));
    crypto_shorthash(digest, (const unsigned char *) parts, sizeof(parts), key);
    memcpy(&hash, digest, sizeof(hash));
    return hash >> R2_COMM_SEQ_BITS;
}

static r2_comm_name_t *r2_comm_name(r2_comms_t *comms, uint64_t hash)
{
    r2_comm_name_t *name = r2_comm_name_find(comms, hash);

    if (NULL == name) {
        name = calloc(1, sizeof(*name));
        if (NULL != name) {
            name->hash = hash;
            HASH_ADD(hh, comms->names, hash, sizeof(name->hash), name);
        }
        if (NULL != name && !r2_hash_has(&name->hh)) {
            free(name);
            name = NULL;
        }
    }
    return name;
}

r2_comm_t *r2_comm_new(r2_comms_t *comms, const uint32_t *ranks, int32_t size, int32_t rank)
{
    r2_comm_t *comm = calloc(1, sizeof(*comm));

    if (NULL == comm) {
        return NULL;
    }
    comm->comms = comms;
    comm->root = comm;
    comm->size = size;
    comm->rank = rank;
    comm->ranks = malloc((size_t) size * sizeof(*ranks));
    if (NULL == comm->ranks) {
        free(comm);
        return NULL;
    }
    memcpy(comm->ranks, ranks, (size_t) size * sizeof(*ranks));
    return comm;
}

void r2_comm_free(r2_comm_t *comm)
{
    free(comm->ranks);
    free(comm);
}

static r2_status_t r2_comm_register(r2_comms_t *comms, r2_comm_id_t id, r2_comm_t *comm)
{
    r2_comm_name_t *name = r2_comm_name(comms, r2_comm_hash(id, comm->ranks, comm->size));

    if (NULL == name) {
        return R2_ERR_NO_MEMORY;
    }
    name->incarnation = (name->incarnation + 1) & R2_COMM_SEQ_MASK;
    name->live = comm;
    name->failed = R2_OK;
    comm->name = name;
    comm->key = name->hash << R2_COMM_SEQ_BITS | name->incarnation;
    comm->next_seq = (uint32_t) comms->core->net.first_seq;
    comm->next_sequence = (uint32_t) comms->core->net.first_seq << 1;
    r2_comm_apply_faults(comms);
    return R2_OK;
}

r2_status_t r2_comm_open(r2_comm_t *comm, r2_comm_id_t id)
{
    r2_status_t status = r2_comm_register(comm->comms, id, comm);
    const r2_agree_group_t group = {.owner = comm,
                                    .key = comm->key,
                                    .ranks = comm->ranks,
                                    .size = comm->size,
                                    .rank = comm->rank};

    if (R2_OK == status) {
        status = r2_agree_create(&comm->comms->agree, &group, &comm->agree);
        comm->name->live = R2_OK == status ? comm : NULL;
    }
    return status;
}

static void r2_comm_withdraw(r2_comm_t *comm)
{
    r2_links_t links = r2_core_links_to(comm->comms->core, comm->ranks, comm->size);
    r2_link_t *link;

    while (NULL != (link = r2_links_next(&links))) {
        r2_link_withdraw(link, comm->key);
    }
}

static void r2_comm_leave(r2_comm_t *comm)
{
    if (comm == comm->name->live) {
        comm->name->live = NULL;
        comm->name->failed = comm->failed;
    }
    r2_comm_withdraw(comm);
}

/* With the sequence of its map syncs. */
static void r2_comm_drop_agree(r2_comm_t *comm)
{
    r2_agree_destroy(comm->agree);
    comm->agree = NULL;
    if (NULL != comm->map_syncs) {
        r2_sequence_destroy(comm->map_syncs);
        comm->map_syncs = NULL;
    }
}

/* Of requests that nobody has freed. Map syncs go with the sequence that they serve. */
static void r2_comm_close_all(r2_comm_t *comm)
{
    while (NULL != comm->sequences) {
        r2_comm_t *sequence = r2_sequence_find(comm, comm->sequences->sequence & ~1u);

        r2_comm_drop_agree(sequence);
        r2_sequence_destroy(sequence);
    }
}

void r2_comm_destroy(r2_comm_t *comm)
{
    r2_comms_t *comms = comm->comms;

    if (r2_is_forked()) {
        return;
    }
    r2_core_enter(comms->core);
    r2_comm_leave(comm); /* first: links refer to memory of map syncs */
    r2_comm_drop_agree(comm);
    r2_comm_close_all(comm);
    r2_programs_forget(&comms->programs, comm->key);
    r2_coll_local_destroy(comm);
    if (comm->untold) { /* others wait: its members are told when there is memory */
        comm->next_untold = comms->untold;
        comms->untold = comm;
        comm = NULL;
    }
    r2_core_leave(comms->core);
    if (NULL != comm) {
        r2_comm_free(comm);
    }
}

static void r2_sequence_abort(r2_comm_t *sequence, r2_status_t status)
{
    struct r2_coll *coll;

    r2_agree_abort(sequence->agree, status);
    DL_FOREACH(sequence->active, coll) {
        r2_exec_abort(&coll->exec, status);
    }
}

/*
 * After an error for good nothing on this communicator can be trusted: all of it ends, now and
 * later, here and at all members that can be reached. Each member passes the fault on once
 * (tell.c).
 */
void r2_comm_fail(r2_comm_t *comm, r2_status_t status)
{
    r2_comm_t *root = comm->root, *sequence, *next;

    if (R2_OK != root->failed) {
        return;
    }
    __atomic_store_n(&root->failed, status, __ATOMIC_RELAXED);
    r2_sequence_abort(root, status);
    HASH_ITER(hh, root->sequences, sequence, next)
    {
        r2_sequence_abort(sequence, status);
    }
    r2_comm_withdraw(root);
    r2_comm_tell(root);
}

/* ---- sequences ---- */

static uint32_t r2_sequence_next(r2_comm_t *root)
{
    const uint32_t number = 0 == root->next_sequence ? R2_SEQUENCE_FIRST : root->next_sequence;

    root->next_sequence = number + R2_SEQUENCE_STEP;
    return number;
}

r2_status_t r2_sequence_open(r2_comm_t *comm, r2_coll_kind_t kind, r2_comm_t **sequence_p)
{
    r2_comms_t *comms = comm->comms;
    r2_comm_t *sequence = NULL;
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(comms->core);
    status = r2_sequence_create(comm, r2_sequence_next(comm), kind, &sequence);
    if (R2_OK == status) {
        status =
            NULL == comm->agree ? R2_OK : r2_agree_open(comm->agree, sequence, &sequence->agree);
    }
    if (R2_OK != status) {
        if (NULL != sequence) {
            r2_sequence_destroy(sequence);
        }
        r2_comm_fail(comm, status); /* its place is taken: others would wait for this rank */
    }
    r2_core_leave(comms->core);
    if (R2_OK == status) {
        *sequence_p = sequence;
    }
    return status;
}

void r2_sequence_close(r2_comm_t *sequence)
{
    r2_comms_t *comms = sequence->comms;

    if (r2_is_forked()) {
        return;
    }
    r2_core_enter(comms->core);
    r2_comm_drop_agree(sequence);
    r2_sequence_destroy(sequence);
    r2_core_leave(comms->core);
}

/* ---- what peers tell ---- */

/* True if the same is noted already: who says so first counts. */
static bool r2_comm_is_noted(const r2_comms_t *comms, const r2_comm_fault_t *what)
{
    const r2_comm_fault_t *fault = comms->faults;

    while (NULL != fault && (fault->lost != what->lost ||
                             (what->lost ? fault->rank != what->rank : fault->key != what->key))) {
        fault = fault->next;
    }
    return NULL != fault;
}

/*
 * Once for each communicator and each peer. Of a communicator that is not created here yet, which
 * may never be, with a bound; without memory the communicator itself, or the link, keeps it.
 */
static void r2_comm_note(r2_comms_t *comms, const r2_comm_fault_t *what)
{
    const uint64_t hash = what->key >> R2_COMM_SEQ_BITS;
    r2_comm_name_t *name = NULL;
    r2_comm_fault_t *fault = NULL;

    if (!what->lost) {
        name = r2_comm_name_find(comms, hash);
    }
    if (r2_comm_is_noted(comms, what)) {
        return;
    }
    if (what->lost || NULL != name || comms->fault_count < R2_COMM_FAULTS_MAX) {
        fault = malloc(sizeof(*fault));
    }
    comms->fresh_faults = true;
    if (NULL != fault) {
        *fault = *what;
        fault->next = comms->faults;
        comms->faults = fault;
        ++comms->fault_count;
    } else if (what->lost) {
        comms->missed_loss = true;
    } else if (NULL != name && NULL != name->live && name->live->key == what->key) {
        name->live->heard = what->status;
    }
}

void r2_comm_aborted(r2_comms_t *comms, uint32_t rank, uint64_t comm_key, r2_status_t status)
{
    r2_comm_fault_t fault = {.key = comm_key, .rank = rank, .status = status};

    r2_comm_note(comms, &fault);
}

void r2_comm_stray(r2_comms_t *comms, uint32_t rank, uint64_t comm_key)
{
    if (r2_comm_is_sound(comms, comm_key)) {
        r2_comm_aborted(comms, rank, comm_key, R2_ERR_PLAN_MISMATCH);
    }
}

void r2_comm_lost(r2_comms_t *comms, uint32_t rank, r2_status_t status)
{
    r2_comm_fault_t fault = {.lost = true, .rank = rank, .status = status};

    r2_comm_note(comms, &fault);
}

static bool r2_comm_has(const r2_comm_t *comm, uint32_t rank)
{
    for (int32_t i = 0; i < comm->size; ++i) {
        if (comm->ranks[i] == rank) {
            return true;
        }
    }
    return false;
}

static void r2_comm_apply_loss(r2_comms_t *comms, const r2_comm_fault_t *fault)
{
    r2_comm_name_t *name, *next;

    HASH_ITER(hh, comms->names, name, next)
    {
        if (NULL != name->live && r2_comm_has(name->live, fault->rank)) {
            r2_comm_fail(name->live, fault->status);
            r2_comm_tell_around(name->live, fault->rank);
        }
    }
}

/* Another says why: what is known here of broken rails is all there is to add. */
static void r2_comm_explain(r2_comms_t *comms, const r2_comm_fault_t *fault)
{
    const r2_link_t *link = r2_core_link(comms->core, fault->rank);
    const r2_net_upcalls_t *upcalls = &comms->core->net.upcalls;
    char *text = comms->core->net.error_text;
    size_t used, bytes = sizeof(comms->core->net.error_text);

    snprintf(text, bytes, "rank %u on %s reports: %s\n", fault->rank,
             NULL == link ? "a host" : r2_link_host(link), r2_status_string(fault->status));
    used = strlen(text);
    upcalls->describe(upcalls->arg, UINT32_MAX, text + used, bytes - used);
    text[strlen(text) - 1] = '\0';
}

/* @return false: it is about a communicator that is not created here yet. */
static bool r2_comm_apply(r2_comms_t *comms, const r2_comm_fault_t *fault)
{
    uint64_t hash = fault->key >> R2_COMM_SEQ_BITS;
    uint32_t incarnation = (uint32_t) fault->key & R2_COMM_SEQ_MASK;
    r2_comm_name_t *name;

    if (fault->lost) {
        r2_comm_apply_loss(comms, fault);
        return true;
    }
    name = r2_comm_name_find(comms, hash);
    if (NULL == name) {
        return false;
    }
    if (incarnation != name->incarnation) {
        return r2_comm_is_older(incarnation, name->incarnation);
    }
    if (NULL == name->live) {
        return true;
    }
    if (R2_OK == name->live->failed) {
        r2_comm_explain(comms, fault);
        r2_comm_fail(name->live, fault->status);
    }
    return true;
}

/* Communicators that were freed before all were told: gone when that is done. */
static void r2_comms_tell_freed(r2_comms_t *comms)
{
    r2_comm_t **at = &comms->untold;

    while (NULL != *at) {
        r2_comm_t *comm = *at;

        r2_comm_tell_rest(comm);
        if (comm->untold) {
            at = &comm->next_untold;
        } else {
            *at = comm->next_untold;
            r2_comm_free(comm);
        }
    }
}

/* What there was no memory to note. */
static void r2_comm_apply_missed(r2_comms_t *comms)
{
    r2_links_t links = r2_core_links(comms->core, 0);
    r2_comm_name_t *name, *next;
    const r2_link_t *link;

    HASH_ITER(hh, comms->names, name, next)
    {
        if (NULL != name->live && name->live->untold) {
            r2_comm_tell_rest(name->live);
        }
        if (NULL != name->live && R2_OK != name->live->heard) {
            r2_comm_fail(name->live, name->live->heard);
        }
    }
    while (comms->missed_loss && NULL != (link = r2_links_next(&links))) {
        if (R2_OK != r2_link_broken(link)) {
            const r2_comm_fault_t fault = {
                .lost = true, .rank = r2_link_peer(link), .status = r2_link_broken(link)};

            r2_comm_apply_loss(comms, &fault);
        }
    }
    comms->missed_loss = false;
    r2_comms_tell_freed(comms);
}

/* Engine lock, outside of callbacks. */
void r2_comm_apply_faults(r2_comms_t *comms)
{
    r2_comm_fault_t **at = &comms->faults;

    comms->fresh_faults = false;
    r2_comm_apply_missed(comms);
    while (NULL != *at) {
        r2_comm_fault_t *fault = *at;

        if (r2_comm_apply(comms, fault)) {
            *at = fault->next;
            --comms->fault_count;
            free(fault);
        } else {
            at = &fault->next;
        }
    }
}

r2_status_t r2_comms_init(r2_comms_t *comms, r2_core_t *core, r2_estimator_t *estimator,
                          const r2_agree_ops_t *ops)
{
    comms->core = core;
    comms->agree.core = core;
    comms->agree.estimator = estimator;
    comms->agree.ops = ops;
    r2_pool_init(&comms->colls, sizeof(struct r2_coll));
    return r2_programs_init(&comms->programs, R2_PROGRAMS_KEPT, R2_PROGRAMS_BYTES);
}

void r2_comms_fini(r2_comms_t *comms)
{
    r2_comm_name_t *name, *next;

    r2_coll_reap(comms);
    r2_pool_fini(&comms->colls);
    r2_programs_fini(&comms->programs);
    while (NULL != comms->faults) {
        r2_comm_fault_t *fault = comms->faults;

        comms->faults = fault->next;
        free(fault);
    }
    while (NULL != comms->untold) {
        r2_comm_t *comm = comms->untold;

        comms->untold = comm->next_untold;
        r2_comm_free(comm);
    }
    HASH_ITER(hh, comms->names, name, next)
    {
        HASH_DEL(comms->names, name);
        free(name);
    }
}
