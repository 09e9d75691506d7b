/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the user is told when r2 cannot start: functions of the system that fail, in place of the
 * real ones. Started by mpirun, without MPI. Output: TAP.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "r2_config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "oob/oob.h"
#include "r2/r2.h"
#include "rail/nic_watch.h"

#define CALLS_MAX 100

/** Which function fails with what. */
typedef struct failure {
    const char *name;
    int error;
} failure_t;

static failure_t failure;
static pthread_t tester; /* other threads have the real functions */
static int left;         /* calls that succeed before */
static int seen;         /* calls of that function so far */
static char logged[4096];

static bool fails(const char *name)
{
    if (NULL == failure.name || 0 != strcmp(name, failure.name) ||
        !pthread_equal(tester, pthread_self())) {
        return false;
    }
    if (seen++ < left) {
        return false;
    }
    errno = failure.error;
    return true;
}

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

R2_EXPORT int epoll_create1(int flags)
{
    int (*next)(int);

    *(void **) &next = real("epoll_create1");
    return fails("epoll_create1") ? -1 : next(flags);
}

R2_EXPORT int socket(int domain, int type, int protocol)
{
    int (*next)(int, int, int);

    *(void **) &next = real("socket");
    return AF_NETLINK == domain && fails("netlink") ? -1 : next(domain, type, protocol);
}

R2_EXPORT int listen(int fd, int backlog)
{
    int (*next)(int, int);

    *(void **) &next = real("listen");
    return fails("listen") ? -1 : next(fd, backlog);
}

R2_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                             void *arg)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*) (void *), void *);

    *(void **) &next = real("pthread_create");
    return fails("pthread_create") ? failure.error : next(thread, attr, run, arg);
}

static void note(void *arg, int level, const char *line)
{
    size_t used = strlen(logged);

    (void) arg;
    (void) level;
    snprintf(logged + used, sizeof(logged) - used, "%s\n", line);
}

/* Starts r2, with a function that fails after `good` calls. @param text_p what is said of it. */
static void start(const char *name, int error, int good, char *text_p, size_t text_bytes)
{
    r2_params_t params;
    r2_ctx_config_t config = {.params = &params, .log = note};
    r2_ctx_t *ctx = NULL;
    r2_status_t status;

    r2_params_init(&params);
    text_p[0] = logged[0] = '\0';
    seen = 0;
    left = good;
    failure = (failure_t){name, error};
    status = r2_ctx_create(&config, &ctx, text_p, text_bytes);
    failure.name = NULL;
    if (R2_OK == status) {
        r2_ctx_destroy(ctx);
        snprintf(text_p, text_bytes, "%s", logged);
    }
}

static int lacks(const char *text, int error, const char *const *words)
{
    struct utsname host;
    int missing;

    uname(&host);
    missing = NULL == strstr(text, host.nodename) || NULL == strstr(text, strerror(error));
    for (; NULL != *words; ++words) {
        missing += NULL == strstr(text, *words);
    }
    return missing;
}

/* One of the calls of a function fails, and that is said: host, errno and `words`. */
static int says(const char *title, const char *name, int error, const char *const *words)
{
    static int number;
    char text[4096];
    int good = 0, missing;

    do {
        start(name, error, good, text, sizeof(text));
        missing = lacks(text, error, words);
    } while (0 != missing && seen > good && good++ < CALLS_MAX);
    printf("%sok %d - %s\n# %s\n", 0 == missing ? "" : "not ", ++number, title, text);
    return missing;
}

int main(void)
{
    r2_nic_t nics[R2_RAILS_MAX] = {{.name = "no NIC"}};
    const char *nic = nics[0].name;
    char text[1024];
    size_t count;
    r2_oob_t pmix;
    int missing = R2_OK != r2_nics_find("", false, nics, &count, text, sizeof(text));

    if (R2_OK != r2_oob_pmix_create(&pmix)) { /* its threads are there before threads fail */
        return 1;
    }
    tester = pthread_self();
    missing += says("no descriptor for the hello service", "epoll_create1", EMFILE,
                    (const char *const[]){"hello service", nic, "ulimit -n", "coll ^r2", NULL});
    missing += says("no descriptor for the probes", "epoll_create1", EMFILE,
                    (const char *const[]){"coll_r2_probe", nic, "ulimit -n", "coll ^r2", NULL});
    missing += says("a NIC that cannot be listened on", "listen", EADDRINUSE,
                    (const char *const[]){"hello listener", nic, "coll ^r2", NULL});
    missing += says("netlink is forbidden", "netlink", EPERM,
                    (const char *const[]){"netlink", nic, "coll_r2_failure_timeout_ms", "seccomp",
                                          NULL});
    missing += says("no out-of-band path", "epoll_create1", EMFILE,
                    (const char *const[]){"coll_r2_oob_nics", nic, "ulimit -n", "coll ^r2", NULL});
    missing += says("no thread", "pthread_create", EAGAIN,
                    (const char *const[]){"service thread", nic, "ulimit -u", "coll ^r2", NULL});
    printf("1..6\n");
    r2_oob_pmix_destroy(&pmix);
    return 0 != missing;
}
