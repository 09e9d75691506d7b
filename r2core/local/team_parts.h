/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of teams: what a call consists of, and what moves data. For local/ only.
 */
#ifndef R2_LOCAL_TEAM_PARTS_H
#define R2_LOCAL_TEAM_PARTS_H

#include "local/team.h"

/** Who has, or needs, something. */
typedef enum r2_team_who { R2_WHO_NOBODY, R2_WHO_ALL, R2_WHO_ROOT, R2_WHO_OTHERS } r2_team_who_t;

/** What a kind of collective consists of. */
typedef struct r2_team_kind {
    r2_team_who_t gives, takes;
    bool blocks;  /* who gives has a block for each member */
    bool reduces; /* what is taken is folded */
    bool known;
} r2_team_kind_t;

/** A call under way. */
typedef struct r2_team_call {
    r2_team_t *team;            /* borrowed */
    const r2_coll_args_t *args; /* borrowed */
    const r2_team_kind_t *kind;
    r2_coll_kind_t which;
    int32_t size, rank, root;
    uint64_t block_bytes; /* of each block: all of what it is about, if there is but one */
    bool gives, takes;    /* this member */
    bool line;            /* what each member gives fits one line */
    bool shares;          /* each member reduces its share of each piece for all */
} r2_team_call_t;

/** A part of each block. */
typedef struct r2_team_part {
    uint64_t at, bytes;
} r2_team_part_t;

/** Where members' data of a part lies: in their slots. */
typedef const char *(*r2_team_from_fn_t)(const r2_team_call_t *call, int32_t member,
                                         uint64_t number);

/** Where the x of a reduction are. */
typedef struct r2_team_fold {
    int32_t last;
    uint64_t number;        /* of call or piece */
    r2_team_from_fn_t from; /* where they are, `skip` bytes further on */
    uint64_t skip;
    const char *own; /* borrowed: this member's; NULL: where the others' are */
} r2_team_fold_t;

const r2_team_kind_t *r2_team_kind(r2_coll_kind_t kind);
/** A call, or a part of one. @param args borrowed. */
r2_team_call_t r2_team_call_of(r2_team_t *team, const r2_coll_args_t *args, bool shares);

/* team_data.c */
/** Where this member's data is, or NULL: behind a convertor. */
const char *r2_team_data(const r2_team_call_t *call);
/** Of a reduction, the last member whose data counts for this one; -1: there is none. */
int32_t r2_team_last(const r2_team_call_t *call);
/** What this member gives itself, if that does not go by its slot, else NULL. @param at of its
 * block. */
const char *r2_team_own(const r2_team_call_t *call, uint64_t at);
/** True if this member, as the root, is the only one to read what it gives. */
bool r2_team_is_alone(const r2_team_call_t *call);
/** Copies this member's data of a part into a slot. */
void r2_team_put(const r2_team_call_t *call, r2_team_part_t part, char *slot);
/** True if this member copies what that one gives. */
bool r2_team_copies(const r2_team_call_t *call, int32_t member);
/** True if this member copies what it gives itself, and not out of its slot. */
bool r2_team_keeps(const r2_team_call_t *call);
/** Copies that. */
void r2_team_keep(const r2_team_call_t *call);
/** Copies what a member gives to where this one wants it. @param at of each block. */
void r2_team_copy(const r2_team_call_t *call, int32_t member, uint64_t at, const char *from,
                  uint64_t bytes);
/** Where that is, or NULL: behind a convertor. */
char *r2_team_place(const r2_team_call_t *call, int32_t member, uint64_t at);
/** Takes what this member needs of a part: of a member out of its slot, or folded, of all. */
void r2_team_take_copy(const r2_team_call_t *call, int32_t member, r2_team_part_t part,
                       uint64_t number, r2_team_from_fn_t from);
void r2_team_take_folded(const r2_team_call_t *call, r2_team_part_t part, uint64_t number,
                         r2_team_from_fn_t from);
/** Either, of all. */
void r2_team_take(const r2_team_call_t *call, r2_team_part_t part, uint64_t number,
                  r2_team_from_fn_t from);
/** True if this member needs what that one gives. */
bool r2_team_needs(const r2_team_call_t *call, int32_t member);
/** Reduces elements of members in the order of ranks: x[0] OP (x[1] OP (.. x[fold->last])).
 * @param to not where any of them is. */
void r2_team_fold(const r2_team_call_t *call, const r2_team_fold_t *fold, char *to, uint64_t bytes);

/* team_short.c, team_long.c */
r2_status_t r2_team_run_short(const r2_team_call_t *call);
r2_status_t r2_team_run_long(const r2_team_call_t *call);
/** True if a long call goes by shares. */
bool r2_team_long_shares(const r2_team_t *team, const r2_coll_args_t *args);

#endif
