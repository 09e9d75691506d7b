/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Opening the out-of-band path: the mesh, and PMIx events beside it.
 */
#include "r2_config.h"

#include "ctx/posts.h"

#include <string.h>

#include "oob/both.h"
#include "oob/pmix_event.h"

/* By itself r2 sends events in jobs of up to so many processes: PRRTE broadcasts each of them to
 * all its daemons, and every host that has news sends one. */
#define R2_POSTS_RANKS_MAX 256u

/** May events be sent in this job? One process of the job tells what stands against it. */
static bool r2_posts_wants_events(const r2_ctx_config_t *config, const r2_mesh_config_t *mesh,
                                  const r2_log_t *log)
{
    const bool forced = 0 == strcmp(config->params->oob, "pmix");
    r2_pmix_server_t server;
    char name[128];

    if (0 == strcmp(config->params->oob, "mesh")) {
        return false;
    }
    server = r2_pmix_server_find(name, sizeof(name));
    if (forced && R2_PMIX_SERVER_BREAKS == server) {
        r2_log_at(log, 0 == mesh->rank ? R2_LOG_WARN : R2_LOG_DEBUG,
                  "coll_r2_oob is pmix, and the launcher (PMIx server \"%s\", PMIx %s) does not "
                  "survive an event: out-of-band notices go over r2's own connections alone",
                  name, r2_oob_pmix_version());
        return false;
    }
    return forced || (R2_PMIX_SERVER_CARRIES == server && mesh->size <= R2_POSTS_RANKS_MAX);
}

/** Adds events. Without them the mesh does. */
static r2_status_t r2_posts_add_events(r2_posts_t *posts, const r2_mesh_config_t *mesh,
                                       const r2_log_t *log)
{
    const r2_pmix_event_config_t config = {
        .clock = mesh->clock, .log = log, .rank = mesh->rank, .size = mesh->size};
    r2_status_t status = r2_pmix_event_create(&config, &posts->events);

    if (R2_OK == status) {
        status = r2_post_both_create(&posts->mesh, &posts->events, &posts->both);
    }
    if (R2_OK != status && NULL != posts->events.ops) {
        r2_pmix_event_destroy(&posts->events);
    }
    return status;
}

r2_status_t r2_posts_open(r2_posts_t *posts_p, const r2_ctx_config_t *config, const r2_log_t *log,
                          const r2_mesh_config_t *mesh, r2_ctx_parts_t *parts)
{
    r2_status_t status = r2_mesh_create(mesh, &posts_p->mesh);

    if (R2_OK == status) {
        status = r2_mesh_address(&posts_p->mesh, parts->post_address, &parts->post_address_bytes);
    }
    if (R2_OK != status) {
        return status;
    }
    parts->post = posts_p->mesh;
    /* what passes between two jobs is no matter for the launcher of one */
    if (NULL == config->other_job && mesh->size > 1 && r2_posts_wants_events(config, mesh, log)) {
        status = r2_posts_add_events(posts_p, mesh, log);
        if (R2_OK == status) {
            parts->post = posts_p->both;
        }
        r2_log_at(log, 0 == mesh->rank ? R2_LOG_INFO : R2_LOG_DEBUG,
                  "out-of-band notices also go as PMIx events: %s", r2_status_string(status));
    }
    return R2_OK;
}

void r2_posts_close(r2_posts_t *posts)
{
    if (NULL != posts->both.ops) {
        r2_post_both_destroy(&posts->both);
    }
    if (NULL != posts->events.ops) {
        r2_pmix_event_destroy(&posts->events);
    }
    if (NULL != posts->mesh.ops) {
        r2_mesh_destroy(&posts->mesh);
    }
}
