/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Children of the process: what is noted is closed in them, and nothing else.
 */
#include "r2_config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fork.h"
#include "r2/r2.h"

#define FDS 8

static bool is_open(int fd)
{
    return 0 <= fcntl(fd, F_GETFD);
}

/* @return exit status of a child that says whether exactly the descriptors in `open` are open
 * there. */
static int child_sees(const int *fds, const bool *open)
{
    int status = -1;
    pid_t pid = fork();

    if (0 == pid) {
        bool right = r2_is_forked();

        for (int i = 0; i < FDS; ++i) {
            right = right && open[i] == is_open(fds[i]);
        }
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void children_lose_what_is_noted(void **state)
{
    bool open_in_child[FDS];
    int fds[FDS];

    (void) state;
    r2_fork_watch();
    r2_fork_watch();
    for (int i = 0; i < FDS; ++i) {
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(fds[i] >= 0);
        open_in_child[i] = 0 == i % 2;
        assert_int_equal(0 == i % 2 ? fds[i] : r2_fd_keep(fds[i]), fds[i]);
    }
    assert_int_equal(child_sees(fds, open_in_child), 0);
    assert_false(r2_is_forked());
    for (int i = 0; i < FDS; ++i) {
        assert_true(is_open(fds[i])); /* here nothing changed */
    }
    r2_fd_closing(fds[1]);
    r2_fd_closed();
    open_in_child[1] = true;
    assert_int_equal(child_sees(fds, open_in_child), 0);
    errno = ENOENT;
    r2_fd_close(fds[3]);
    assert_int_equal(errno, ENOENT);
    assert_false(is_open(fds[3]));
    assert_int_equal(open("/dev/null", O_RDONLY), fds[3]); /* somebody else has the number now */
    open_in_child[3] = true;
    assert_int_equal(child_sees(fds, open_in_child), 0);
    for (int i = 0; i < FDS; ++i) {
        r2_fd_close(fds[i]);
    }
}

static void nonsense_is_ignored(void **state)
{
    (void) state;
    assert_int_equal(r2_fd_keep(-1), -1);
    assert_int_equal(r2_fd_keep(INT32_MAX), INT32_MAX);
    for (int i = 0; i < 2; ++i) {
        r2_fd_closing(0 == i ? -1 : INT32_MAX);
        r2_fd_closed();
    }
}

/** A thread that opens a descriptor, slowly, or closes it. */
typedef struct slow {
    atomic_int fd;
    atomic_bool busy;
} slow_t;

/* Long enough for the other thread to fork. */
static void linger(slow_t *slow)
{
    const struct timespec pause = {.tv_nsec = 100000000};

    atomic_store(&slow->busy, true);
    nanosleep(&pause, NULL);
}

static int open_slowly(slow_t *slow)
{
    atomic_store(&slow->fd, open("/dev/null", O_RDONLY | O_CLOEXEC));
    linger(slow);
    return atomic_load(&slow->fd);
}

static void *opens(void *arg)
{
    (void) r2_fd_keep(open_slowly(arg));
    return NULL;
}

static void *closes(void *arg)
{
    slow_t *slow = arg;

    r2_fd_closing(atomic_load(&slow->fd));
    linger(slow);
    close(atomic_load(&slow->fd));
    r2_fd_closed();
    return NULL;
}

/* A child is made while another thread has opened a descriptor and not noted it yet, or has
 * forgotten it and not closed it yet: the child does not have it. */
static void nothing_is_missed_while_others_fork(void **state)
{
    void *(*const deeds[])(void *) = {opens, closes};
    slow_t slow = {-1, false};
    pthread_t thread;
    int status = -1;
    pid_t pid;

    (void) state;
    r2_fork_watch();
    for (int i = 0; i < 2; ++i) {
        atomic_store(&slow.busy, false);
        assert_int_equal(pthread_create(&thread, NULL, deeds[i], &slow), 0);
        while (!atomic_load(&slow.busy)) {
            sched_yield();
        }
        pid = fork();
        if (0 == pid) {
            _exit(is_open(atomic_load(&slow.fd)) ? 1 : 0);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

/* A child of a child closes nothing again: the numbers are another's by then. */
static void grandchildren_keep_what_is_theirs(void **state)
{
    const int fd = r2_fd_keep(open("/dev/null", O_RDONLY | O_CLOEXEC));
    int status = -1;
    pid_t pid;

    (void) state;
    r2_fork_watch();
    pid = fork();
    if (0 == pid) {
        status = fd == open("/dev/zero", O_RDONLY | O_CLOEXEC) ? 0 : 1;
        pid = fork();
        if (0 == pid) {
            _exit(is_open(fd) ? 0 : 1);
        }
        _exit(0 == status && pid == waitpid(pid, &status, 0) && 0 == status ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    r2_fd_close(fd);
}

/* Calls of a child return at once and touch nothing: no context is looked at. */
static void a_child_can_call_nothing(void **state)
{
    r2_ctx_config_t config = {.params = NULL};
    r2_ctx_t *ctx = NULL;
    int status = -1;
    char text[64];
    pid_t pid;

    (void) state;
    r2_fork_watch();
    pid = fork();
    if (0 == pid) {
        r2_ctx_release(NULL, NULL);
        _exit(R2_ERR_FORKED == r2_ctx_acquire(&config, &ctx, text, sizeof(text)) && NULL == ctx &&
                      0 == r2_ctx_progress(NULL) &&
                      R2_ERR_FORKED == r2_comm_create(NULL, (r2_comm_id_t){0, 0}, NULL, 0, 0, NULL)
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_lose_what_is_noted),
        cmocka_unit_test(nonsense_is_ignored),
        cmocka_unit_test(nothing_is_missed_while_others_fork),
        cmocka_unit_test(grandchildren_keep_what_is_theirs),
        cmocka_unit_test(a_child_can_call_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
