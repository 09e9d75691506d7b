/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Blocking collectives within a host: what members hear of one that makes other calls, or none any
 * more.
 */
#include "r2_config.h"

#include <stdlib.h>

#include "ctx/coll_local.h"

void r2_coll_local_destroy(r2_comm_t *comm)
{
    struct r2_coll_local *local = comm->local;

    comm->local = NULL;
    if (NULL == local) {
        return;
    }
    if (r2_coll_local_has_team(local)) {
        r2_team_part(&local->team);
        --comm->comms->segments;
    }
    r2_segment_close(&local->team.segment);
    free(local->processes);
    free(local);
}

void r2_coll_local_elsewhere(r2_comm_t *comm)
{
    if (NULL != comm->local && r2_coll_local_has_team(comm->local)) {
        r2_team_elsewhere(&comm->local->team, comm->next_seq);
    }
}
