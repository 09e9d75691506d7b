/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Processes die under mpirun --with-ft ulfm (Open MPI 5.0), and the others go on without them:
 *   ulfm before|in|after CALL  the last rank dies before it enters CALL, while CALLs are made, or
 *                              after its first one
 *   ulfm two CALL              the last two die together while CALLs are made
 *   ulfm shrink|agree CALL     as in, and the one before it dies while the others shrink or agree
 *   ulfm root CALL             as agree, and it is rank 0 that dies then, whom the others' answers
 *                              go through
 *   ulfm absent CALL           as root, and rank 0 does not come to agree: it dies when all that
 *                              the others have sent it has arrived, so that nobody waits for it
 *                              but in the agreement
 *   ulfm first CALL            as absent, and nobody has died before
 *   ulfm revoke CALL           nobody dies: rank 0 revokes while the others are in CALL
 *   ulfm stand CALL            nobody dies, and rank 0 never comes to the first CALL: the job
 *                              stands still, for who looks for the evidence of that
 * Each survivor has MPI_ERR_PROC_FAILED (or MPI_ERR_REVOKED) within a second, knows the dead,
 * agrees with the others, shrinks, and reduces exactly on what is left. One line for each survivor:
 *   rank R: CASE CALL: MS ms, left N, on r2, W wrong
 * Death is timed by CLOCK_MONOTONIC, which all hosts of a lab share.
 */
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#if OMPI_MAJOR_VERSION >= 5 && defined(OMPI_HAVE_MPI_EXT_FTMPI)

#    include "call_kinds.h"

enum { LIMIT_S = 10, HANG_S = 240, SUM = 20000, REDUCTIONS = 10, LEAVE_US = 300000 };

/* With any other exit code the launcher sends an event that Open MPI's ULFM does not know, and
 * whoever hears it aborts, in whatever it is. What was wrong is on the line of each. */
enum { LEFT = 0 };

static const char *what, *call_name;
static const char *volatile step = "MPI_Init"; /* said by who hangs in it */
static int wrong;
static bool is_r2;   /* r2 runs this job: it has counters */
static double die_s; /* when the first one dies */

/* From the exchange of that time on: all of them have to be out of it by then, on few cores,
 * too. */
enum { DIE_MS = 150, DIE_MS_PER_RANK = 50, ABSENT_MS = 1500 };

static void hung(int signal)
{
    (void) signal;
    (void) !write(STDERR_FILENO, "hangs in ", 9);
    (void) !write(STDERR_FILENO, step, strlen(step));
    (void) !write(STDERR_FILENO, "\n", 1);
    _exit(LEFT);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static int class_of(int rc)
{
    int class;

    MPI_Error_class(rc, &class);
    return class;
}

/* Counts a mistake and says what it is. */
static void expect(bool right, const char *text, int value)
{
    if (!right) {
        ++wrong;
        fprintf(stderr, "rank %d: %s %s: wrong: %s (%d)\n", me, what, call_name, text, value);
    }
}

/* A child kills its parent at that time, however busy the machine is, if it may be so quick. */
static void die_at(double at_s)
{
    const struct timespec at = {(time_t) at_s, (long) (1e9 * (at_s - (double) (time_t) at_s))};
    const pid_t parent = getpid();

    if (0 == fork()) {
        (void) !setpriority(PRIO_PROCESS, 0, -20);
        while (0 != clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL)) {
            /* a signal */
        }
        kill(parent, SIGKILL);
        _exit(0);
    }
}

static bool is(const char *name)
{
    return 0 == strcmp(what, name);
}

/* How many die in the first call. */
static int victims(void)
{
    return is("revoke") || is("first") ? 0 : is("two") ? 2 : 1;
}

/* ---- the error */

/* What the last ranks do. Those that die do not return. */
static void play_victim(call_t call, int n)
{
    die_at(die_s);
    if (is("after")) {
        (void) call(n, MPI_COMM_WORLD);
    }
    while (is("before") || is("after")) {
        pause();
    }
}

/* Calls until one fails. @return the class of the error. */
static int until_error(call_t call, int n)
{
    int rc = MPI_SUCCESS;

    if (is("revoke") && 0 == me) {
        while (now_s() < die_s) {
            usleep(200);
        }
        return class_of(MPIX_Comm_revoke(MPI_COMM_WORLD)); /* success */
    }
    while (MPI_SUCCESS == rc && now_s() - die_s < LIMIT_S) {
        rc = call(n, MPI_COMM_WORLD);
        if (MPI_SUCCESS == rc && !is("revoke")) {
            rc = MPI_Barrier(MPI_COMM_WORLD); /* who has all that it needs does not notice */
        }
    }
    return class_of(rc);
}

/* Who has the error of a death knows of one, at once; who heard of the revocation first need
 * not. */
static void acknowledge(int class)
{
    MPI_Group failed;
    int count;

    expect(MPI_SUCCESS == MPIX_Comm_failure_ack(MPI_COMM_WORLD), "failure_ack", 0);
    MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &failed);
    MPI_Group_size(failed, &count);
    MPI_Group_free(&failed);
    expect(MPI_ERR_PROC_FAILED != class || count > 0, "known dead", count);
}

/* ---- going on */

/* Does the communicator run on r2? Its counter of collectives says so. */
static unsigned long long r2_collectives(void)
{
    static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    static MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    unsigned long long value = 0;
    int index, count, level;

    if (MPI_T_PVAR_SESSION_NULL == session) {
        MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
        MPI_T_pvar_session_create(&session);
        if (MPI_SUCCESS ==
            MPI_T_pvar_get_index("coll_r2_collectives", MPI_T_PVAR_CLASS_GENERIC, &index)) {
            MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
            is_r2 = true;
        }
    }
    if (MPI_T_PVAR_HANDLE_NULL != handle) { /* else without r2, to compare with */
        MPI_T_pvar_read(session, handle, &value);
    }
    return value;
}

/* Exact sums of ints and doubles on what is left. */
static void reduce_exactly(MPI_Comm rest)
{
    static double from[SUM], to[SUM];
    int rank, ranks;

    MPI_Comm_rank(rest, &rank);
    MPI_Comm_size(rest, &ranks);
    for (int round = 0; round < REDUCTIONS; ++round) {
        for (int i = 0; i < SUM; ++i) {
            in[i] = rank + round * i;
            from[i] = 0.5 * (rank + i);
        }
        expect(MPI_SUCCESS == MPI_Allreduce(in, out, SUM, MPI_INT, MPI_SUM, rest), "ints", round);
        expect(MPI_SUCCESS == MPI_Allreduce(from, to, SUM, MPI_DOUBLE, MPI_SUM, rest), "doubles",
               round);
        for (int i = 0; i < SUM; ++i) {
            const int sum = ranks * (ranks - 1) / 2;

            if (out[i] != sum + ranks * round * i || to[i] != 0.5 * (sum + ranks * i)) {
                expect(false, "sum", i);
                break;
            }
        }
    }
}

static bool root_dies(void)
{
    return is("root") || is("absent") || is("first");
}

/* Who dies while the others agree; -1: nobody. */
static int dies_agreeing(void)
{
    return is("agree") ? size - 2 : root_dies() ? 0 : -1;
}

/* All that are left have agreed on the same, and nothing but what they gave. */
static void agree(void)
{
    int flag = 0x7fff & ~(1 << (me % 8)), rc;

    if (is("first") && 0 == me) {
        die_at(die_s);
    } else if (dies_agreeing() == me) {
        die_at(now_s() + 1e-3 * (is("absent") ? ABSENT_MS : getpid() % 5));
    }
    while ((is("absent") || is("first")) && 0 == me) {
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE); /* progress */
    }
    rc = class_of(MPIX_Comm_agree(MPI_COMM_WORLD, &flag));
    while (dies_agreeing() == me) {
        pause();
    }
    expect(MPI_SUCCESS == rc || MPI_ERR_PROC_FAILED == rc, "agree", rc);
    for (int r = root_dies(); r < size - (root_dies() ? victims() : 2); ++r) {
        expect(0 == (flag & (1 << (r % 8))), "agreed without", r);
    }
    counts[0] = flag;
    counts[1] = rc;
}

/* @return how many are left. */
static int shrink(int dead)
{
    const unsigned long long before = r2_collectives();
    int low[2], high[2], left = 0, rc;
    MPI_Comm rest = MPI_COMM_NULL;

    if (is("shrink") && size - 2 == me) {
        die_at(now_s() + 1e-3 * (getpid() % 10));
    }
    rc = MPIX_Comm_shrink(MPI_COMM_WORLD, &rest);
    expect(MPI_SUCCESS == rc, "shrink", class_of(rc));
    while (is("shrink") && size - 2 == me) {
        pause();
    }
    while (MPI_SUCCESS == rc) { /* who died after it was agreed on leaves another time */
        MPI_Comm again;

        MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
        rc = MPI_Allreduce(counts, low, 2, MPI_INT, MPI_MIN, rest);
        rc = MPI_SUCCESS == rc ? MPI_Allreduce(counts, high, 2, MPI_INT, MPI_MAX, rest) : rc;
        left = MPI_SUCCESS != rc;
        if (MPI_SUCCESS != MPIX_Comm_agree(rest, &(int){1}) || 0 != left) {
            MPIX_Comm_revoke(rest);
            rc = MPIX_Comm_shrink(rest, &again);
            rest = again;
            continue;
        }
        break;
    }
    step = "what is left";
    MPI_Comm_size(rest, &left);
    expect(0 == memcmp(low, high, sizeof(low)), "others have agreed on something else", low[0]);
    expect(left == size - dead, "left", left);
    reduce_exactly(rest);
    MPI_Barrier(rest);
    expect(!is_r2 || r2_collectives() >= before + 2 * REDUCTIONS, "not on r2",
           (int) (r2_collectives() - before));
    MPI_Comm_free(&rest);
    return left;
}

/* Calls fail, and the communicator is revoked. @return ms from the death to the error. */
static double fail(call_t call, int n)
{
    const int wanted = 0 == victims() ? MPI_ERR_REVOKED : MPI_ERR_PROC_FAILED;
    double took_ms;
    int class, revoked = 0;

    step = "calls";
    class = until_error(call, n);
    step = "failure_ack";
    took_ms = 1e3 * (now_s() - die_s);
    if (is("revoke") && 0 == me) {
        expect(MPI_SUCCESS == class, "revoke", class);
        class = wanted;
    }
    /* Who is late may have heard that another has revoked it already. */
    expect(wanted == class || MPI_ERR_REVOKED == class, "class", class);
    expect(took_ms >= 0 && took_ms < 1000, "error after ms", (int) took_ms);
    acknowledge(class);
    step = "revoke";
    expect(MPI_SUCCESS == MPIX_Comm_revoke(MPI_COMM_WORLD), "revoke", 0);
    step = "a later call";
    class = class_of(call(SHORT, MPI_COMM_WORLD));
    expect(MPI_ERR_REVOKED == class, "a later call", class);
    MPIX_Comm_is_revoked(MPI_COMM_WORLD, &revoked);
    expect(revoked, "is not revoked", 0);
    return took_ms;
}

static void play(call_t call, int n)
{
    const int dead = victims();
    double at_s = now_s(), took_ms = 0;
    int class, left;

    (void) r2_collectives();
    step = "the first call";
    while (is("stand") && 0 == me) {
        pause();
    }
    (void) call(n, MPI_COMM_WORLD); /* lanes are open */
    step = "the exchange of the time";
    at_s = now_s();
    class = class_of(MPI_Allreduce(&at_s, &die_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    expect(MPI_SUCCESS == class, "the time of death", class); /* too late for DIE_MS */
    die_s += 1e-3 * (DIE_MS + DIE_MS_PER_RANK * size + (is("first") ? ABSENT_MS : 0));
    if (me >= size - dead) {
        play_victim(call, n);
    }
    if (!is("first")) {
        took_ms = fail(call, n);
    }
    step = "agree";
    agree();
    if (is("first")) {
        took_ms = 1e3 * (now_s() - die_s);
        expect(took_ms >= 0 && took_ms < 1e3 * LIMIT_S, "agreed after ms", (int) took_ms);
        acknowledge(MPI_ERR_PROC_FAILED);
    }
    step = "shrink";
    left = shrink(dead + (dies_agreeing() >= 0 || is("shrink")));
    printf("rank %d: %s %s: %.1f ms, left %d, %s, %d wrong\n", me, what, call_name, took_ms, left,
           is_r2 ? "on r2" : "not on r2", wrong);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "in";
    call_name = argc > 2 ? argv[2] : "allreduce";
    signal(SIGALRM, hung);
    alarm(HANG_S);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    in = calloc((size_t) size * LONG, sizeof(*in));
    out = calloc((size_t) size * LONG, sizeof(*out));
    for (size_t i = 0; i < CALLS; ++i) {
        const int n = i % 2 ? LONG : SHORT;

        for (int r = 0; r < size; ++r) {
            counts[r] = n;
            displs[r] = r * n;
        }
        if (0 == strcmp(call_name, calls[i].name)) {
            play(calls[i].call, n);
        }
    }
    usleep(LEAVE_US); /* who leaves without MPI_Finalize may have something to send */
    if (argc > 3 && 0 == strcmp(argv[3], "finalize")) {
        MPI_Finalize();
        printf("rank %d: finalized\n", me);
        fflush(stdout);
    }
    _exit(LEFT);
}

#else

int main(void)
{
    puts("this Open MPI has no ULFM");
    return 77;
}

#endif
