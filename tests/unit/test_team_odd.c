/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Segments and teams when something is odd: members that make different calls, no memory, segments
 * that cannot be opened, processes that end or are stopped.
 */
#include "r2_config.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "local/process.h"
#include "local/team.h"
#include "local/team_parts.h"

#define T_MEMBERS 3
#define T_LONG    100000u

/** What one of the members does in place of what the others do, and whether two calls later all
 * know. */
typedef struct t_clash {
    const char *name;
    r2_coll_args_t usual, odd;
    bool elsewhere; /* the odd one makes a call that is no team's */
    bool others;    /* that is what the others do, and nothing behind it */
} t_clash_t;

typedef struct t_member {
    const t_clash_t *clash; /* borrowed */
    uint8_t *address;       /* borrowed */
    int32_t rank;
    r2_team_t team;
    r2_status_t status;
    pthread_barrier_t *met; /* borrowed */
    char in[T_MEMBERS * T_LONG], out[T_MEMBERS * T_LONG];
} t_member_t;

/* Who has found out tells the others: in a job by links. */
static atomic_bool told;

static void t_reduce(void *arg, const void *in, void *inout, size_t count)
{
    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        ((unsigned char *) inout)[i] ^= ((const unsigned char *) in)[i];
    }
}

static r2_status_t t_pause(void *arg, int32_t member, uint32_t turn)
{
    t_member_t *self = arg;

    (void) member;
    sched_yield();
    if (turn < 20) {
        return R2_OK;
    }
    if (atomic_load(&told) || R2_OK != r2_team_look(&self->team)) {
        return R2_ERR_PLAN_MISMATCH;
    }
    return R2_IN_PROGRESS;
}

static const t_clash_t clashes[] = {
    {.name = "count", .usual = {.kind = R2_COLL_ALLREDUCE, .count = 8},
     .odd = {.kind = R2_COLL_ALLREDUCE, .count = 9}},
    {.name = "short and long", .usual = {.kind = R2_COLL_ALLREDUCE, .count = 8},
     .odd = {.kind = R2_COLL_ALLREDUCE, .count = T_LONG}},
    {.name = "long and short", .usual = {.kind = R2_COLL_BCAST, .count = T_LONG},
     .odd = {.kind = R2_COLL_BCAST, .count = 8}},
    {.name = "long", .usual = {.kind = R2_COLL_ALLGATHER, .count = T_LONG},
     .odd = {.kind = R2_COLL_ALLGATHER, .count = T_LONG - 1}},
    {.name = "operation", .usual = {.kind = R2_COLL_ALLREDUCE, .count = 8},
     .odd = {.kind = R2_COLL_ALLREDUCE, .count = 8, .meaning = 1}},
    {.name = "kind", .usual = {.kind = R2_COLL_BARRIER},
     .odd = {.kind = R2_COLL_ALLREDUCE, .count = 8}},
    {.name = "who gives only", .usual = {.kind = R2_COLL_GATHER, .count = 8},
     .odd = {.kind = R2_COLL_BCAST, .root = 1, .count = 8}},
    {.name = "root", .usual = {.kind = R2_COLL_BCAST, .count = 8},
     .odd = {.kind = R2_COLL_BCAST, .root = 1, .count = 8}},
    {.name = "root, long", .usual = {.kind = R2_COLL_REDUCE, .count = T_LONG},
     .odd = {.kind = R2_COLL_REDUCE, .root = 1, .count = T_LONG}},
    {.name = "elsewhere", .usual = {.kind = R2_COLL_BARRIER}, .elsewhere = true},
    {.name = "the others elsewhere", .odd = {.kind = R2_COLL_BCAST, .root = 1, .count = 8},
     .others = true},
};

static r2_status_t t_call(t_member_t *member, const r2_coll_args_t *what, uint32_t place)
{
    r2_coll_args_t args = *what;

    args.in = member->in;
    args.out = member->out;
    args.element_bytes = 1;
    args.reduce = t_reduce;
    return r2_team_run(&member->team, &args, r2_team_way(&member->team.segment, &args), place);
}

/* What went by slots is not withdrawn: others may still read it from there. */
static void t_check_sources(const t_member_t *member)
{
    for (uint32_t i = 0; i < R2_SEGMENT_DIGESTS; ++i) {
        assert_int_equal(r2_segment_member(&member->team.segment, member->rank)->sources[i], 0);
    }
}

/* Calls before it and behind it are those of all. */
static void *t_work(void *arg)
{
    static const r2_coll_args_t barrier = {.kind = R2_COLL_BARRIER};
    t_member_t *member = arg;
    const bool odd = 1 == member->rank;
    const t_clash_t *clash = member->clash;

    if (0 != member->rank) {
        assert_int_equal(
            r2_segment_open(&member->team.segment, T_MEMBERS, member->rank, member->address),
            R2_OK);
    }
    assert_int_equal(r2_segment_grow(&member->team.segment), R2_OK);
    pthread_barrier_wait(member->met);
    member->team.wait = (r2_team_wait_t){.pause = t_pause, .arg = member, .looks = 10};
    member->status = t_call(member, &barrier, 1);
    assert_int_equal(member->status, R2_OK);
    if ((odd && clash->elsewhere) || (!odd && clash->others)) {
        r2_team_elsewhere(&member->team, 2);
        while (clash->others && !atomic_load(&told)) {
            sched_yield();
        }
    } else {
        member->status = t_call(member, odd ? &clash->odd : &clash->usual, 2);
    }
    for (uint32_t i = 3; i < 5 && R2_OK == member->status; ++i) {
        member->status = t_call(member, &barrier, i);
    }
    atomic_store(&told, true);
    pthread_barrier_wait(member->met);
    t_check_sources(member);
    r2_segment_close(&member->team.segment);
    return NULL;
}

/* @return members that have not gone on. */
static uint32_t t_clash_once(const t_clash_t *clash)
{
    static t_member_t members[T_MEMBERS];
    uint8_t address[R2_SHARED_ADDRESS_BYTES];
    pthread_t threads[T_MEMBERS];
    pthread_barrier_t met;
    uint32_t found = 0;

    memset(members, 0, sizeof(members));
    atomic_store(&told, false);
    pthread_barrier_init(&met, NULL, T_MEMBERS);
    assert_int_equal(r2_segment_create(&members[0].team.segment, T_MEMBERS, 0, address), R2_OK);
    for (int32_t i = 0; i < T_MEMBERS; ++i) {
        members[i].clash = clash;
        members[i].address = address;
        members[i].rank = i;
        members[i].met = &met;
        assert_int_equal(pthread_create(&threads[i], NULL, t_work, &members[i]), 0);
    }
    for (int32_t i = 0; i < T_MEMBERS; ++i) {
        pthread_join(threads[i], NULL);
        found += R2_ERR_PLAN_MISMATCH == members[i].status ? 1 : 0;
    }
    pthread_barrier_destroy(&met);
    return found;
}

static void who_makes_other_calls_is_found_out(void **state)
{
    (void) state;
    for (size_t i = 0; i < r2_array_count(clashes); ++i) {
        print_message("%s\n", clashes[i].name);
        for (uint32_t times = 0; times < 20; ++times) {
            assert_int_equal(t_clash_once(&clashes[i]), T_MEMBERS);
        }
    }
}

/* One that has met the others and makes no call yet is behind them, however many calls the
 * communicator has made before. */
static void who_is_behind_is_waited_for(void **state)
{
    static const uint32_t places[] = {1, UINT32_C(1) << 31, UINT32_MAX - 5, UINT32_MAX};
    static t_member_t members[2];
    static const r2_coll_args_t broadcast = {.kind = R2_COLL_BCAST, .count = 8};
    uint8_t address[R2_SHARED_ADDRESS_BYTES];

    (void) state;
    for (size_t i = 0; i < r2_array_count(places); ++i) {
        memset(members, 0, sizeof(members));
        assert_int_equal(r2_segment_create(&members[0].team.segment, 2, 0, address), R2_OK);
        assert_int_equal(r2_segment_open(&members[1].team.segment, 2, 1, address), R2_OK);
        r2_team_elsewhere(&members[1].team, places[i]); /* as when they meet */
        assert_int_equal(t_call(&members[0], &broadcast, places[i] + 1), R2_OK);
        assert_int_equal(r2_team_look(&members[0].team), R2_OK);
        r2_segment_close(&members[0].team.segment);
        r2_segment_close(&members[1].team.segment);
    }
}

/* An allreduce goes by blocks only where a slot has room for an element of each. */
static void blocks_fit_their_slots(void **state)
{
    r2_coll_args_t args = {.kind = R2_COLL_ALLREDUCE, .element_bytes = 2048, .count = 128};
    r2_team_t team = {.folds_direct = true,
                      .direct_bytes = 16384,
                      .segment = {.size = 16, .piece_bytes = 32768}};

    (void) state;
    assert_false(r2_team_long_shares(&team, &args));
    args.element_bytes = 2056;
    assert_true(r2_team_long_shares(&team, &args));
}

/* ---- memory of who has failed ---- */

static atomic_bool has_read, has_returned;

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count,
                                unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count,
                                unsigned long flags);

/* The owner's call fails meanwhile, and it uses its memory. */
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count,
                                unsigned long flags)
{
    atomic_store(&has_read, true);
    while (!atomic_load(&has_returned)) {
        sched_yield();
    }
    return __real_process_vm_readv(pid, local, local_count, remote, remote_count, flags);
}

static r2_status_t t_pause_and_fail(void *arg, int32_t member, uint32_t turn)
{
    const t_member_t *self = arg;

    (void) member;
    sched_yield();
    return atomic_load(0 == self->rank ? &has_read : &has_returned) && turn > 5 ? R2_ERR_PEER_GONE
                                                                                : R2_OK;
}

static void *t_broadcast(void *arg)
{
    static const r2_coll_args_t broadcast = {.kind = R2_COLL_BCAST, .count = T_LONG};
    t_member_t *member = arg;
    const r2_process_t processes[2] = {r2_process_self(), r2_process_self()};

    if (0 != member->rank) {
        assert_int_equal(r2_segment_open(&member->team.segment, 2, member->rank, member->address),
                         R2_OK);
    }
    assert_int_equal(r2_segment_grow(&member->team.segment), R2_OK);
    pthread_barrier_wait(member->met);
    member->team.wait = (r2_team_wait_t){.pause = t_pause_and_fail, .arg = member, .looks = 10};
    member->team.processes = processes;
    member->status = t_call(member, &broadcast, 1);
    if (0 == member->rank) {
        memset(member->out, 1, sizeof(member->out));
        atomic_store(&has_returned, true);
    }
    pthread_barrier_wait(member->met);
    r2_segment_close(&member->team.segment);
    return NULL;
}

static void memory_of_who_has_failed_is_not_taken(void **state)
{
    static t_member_t members[2];
    uint8_t address[R2_SHARED_ADDRESS_BYTES];
    pthread_t threads[2];
    pthread_barrier_t met;

    (void) state;
    memset(members, 0, sizeof(members));
    pthread_barrier_init(&met, NULL, 2);
    assert_int_equal(r2_segment_create(&members[0].team.segment, 2, 0, address), R2_OK);
    for (int32_t i = 0; i < 2; ++i) {
        members[i].address = address;
        members[i].rank = i;
        members[i].met = &met;
        assert_int_equal(pthread_create(&threads[i], NULL, t_broadcast, &members[i]), 0);
    }
    for (int32_t i = 0; i < 2; ++i) {
        pthread_join(threads[i], NULL);
        assert_int_equal(members[i].status, R2_ERR_PEER_GONE);
    }
    pthread_barrier_destroy(&met);
}

/* ---- memory ---- */

static void a_segment_takes_what_it_needs(void **state)
{
    uint8_t address[R2_SHARED_ADDRESS_BYTES];
    r2_segment_t first, second;
    struct stat file;

    (void) state;
    assert_int_equal(r2_segment_create(&first, 128, 0, address), R2_OK);
    assert_int_equal(r2_segment_open(&second, 128, 127, address), R2_OK);
    assert_true(first.memory != second.memory && first.bytes == second.bytes);
    r2_segment_member(&first, 127)->sleepers = 7;
    assert_int_equal(r2_segment_member(&second, 127)->sleepers, 7);
    if (!first.grown) { /* the page with the id, and for each a page and four slots of 2 KiB */
        assert_int_equal(fstat(first.fd, &file), 0);
        assert_int_equal(512 * file.st_blocks, R2_SHARED_PAGE + 2 * (R2_SHARED_PAGE + 4 * 2048));
        assert_int_equal(r2_segment_grow(&first), R2_OK);
        assert_int_equal(fstat(first.fd, &file), 0);
        assert_int_equal(512 * file.st_blocks, R2_SHARED_PAGE + 2 * (R2_SHARED_PAGE + 4 * 2048) +
                                                   R2_SEGMENT_LONG_SLOTS * first.piece_bytes);
    }
    r2_segment_close(&second);
    r2_segment_close(&first);
    assert_int_equal(r2_segment_open(&second, 128, 127, address), R2_ERR_UNSUPPORTED);
}

static void no_memory_is_said(void **state)
{
    uint8_t address[R2_SHARED_ADDRESS_BYTES];
    struct rlimit before, least;
    r2_segment_t first, second;

    (void) state;
    assert_int_equal(r2_segment_create(&first, 2, 0, address), R2_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    least = before;
    least.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &least), 0);
    assert_int_equal(r2_segment_create(&second, 2, 0, address + 0), R2_ERR_SYSTEM);
    assert_int_equal(r2_segment_open(&second, 2, 1, address), R2_ERR_UNSUPPORTED);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    r2_segment_close(&first);
}

/* ---- processes ---- */

static void processes_end(void **state)
{
    r2_process_t child = {.start = 0}, other;
    int ways[2];
    pid_t pid;

    (void) state;
    assert_int_equal(pipe(ways), 0);
    pid = fork();
    assert_true(0 <= pid);
    if (0 == pid) {
        child = r2_process_self();
        _exit(sizeof(child) == write(ways[1], &child, sizeof(child)) ? pause() : 1);
    }
    assert_int_equal(read(ways[0], &child, sizeof(child)), sizeof(child));
    assert_int_equal(child.pid, pid);
    assert_true(0 != child.start && r2_process_is_seen(&child));
    assert_false(r2_process_has_ended(&child));
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    assert_false(r2_process_has_ended(&child)); /* stopped is not ended */
    other = child;
    ++other.start; /* another one with that number */
    assert_false(r2_process_is_seen(&other));
    assert_true(r2_process_has_ended(&other));
    assert_int_equal(kill(pid, SIGKILL), 0);
    while (!r2_process_has_ended(&child)) { /* nobody has waited for it */
        sched_yield();
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(r2_process_has_ended(&child));
    assert_false(r2_process_is_seen(&child));
    close(ways[0]);
    close(ways[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_makes_other_calls_is_found_out),
        cmocka_unit_test(who_is_behind_is_waited_for),
        cmocka_unit_test(blocks_fit_their_slots),
        cmocka_unit_test(memory_of_who_has_failed_is_not_taken),
        cmocka_unit_test(a_segment_takes_what_it_needs),
        cmocka_unit_test(no_memory_is_said),
        cmocka_unit_test(processes_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
