/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two post drivers as one.
 */
#include "r2_config.h"

#include "oob/both.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/util.h"

/** The instance. Engine lock. */
typedef struct r2_post_both {
    r2_post_t at[2]; /* borrowed: outlive this */
    int fd;          /* owned: epoll over the descriptors of both */
} r2_post_both_t;

static void r2_both_bind(void *post, const r2_post_upcalls_t *upcalls)
{
    const r2_post_both_t *both = post;

    for (size_t i = 0; i < r2_array_count(both->at); ++i) {
        both->at[i].ops->bind(both->at[i].instance, upcalls);
    }
}

static void r2_both_key(void *post, const uint8_t *key)
{
    const r2_post_both_t *both = post;

    for (size_t i = 0; i < r2_array_count(both->at); ++i) {
        if (NULL != both->at[i].ops->key) {
            both->at[i].ops->key(both->at[i].instance, key);
        }
    }
}

/* One that took it will do. */
static r2_status_t r2_both_send(void *post, uint32_t rank, const void *data, size_t bytes)
{
    const r2_post_both_t *both = post;
    r2_status_t status[r2_array_count(both->at)];

    for (size_t i = 0; i < r2_array_count(both->at); ++i) {
        status[i] = both->at[i].ops->send(both->at[i].instance, rank, data, bytes);
    }
    return R2_OK == status[1] ? R2_OK : status[0];
}

static uint64_t r2_both_refused_ns(void *post, uint32_t rank)
{
    const r2_post_both_t *both = post;

    for (size_t i = 0; i < r2_array_count(both->at); ++i) {
        if (NULL != both->at[i].ops->refused_ns) {
            return both->at[i].ops->refused_ns(both->at[i].instance, rank);
        }
    }
    return 0;
}

static void r2_both_nic(void *post, const r2_nic_t *nic)
{
    const r2_post_both_t *both = post;

    for (size_t i = 0; i < r2_array_count(both->at); ++i) {
        if (NULL != both->at[i].ops->nic) {
            both->at[i].ops->nic(both->at[i].instance, nic);
        }
    }
}

static int r2_both_fd(void *post)
{
    const r2_post_both_t *both = post;

    return both->fd;
}

static void r2_both_poll(void *post)
{
    const r2_post_both_t *both = post;

    for (size_t i = 0; i < r2_array_count(both->at); ++i) {
        both->at[i].ops->poll(both->at[i].instance);
    }
}

static uint64_t r2_both_deadline_ns(void *post)
{
    const r2_post_both_t *both = post;
    uint64_t deadline_ns = R2_NEVER_NS;

    for (size_t i = 0; i < r2_array_count(both->at); ++i) {
        deadline_ns = r2_min(deadline_ns, both->at[i].ops->deadline_ns(both->at[i].instance));
    }
    return deadline_ns;
}

static const r2_post_ops_t r2_both_ops = {
    .name = "both",
    .bind = r2_both_bind,
    .key = r2_both_key,
    .send = r2_both_send,
    .refused_ns = r2_both_refused_ns,
    .nic = r2_both_nic,
    .fd = r2_both_fd,
    .poll = r2_both_poll,
    .deadline_ns = r2_both_deadline_ns,
};

r2_status_t r2_post_both_create(const r2_post_t *first, const r2_post_t *second, r2_post_t *post_p)
{
    r2_post_both_t *both = calloc(1, sizeof(*both));
    struct epoll_event event = {.events = EPOLLIN};

    if (NULL == both) {
        return R2_ERR_NO_MEMORY;
    }
    both->at[0] = *first;
    both->at[1] = *second;
    both->fd = r2_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    for (size_t i = 0; i < r2_array_count(both->at); ++i) {
        const int fd = both->at[i].ops->fd(both->at[i].instance);

        if (both->fd < 0 || 0 != epoll_ctl(both->fd, EPOLL_CTL_ADD, fd, &event)) {
            const r2_status_t status =
                EMFILE == errno || ENFILE == errno ? R2_ERR_NO_DESCRIPTORS : R2_ERR_SYSTEM;

            r2_post_both_destroy(&(r2_post_t){&r2_both_ops, both});
            return status;
        }
    }
    post_p->ops = &r2_both_ops;
    post_p->instance = both;
    return R2_OK;
}

void r2_post_both_destroy(r2_post_t *post)
{
    r2_post_both_t *both = post->instance;

    if (NULL == both) {
        return;
    }
    if (both->fd >= 0) {
        r2_fd_close(both->fd);
    }
    free(both);
    post->instance = NULL;
    post->ops = NULL;
}
