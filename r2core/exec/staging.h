/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Staging: how runs reach buffers in memory that is not the CPU's.
 *
 * A run has a pinned copy of such a buffer, and ops work on that copy. Segments that an op reads
 * and nobody has written before are loaded from the device, in the order of the ops; a segment is
 * stored when the last op that writes it is complete. Both are asynchronous, so that they overlap
 * with the network. Long messages are copied in pieces: what is loaded of them leaves, and what has
 * come is stored, while the rest is under way (stream.c).
 * What links send and repeat is the copy: never memory that the application may change.
 *
 * Long REDUCE ops are the GPU's, where it has a kernel for them: it reads the user's memory itself
 * if no op has written there before, and copies else; what it writes is the copy. All that are
 * ready when the launch before has ended are one launch. A COPY op from the user's memory to the
 * user's, which no op needs here, is the GPU's, too.
 *
 * Engine lock.
 */
#ifndef R2_EXEC_STAGING_H
#define R2_EXEC_STAGING_H

#include "exec/pins.h"
#include "exec/program.h"
#include "exec/touch.h"
#include "mem/kernels.h"
#include "mem/queue.h"
#include "mem/rates.h"
#include "r2/counters.h"
#include "r2/near.h"

struct r2_engine;
struct r2_exec;
struct r2_exec_args;

#define R2_STAGING_AUTO (UINT64_MAX - 1)

enum {
    R2_STAGING_ASK_BYTES = 4096 /* the first REDUCE op of this length has a place measured */
};

/** Copies to and from the memory of one context, each way in its own order, and reductions. */
typedef struct r2_staging_place {
    struct r2_staging_place *next;
    r2_mem_queue_t loads, stores, reduces;
    r2_kernels_t kernels;
    r2_mem_nics_t nics; /* how the device sees what NICs write to it */
    r2_mem_rates_t rates;
    uint64_t reduce_bytes;     /* as of r2_staging_t; r2_staging_reduce_from() knows it */
    const r2_near_gpu_t *near; /* borrowed; NULL: no rail is nearer */
} r2_staging_place_t;

/** What all runs of a process share. */
typedef struct r2_staging {
    r2_mem_t *mem;              /* borrowed; NULL: all memory is the CPU's */
    r2_staging_place_t *places; /* owned list */
    r2_pins_t pins;
    const r2_near_gpus_t *near; /* borrowed; NULL: no rail is nearer to any GPU */
    /* REDUCE ops from here on are the GPU's; R2_TOUCH_NO_GPU: none; R2_STAGING_AUTO: what is
     * measured decides, in each place */
    uint64_t reduce_bytes;
    uint64_t host_reduce_bytes_per_s; /* as of r2_device_rates_t: at most */
    r2_counters_t *counters;          /* borrowed; NULL: nothing is counted */
    uint64_t nic_bytes;      /* messages from here on are read and written by NICs that can */
    struct r2_exec *copying; /* list: runs that wait for copies */
    uint32_t waiting;        /* how many are on it; others look without lock */
} r2_staging_t;

/** A buffer of a run. */
typedef struct r2_staged_side {
    r2_staging_place_t *place;    /* borrowed; NULL: ops work on the buffer itself */
    const r2_touch_side_t *touch; /* borrowed: of the program */
    r2_pin_t *staged;             /* owned: the copy; segments lie at touch->places */
    uint64_t *loaded;             /* by segment: ticket of its load, 0: none, or R2_STAGE_MISSING */
    uint32_t *writes;             /* by segment: how many are to come */
    uint64_t followed; /* ticket: what the application had started has ended; 0: not asked yet */
} r2_staged_side_t;

#define R2_STAGE_MISSING UINT64_MAX /* only the user's memory has it */

/** What a run has of it. */
typedef struct r2_staged {
    r2_staged_side_t sides[R2_TOUCH_SIDES];
    uint32_t ahead, load_count; /* of touch->loads: started, and all */
    uint32_t *waiting;          /* ops that wait for loads, rising; the first at waiting_head */
    uint32_t waiting_head, waiting_count;
    /* by op, in segments: of what it reads so much is loaded, from the first on */
    uint32_t *ready_src, *ready_dst;
    uint64_t looked;   /* segments that were looked at for it: as many as there are, and polls */
    uint32_t *written; /* ops that are complete; each enters once */
    uint32_t written_head, written_tail;
    uint32_t fetches; /* ops that NICs were to read, and that wait for no load yet */
    uint32_t landed;  /* messages that NICs have put, and whose ops are not complete */
    /* of RECV ops whose messages come (stream.c), in segments */
    uint32_t *arriving; /* ops of which more has come than was taken; none twice */
    uint32_t *arrived;  /* by op */
    uint32_t *taken;    /* by op: is stored, or has other writers */
    uint32_t arriving_count;
    uint64_t stored;         /* ticket of the newest store that is under way; 0: there is none */
    const r2_touch_t *touch; /* borrowed: of the program */
    /* of the GPU's reductions, and of its copies within its memory: one queue */
    r2_staging_place_t *reducer; /* borrowed; NULL: the processor reduces all */
    r2_staging_place_t *copier;  /* borrowed; NULL: it copies nothing from buffer to buffer */
    r2_pin_t *scratch;           /* owned; NULL: the run's staging memory is not pinned */
    uint32_t *reducing;          /* REDUCE and COPY ops, as they are started; each enters once */
    uint64_t *reduced;           /* tickets of those that were launched, at the same places */
    uint32_t reduce_head, reduce_launched, reduce_tail;
    size_t bytes; /* of all this but the copies */
} r2_staged_t;

/** The GPU reduces nothing until `reduce_bytes` says so, and NICs read nothing there until
 * `nic_bytes` does.
 * @param keep_bytes the most pinned memory that is kept for runs to come. */
void r2_staging_init(r2_staging_t *staging, r2_mem_t *mem, size_t keep_bytes);
/** No run is left. Also for zeros. */
void r2_staging_fini(r2_staging_t *staging);

/** Copies from now on come after what the application has started so far (r2_mem_queue_follow()).
 * @param at any memory. @return R2_OK; R2_ERR_GPU, R2_ERR_NO_MEMORY. */
r2_status_t r2_staging_follow(r2_staging_t *staging, const r2_mem_at_t *at);

/** @return from which length on REDUCE ops in a place are the GPU's; R2_STAGING_AUTO: that is not
 * known before a kernel was loaded there. */
uint64_t r2_staging_reduce_from(r2_staging_t *staging, r2_staging_place_t *place);

/** @return where memory is copied to and from; NULL: r2_staging_follow() was not called. */
r2_staging_place_t *r2_staging_place(r2_staging_t *staging, const r2_mem_at_t *at);

/** A copy of bytes of a buffer, in pieces where that is not contiguous. */
typedef struct r2_staging_copy {
    r2_mem_queue_t *queue;
    const r2_kernels_t *kernels; /* borrowed: pack what are no rows; NULL: each piece is a copy */
    char *staged;                /* of the buffer's offset 0 */
    bool is_store;
    r2_status_t status;     /* R2_OK, or of the first piece that failed */
    r2_mem_rows_t rows;     /* pieces as long and as far apart that are not started; rows 0: none */
    r2_kernel_copies_t odd; /* other pieces that are not started */
    uint32_t odd_count;
    r2_mem_reach_t reach;
} r2_staging_copy_t;

/** @return the kernels of a place, if they can pack between its memory and `staged`; else NULL: not
 * loaded yet, or a kernel does not reach that. */
const r2_kernels_t *r2_staging_packer(r2_staging_place_t *place, const void *staged);

/** An r2_run_fn_t: has a piece copied, with those after it where they are rows of equal length and
 * distance. @param arg r2_staging_copy_t */
void r2_staging_piece(void *arg, void *memory, uint64_t offset, uint64_t bytes);
/** Starts what r2_staging_piece() has kept. @return the copy's status. */
r2_status_t r2_staging_end(r2_staging_copy_t *copy);

/** Without lock: runs wait for copies. */
static inline bool r2_staging_is_busy(const r2_staging_t *staging)
{
    return 0 != __atomic_load_n(&staging->waiting, __ATOMIC_RELAXED);
}

/** So many more things wait for copies. */
static inline void r2_staging_count(r2_staging_t *staging, int change)
{
    __atomic_store_n(&staging->waiting, staging->waiting + (uint32_t) change, __ATOMIC_RELAXED);
}

/* ---- of a run: for exec/ only ---- */

/** Gives a run what it needs, if one of its buffers is not the CPU's.
 * @param reducer r2_stage_reducer() @return R2_OK, R2_ERR_NO_MEMORY, R2_ERR_GPU. */
r2_status_t r2_stage_init(struct r2_exec *exec, r2_staging_place_t *reducer);
/** Has a program know what its ops touch. @param reducer as r2_stage_init()
 * @return NULL: no memory. */
const r2_touch_t *r2_stage_touch(r2_program_t *program, const r2_staging_place_t *reducer);
/** What r2_stage_init() would take for a run of a program that has a buffer in memory of a GPU.
 * @param wanted_p lengths, and no memory yet */
void r2_stage_wants(struct r2_engine *engine, const struct r2_exec_args *args,
                    r2_program_t *program, r2_pins_wanted_t *wanted_p);
/** Waits for copies if the run is not over. */
void r2_stage_end(struct r2_exec *exec);
/** Nothing is copied any more. */
void r2_stage_fini(struct r2_exec *exec);
/** Nothing of the run is copied any more when it returns. */
void r2_stage_drain(struct r2_exec *exec);

/** Starts loads of the run as far as there is room for them. @return R2_OK: all; R2_IN_PROGRESS: to
 * be called again; R2_ERR_GPU. */
r2_status_t r2_stage_load_ahead(struct r2_exec *exec);
/** @return how near rails are to what a SEND op sends, which NICs read on the GPU, or in a copy;
 * NULL: no GPU's, or all are as near. */
const r2_near_t *r2_stage_near(const struct r2_exec *exec, uint32_t op);
/** Has what an op reads loaded. @return R2_OK: it is there, or the run has no such buffer;
 * R2_IN_PROGRESS: the op waits, and is started when r2_stage_load() says R2_OK; R2_ERR_GPU. */
r2_status_t r2_stage_load(struct r2_exec *exec, uint32_t op);
/** An op begins: what it writes is in the copies from now on. */
void r2_stage_begin(struct r2_exec *exec, uint32_t op);
/** What a RECV op has brought is in the user's memory, and not in the copy. */
void r2_stage_lacks(struct r2_exec *exec, uint32_t op);
/** An op is complete: what it has written is stored some time. */
void r2_stage_note(struct r2_exec *exec, uint32_t op);
/** Starts stores of what is complete. @param stored_p grows by ops. @return R2_OK: all of it is in
 * the user's memory; R2_IN_PROGRESS; R2_ERR_GPU. */
r2_status_t r2_stage_store(struct r2_exec *exec, unsigned *stored_p);
/** Whether the GPU can reduce in this run, which is on no list yet. @return its place; NULL: the
 * processor reduces. */
r2_staging_place_t *r2_stage_reducer(struct r2_exec *exec);
/** @return true: this REDUCE op is the GPU's: r2_stage_reduce() does it. */
bool r2_stage_reduces(const struct r2_exec *exec, uint32_t op);
/** @return true: this COPY op is the GPU's, from the user's memory to the user's: r2_stage_reduce()
 * does it, too. */
bool r2_stage_copies(const struct r2_exec *exec, uint32_t op);
/** @return as r2_staged_t.copier, of a run whose sides are open. */
r2_staging_place_t *r2_stage_find_copier(const struct r2_exec *exec);
/** @return what the GPU does by itself goes to its `reduces`; NULL: nothing does. */
r2_staging_place_t *r2_stage_worker(const r2_staged_t *stage);
/** Has the GPU do an op some time: r2_stage_launch() launches what has come together, a few ops
 * when nothing that was launched is under way. */
void r2_stage_reduce(struct r2_exec *exec, uint32_t op);
/** Also if there is nothing to launch. @return R2_OK: all, or a few ops wait for the launch before
 * them, whose end is asked for anyway; R2_IN_PROGRESS: to be called again;
 * R2_ERR_GPU. */
r2_status_t r2_stage_launch(struct r2_exec *exec);
/** The next op that the GPU has done. @return R2_OK; R2_ERR_NOT_FOUND: there is none now;
 * R2_ERR_GPU. */
r2_status_t r2_stage_reduced(struct r2_exec *exec, uint32_t *op_p);
/* stream.c: messages whose pieces are loaded as they leave, and stored as they come */

/** @return true: a SEND op that waits for loads may begin: its first piece is there, and
 * r2_stream_fill() tells its message of more. */
bool r2_stream_may_begin(const struct r2_exec *exec, uint32_t op);
/** Tells the message of a SEND op that has begun so how much is loaded. */
void r2_stream_fill(const struct r2_exec *exec, uint32_t op);
/** @return true: what a RECV op brings is stored as it comes: r2_stream_arrived() is to be told. */
bool r2_stream_stores(const struct r2_exec *exec, uint32_t op);
/** An r2_link_arrived_fn_t. @param arg the op's handle */
void r2_stream_arrived(void *arg, uint64_t bytes);

/** @return true: there are copies to wait for. */
bool r2_stage_is_busy(const r2_staged_t *stage);
/** An op waits for loads, in the order of ops, and with it the run. Not while r2_stage_load() is
 * called for those that wait. */
void r2_stage_wait(struct r2_exec *exec, uint32_t op);
/** On and off the list of runs that wait for copies. Nothing happens if it is there already. */
void r2_stage_await(struct r2_exec *exec);
void r2_stage_leave(struct r2_exec *exec);

#endif
