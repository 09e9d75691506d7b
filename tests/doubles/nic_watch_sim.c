/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Watch of NICs for tests.
 */
#include "r2_config.h"

#include "doubles/nic_watch_sim.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/** One process's. Polled under its engine lock; the atomics by any thread. */
typedef struct watch_sim {
    r2_nic_upcalls_t upcalls;
    int wake_fd;       /* owned; -1: none */
    _Atomic bool news; /* something was set since the newest poll */
    _Atomic bool carrier[R2_RAILS_MAX];
    _Atomic uint32_t ipv4[R2_RAILS_MAX];
    size_t count;
    r2_nic_t nics[R2_RAILS_MAX];
} watch_sim_t;

static void watch_bind(void *instance, const r2_nic_upcalls_t *upcalls)
{
    watch_sim_t *watch = instance;

    watch->upcalls = *upcalls;
}

static int watch_fd(void *instance)
{
    const watch_sim_t *watch = instance;

    return watch->wake_fd;
}

static void watch_poll(void *instance)
{
    watch_sim_t *watch = instance;
    uint64_t drained;

    if (!atomic_exchange(&watch->news, false)) {
        return;
    }
    if (watch->wake_fd >= 0) {
        (void) !read(watch->wake_fd, &drained, sizeof(drained));
    }
    for (size_t i = 0; i < watch->count; ++i) {
        watch->nics[i].carrier = atomic_load(&watch->carrier[i]);
        watch->nics[i].ipv4 = atomic_load(&watch->ipv4[i]);
        watch->upcalls.changed(watch->upcalls.arg, i, &watch->nics[i]);
    }
}

static const r2_nic_watch_ops_t watch_ops = {
    .name = "sim",
    .bind = watch_bind,
    .fd = watch_fd,
    .poll = watch_poll,
};

r2_status_t r2_nic_watch_sim_create(const r2_nic_t *nics, size_t count, bool wakes,
                                    r2_nic_watch_t *watch_p)
{
    watch_sim_t *watch;

    if (count > R2_RAILS_MAX) {
        return R2_ERR_PARAM;
    }
    watch = calloc(1, sizeof(*watch));
    if (NULL == watch) {
        return R2_ERR_NO_MEMORY;
    }
    watch->wake_fd = wakes ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    if (wakes && watch->wake_fd < 0) {
        free(watch);
        return R2_ERR_SYSTEM;
    }
    watch->count = count;
    for (size_t i = 0; i < count; ++i) {
        watch->nics[i] = nics[i];
        atomic_store(&watch->carrier[i], nics[i].carrier);
        atomic_store(&watch->ipv4[i], nics[i].ipv4);
    }
    *watch_p = (r2_nic_watch_t){&watch_ops, watch};
    return R2_OK;
}

void r2_nic_watch_sim_destroy(r2_nic_watch_t *watch)
{
    watch_sim_t *sim = watch->instance;

    if (NULL == watch->ops) {
        return;
    }
    if (sim->wake_fd >= 0) {
        close(sim->wake_fd);
    }
    free(sim);
    watch->ops = NULL;
}

static void watch_wake(watch_sim_t *watch)
{
    const uint64_t one = 1;

    atomic_store(&watch->news, true);
    if (watch->wake_fd >= 0) {
        (void) !write(watch->wake_fd, &one, sizeof(one));
    }
}

void r2_nic_watch_sim_set(r2_nic_watch_t *watch, size_t idx, bool carrier)
{
    watch_sim_t *sim = watch->instance;

    atomic_store(&sim->carrier[idx], carrier);
    watch_wake(sim);
}

void r2_nic_watch_sim_address(r2_nic_watch_t *watch, size_t idx, uint32_t ipv4)
{
    watch_sim_t *sim = watch->instance;

    atomic_store(&sim->ipv4[idx], ipv4);
    watch_wake(sim);
}
