/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Preloaded: tells what the component that makes the context was given for some parameters.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>

#include "r2/ctx.h"
#include "r2/params.h"

typedef r2_status_t (*acquire_fn_t)(const r2_ctx_config_t *config, r2_ctx_t **ctx_p, char *text_p,
                                    size_t text_bytes);

__attribute__((visibility("default"))) r2_status_t
r2_ctx_acquire(const r2_ctx_config_t *config, r2_ctx_t **ctx_p, char *text_p, size_t text_bytes)
{
    const r2_params_t *params = config->params;
    acquire_fn_t next = (acquire_fn_t) (uintptr_t) dlsym(RTLD_NEXT, "r2_ctx_acquire");

    fprintf(stderr, "users %u given: failure_timeout_ms %" PRIu64 ", unexpected_bytes %zu\n",
            config->users, params->failure_timeout_ms, params->unexpected_bytes);
    return next(config, ctx_p, text_p, text_bytes);
}
