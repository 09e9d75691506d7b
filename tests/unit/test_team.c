/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Teams: members are threads. Calls of all kinds and lengths in random order, each element of each
 * result compared, by an operation that tells every other order of reduction; members that come
 * late, run ahead and sleep; members that cannot read what others offer.
 *
 * Usage: test_team [SEED]
 */
#include "r2_config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "local/team.h"
#include "r2/prng.h"

#define T_MEMBERS 33
#define T_GUARD   64u /* bytes behind a result that nobody may write */

/** One call, the same on all members. */
typedef struct t_call {
    r2_coll_kind_t kind;
    int32_t root;
    uint32_t count; /* elements of each block */
    uint32_t number;
} t_call_t;

/** Members that make the same calls. */
typedef struct t_job {
    uint8_t address[R2_SHARED_ADDRESS_BYTES];
    int32_t size;
    uint32_t calls;
    uint64_t seed;
    uint32_t most; /* elements of a block */
    pthread_barrier_t met;
    r2_process_t processes[T_MEMBERS]; /* all this one */
    bool direct;                       /* they read each other's memory */
    bool refuses;                      /* and cannot now and then */
    uint64_t before; /* calls and pieces that all members have behind them, by other slots */
    _Atomic uint32_t wrong;
} t_job_t;

/** One of them. */
typedef struct t_member {
    t_job_t *job; /* borrowed */
    int32_t rank;
    r2_team_t team;
    r2_prng_t own;               /* what is a matter of this member alone */
    uint64_t *in, *out, *wanted; /* owned */
    size_t room;                 /* elements of each of them */
} t_member_t;

static uint64_t seed = 20261125;

/* Says which reads of this thread fail; NULL: none. */
static _Thread_local r2_prng_t *unreadable;

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count,
                                unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count,
                                unsigned long flags);

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count,
                                unsigned long flags)
{
    if (NULL != unreadable && 0 == r2_prng_below(unreadable, 4)) {
        errno = EFAULT;
        return -1;
    }
    return __real_process_vm_readv(pid, local, local_count, remote, remote_count, flags);
}

static const r2_coll_kind_t kinds[] = {
    R2_COLL_BARRIER, R2_COLL_ALLREDUCE, R2_COLL_REDUCE,  R2_COLL_SCAN,
    R2_COLL_EXSCAN,  R2_COLL_BCAST,     R2_COLL_GATHER,  R2_COLL_SCATTER,
    R2_COLL_ALLTOALL, R2_COLL_ALLGATHER, R2_COLL_REDUCE_SCATTER_BLOCK,
};

/* What a member has at an element of the block for another one. */
static uint64_t t_value(const t_call_t *call, int32_t rank, int32_t block, uint32_t element)
{
    uint64_t hash = (uint64_t) call->number << 40 ^ (uint64_t) (rank + 1) << 32 ^
                    (uint64_t) (block + 1) << 24 ^ element;

    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Neither commutes nor associates. */
static uint64_t t_op(uint64_t a, uint64_t b)
{
    return 3 * a + 5 * b + 1;
}

static void t_reduce(void *arg, const void *in, void *inout, size_t count)
{
    const uint64_t *a = in;
    uint64_t *b = inout;

    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        b[i] = t_op(a[i], b[i]);
    }
}

/* x[0] OP (x[1] OP (.. x[last])) */
static uint64_t t_folded(const t_call_t *call, int32_t last, int32_t block, uint32_t element)
{
    uint64_t value = t_value(call, last, block, element);

    for (int32_t i = last - 1; i >= 0; --i) {
        value = t_op(t_value(call, i, block, element), value);
    }
    return value;
}

static bool t_has_blocks(r2_coll_kind_t kind)
{
    return R2_COLL_ALLTOALL == kind || R2_COLL_SCATTER == kind ||
           R2_COLL_REDUCE_SCATTER_BLOCK == kind;
}

static bool t_reduces(r2_coll_kind_t kind)
{
    return R2_COLL_ALLREDUCE == kind || R2_COLL_REDUCE == kind || R2_COLL_SCAN == kind ||
           R2_COLL_EXSCAN == kind || R2_COLL_REDUCE_SCATTER_BLOCK == kind;
}

/* Blocks that a member has as a result. */
static int32_t t_results(const t_call_t *call, int32_t rank, int32_t size)
{
    switch ((int) call->kind) {
    case R2_COLL_BARRIER:
        return 0;
    case R2_COLL_REDUCE:
        return rank == call->root ? 1 : 0;
    case R2_COLL_EXSCAN:
        return 0 == rank ? 0 : 1;
    case R2_COLL_GATHER:
        return rank == call->root ? size : 0;
    case R2_COLL_ALLTOALL:
    case R2_COLL_ALLGATHER:
        return size;
    default:
        return 1;
    }
}

static uint64_t t_result(const t_call_t *call, int32_t rank, int32_t size, int32_t block,
                         uint32_t element)
{
    switch ((int) call->kind) {
    case R2_COLL_ALLREDUCE:
    case R2_COLL_REDUCE:
        return t_folded(call, size - 1, 0, element);
    case R2_COLL_SCAN:
        return t_folded(call, rank, 0, element);
    case R2_COLL_EXSCAN:
        return t_folded(call, rank - 1, 0, element);
    case R2_COLL_REDUCE_SCATTER_BLOCK:
        return t_folded(call, size - 1, rank, element);
    case R2_COLL_BCAST:
        return t_value(call, call->root, 0, element);
    case R2_COLL_SCATTER:
        return t_value(call, call->root, rank, element);
    case R2_COLL_ALLTOALL:
        return t_value(call, block, rank, element);
    default: /* gather, allgather */
        return t_value(call, block, 0, element);
    }
}

/* A buffer of which every second element is a hole. */
static void t_move(void *arg, uint64_t offset, void *packed, uint64_t bytes, bool unpack)
{
    char *memory = arg;

    for (uint64_t i = 0; i < bytes; ++i) {
        const uint64_t at = offset + i;
        char *byte = memory + at / 8 * 16 + at % 8;

        if (unpack) {
            *byte = ((const char *) packed)[i];
        } else {
            ((char *) packed)[i] = *byte;
        }
    }
}

static void t_set(uint64_t *memory, bool holes, size_t at, uint64_t value)
{
    memory[holes ? 2 * at : at] = value;
}

/* ---- a call ---- */

/* Where a member's input lies, if it is in place. */
static size_t t_place(const t_member_t *member, const t_call_t *call)
{
    return R2_COLL_ALLGATHER == call->kind || R2_COLL_GATHER == call->kind
               ? (size_t) member->rank * call->count
               : 0;
}

static bool t_gives(const t_member_t *member, const t_call_t *call)
{
    return (R2_COLL_BCAST != call->kind && R2_COLL_SCATTER != call->kind) ||
           member->rank == call->root;
}

static bool t_in_place(t_member_t *member, const t_call_t *call)
{
    const bool root_only = R2_COLL_REDUCE == call->kind || R2_COLL_GATHER == call->kind;

    if (R2_COLL_BCAST == call->kind) {
        return true;
    }
    if (R2_COLL_BARRIER == call->kind || R2_COLL_SCATTER == call->kind ||
        (root_only && member->rank != call->root)) {
        return false;
    }
    return 0 == r2_prng_below(&member->own, 2);
}

static void t_fill(t_member_t *member, const t_call_t *call, uint64_t *memory, size_t at,
                   bool holes)
{
    const int32_t blocks = t_has_blocks(call->kind) ? member->job->size : 1;

    for (int32_t i = 0; i < blocks && t_gives(member, call); ++i) {
        for (uint32_t k = 0; k < call->count; ++k) {
            t_set(memory, holes, at + (size_t) i * call->count + k,
                  t_value(call, member->rank, i, k));
        }
    }
}

/* All of `out` as it has to be afterwards. */
static void t_expect(t_member_t *member, const t_call_t *call, bool holes)
{
    const int32_t blocks = t_results(call, member->rank, member->job->size);

    for (int32_t i = 0; i < blocks; ++i) {
        for (uint32_t k = 0; k < call->count; ++k) {
            t_set(member->wanted, holes, (size_t) i * call->count + k,
                  t_result(call, member->rank, member->job->size, i, k));
        }
    }
}

/* What lies behind the result of a reduce_scatter in place is nobody's. */
static size_t t_compared(const t_member_t *member, const t_call_t *call, bool in_place)
{
    return R2_COLL_REDUCE_SCATTER_BLOCK == call->kind && in_place ? call->count : member->room;
}

static r2_status_t t_make(t_member_t *member, const t_call_t *call, uint32_t place)
{
    const bool in_place = t_in_place(member, call);
    const bool holes = !t_reduces(call->kind) && 0 == r2_prng_below(&member->own, 3);
    const size_t bytes = member->room * sizeof(uint64_t);
    r2_coll_args_t args = {
        .kind = call->kind,
        .root = call->root,
        .in = in_place || R2_COLL_BARRIER == call->kind ? NULL : member->in,
        .out = R2_COLL_BARRIER == call->kind ? NULL : member->out,
        .in_place = in_place && R2_COLL_BCAST != call->kind,
        .count = R2_COLL_BARRIER == call->kind ? 0 : call->count,
        .element_bytes = R2_COLL_BARRIER == call->kind ? 1 : sizeof(uint64_t),
        .reduce = t_reduce,
        .blocking = true,
    };
    r2_status_t status;

    if (holes) {
        args.in_convertor = (r2_convertor_t){.move = t_move, .arg = member->in};
        args.out_convertor = (r2_convertor_t){.move = t_move, .arg = member->out};
    }
    memset(member->in, 0x5a, bytes);
    memset(member->out, 0xa5, bytes);
    t_fill(member, call, in_place ? member->out : member->in, in_place ? t_place(member, call) : 0,
           holes);
    memcpy(member->wanted, member->out, bytes);
    t_expect(member, call, holes);
    status = r2_team_run(&member->team, &args, r2_team_way(&member->team.segment, &args), place);
    if (R2_OK == status && 0 != memcmp(member->wanted, member->out,
                                       t_compared(member, call, in_place) * sizeof(uint64_t))) {
        fprintf(stderr, "call %u kind %d root %d count %u: wrong at rank %d of %d%s%s\n",
                call->number, (int) call->kind, call->root, call->count, member->rank,
                member->job->size, in_place ? ", in place" : "", holes ? ", holes" : "");
        ++member->job->wrong;
    }
    return status;
}

/* ---- members ---- */

/* A member that waits gives way; after a while it sleeps. */
static r2_status_t t_pause(void *arg, int32_t member, uint32_t turn)
{
    (void) arg;
    (void) member;
    if (turn < 50) {
        sched_yield();
        return R2_OK;
    }
    return R2_IN_PROGRESS;
}

static void t_join(t_member_t *member)
{
    t_job_t *job = member->job;
    r2_member_t *own;

    assert_true(0 == member->rank || R2_OK == r2_segment_open(&member->team.segment, job->size,
                                                              member->rank, job->address));
    pthread_barrier_wait(&job->met);
    r2_segment_settle(&member->team.segment);
    assert_int_equal(r2_segment_grow(&member->team.segment), R2_OK);
    member->team.calls = member->team.pieces = member->team.done = job->before;
    own = r2_segment_member(&member->team.segment, member->rank);
    own->done = own->taken = job->before;
    pthread_barrier_wait(&job->met);
    member->team.wait = (r2_team_wait_t){.pause = t_pause, .looks = 20};
    member->team.processes = job->direct ? job->processes : NULL;
    member->team.direct_bytes = 16384;
    member->team.folds_direct = job->direct && 5 != job->size;
    member->room = 2 * (size_t) job->size * job->most + T_GUARD;
    member->in = malloc(member->room * sizeof(uint64_t));
    member->out = malloc(member->room * sizeof(uint64_t));
    member->wanted = malloc(member->room * sizeof(uint64_t));
    assert_true(NULL != member->in && NULL != member->out && NULL != member->wanted);
}

static void t_leave(t_member_t *member)
{
    r2_segment_close(&member->team.segment);
    free(member->in);
    free(member->out);
    free(member->wanted);
}

/* Lengths at which something changes come often. */
static uint32_t t_count(r2_prng_t *all, const t_job_t *job, const r2_segment_t *segment)
{
    const uint32_t slot = (uint32_t) (segment->slot_bytes / 8),
                   piece = (uint32_t) segment->piece_bytes / 8;
    const uint32_t size = (uint32_t) job->size;
    const uint32_t edges[] = {1, slot, slot / size, piece, piece / size, 6, job->most - 1};
    uint32_t count = edges[r2_prng_below(all, r2_array_count(edges))];

    count = 0 == r2_prng_below(all, 4) ? 1 + (uint32_t) r2_prng_below(all, job->most) : count;
    count += (uint32_t) r2_prng_below(all, 3);
    return (uint32_t) r2_clamp_u64(count > 1 ? count - 1 : 1, 1, job->most);
}

static void *t_work(void *arg)
{
    t_member_t *member = arg;
    t_job_t *job = member->job;
    r2_prng_t all;

    r2_prng_seed(&all, job->seed);
    r2_prng_seed(&member->own, job->seed + 1 + (uint64_t) member->rank);
    t_join(member);
    unreadable = job->refuses ? &member->own : NULL;
    for (uint32_t i = 0; i < job->calls; ++i) {
        const t_call_t call = {
            .number = i,
            .kind = kinds[r2_prng_below(&all, r2_array_count(kinds))],
            .root = (int32_t) r2_prng_below(&all, (uint64_t) job->size),
            .count = t_count(&all, job, &member->team.segment),
        };
        t_call_t rooted = call;
        r2_status_t status;

        if (R2_COLL_REDUCE != call.kind && R2_COLL_BCAST != call.kind &&
            R2_COLL_GATHER != call.kind && R2_COLL_SCATTER != call.kind) {
            rooted.root = 0;
        }
        if (0 == r2_prng_below(&member->own, 40)) {
            usleep(200);
        }
        member->team.refusals = job->refuses ? 0 : member->team.refusals;
        status = t_make(member, &rooted, i + 1);
        if (R2_OK != status) {
            fprintf(stderr, "call %u: rank %d: %s\n", i, member->rank, r2_status_string(status));
            ++job->wrong;
            break;
        }
    }
    t_leave(member);
    return NULL;
}

static void t_run(int32_t size, uint32_t calls, uint32_t most, bool direct, bool refuses)
{
    static t_member_t members[T_MEMBERS];
    pthread_t threads[T_MEMBERS];
    t_job_t job = {.size = size, .calls = calls, .most = most, .seed = seed + (uint64_t) size,
                   .direct = direct, .refuses = refuses,
                   .before = direct ? UINT64_C(3) << 30 : 0};

    memset(members, 0, sizeof(members));
    pthread_barrier_init(&job.met, NULL, (unsigned) size);
    assert_int_equal(r2_segment_create(&members[0].team.segment, size, 0, job.address), R2_OK);
    for (int32_t i = 0; i < size; ++i) {
        job.processes[i] = r2_process_self();
        members[i].job = &job;
        members[i].rank = i;
        assert_int_equal(pthread_create(&threads[i], NULL, t_work, &members[i]), 0);
    }
    for (int32_t i = 0; i < size; ++i) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&job.met);
    assert_int_equal(job.wrong, 0);
}

/** What members that share cores leave to messages. */
static void slower_calls(void **state)
{
    static const struct {
        r2_coll_kind_t kind;
        uint64_t bytes;
        bool slower;
    } rows[] = {
        {R2_COLL_SCATTER, 255, false},       {R2_COLL_SCATTER, (24 << 10) - 1, false},
        {R2_COLL_SCATTER, 24 << 10, true},   {R2_COLL_SCATTER, 128 << 10, false},
        {R2_COLL_GATHER, 64 << 10, false},   {R2_COLL_GATHER, UINT32_MAX, true},
        {R2_COLL_ALLTOALL, 16 << 10, false}, {R2_COLL_ALLTOALL, 24 << 10, true},
        {R2_COLL_ALLREDUCE, 8, false},       {R2_COLL_ALLREDUCE, 1 << 20, false},
        {R2_COLL_BCAST, 64 << 10, false},    {R2_COLL_BARRIER, 0, false},
    };

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        r2_coll_args_t args = {
            .kind = rows[i].kind, .count = rows[i].bytes, .element_bytes = 1};

        assert_int_equal(r2_team_is_slower(&args), rows[i].slower);
        args.count = rows[i].bytes / 2;
        args.element_bytes = 2;
        assert_true(0 != rows[i].bytes % 2 || r2_team_is_slower(&args) == rows[i].slower);
    }
}

static void few_members(void **state)
{
    (void) state;
    for (int32_t size = 2; size <= 5; ++size) {
        t_run(size, 40, 100000 / (uint32_t) size * 2, false, false);
        t_run(size, 60, 100000 / (uint32_t) size * 2, true, false);
        t_run(size, 40, 100000 / (uint32_t) size * 2, true, true);
        t_run(size, 1500, 200, true, false);
    }
}

static void more_members(void **state)
{
    (void) state;
    t_run(8, 150, 6000, true, false);
    t_run(8, 60, 6000, true, true);
    t_run(9, 150, 6000, false, false);
    t_run(T_MEMBERS, 60, 1500, false, false);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slower_calls),
        cmocka_unit_test(few_members),
        cmocka_unit_test(more_members),
    };

    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : seed;
    printf("seed %llu\n", (unsigned long long) seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
