/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Children of the process: what is noted is closed in them, and nothing else.
 */
#include "r2_config.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
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
    r2_fd_forget(fds[1]);
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
    r2_fd_forget(-1);
    r2_fd_forget(INT32_MAX);
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
        cmocka_unit_test(a_child_can_call_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
