/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Processes with children: children KIND makes a child of each kind that harms nobody; children
 * KIND --die kills rank 1 while its child lives on, and the others have to hear of it. Without
 * KIND: all kinds, of the first sort.
 */
#define _GNU_SOURCE /* asprintf */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT   100000
#define CHILD_S "600" /* until the test ends it */

extern char **environ;

static int me, size;

/* What a rank knows after each child: exact sums, short and long. @return wrong elements. */
static int sums(int round)
{
    static int in[COUNT], out[COUNT];
    int errors = 0;

    for (int count = 1; count <= COUNT; count *= COUNT) {
        for (int i = 0; i < count; ++i) {
            in[i] = me + round * i;
        }
        errors += MPI_SUCCESS != MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; ++i) {
            errors += out[i] != size * (size - 1) / 2 + size * round * i;
        }
    }
    return errors;
}

static void silence(void)
{
    int null = open("/dev/null", O_RDWR);

    for (int fd = 0; fd < 3; ++fd) {
        dup2(null, fd);
    }
}

/* ---- children that live for long: how the child is made. @return its process id */

static pid_t long_fork(void)
{
    pid_t pid = fork();

    if (0 == pid) {
        setsid();
        silence();
        sleep((unsigned) atoi(CHILD_S));
        _exit(0);
    }
    return pid;
}

static pid_t long_spawn(void)
{
    char *command[] = {"sleep", CHILD_S, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;

    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < 3; ++fd) {
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    }
    posix_spawnp(&pid, command[0], &actions, NULL, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* The shell's child is what stays. */
static pid_t long_shell(bool by_popen)
{
    char name[] = "children-XXXXXX", *command = NULL;
    int fd = mkstemp(name), pid = -1;
    FILE *file;

    if (fd < 0 || 0 > asprintf(&command, "setsid sleep %s <&- >/dev/null 2>&1 & echo $! >%s",
                               CHILD_S, name)) {
        return -1;
    }
    if (!by_popen) {
        (void) !system(command);
    } else {
        file = popen(command, "r");
        pclose(file);
    }
    file = fdopen(fd, "r");
    if (NULL == file || 1 != fscanf(file, "%d", &pid)) {
        pid = -1;
    }
    fclose(file);
    unlink(name);
    free(command);
    return pid;
}

static pid_t long_system(void)
{
    return long_shell(false);
}

static pid_t long_popen(void)
{
    return long_shell(true);
}

static pid_t long_none(void)
{
    return getppid(); /* the comparison: some process that lives on */
}

/* ---- children that end by themselves: what the child does */

static void child_return(void)
{
    exit(0); /* runs exit handlers and destructors */
}

static void child_leave(void)
{
    _exit(0);
}

static void child_crash(void)
{
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void child_call(void)
{
    execlp("true", "true", (char *) NULL);
}

/* Calls into MPI: an error, or nothing, but no harm and no hang. */
static void child_mpi(void)
{
    int one = 1, sum = 0;
    MPI_Request request = MPI_REQUEST_NULL;

    alarm(60);
    silence();
    if (MPI_SUCCESS == MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) ||
        MPI_SUCCESS == MPI_Barrier(MPI_COMM_WORLD) ||
        (MPI_SUCCESS == MPI_Ibarrier(MPI_COMM_WORLD, &request) &&
         MPI_SUCCESS == MPI_Wait(&request, MPI_STATUS_IGNORE))) {
        _exit(1);
    }
    exit(0);
}

/* A child of a child, as daemons are made. */
static void child_twice(void)
{
    pid_t pid = fork();

    if (0 == pid) {
        setsid();
        exit(0);
    }
    waitpid(pid, NULL, 0);
    _exit(0);
}

typedef struct kind {
    const char *name;
    pid_t (*make)(void); /* lives on */
    void (*run)(void);   /* ends */
    bool fails;          /* with a status that is not 0 */
} kind_t;

static const kind_t kinds[] = {
    {"none", long_none, NULL, false},     {"fork", long_fork, NULL, false},
    {"spawn", long_spawn, NULL, false},   {"system", long_system, NULL, false},
    {"popen", long_popen, NULL, false},   {"exit", NULL, child_return, false},
    {"_exit", NULL, child_leave, false},  {"abort", NULL, child_crash, true},
    {"exec", NULL, child_call, false},    {"mpi", NULL, child_mpi, false},
    {"daemon", NULL, child_twice, false},
};

/* Children while calls are under way, which go on. @return errors. */
static int run(const kind_t *kind)
{
    int in[64], out[64], errors = 0, status = 0;
    MPI_Request request;
    pid_t pid;

    for (int i = 0; i < 64; ++i) {
        in[i] = me + i;
    }
    MPI_Iallreduce(in, out, 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    pid = NULL != kind->make ? kind->make() : fork();
    if (0 == pid) {
        kind->run();
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 64; ++i) {
        errors += out[i] != size * (size - 1) / 2 + size * i;
    }
    errors += pid < 0;
    for (int round = 0; round < 20; ++round) {
        errors += sums(round);
    }
    if (NULL == kind->make) {
        errors += pid != waitpid(pid, &status, 0) || (0 != status) != kind->fails;
    } else if (long_none != kind->make && pid > 0) {
        errors += 0 != kill(pid, 0); /* it lives, and nothing was disturbed */
        kill(pid, SIGKILL);
    }
    return errors + sums(20);
}

/* Rank 1 dies; its child, whose number all know, does not. */
static int die(const kind_t *kind)
{
    int pid = 1 == me ? (int) kind->make() : 0, rc, one = 1, sum;
    double start;

    MPI_Bcast(&pid, 1, MPI_INT, 1, MPI_COMM_WORLD);
    sums(1);
    start = MPI_Wtime();
    if (1 == me) {
        printf("child %d\n", pid);
        fflush(stdout);
        kill(getpid(), SIGKILL);
    }
    rc = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d: %s after %.2f s, the child %s\n", me, MPI_SUCCESS == rc ? "no error" : "error",
           MPI_Wtime() - start, 0 == kill(pid, 0) || EPERM == errno ? "lives" : "is gone");
    fflush(stdout);
    if (long_none != kind->make) {
        kill(pid, SIGKILL);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    int number = 0, failures = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    sums(0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        int errors, all;

        if (argc > 1 && 0 != strcmp(argv[1], kinds[i].name)) {
            continue;
        }
        if (argc > 2) {
            return die(&kinds[i]);
        }
        errors = run(&kinds[i]);
        MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        failures += all;
        if (0 == me) {
            printf("%sok %d - child: %s\n", 0 == all ? "" : "not ", ++number, kinds[i].name);
            fflush(stdout);
        }
    }
    if (0 == me) {
        printf("1..%d\n", number);
    }
    MPI_Finalize();
    return 0 != failures;
}
