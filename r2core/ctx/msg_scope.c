/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which collective a message belongs to: one to come, one under way, or one that is over.
 */
#include "r2_config.h"

#include <utlist.h>

#include "ctx/comm.h"
#include "plan/kinds.h"

/** Where a collective stands on this process. */
typedef enum r2_stage {
    R2_STAGE_LATER, /* its communicator, or itself, is not there yet */
    R2_STAGE_NOW,   /* its schedule runs */
    R2_STAGE_OVER,
    R2_STAGE_FAILED /* its communicator failed for good; it may be freed by now */
} r2_stage_t;

/** What a tag names, as far as it is there. */
typedef struct r2_place {
    const r2_comm_t *sequence; /* NULL: not there */
    struct r2_coll *coll;      /* with R2_STAGE_NOW: what runs */
    r2_status_t failed;        /* with R2_STAGE_FAILED: why */
} r2_place_t;

static r2_stage_t r2_sequence_stage(const r2_comm_t *comm, uint32_t coll_seq,
                                    struct r2_coll **coll_p)
{
    struct r2_coll *coll;

    if (!r2_seq_lt(coll_seq, __atomic_load_n(&comm->next_seq, __ATOMIC_RELAXED))) {
        return R2_STAGE_LATER;
    }
    DL_FOREACH(comm->active, coll) {
        if (coll_seq - coll->seq > coll->parts_left) {
            continue;
        }
        *coll_p = coll;
        if (coll_seq != coll->seq || !coll->settled) {
            return R2_STAGE_LATER; /* a part to come, or it waits for a map */
        }
        return R2_IN_PROGRESS == atomic_load(&coll->status) ? R2_STAGE_NOW : R2_STAGE_OVER;
    }
    return R2_STAGE_OVER;
}

static r2_stage_t r2_comm_stage(r2_comm_t *root, const r2_tag_t *tag, r2_place_t *place_p)
{
    if (R2_OK != root->failed) {
        place_p->failed = root->failed;
        return R2_STAGE_FAILED;
    }
    place_p->sequence = r2_sequence_find(root, tag->sequence);
    if (NULL == place_p->sequence) {
        return r2_sequence_is_over(root, tag->sequence) ? R2_STAGE_OVER : R2_STAGE_LATER;
    }
    return r2_sequence_stage(place_p->sequence, tag->coll_seq, &place_p->coll);
}

static r2_stage_t r2_comm_find(r2_comms_t *comms, const r2_tag_t *tag, r2_place_t *place_p)
{
    uint64_t hash = tag->comm_key >> R2_COMM_SEQ_BITS;
    uint32_t incarnation = (uint32_t) tag->comm_key & R2_COMM_SEQ_MASK;
    r2_comm_name_t *name;

    *place_p = (r2_place_t){.sequence = NULL};
    name = r2_comm_name_find(comms, hash);
    if (NULL == name) {
        return R2_STAGE_LATER;
    }
    if (incarnation != name->incarnation) {
        return r2_comm_is_older(incarnation, name->incarnation) ? R2_STAGE_OVER : R2_STAGE_LATER;
    }
    if (NULL != name->live) {
        return r2_comm_stage(name->live, tag, place_p);
    }
    place_p->failed = name->failed;
    return R2_OK == name->failed ? R2_STAGE_OVER : R2_STAGE_FAILED;
}

bool r2_comm_over(r2_comms_t *comms, const r2_tag_t *tag)
{
    r2_place_t place;
    const r2_stage_t stage = r2_comm_find(comms, tag, &place);

    return R2_STAGE_OVER == stage || R2_STAGE_FAILED == stage;
}

/* True if an op of this kind may still meet the message with this tag and digest. */
static bool r2_comm_may(r2_comms_t *comms, r2_op_kind_t kind, uint32_t rank, const r2_tag_t *tag,
                        uint32_t digest)
{
    r2_place_t place;

    switch (r2_comm_find(comms, tag, &place)) {
    case R2_STAGE_NOW:
        return r2_exec_has_op(&place.coll->exec, kind, rank, tag->id, digest);
    case R2_STAGE_OVER:
        return false;
    case R2_STAGE_LATER: /* of a request no more than this is known before it is started */
        return NULL == place.sequence || 0 == place.sequence->sequence ||
               R2_SEQUENCE_ANY_KIND == place.sequence->kind ||
               r2_kind_has_digest(place.sequence->kind, digest);
    case R2_STAGE_FAILED: /* no mismatch: it hears why */
        r2_comm_tell_asker(comms, rank, tag->comm_key, place.failed);
        break;
    }
    return true;
}

bool r2_comm_sends(r2_comms_t *comms, uint32_t rank, const r2_tag_t *tag, uint32_t digest)
{
    return r2_comm_may(comms, R2_OP_SEND, rank, tag, digest);
}

bool r2_comm_receives(r2_comms_t *comms, uint32_t rank, const r2_tag_t *tag, uint32_t digest)
{
    return r2_comm_may(comms, R2_OP_RECV, rank, tag, digest);
}

bool r2_comm_is_sound(r2_comms_t *comms, uint64_t comm_key)
{
    uint64_t hash = comm_key >> R2_COMM_SEQ_BITS;
    r2_comm_name_t *name;

    name = r2_comm_name_find(comms, hash);
    return NULL != name && NULL != name->live && comm_key == name->live->key &&
           R2_OK == name->live->failed;
}
