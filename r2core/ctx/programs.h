/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The programs of a process by the shape of calls: a repeated call plans nothing.
 */
#ifndef R2_CTX_PROGRAMS_H
#define R2_CTX_PROGRAMS_H

#include "exec/program.h"
#include "r2/coll.h"

/*
 * Kept in a process, whatever the number of its communicators. A short allreduce of 4 ranks takes
 * 1 KiB, a direct alltoall of 1,024 ranks 170 KiB.
 */
#define R2_PROGRAMS_KEPT  256u
#define R2_PROGRAMS_BYTES (8u << 20)

/** What is equal in calls that have equal programs. Compared as memory: no padding. */
typedef struct r2_shape_key {
    uint64_t comm; /* key of the communicator, unique in the process */
    uint64_t map;  /* digest of what is agreed (r2_plan_env_t); 0: there is no such thing */
    uint64_t element_bytes, count;
    uint64_t meaning; /* of the operation and its types */
    uint32_t send_count, recv_count;
    int32_t size; /* of counts and displs */
    int32_t root;
    uint32_t kind; /* r2_coll_kind_t */
    uint32_t flags;
} r2_shape_key_t;

/**
 * All that a call's program depends on: no handle, no address. Two datatypes of one layout give one
 * shape; an operation is its properties.
 */
typedef struct r2_shape {
    r2_shape_key_t key;
    const uint64_t *counts, *displs; /* borrowed: [size] each; NULL: the call has none */
    const r2_edge_t *sends, *recvs;  /* borrowed */
} r2_shape_t;

/** A kept program. */
typedef struct r2_programs_slot {
    uint64_t digest; /* of the shape */
    uint64_t used;   /* turn of the last use; 0: free slot */
    r2_shape_t shape;
    char *lists; /* owned: what the shape refers to; NULL: nothing */
    size_t list_bytes;
    size_t bytes;          /* of lists and program, when it was weighed */
    r2_program_t *program; /* refcounted */
} r2_programs_slot_t;

/** Engine lock. */
typedef struct r2_programs {
    r2_programs_slot_t *slots; /* owned; [room] */
    uint32_t room, top;        /* slots from `top` on were never used */
    size_t bytes, bytes_max;   /* of all slots */
    uint64_t turn;
} r2_programs_t;

/** @return R2_OK, R2_ERR_NO_MEMORY. */
r2_status_t r2_programs_init(r2_programs_t *programs, uint32_t room, size_t bytes_max);
/** Calls may still use programs. Also for zeros. */
void r2_programs_fini(r2_programs_t *programs);

/**
 * Looks a shape up: first where it was found the last time.
 * @param hint_p where that was, of this or any other table; where it is now.
 * @return       the program, borrowed until the next r2_programs_keep() or r2_programs_forget();
 *               NULL: it is not kept.
 */
r2_program_t *r2_programs_find(r2_programs_t *programs, const r2_shape_t *shape, uint32_t *hint_p);
/**
 * Keeps a program of a shape that is not there. What was not used for longest makes room; without
 * memory for it, or if it is too long, it is not kept. All are weighed again: what runs on memory
 * of GPUs have added to programs since then counts from here on.
 */
void r2_programs_keep(r2_programs_t *programs, const r2_shape_t *shape, r2_program_t *program);
/** Forgets all of a communicator. */
void r2_programs_forget(r2_programs_t *programs, uint64_t comm);

#endif
