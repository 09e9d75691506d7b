/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The out-of-band path of a job's process: which drivers it has.
 */
#ifndef R2_CTX_POSTS_H
#define R2_CTX_POSTS_H

#include "base/logger.h"
#include "ctx/parts.h"
#include "oob/mesh.h"

/** The drivers. */
typedef struct r2_posts {
    r2_post_t mesh;   /* owned */
    r2_post_t events; /* owned; ops NULL: the launcher carries none */
    r2_post_t both;   /* owned; ops NULL: there are no events */
} r2_posts_t;

/**
 * Opens the mesh, and beside it PMIx events where parameter oob says so and the launcher carries
 * them; without events the mesh does, and a warning says so where they were asked for.
 * @param posts_p zeros. @param parts gets the driver to use, and what to publish of it.
 * @return R2_OK, or what r2_mesh_create() returns.
 */
r2_status_t r2_posts_open(r2_posts_t *posts_p, const r2_ctx_config_t *config, const r2_log_t *log,
                          const r2_mesh_config_t *mesh, r2_ctx_parts_t *parts);
void r2_posts_close(r2_posts_t *posts);

#endif
