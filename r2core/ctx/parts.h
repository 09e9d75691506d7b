/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How a context is put together: from real parts in a job, from simulated ones in tests.
 */
#ifndef R2_CTX_PARTS_H
#define R2_CTX_PARTS_H

#include "base/clock.h"
#include "model/health_map.h"
#include "oob/oob.h"
#include "oob/post.h"
#include "r2/cost_params.h"
#include "r2/ctx.h"
#include "r2/near.h"
#include "r2/transport.h"
#include "rail/hello.h"
#include "rail/nic_watch.h"
#include "rail/probe.h"

/** Everything a context stands on. Instances are borrowed and outlive the context. */
typedef struct r2_ctx_parts {
    const r2_clock_t *clock; /* borrowed */
    r2_tp_t tp;              /* devices of all rails and the one within the host */
    r2_hello_t hello;
    r2_oob_t oob;
    r2_post_t post;       /* ops NULL: notices go in band only */
    r2_probe_t probe;     /* ops NULL: nobody can be asked */
    r2_nic_watch_t watch; /* of `nics`; ops NULL: carrier losses are noticed by timeout only */
    uint8_t post_address[R2_POST_ADDRESS_MAX]; /* of `post`, to be published */
    size_t post_address_bytes;
    r2_nic_t nics[R2_RAILS_MAX];
    size_t nic_count;
    const char *gpu_driver; /* borrowed: library; NULL: all memory is the host's */
    r2_near_gpus_t near;    /* GPUs, and how near the rails are */
    uint64_t host_id;       /* equal for ranks that share memory */
    bool local;             /* and it may be used, by parameter `local` */
    char host_name[64];
    bool pair;             /* of two jobs: a context for what passes between them */
    uint64_t first_seq;    /* start of message numbers; tests start near the wrap */
    r2_cost_params_t cost; /* of this process, to be published; zeros: usual ones */
} r2_ctx_parts_t;

/** Makes a context without service thread from given parts: opens devices and listeners,
 * publishes. */
r2_status_t r2_ctx_assemble(const r2_ctx_config_t *config, const r2_ctx_parts_t *parts,
                            r2_ctx_t **ctx_p, char *text_p, size_t text_bytes);
/** Tears down what r2_ctx_assemble() made. */
void r2_ctx_dismantle(r2_ctx_t *ctx);

/** The health map of this process; NULL before the communicator of all processes exists. Engine
 * lock. */
const r2_health_map_t *r2_ctx_health_map(const r2_ctx_t *ctx);

#endif
