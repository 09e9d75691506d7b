/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Pictures: r2_timeline at the other end of a pipe.
 */
#include "r2_config.h"

#include "sim/picture.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PICTURE_PROGRAM "r2_timeline"

extern char **environ;

/** Beside this program, where libtool keeps it one folder deeper in a build tree; or in PATH. */
static void picture_program(char *path_p, size_t bytes)
{
    static const char libtool[] = "/.libs";
    char self[PATH_MAX] = "";
    ssize_t used = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *end = used > 0 ? strrchr(self, '/') : NULL;

    if (NULL != end) {
        *end = '\0';
        if ((size_t) (end - self) >= sizeof(libtool) &&
            0 == strcmp(end - (sizeof(libtool) - 1), libtool)) {
            *(end - (sizeof(libtool) - 1)) = '\0';
        }
        if ((size_t) snprintf(path_p, bytes, "%s/" PICTURE_PROGRAM, self) < bytes &&
            0 == access(path_p, X_OK)) {
            return;
        }
    }
    snprintf(path_p, bytes, PICTURE_PROGRAM);
}

/** @param in what the program reads, closed. @return R2_OK or R2_ERR_NOT_FOUND. */
static r2_status_t picture_spawn(const char *path, int in, pid_t *pid_p)
{
    char program[PATH_MAX], output[PATH_MAX];
    char *const argv[] = {program, (char[]){"--output"}, output, (char[]){"-"}, NULL};
    posix_spawn_file_actions_t actions;
    int rc;

    picture_program(program, sizeof(program));
    snprintf(output, sizeof(output), "%s", path);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    rc = posix_spawnp(pid_p, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in);
    return 0 == rc ? R2_OK : R2_ERR_NOT_FOUND;
}

/** Who is given nothing of use says so himself: that we cannot write to him is no news. */
static r2_status_t picture_write(int fd, picture_fn_t write, const void *arg)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct sigaction before;
    FILE *json = fdopen(fd, "w");
    r2_status_t status = R2_ERR_NO_MEMORY;

    if (NULL == json) {
        close(fd);
        return status;
    }
    sigaction(SIGPIPE, &ignored, &before);
    status = write(arg, json);
    fclose(json);
    sigaction(SIGPIPE, &before, NULL);
    return status;
}

r2_status_t picture_draw(const char *path, picture_fn_t write, const void *arg)
{
    int ends[2], rc = -1;
    pid_t pid;
    r2_status_t status;

    if (0 != pipe2(ends, O_CLOEXEC)) {
        return R2_ERR_SYSTEM;
    }
    status = picture_spawn(path, ends[0], &pid);
    if (R2_OK != status) {
        close(ends[1]);
        return status;
    }
    status = picture_write(ends[1], write, arg);
    if (pid != waitpid(pid, &rc, 0) || 0 != rc) {
        status = R2_ERR_SYSTEM;
    }
    return status;
}
