/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Writes what happens to rails and peers into the event file, and measures what faults cost.
 */
#ifndef R2_CTX_RECORD_H
#define R2_CTX_RECORD_H

#include "health/health.h"
#include "link/net.h"

struct r2_ctx;

/** All under the engine lock; without an event file only gaps are measured. */
/** What plans of the job are made from has changed: into the plan file. */
void r2_record_plan(struct r2_ctx *ctx);
void r2_record_start(struct r2_ctx *ctx);
void r2_record_lane(struct r2_ctx *ctx, uint32_t rank, uint32_t rail, r2_lane_event_t event,
                    r2_status_t why);
void r2_record_carrier(struct r2_ctx *ctx, uint32_t rail, bool carrier);
void r2_record_peer(struct r2_ctx *ctx, uint32_t rank, bool gone);
void r2_record_verdict(struct r2_ctx *ctx, const r2_health_news_t *news);
/** After a sweep. @param delivered payload arrived. */
void r2_record_swept(struct r2_ctx *ctx, bool delivered);

#endif
