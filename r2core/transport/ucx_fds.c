/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * File descriptors of the UCX transport: UCX must not be called without those that it takes.
 */
#include "r2_config.h"

#include "transport/ucx.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fds.h"

/*
 * Without descriptors UCX (1.13 to 1.18 at least) fails cleanly in some calls and aborts the
 * process in others:
 * - ucp_init() and ucp_worker_create(), when they start UCX's thread for all contexts (thread.c,
 * assertion);
 * - ucp_ep_create(), and whatever takes the last endpoint off a worker, progress included: both set
 * handlers anew, which asks the kernel for the NIC through a socket made for it (ucp_worker.c,
 * fatal);
 * - accept() in UCX's thread fails once and closes the listener: nobody can connect to that worker
 * any more. So lanes are opened only where there is room for all of it (has_room), and a few
 * descriptors are kept in reserve, open, for what must be done although the application has taken
 * all others: they are closed for the call.
 */
/* Every so many calls of progress it is looked whether the application has taken all. */
#define UCX_LOOK_CALLS 64

static uint32_t fds_needed(const r2_ucx_t *ucx, uint32_t devices, uint32_t workers, uint32_t eps)
{
    uint32_t thread = devices > 0 && 0 == ucx->contexts ? R2_FDS_THREAD : 0;

    return thread + R2_FDS_WORKER * workers + R2_FDS_EP * eps + R2_FDS_SLACK;
}

bool r2_ucx_has_room(void *tp, uint32_t devices, uint32_t workers, uint32_t eps)
{
    uint32_t needed = fds_needed(tp, devices, workers, eps);

    return r2_fds_free(needed) == needed;
}

void r2_ucx_fds_init(r2_ucx_t *ucx)
{
    for (size_t i = 0; i < r2_array_count(ucx->reserve); i++) {
        ucx->reserve[i] = eventfd(0, EFD_CLOEXEC);
    }
}

void r2_ucx_fds_fini(r2_ucx_t *ucx)
{
    for (size_t i = 0; i < r2_array_count(ucx->reserve); i++) {
        if (ucx->reserve[i] >= 0) {
            close(ucx->reserve[i]);
        }
    }
}

/** True if fewer descriptors are free than the reserve has. */
static bool fds_short(void)
{
    return r2_fds_free(R2_UCX_RESERVE_FDS) < R2_UCX_RESERVE_FDS;
}

void r2_ucx_fds_enter(r2_ucx_t *ucx)
{
    r2_ucx_enter();
    ucx->lent = fds_short();
    if (ucx->lent) {
        r2_ucx_fds_fini(ucx);
    }
}

void r2_ucx_fds_leave(r2_ucx_t *ucx)
{
    if (ucx->lent) {
        r2_ucx_fds_init(ucx);
    }
    r2_ucx_leave();
}

bool r2_ucx_fds_allow(const r2_ucx_t *ucx, uint32_t contexts)
{
    size_t needed =
        contexts > 0 && 0 == ucx->contexts ? R2_FDS_THREAD + R2_FDS_SLACK : R2_UCX_RESERVE_FDS;

    return r2_fds_free(needed) == needed;
}

bool r2_ucx_fds_gone(r2_ucx_t *ucx)
{
    if (0 == ucx->calls++ % UCX_LOOK_CALLS) {
        ucx->gone = fds_short();
    }
    return ucx->gone;
}
