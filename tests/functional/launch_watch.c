/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Tells a launcher that stands still from a test that does. Where a second job is spawned after the
 * first one has ended, a process of it stands in PMIx_Init with 4.1.4 and PMIx 4.2, and the others
 * in MPI_Init's sleep until the fence has come: 8 of 73 runs over stock btl/tcp, 3 of 80 over r2. A
 * process that is found there for so long says so, and ends mpirun: where R2_TEST_WATCHES_LAUNCH is
 * set, by who tries again then.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE_S 10 /* of MPI_Init */
#define LOOKS      50 /* a tenth of a second apart: at times it is awake */
#define FRAMES     24

static volatile sig_atomic_t looks, awaited;
static pid_t launcher;

/* Whether MPI_Init sleeps or is in PMIx_Init, and no function of r2 is under way. */
static bool launcher_is_awaited(void *const *frames, int count)
{
    bool sleeps = true; /* all functions so far are the C library's */
    bool connects = false;

    for (int i = 1; i < count; ++i) {
        Dl_info info;
        const char *file;

        if (0 == dladdr(frames[i], &info) || NULL == info.dli_fname) {
            return false;
        }
        file = strrchr(info.dli_fname, '/');
        if (NULL == file || NULL != strstr(file, "r2")) {
            return false;
        }
        if (NULL != info.dli_sname && 0 == strcmp(info.dli_sname, "ompi_mpi_init")) {
            return sleeps || connects;
        }
        connects = connects || (NULL != info.dli_sname && 0 == strcmp(info.dli_sname, "PMIx_Init"));
        sleeps = sleeps && NULL != strstr(file, "/libc.so");
    }
    return false;
}

static void look(int signo)
{
    static const char said[] = "# MPI_Init waits for mpirun\n";
    void *frames[FRAMES];

    (void) signo;
    /* The first frame is this function's. */
    if (launcher_is_awaited(frames, backtrace(frames, FRAMES))) {
        ++awaited;
    }
    if (++looks == LOOKS && awaited > LOOKS / 2) {
        (void) !write(STDERR_FILENO, said, sizeof(said) - 1);
        sleep(3); /* others say so, too */
        if (launcher > 1 && launcher == getppid()) {
            kill(launcher, SIGTERM);
        }
    }
}

int MPI_Init(int *argc, char ***argv)
{
    const struct itimerval never = {{0, 0}, {0, 0}}, soon = {{0, 100000}, {PATIENCE_S, 0}};
    const struct sigaction watch = {.sa_handler = look, .sa_flags = SA_RESTART};
    void *frame;
    int rc;

    if (NULL == getenv("R2_TEST_WATCHES_LAUNCH")) {
        return PMPI_Init(argc, argv);
    }
    launcher = getppid();
    backtrace(&frame, 1); /* what it needs is loaded now */
    sigaction(SIGALRM, &watch, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    rc = PMPI_Init(argc, argv);
    setitimer(ITIMER_REAL, &never, NULL);
    return rc;
}
