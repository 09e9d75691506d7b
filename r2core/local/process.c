/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Processes of this host: seen, ended.
 */
#include "r2_config.h"

#include "local/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fork.h"

#define R2_PROCESS_TEXT_BYTES 1024

/* Of /proc/PID/stat, counted from behind the name. */
enum { R2_PROCESS_STATE = 1, R2_PROCESS_THREADS = 18, R2_PROCESS_START = 20 };

/** What it says of a process. */
typedef struct r2_process_stat {
    char state;       /* 'Z': it has ended, or its first thread has */
    uint64_t threads; /* that have not, and the first one */
    uint64_t start;   /* 0: it is not there */
} r2_process_stat_t;

/* @param text_p "" if it cannot be read. @return errno of the open. */
static int r2_process_read(const char *path, char *text_p, size_t bytes)
{
    ssize_t length;
    int fd;

    text_p[0] = '\0';
    fd = r2_fd_keep(open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0) {
        return errno;
    }
    length = read(fd, text_p, bytes - 1);
    text_p[length > 0 ? length : 0] = '\0';
    r2_fd_close(fd);
    return 0;
}

/* @param error_p errno where its file could not be opened. */
static r2_process_stat_t r2_process_stat(uint64_t pid, int *error_p)
{
    r2_process_stat_t stat = {.start = 0};
    char text[R2_PROCESS_TEXT_BYTES], path[64], *at;

    snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long) pid);
    *error_p = r2_process_read(path, text, sizeof(text));
    at = strrchr(text, ')'); /* the name may have any characters */
    for (int i = 1; NULL != at && i <= R2_PROCESS_START; ++i) {
        at = strchr(at + 1, ' ');
        if (NULL != at && R2_PROCESS_STATE == i) {
            stat.state = at[1];
        } else if (NULL != at && R2_PROCESS_THREADS == i) {
            stat.threads = strtoull(at, NULL, 10);
        }
    }
    stat.start = NULL == at ? 0 : strtoull(at, NULL, 10);
    return stat;
}

r2_process_t r2_process_self(void)
{
    r2_process_t self = {.pid = (uint64_t) getpid()};
    int error;

    self.start = r2_process_stat(self.pid, &error).start;
    return self;
}

bool r2_process_is_seen(const r2_process_t *process)
{
    int error;

    return 0 != process->start && r2_process_stat(process->pid, &error).start == process->start;
}

/* Its parent may not have waited for it yet, and its first thread may have ended before others. */
static bool r2_process_has_exited(int pidfd)
{
    struct pollfd ends = {.fd = pidfd, .events = POLLIN};

    return 1 == poll(&ends, 1, 0);
}

/* The same where there is no pidfd: before Linux 5.3, or where it is forbidden. */
static bool r2_process_is_zombie(const r2_process_stat_t *stat)
{
    return 'X' == stat->state || ('Z' == stat->state && stat->threads <= 1);
}

bool r2_process_has_ended(const r2_process_t *process)
{
    const int pidfd = r2_fd_keep((int) syscall(SYS_pidfd_open, (pid_t) process->pid, 0));
    bool ended = pidfd < 0 && ESRCH == errno;
    r2_process_stat_t stat;
    int error;

    if (!ended) {
        stat = r2_process_stat(process->pid, &error);
        ended = (0 != stat.start && stat.start != process->start) ||
                (pidfd < 0 && (ENOENT == error || r2_process_is_zombie(&stat)));
    }
    if (pidfd >= 0) {
        ended = ended || r2_process_has_exited(pidfd);
        r2_fd_close(pidfd);
    }
    return ended;
}

void r2_process_admit(const char *scope_path)
{
    char text[8];

    if (0 == r2_process_read(scope_path, text, sizeof(text)) && '1' == text[0]) {
        (void) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    }
}

bool r2_process_fetch(const r2_process_t *process, uint64_t address, void *to, size_t bytes)
{
    size_t at = 0;

    while (at < bytes) {
        const struct iovec here = {.iov_base = (char *) to + at, .iov_len = bytes - at};
        const struct iovec there = {.iov_base = (void *) (uintptr_t) (address + at),
                                    .iov_len = bytes - at};
        const ssize_t moved = process_vm_readv((pid_t) process->pid, &here, 1, &there, 1, 0);

        if (moved <= 0) {
            return false;
        }
        at += (size_t) moved;
    }
    return true;
}
