/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the parts of the stand-in share. One lock (state.lock) protects everything; only what
 * streams execute runs without it.
 */
#ifndef FAKECUDA_LIB_FC_H
#define FAKECUDA_LIB_FC_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fakecuda/api.h"
#include "fakecuda/fakecuda.h"

enum {
    FC_STREAMS = 64, /* at a time, default streams included */
    FC_DEVICES = 16,
    FC_CTX_DEPTH = 32,
    FC_PARAMS = 16,        /* of a kernel */
    FC_PARAM_WORDS = 128,  /* of eight bytes: all of them */
    FC_SIGNATURE = 64,
    FC_RULES = 16,  /* of faults */
    FC_PARTS = 64,  /* of an allocation, to find accesses in; the last has those of several */
    FC_PAGE = 4096
};

/** How far each stream is, an entry for each place. What comes after a clock has seen all
 * operations up to it. */
typedef struct fc_clock {
    uint64_t seq[FC_STREAMS];
} fc_clock_t;

typedef struct CUctx_st {
    struct CUctx_st *next;
    int device;
    unsigned flags;
    unsigned retained; /* of a primary context */
    bool is_primary, is_destroyed;
    CUresult sticky; /* what all later calls return */
    struct CUstream_st *null_stream;
    uint32_t peers; /* devices whose memory kernels may use */
    uint64_t id;
} fc_ctx_t;

typedef enum fc_kind {
    FC_DEVICE,
    FC_POOL,
    FC_CHUNK, /* cuMemCreate(), mapped by cuMemMap() */
    FC_IPC,   /* of another process */
    FC_PINNED,
    FC_REGISTERED,
    FC_MANAGED,
    FC_KINDS
} fc_kind_t;

/** An operation touches a part of an allocation, and the host has not waited for it yet. */
typedef struct fc_access {
    struct fc_access *next;
    uintptr_t from, to;
    size_t bytes, rows, pitch; /* of a row; rows 1: all from `from` to `to` */
    int place;                 /* of the stream */
    uint64_t seq;
    const char *name; /* of the operation */
    bool writes;
} fc_access_t;

typedef struct fc_alloc {
    uintptr_t base;
    size_t bytes, mapped; /* as asked for; whole pages */
    fc_kind_t kind;
    int device, fd;
    fc_ctx_t *ctx; /* NULL: pool and chunks, as with the real driver */
    uint64_t id;   /* never used again */
    char *rw;      /* where the stand-in itself reaches the memory */
    bool is_freed, is_accessible, sync_memops;
    fc_access_t *accesses[FC_PARTS];
    size_t access_count;
    uintptr_t nic_from, nic_to; /* what NICs have written since `nic_flushes` of fc.flushes */
    uint64_t nic_flushes;
    uint8_t *protection; /* of its pages now; NULL: the address is never protected */
    struct fc_alloc *next_busy;
    struct fc_chunk *chunk;
    bool *gone; /* of FC_DEVICE and FC_IPC: shared among processes, the owner has freed it */
} fc_alloc_t;

/** A piece of memory that an operation touches, or rows of it. */
typedef struct fc_span {
    uintptr_t at;
    size_t bytes; /* of a row */
    bool writes;
    size_t rows, pitch; /* rows 0: one */
} fc_span_t;

/** Goes through accesses of an allocation that may touch some bytes, in any order. */
typedef struct fc_walk {
    const fc_alloc_t *alloc;
    int part, last;
    fc_access_t *access; /* NULL: there are no more */
} fc_walk_t;

typedef enum fc_op_kind {
    FC_OP_NOTHING, /* only has its place in the order */
    FC_OP_COPY,
    FC_OP_FILL,
    FC_OP_KERNEL,
    FC_OP_HOST,
    FC_OP_RECORD,
    FC_OP_FREE
} fc_op_kind_t;

typedef struct fc_op {
    struct fc_op *next;
    fc_op_kind_t kind;
    const char *name;
    uint64_t seq;
    fc_clock_t after; /* starts when all streams are that far */
    char *to;
    const char *from;
    size_t bytes, width;               /* width: of one element of a fill */
    size_t rows, to_pitch, from_pitch; /* of a copy: rows of `bytes` */
    uint32_t value;
    int engine;  /* of a copy: FC_IN to a device, FC_OUT, FC_INSIDE */
    char *owned; /* copy of pageable memory */
    const fakecuda_kernel_t *kernel;
    fakecuda_grid_t grid;
    void *params[FC_PARAMS];
    uint64_t values[FC_PARAM_WORDS];
    CUhostFn fn;
    void *fn_arg;
    struct CUevent_st *event;
    uint64_t event_ticket;
    uintptr_t freed;
} fc_op_t;

enum { FC_INSIDE, FC_IN, FC_OUT, FC_ENGINES };

typedef struct CUstream_st {
    int place;
    fc_ctx_t *ctx;
    unsigned flags;
    bool is_destroyed, is_null;
    fc_op_t *head, **tail;
    fc_clock_t clock; /* of the newest operation, and of events that later ones wait for */
    uint64_t newest;  /* operation */
} fc_stream_t;

typedef struct CUevent_st {
    bool is_live, is_recorded;
    unsigned flags;
    fc_ctx_t *ctx;
    fc_clock_t clock;
    uint64_t ticket; /* of the newest record */
    uint64_t time_ns;
} fc_event_t;

/* What is counted. mistakes: the rest of the list up to wrong_context. */
#define FC_COUNTERS(X)                                                                           \
    X(cpu_touches) X(early_touches) X(missing_waits) X(use_after_free) X(wrong_context)          \
    X(mistakes) X(copies_h2d) X(bytes_h2d) X(copies_d2h) X(bytes_d2h) X(copies_d2d) X(bytes_d2d) \
    X(copies_h2h) X(bytes_h2h) X(copies_2d) X(rows_2d) X(pageable_copies) X(fills) X(launches)   \
    X(host_functions) X(allocs) X(frees) X(live_bytes) X(most_bytes) X(host_waits)               \
    X(stream_waits) X(records) X(queries) X(pointer_queries) X(ipc_exports) X(ipc_opens)         \
    X(faults)

typedef enum fc_count {
#define X(name) FC_##name,
    FC_COUNTERS(X)
#undef X
        FC_COUNTS
} fc_count_t;

typedef enum fc_call {
#define CU_FUNCTION(name, needs, params) FC_CALL_##name,
#include "fakecuda/functions.def"
#undef CU_FUNCTION
    FC_CALLS
} fc_call_t;

/** The Nth call of `name` fails, or so many of a thousand. */
typedef struct fc_rule {
    char name[48]; /* of an entry point; exec: an operation of a stream; *: every call */
    uint64_t nth, permille;
    CUresult error;
    uint64_t calls;
} fc_rule_t;

typedef struct fc_state {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int pid; /* of the process that called cuInit(); else 0 */
    /* settings */
    uint64_t devices, sm, driver, memory, seed, delay_us, copy_mbytes_per_s, strict, abort;
    uint64_t launch_us, kernel_mbytes_per_s;
    uint64_t nic_order;  /* CU_GPU_DIRECT_RDMA_WRITES_ORDERING_..; 999: the driver does not know */
    uint64_t pin_waits;  /* pinning memory waits for all operations */
    uint64_t load_waits; /* loading a module waits for all operations of its context */
    char pci[FC_DEVICES][16];
    fc_rule_t rules[FC_RULES];
    const char *stats, *audit; /* files; NULL: off */
    /* memory */
    char *arena;  /* device addresses: never accessible */
    char *shadow; /* the same, where the stand-in reaches it */
    size_t arena_next;
    fc_alloc_t **allocs; /* by base, freed device memory too */
    size_t alloc_count, alloc_room;
    fc_alloc_t *busy; /* with accesses */
    struct fc_range *ranges;
    uint64_t used[FC_DEVICES], next_id;
    uint64_t flushes; /* of what NICs have written */
    /* order */
    fc_stream_t *streams[FC_STREAMS];
    uint64_t last_seq[FC_STREAMS]; /* of the streams that had the place before */
    uint64_t done[FC_STREAMS];
    fc_clock_t host; /* what the application has waited for */
    uint64_t engine_free_ns[FC_DEVICES][FC_ENGINES];
    fc_ctx_t *contexts, *primary[FC_DEVICES];
    uint64_t counters[FC_COUNTS], calls[FC_CALLS];
    char mistake[400];
} fc_state_t;

extern fc_state_t fc;
extern __thread bool fc_locked; /* by this thread */
extern __thread bool fc_in_host_function;

/* ---- entry.c: every entry point begins and ends with these, whatever the first returns. */
CUresult fc_enter(fc_call_t call);
CUresult fc_leave(CUresult rc);
void fc_lock(void);
void fc_unlock(void);

/* ---- settings.c */
void fc_read_settings(void);
/** The error that a rule has for this call, or CUDA_SUCCESS. */
CUresult fc_fault(const char *name);
uint64_t fc_hash(uint64_t a, uint64_t b, uint64_t c);

/* ---- kernel.c: a shared object with kernels. @return 0, or -1. */
int fc_open_kernels(const char *path);

/* ---- report.c */
void fc_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** A mistake of the application: said, counted, and the end of the process where that is set. */
void fc_mistake(fc_count_t count, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fc_write_stats(void);
const char *fc_call_name(fc_call_t call);

/* ---- touch.c: the signal handler is ours again, whoever took it. */
void fc_guard(void);

/* ---- audit.c: lets a touch of device memory go on, and notes its place. @return false: it
 * cannot. */
bool fc_audit_touch(fc_alloc_t *alloc, uintptr_t at, void *context);
void fc_audit_write(const char *path);

/* ---- context.c */
fc_ctx_t *fc_ctx(void);
bool fc_is_device_index(CUdevice device);

/* ---- alloc.c */
int fc_arena_init(void);
bool fc_in_arena(uintptr_t at);
/** The allocation that an address lies in, also a freed one. */
fc_alloc_t *fc_find(uintptr_t at);
/** Whether the CPU can never touch it. */
bool fc_is_device(const fc_alloc_t *alloc);
const char *fc_kind_name(fc_kind_t kind);
/** Where the stand-in reaches memory. @return NULL: not all of it is live; told if it was freed. */
char *fc_reach(uintptr_t at, size_t bytes);
/** A new allocation at an address without access. @param fd its memory, owned then
 * @return NULL: no room */
fc_alloc_t *fc_device_new(fc_kind_t kind, size_t bytes, int fd);
/** Address space without memory. @return 0: no room. */
uintptr_t fc_take_addresses(size_t bytes);
/** Memory that the CPU may touch, except while operations that use it are under way. */
fc_alloc_t *fc_host_new(fc_kind_t kind, size_t bytes, int fd);
/** The application's own memory. */
CUresult fc_register(uintptr_t at, size_t bytes);
void fc_add(fc_alloc_t *alloc);
void fc_remove(const fc_alloc_t *alloc);
/** Operations on it are over. A device address stays known as freed. */
void fc_release(fc_alloc_t *alloc);
int fc_memory_file(size_t bytes);
/** Counts bytes against what the device has. */
CUresult fc_take(int device, size_t bytes);
void fc_give_back(int device, size_t bytes);
void fc_protect(fc_alloc_t *alloc, uintptr_t from, uintptr_t to);

/* ---- vmm.c */
bool fc_range_of(uintptr_t at, uintptr_t *base_p, size_t *bytes_p);

/* ---- order.c */
void fc_merge(fc_clock_t *into, const fc_clock_t *from);
bool fc_reached(const fc_clock_t *clock);
void fc_host_knows(const fc_clock_t *clock);
/** Waits until all streams are there, and notes that the host knows. */
void fc_wait(const fc_clock_t *clock);
/** Waits, but nobody may rely on it. */
void fc_stall(const fc_clock_t *clock);
/** The clock of all streams. @param ctx NULL: of all contexts */
void fc_clock_all(fc_clock_t *clock_p, const fc_ctx_t *ctx);
/** Notes what an operation touches, and tells if another one that it does not come after touches
 * the same. */
void fc_note_span(const fc_span_t *span, int place, const fc_op_t *op);
/** Tells of operations on an allocation that a NIC does not come after: nobody waited for them. */
void fc_check_nic(const fc_alloc_t *alloc, const fc_span_t *span);
/** A NIC has written: GPUs do not see it before it is flushed. */
void fc_note_nic(fc_alloc_t *alloc, const fc_span_t *span);
void fc_forget_accesses(fc_alloc_t *alloc);
fc_walk_t fc_walk(const fc_alloc_t *alloc, uintptr_t from, uintptr_t to);
void fc_walk_on(fc_walk_t *walk);
/** Whether all of [from, to) is touched by it. */
bool fc_covers(const fc_access_t *access, uintptr_t from, uintptr_t to);

/* ---- stream.c */
/** The stream of a handle. @return NULL and *rc_p: no such stream in the current context. */
fc_stream_t *fc_stream(CUstream stream, CUresult *rc_p);
/** @return NULL: all places are taken. */
fc_stream_t *fc_stream_new(fc_ctx_t *ctx, unsigned flags, bool is_null);
/** The stream ends when its operations have. */
void fc_stream_end(fc_stream_t *stream);
/** Operations of later calls come after those of blocking streams, if this is the default one. */
void fc_join_blocking(fc_stream_t *stream);
fc_op_t *fc_op_new(fc_op_kind_t kind, const char *name);
/** Takes over the operation. */
void fc_enqueue(fc_stream_t *stream, fc_op_t *op, const fc_span_t *spans, int span_count);
uint64_t fc_now_ns(void);

#endif
