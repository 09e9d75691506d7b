/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Point-to-point on buffers of gpu_alloc.h under mpirun --with-ft ulfm (Open MPI 5.0), three ranks:
 * rank 2 dies while requests of the others wait for it, and rank 0 revokes a communicator on which
 * others wait. Requests that wait for a dead process, blocking, nonblocking and persistent ones,
 * end with its error, are not cancelled and write nothing, also where the program waits for none
 * of them any more. Those for any source stay, and may be cancelled, or get their message. With
 * "threads" MPI is to be used by many, and waits in another way. A line of each survivor:
 *   rank R: N wrong, N mistakes
 * the latter in the use of the driver. MPI_Finalize is not called, since it hangs after a death.
 * "asked": nothing but whether Open MPI has ULFM, by the exit status, 77 if not.
 */
#include <mpi.h>
#include <mpi-ext.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if OMPI_MAJOR_VERSION >= 5 && defined(OMPI_HAVE_MPI_EXT_FTMPI)

#    include "gpu_alloc.h"
#    include "pattern.h"

enum { VICTIM = 2, BYTES = 100000, LONG = 4 << 20, PROGRESS = 100 };
enum { HANG_S = 60, LIMIT_S = 20, DIE_US = 200000 };
enum { LEAVE_US = 300000 }; /* who leaves may have something to send */
enum {
    TAG_WAITED = 1,
    TAG_STARTED,
    TAG_SENT,
    TAG_FREED,
    TAG_BOTH,
    TAG_ANY,
    TAG_CANCELLED,
    TAG_WORD,
    TAG_DATA
};

/** What waits for the victim, or for anybody, while it dies. */
typedef struct waiting {
    MPI_Request waited, started, sent, any, cancelled;
    MPI_Request both[2]; /* somebody waits for these when it dies */
} waiting_t;

static int me, wrong;
static const char *volatile step = "MPI_Init_thread"; /* said by who hangs in it */
static unsigned char *in, *out, *behind;              /* each LONG, of a GPU */

static void hung(int signal)
{
    (void) signal;
    (void) !write(STDERR_FILENO, "hangs in ", 9);
    (void) !write(STDERR_FILENO, step, strlen(step));
    (void) !write(STDERR_FILENO, "\n", 1);
    _exit(2);
}

static void expect(bool right, const char *text, int value)
{
    if (!right) {
        ++wrong;
        printf("# rank %d: wrong: %s: %s (%d)\n", me, step, text, value);
    }
}

static int class_of(int rc)
{
    int class;

    MPI_Error_class(rc, &class);
    return class;
}

/* It has ended with that error, is not cancelled, and has written nothing. */
static void ended(int rc, const MPI_Status *status, int class, const unsigned char *at)
{
    int cancelled = 0;

    expect(class == class_of(rc), "class of the error", class_of(rc));
    MPI_Test_cancelled(status, &cancelled);
    expect(!cancelled, "it counts as cancelled", 0);
    for (long i = 0; NULL != at && i < BYTES; ++i) {
        if (0xa5 != at[i]) {
            expect(false, "something was written", (int) i);
            return;
        }
    }
}

/* What the stand-in for the driver has counted. */
static uint64_t counted(const char *name)
{
    uint64_t (*counter)(const char *) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "fakecuda_counter");

    memcpy(&counter, &symbol, sizeof(counter));
    return NULL == counter ? 0 : counter(name);
}

/* The survivors, with each other, through long pieces of pinned memory: one each. */
static void exchange(int tag)
{
    const int peer = 1 - me;
    MPI_Request request;

    pattern_fill(out, me, tag, LONG);
    memset(in, 0, LONG);
    MPI_Irecv(in, LONG, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
    expect(MPI_SUCCESS == MPI_Send(out, LONG, MPI_BYTE, peer, tag, MPI_COMM_WORLD), "sent", tag);
    expect(MPI_SUCCESS == MPI_Wait(&request, MPI_STATUS_IGNORE), "received", tag);
    expect(0 == pattern_wrong(in, peer, tag, LONG), "bytes", tag);
}

/* The receive that was freed ends although nobody asks: its pinned memory is used again. That of
 * the send is kept until somebody does. */
static void freed(void)
{
    const uint64_t before = counted("cuMemHostAlloc");
    int more;

    step = "a message while others wait for the dead";
    expect(0 != before, "no pinned memory", 0);
    exchange(TAG_DATA);
    more = (int) (counted("cuMemHostAlloc") - before);
    expect(more <= 1, "what was freed keeps its memory", more);
}

static void post(waiting_t *waiting)
{
    MPI_Request freed;

    step = "requests";
    memset(behind, 0xa5, LONG);
    MPI_Irecv(behind, BYTES, MPI_BYTE, VICTIM, TAG_WAITED, MPI_COMM_WORLD, &waiting->waited);
    MPI_Recv_init(behind + BYTES, BYTES, MPI_BYTE, VICTIM, TAG_STARTED, MPI_COMM_WORLD,
                  &waiting->started);
    MPI_Start(&waiting->started);
    MPI_Irecv(behind + 2 * BYTES, BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG_CANCELLED, MPI_COMM_WORLD,
              &waiting->cancelled);
    MPI_Irecv(behind + 3 * BYTES, BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG_ANY, MPI_COMM_WORLD,
              &waiting->any);
    MPI_Isend(out, LONG, MPI_BYTE, VICTIM, TAG_SENT, MPI_COMM_WORLD, &waiting->sent);
    for (int i = 0; i < 2; ++i) {
        MPI_Irecv(behind + (4 + i) * BYTES, BYTES, MPI_BYTE, VICTIM, TAG_BOTH, MPI_COMM_WORLD,
                  &waiting->both[i]);
    }
    MPI_Irecv(in, LONG, MPI_BYTE, VICTIM, TAG_FREED, MPI_COMM_WORLD, &freed);
    MPI_Request_free(&freed);
}

/* Waits, and then the other one dies. */
static void waited_for(waiting_t *waiting)
{
    MPI_Status statuses[2] = {{0}};
    int rc;

    step = "MPI_Waitall for receives when the other one dies";
    rc = MPI_Waitall(2, waiting->both, statuses);
    expect(MPI_ERR_IN_STATUS == class_of(rc), "class of the error", class_of(rc));
    for (int i = 0; i < 2; ++i) {
        ended(statuses[i].MPI_ERROR, &statuses[i], MPI_ERR_PROC_FAILED,
              behind + (4 + i) * (long) BYTES);
    }
}

static void progress(void)
{
    int flag;

    MPI_Iprobe(1 - me, TAG_WORD, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/* Until this process knows of the death. */
static void await_death(void)
{
    const time_t end = time(NULL) + LIMIT_S;
    int count = 0;

    step = "waiting for the word of the death";
    while (0 == count && time(NULL) < end) {
        MPI_Group dead;

        progress();
        MPIX_Comm_get_failed(MPI_COMM_WORLD, &dead);
        MPI_Group_size(dead, &count);
        MPI_Group_free(&dead);
    }
    expect(1 == count, "dead", count);
    for (int i = 0; i < PROGRESS; ++i) {
        progress();
    }
}

static void named_ones(waiting_t *waiting)
{
    MPI_Status status = {0};
    int flag = 0, rc = MPI_SUCCESS;

    step = "MPI_Wait for a receive from the dead";
    rc = MPI_Wait(&waiting->waited, &status);
    ended(rc, &status, MPI_ERR_PROC_FAILED, behind);
    step = "MPI_Test of a persistent receive from the dead";
    while (!flag) {
        rc = MPI_Test(&waiting->started, &flag, &status);
    }
    ended(rc, &status, MPI_ERR_PROC_FAILED, behind + BYTES);
    MPI_Request_free(&waiting->started);
    step = "MPI_Wait for a send to the dead";
    rc = MPI_Wait(&waiting->sent, &status);
    ended(rc, &status, MPI_ERR_PROC_FAILED, NULL);
    step = "MPI_Recv from the dead";
    rc = MPI_Recv(behind, BYTES, MPI_BYTE, VICTIM, TAG_WAITED, MPI_COMM_WORLD, &status);
    ended(rc, &status, MPI_ERR_PROC_FAILED, behind);
    step = "MPI_Send to the dead";
    rc = MPI_Send(out, LONG, MPI_BYTE, VICTIM, TAG_SENT, MPI_COMM_WORLD);
    ended(rc, &status, MPI_ERR_PROC_FAILED, NULL);
}

static void any_source(waiting_t *waiting)
{
    unsigned char *const at = behind + 3L * BYTES;
    MPI_Status status = {0};
    int cancelled = 0, rc;

    step = "MPI_Wait for any source";
    rc = MPI_Wait(&waiting->any, &status);
    ended(rc, &status, MPIX_ERR_PROC_FAILED_PENDING, at);
    rc = MPI_Wait(&waiting->cancelled, &status);
    ended(rc, &status, MPIX_ERR_PROC_FAILED_PENDING, behind + 2L * BYTES);
    step = "MPI_Cancel for any source";
    MPI_Cancel(&waiting->cancelled);
    rc = MPI_Wait(&waiting->cancelled, &status);
    expect(MPI_SUCCESS == rc, "MPI_Wait", class_of(rc));
    MPI_Test_cancelled(&status, &cancelled);
    expect(cancelled, "it is not cancelled", 0);
    step = "any source, once the death is acknowledged";
    exchange(TAG_DATA); /* both have seen that nothing has come */
    MPIX_Comm_failure_ack(MPI_COMM_WORLD);
    pattern_fill(out, me, TAG_ANY, BYTES);
    MPI_Send(out, BYTES, MPI_BYTE, 1 - me, TAG_ANY, MPI_COMM_WORLD);
    rc = MPI_Wait(&waiting->any, &status);
    expect(MPI_SUCCESS == rc && 1 - me == status.MPI_SOURCE, "MPI_Wait", class_of(rc));
    expect(0 == pattern_wrong(at, 1 - me, TAG_ANY, BYTES), "bytes", 0);
}

/* Nobody sends. Rank 0 knows that rank 1 waits, or is about to. */
static void revoked(MPI_Comm comm)
{
    MPI_Request request;
    MPI_Status status = {0};
    int rc;

    step = "a communicator that is revoked";
    memset(behind, 0xa5, LONG);
    MPI_Irecv(behind, BYTES, MPI_BYTE, 1 - me, TAG_WAITED, comm, &request);
    exchange(TAG_WORD);
    if (0 == me) {
        MPIX_Comm_revoke(comm);
    }
    rc = MPI_Wait(&request, &status);
    ended(rc, &status, MPIX_ERR_REVOKED, behind);
    step = "after that";
    exchange(TAG_WORD);
}

int main(int argc, char **argv)
{
    waiting_t waiting;
    MPI_Comm spare;
    char word = 0;
    int level;

    if (argc > 1 && 0 == strcmp(argv[1], "asked")) {
        return 0;
    }
    signal(SIGALRM, hung);
    alarm(HANG_S);
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &spare);
    MPI_Comm_set_errhandler(spare, MPI_ERRORS_RETURN);
    in = buffer_alloc(LONG);
    out = buffer_alloc(LONG);
    behind = buffer_alloc(LONG);
    if (VICTIM == me) {
        for (int i = 0; i < VICTIM; ++i) {
            MPI_Recv(&word, 1, MPI_CHAR, i, TAG_WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        usleep(DIE_US);
        raise(SIGKILL);
    }
    post(&waiting);
    MPI_Send(&word, 1, MPI_CHAR, VICTIM, TAG_WORD, MPI_COMM_WORLD);
    waited_for(&waiting);
    await_death();
    freed();
    named_ones(&waiting);
    any_source(&waiting);
    revoked(spare);
    printf("rank %d: %d wrong, %d mistakes\n", me, wrong, (int) counted("mistakes"));
    fflush(stdout);
    usleep(LEAVE_US);
    _exit(0 == wrong ? 0 : 1);
}

#else

int main(void)
{
    puts("this Open MPI has no ULFM");
    return 77;
}

#endif
