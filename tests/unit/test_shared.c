/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What processes of a host share, on odd hosts: signals while memory is allocated, processes that
 * end where there is no pidfd.
 */
#include "r2_config.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fork.h"
#include "local/process.h"
#include "local/shared.h"

#define T_BYTES (1u << 20)

static bool no_pidfd;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* As on a kernel before 5.3, or in a container that forbids it. */
long __wrap_syscall(long number, ...)
{
    long words[6];
    va_list args;

    if (no_pidfd && SYS_pidfd_open == number) {
        errno = ENOSYS;
        return -1;
    }
    va_start(args, number);
    for (size_t i = 0; i < 6; ++i) {
        words[i] = va_arg(args, long);
    }
    va_end(args);
    return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/* ---- memory ---- */

static int interruptions; /* to come */

int __real_posix_fallocate(int fd, off_t offset, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t offset, off_t bytes);

/* Every second call is interrupted, as on kernels where any signal does that. */
int __wrap_posix_fallocate(int fd, off_t offset, off_t bytes)
{
    if (interruptions > 0 && 0 == interruptions-- % 2) {
        return EINTR;
    }
    return __real_posix_fallocate(fd, offset, bytes);
}

static void signals_interrupt_no_allocation(void **state)
{
    uint8_t id[R2_SHARED_ID_BYTES];
    struct stat file;
    int fd;

    (void) state;
    assert_int_equal(r2_shared_create("test", T_BYTES, id, &fd), R2_OK);
    interruptions = 10;
    assert_int_equal(r2_shared_allocate(fd, 0, T_BYTES), R2_OK);
    assert_true(interruptions < 5); /* they were tried */
    interruptions = 0;
    assert_int_equal(fstat(fd, &file), 0);
    assert_int_equal(file.st_blocks * 512, T_BYTES);
    assert_int_equal(r2_shared_allocate(fd, T_BYTES, 1), R2_ERR_NO_MEMORY); /* it is sealed */
    r2_fd_close(fd);
}

/* ---- processes ---- */

static void *t_pause(void *arg)
{
    for (;;) {
        pause();
    }
    return arg;
}

/* @param first_only its first thread ends, and another one goes on. */
static r2_process_t t_child(bool first_only)
{
    r2_process_t child = {.start = 0};
    pthread_t thread;
    int ways[2];
    pid_t pid;

    assert_int_equal(pipe(ways), 0);
    pid = fork();
    assert_true(0 <= pid);
    if (0 == pid) {
        child = r2_process_self();
        if ((first_only && 0 != pthread_create(&thread, NULL, t_pause, NULL)) ||
            sizeof(child) != write(ways[1], &child, sizeof(child))) {
            _exit(1);
        }
        if (first_only) {
            pthread_exit(NULL);
        }
        _exit(0);
    }
    assert_int_equal(read(ways[0], &child, sizeof(child)), sizeof(child));
    close(ways[0]);
    close(ways[1]);
    return child;
}

static char t_state(const r2_process_t *process)
{
    char path[64], text[512] = "", *at;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) process->pid);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_true(0 < fread(text, 1, sizeof(text) - 1, file));
    fclose(file);
    at = strrchr(text, ')');
    return NULL == at ? '?' : at[2];
}

static void nobody_has_waited_for_it(void **state)
{
    r2_process_t child = t_child(false);
    siginfo_t info;

    (void) state;
    assert_int_equal(waitid(P_PID, (id_t) child.pid, &info, WEXITED | WNOWAIT), 0);
    no_pidfd = true;
    assert_true(r2_process_has_ended(&child));
    no_pidfd = false;
    assert_true(r2_process_has_ended(&child));
    assert_int_equal(waitpid((pid_t) child.pid, NULL, 0), (pid_t) child.pid);
}

static void its_first_thread_has_ended(void **state)
{
    r2_process_t child = t_child(true);

    (void) state;
    while ('Z' != t_state(&child)) {
        usleep(1000);
    }
    no_pidfd = true;
    assert_false(r2_process_has_ended(&child));
    no_pidfd = false;
    assert_false(r2_process_has_ended(&child));
    assert_int_equal(kill((pid_t) child.pid, SIGKILL), 0);
    assert_int_equal(waitpid((pid_t) child.pid, NULL, 0), (pid_t) child.pid);
    no_pidfd = true;
    assert_true(r2_process_has_ended(&child));
    no_pidfd = false;
}

static int admitted; /* calls that let all of the user's processes read */

int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    (void) b, (void) c, (void) d;
    admitted += PR_SET_PTRACER == option && PR_SET_PTRACER_ANY == a ? 1 : 0;
    return 0;
}

/* Yama: 0 and 1 are the scopes in which a process has a say, 0 needs none. */
static void others_may_read_where_the_kernel_asks(void **state)
{
    static const char *const scopes[] = {"0\n", "1\n", "2\n", "3\n", "", NULL};
    char path[] = "/tmp/test_shared.XXXXXX";
    const int fd = mkstemp(path);

    (void) state;
    assert_true(fd >= 0);
    for (int i = 0; NULL != scopes[i]; ++i) {
        const size_t length = strlen(scopes[i]);

        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, scopes[i], length, 0), length);
        admitted = 0;
        r2_process_admit(path);
        assert_int_equal(admitted, 1 == i);
    }
    close(fd);
    unlink(path);
    admitted = 0;
    r2_process_admit(path);
    assert_int_equal(admitted, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_interrupt_no_allocation),
        cmocka_unit_test(nobody_has_waited_for_it),
        cmocka_unit_test(its_first_thread_has_ended),
        cmocka_unit_test(others_may_read_where_the_kernel_asks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
