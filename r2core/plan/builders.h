/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The builders: one function per algorithm, each in a file of its own.
 */
#ifndef R2_PLAN_BUILDERS_H
#define R2_PLAN_BUILDERS_H

#include "plan/layout.h"
#include "plan/plan.h"

/**
 * Adds the rows of one rank. Called for two ranks or more, with at least one byte in all (but for
 * a barrier). A builder calls r2_plan_note_message() with the longest message that it decided on.
 * @return R2_OK or R2_ERR_NO_MEMORY; schedule->status is checked by the caller.
 */
typedef r2_status_t (*r2_build_fn_t)(const r2_plan_input_t *input, r2_schedule_t *schedule);

r2_status_t r2_build_allreduce_doubling(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_allreduce_exchange(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_allreduce_ring(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_allreduce_direct(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_allreduce_weighted(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_allreduce_hierarchical(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_allreduce_recursive(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_allreduce_r2(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_allgather_bruck(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_allgather_ring(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_allgather_direct(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_reduce_scatter_direct(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_bcast_binomial(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_bcast_scatter(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_barrier_dissemination(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_reduce_binomial(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_reduce_chain(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_reduce_direct(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_scan_doubling(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_scan_chain(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_gather_binomial(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_scatter_binomial(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_alltoall_bruck(const r2_plan_input_t *input, r2_schedule_t *schedule);
/** gather, scatter, alltoall straight from sender to receiver; and lists of messages. */
r2_status_t r2_build_exchange_blocks(const r2_plan_input_t *input, r2_schedule_t *schedule);
r2_status_t r2_build_exchange_edges(const r2_plan_input_t *input, r2_schedule_t *schedule);

/** Direct exchange in canonical order with any shares: rank r owns block r of the layout. */
r2_status_t r2_build_allreduce_shares(const r2_plan_input_t *input, r2_schedule_t *schedule,
                                      const r2_layout_t *shares);

/** Staging memory that these need at most, bytes. Equal on all ranks. */
uint64_t r2_allreduce_doubling_scratch(const r2_plan_input_t *input);
uint64_t r2_allreduce_exchange_scratch(const r2_plan_input_t *input);
uint64_t r2_reduce_binomial_scratch(const r2_plan_input_t *input);
uint64_t r2_scan_doubling_scratch(const r2_plan_input_t *input);
uint64_t r2_alltoall_bruck_scratch(const r2_plan_input_t *input);
/** Here: at least. */
uint64_t r2_allreduce_hierarchical_scratch(const r2_plan_input_t *input);
uint64_t r2_allreduce_recursive_scratch(const r2_plan_input_t *input);

/** Part of the vector that goes round without the slowest rank, of which `lost_ppm` of the rate is gone. */
uint64_t r2_allreduce_r2_share_ppm(uint64_t lost_ppm, int32_t size);

/** Are the ranks of hosts in blocks, in the order of hosts? Else operations must commute. */
bool r2_allreduce_hierarchical_ordered(const r2_plan_input_t *input);

#endif
