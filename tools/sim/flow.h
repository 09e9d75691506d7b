/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Flow simulation of schedules, op by op, any number of ranks on every host.
 */
#ifndef R2_TOOLS_FLOW_H
#define R2_TOOLS_FLOW_H

#include "r2/schedule.h"
#include "topology.h"

/** `from` sends to `to` on `rail` with `rate` bytes/s from begin to end. Flat network: rail is
 * 0. */
typedef void (*flow_piece_fn_t)(void *arg, uint32_t from, uint32_t to, uint32_t rail,
                                double begin_s, double end_s, double rate);

/** What is simulated. */
typedef struct flow_case {
    const topo_t *topo;             /* borrowed */
    const r2_schedule_t *schedules; /* borrowed; [rank] */
    double local_rate;        /* of reducing and copying ops, bytes/s per rank; 0: takes no time */
    double memory_rate;       /* > 0; of what a rank sends and takes in within its host, bytes/s */
    double quantum_s;         /* rates are made anew at most once in this time; 0: at once */
    flow_piece_fn_t piece_fn; /* NULL: nobody wants to know */
    void *piece_arg;
} flow_case_t;

typedef struct flow_result {
    double seconds; /* until the last op is complete */
    uint64_t messages;
    double bytes;       /* of all messages between hosts */
    double local_bytes; /* of those within hosts */
    double busiest;     /* largest part of the time that the NICs of a host were sending, 0 .. 1 */
} flow_result_t;

/**
 * Model: an op starts when the ops it waits for are complete. A message goes when both its ops
 * have started. Messages of one pair of ranks go one after the other, lower order first, over all
 * rails that join their hosts (flat network: all NICs); pairs share NICs max-min fair, each
 * direction by itself. Within a host a message is copied by both ranks; what a rank sends and takes
 * in so at the same time shares its memory_rate in the same way. A message is complete latency_s
 * after its last byte left; the next one does not wait for that.
 * @return R2_OK, R2_ERR_PARAM (schedules do not fit together), R2_ERR_NO_PATH (hosts that share no
 * rail have a message) or R2_ERR_NO_MEMORY.
 */
r2_status_t flow_run(const flow_case_t *ask, flow_result_t *result_p);

#endif
