/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sequences: calls of a communicator that match by their number in a sequence of their own.
 *
 *   0            the communicator's calls
 *   2, 4, 6, ... calls that make context ids, then one for each persistent request, in the order in
 *                which requests are made
 *   n + 1        syncs of maps before calls of sequence n
 */
#include "r2_config.h"

#include <stdlib.h>

#include "ctx/comm.h"

r2_status_t r2_sequence_create(r2_comm_t *root, uint32_t number, r2_coll_kind_t kind,
                               r2_comm_t **sequence_p)
{
    r2_comm_t *sequence = calloc(1, sizeof(*sequence));

    if (NULL == sequence) {
        return R2_ERR_NO_MEMORY;
    }
    sequence->comms = root->comms;
    sequence->root = root;
    sequence->key = root->key;
    sequence->sequence = number;
    sequence->kind = kind;
    sequence->ranks = root->ranks;
    sequence->size = root->size;
    sequence->rank = root->rank;
    sequence->next_seq = (uint32_t) root->comms->core->net.first_seq;
    HASH_ADD(hh, root->sequences, sequence, sizeof(sequence->sequence), sequence);
    if (!r2_hash_has(&sequence->hh)) {
        free(sequence);
        return R2_ERR_NO_MEMORY;
    }
    *sequence_p = sequence;
    return R2_OK;
}

void r2_sequence_destroy(r2_comm_t *sequence)
{
    if (sequence == sequence->root->sequenced) {
        sequence->root->sequenced = NULL;
    }
    HASH_DEL(sequence->root->sequences, sequence);
    free(sequence);
}

r2_comm_t *r2_sequence_find(r2_comm_t *root, uint32_t number)
{
    if (0 == number) {
        return root;
    }
    if (NULL == root->sequenced || number != root->sequenced->sequence) {
        HASH_FIND(hh, root->sequences, &number, sizeof(number), root->sequenced);
    }
    return root->sequenced;
}

bool r2_sequence_is_over(r2_comm_t *root, uint32_t number)
{
    const uint32_t calls = number & ~1u; /* of map syncs: the sequence that they serve */

    return NULL == r2_sequence_find(root, calls) && r2_seq_lt(calls, root->next_sequence);
}
