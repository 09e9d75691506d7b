/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Staging of one run: loads before ops, stores after them.
 */
#include "r2_config.h"

#include <string.h>

#include "base/util.h"
#include "exec/exec.h"

/* ---- what a run has ---- */

static void r2_stage_set(r2_staged_side_t *side, const r2_touch_span_t *span, uint64_t ticket)
{
    for (uint32_t s = span->first; s < span->end; ++s) {
        side->loaded[s] = ticket;
    }
}

static size_t r2_stage_side_bytes(const r2_touch_side_t *touch)
{
    return touch->count * (sizeof(uint64_t) + sizeof(uint32_t));
}

/* What ops read before they write it. */
static void r2_stage_expect(r2_staged_side_t *side, const r2_touch_t *touch, uint32_t which)
{
    for (uint32_t i = 0; i < touch->load_count; ++i) {
        if (which == touch->loads[i].which) {
            r2_stage_set(side, &touch->loads[i].span, R2_STAGE_MISSING);
        }
    }
}

/* @param tables room for its tables, r2_stage_side_bytes(). */
static r2_status_t r2_stage_open(r2_exec_t *exec, uint32_t which, char *tables)
{
    r2_staging_t *staging = &exec->engine->staging;
    r2_staged_side_t *side = &exec->stage->sides[which];
    const r2_touch_side_t *touch = &exec->stage->touch->sides[which];

    if (r2_mem_traits(exec->args.at[which].kind)->is_cpus || 0 == touch->count) {
        return R2_OK;
    }
    side->place = r2_staging_place(staging, &exec->args.at[which]);
    if (NULL == side->place) {
        return R2_ERR_GPU;
    }
    side->touch = touch;
    side->loaded = (uint64_t *) (void *) tables;
    side->writes = (uint32_t *) (void *) (side->loaded + touch->count);
    memset(side->loaded, 0, touch->count * sizeof(*side->loaded));
    r2_stage_expect(side, exec->stage->touch, which);
    memcpy(side->writes, touch->writers, touch->count * sizeof(*side->writes));
    side->staged = r2_pins_get(&staging->pins, touch->places[touch->count]);
    return NULL == side->staged ? R2_ERR_NO_MEMORY : R2_OK;
}

static bool r2_stage_is_needed(const r2_exec_args_t *args)
{
    return !r2_mem_traits(args->at[0].kind)->is_cpus || !r2_mem_traits(args->at[1].kind)->is_cpus;
}

/* waiting, written, reducing, arriving; and by op: arrived, taken, ready_src, ready_dst */
enum { R2_STAGE_LISTS = 8, R2_STAGE_COUNTS = 4 };

/* @param reducer as in r2_staged_t. */
static r2_status_t r2_stage_create(r2_exec_t *exec, r2_staging_place_t *reducer)
{
    const r2_touch_t *touch = r2_stage_touch(exec->program, reducer);
    const uint32_t ops = exec->schedule->op_count;
    size_t bytes, sides[R2_TOUCH_SIDES];
    r2_staged_t *stage;
    r2_status_t status;

    if (NULL == touch) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < R2_TOUCH_SIDES; ++i) { /* in units of their longest entries */
        sides[i] = (r2_stage_side_bytes(&touch->sides[i]) + 7) / 8 * 8;
    }
    bytes = sizeof(*stage) + sides[0] + sides[1] + ops * sizeof(uint64_t) +
            R2_STAGE_LISTS * ops * sizeof(uint32_t);
    stage = r2_blocks_get(&exec->engine->blocks, bytes);
    if (NULL == stage) {
        return R2_ERR_NO_MEMORY;
    }
    memset(stage, 0, sizeof(*stage));
    stage->bytes = bytes;
    stage->touch = touch;
    stage->reducer = reducer;
    stage->load_count = touch->load_count;
    stage->reduced = (uint64_t *) (void *) ((char *) (stage + 1) + sides[0] + sides[1]);
    stage->waiting = (uint32_t *) (void *) (stage->reduced + ops);
    stage->written = stage->waiting + ops;
    stage->reducing = stage->written + ops;
    stage->arriving = stage->reducing + ops;
    stage->arrived = stage->arriving + ops;
    stage->taken = stage->arrived + ops;
    stage->ready_src = stage->taken + ops;
    stage->ready_dst = stage->ready_src + ops;
    memset(stage->arrived, 0, R2_STAGE_COUNTS * ops * sizeof(*stage->arrived));
    exec->stage = stage;
    status = r2_stage_open(exec, 0, (char *) (stage + 1));
    if (R2_OK == status) {
        status = r2_stage_open(exec, 1, (char *) (stage + 1) + sides[0]);
    }
    stage->copier = r2_stage_find_copier(exec);
    return status;
}

static void r2_stage_release(r2_exec_t *exec)
{
    r2_staged_t *stage = exec->stage;
    r2_pins_t *pins = &exec->engine->staging.pins;

    for (uint32_t i = 0; i < R2_TOUCH_SIDES; ++i) {
        r2_pins_put(pins, stage->sides[i].staged);
    }
    if (NULL != stage->scratch) {
        r2_pins_put(pins, stage->scratch);
        exec->scratch = NULL;
    }
    r2_blocks_put(&exec->engine->blocks, stage, stage->bytes);
    exec->stage = NULL;
}

/* A kernel reaches no pageable memory. @return true: all that the run works on is pinned. */
static bool r2_stage_pin_all(r2_exec_t *exec)
{
    const uint64_t scratch_bytes = exec->schedule->scratch_bytes;
    r2_staged_t *stage = exec->stage;

    if (scratch_bytes > 0) {
        stage->scratch = r2_pins_get(&exec->engine->staging.pins, scratch_bytes);
        exec->scratch = NULL == stage->scratch ? NULL : stage->scratch->memory;
    }
    for (uint32_t i = 0; i < R2_TOUCH_SIDES; ++i) {
        if (NULL != stage->sides[i].staged && stage->sides[i].staged->is_heap) {
            return false;
        }
    }
    return 0 == scratch_bytes || (NULL != stage->scratch && !stage->scratch->is_heap);
}

const r2_touch_t *r2_stage_touch(r2_program_t *program, const r2_staging_place_t *reducer)
{
    return r2_program_touch(program, NULL == reducer ? R2_TOUCH_NO_GPU : reducer->reduce_bytes);
}

r2_status_t r2_stage_init(r2_exec_t *exec, r2_staging_place_t *reducer)
{
    r2_status_t status;

    if (!r2_stage_is_needed(&exec->args)) {
        return R2_OK;
    }
    if (NULL != reducer) {
        status = r2_stage_create(exec, reducer);
        if (R2_OK != status || r2_stage_pin_all(exec)) {
            return status;
        }
        r2_stage_release(exec);
    }
    status = r2_stage_create(exec, NULL);
    if (R2_OK == status && exec->engine->loans.enabled) {
        (void) r2_stage_pin_all(exec); /* or it is sent what the driver cannot copy there */
    }
    return status;
}

void r2_stage_drain(r2_exec_t *exec)
{
    for (uint32_t i = 0; NULL != exec->stage && i < R2_TOUCH_SIDES; ++i) {
        r2_staging_place_t *place = exec->stage->sides[i].place;

        if (NULL != place) {
            (void) r2_mem_queue_drain(&place->loads);
            (void) r2_mem_queue_drain(&place->stores);
        }
    }
    if (NULL != exec->stage && NULL != r2_stage_worker(exec->stage)) {
        (void) r2_mem_queue_drain(&r2_stage_worker(exec->stage)->reduces);
    }
}

void r2_stage_end(r2_exec_t *exec)
{
    if (!exec->over) {
        r2_stage_drain(exec);
    }
}

void r2_stage_fini(r2_exec_t *exec)
{
    if (NULL != exec->stage) {
        r2_stage_release(exec);
    }
}

/* ---- copies ---- */

/* Segments [first, end) of a buffer: loaded or stored. */
static r2_status_t r2_stage_move(const r2_exec_t *exec, uint32_t which, uint32_t first,
                                 uint32_t end, bool is_store)
{
    const r2_staged_side_t *side = &exec->stage->sides[which];
    const r2_convertor_t *convertor = &exec->args.convertors[which];
    const uint64_t offset = side->touch->cuts[first], bytes = side->touch->cuts[end] - offset;
    char *memory = 0 == which ? (char *) (uintptr_t) exec->args.in : exec->args.out;
    r2_staging_copy_t copy = {.queue = is_store ? &side->place->stores : &side->place->loads,
                              .staged = side->staged->memory + side->touch->places[first] - offset,
                              .is_store = is_store};

    if (NULL != convertor->move) {
        copy.kernels = r2_staging_packer(side->place, side->staged->memory);
        convertor->runs(convertor->arg, offset, bytes, r2_staging_piece, &copy);
    } else {
        r2_staging_piece(&copy, memory + offset, offset, bytes);
    }
    return r2_staging_end(&copy);
}

/* @return as r2_stage_load_ahead(). */
static r2_status_t r2_stage_load_span(r2_exec_t *exec, uint32_t which, r2_touch_span_t span)
{
    r2_staged_side_t *side = &exec->stage->sides[which];
    r2_status_t status = r2_mem_queue_room(&side->place->loads);
    uint64_t ticket;

    if (R2_OK == status) {
        status = r2_stage_move(exec, which, span.first, span.end, false);
    }
    if (R2_OK == status) {
        status = r2_mem_queue_mark(&side->place->loads, &ticket);
    }
    if (R2_OK == status) {
        r2_stage_set(side, &span, ticket);
    }
    return status;
}

/* What the user's memory has before the application's work ends is no peer's nor NIC's to read.
 * @return R2_OK: it has ended; R2_IN_PROGRESS; R2_ERR_GPU. */
static r2_status_t r2_stage_follow(r2_staged_side_t *side)
{
    r2_status_t status = R2_OK;

    if (0 == side->followed) {
        status = r2_mem_queue_room(&side->place->loads);
        if (R2_OK == status) {
            status = r2_mem_queue_mark(&side->place->loads, &side->followed);
        }
    }
    return R2_OK == status ? r2_mem_queue_test(&side->place->loads, side->followed) : status;
}

/* What is lent, read by NICs or copied by the GPU is loaded if an op needs it here. */
static r2_status_t r2_stage_begin_load(r2_exec_t *exec, const r2_touch_load_t *load)
{
    r2_staged_side_t *side = &exec->stage->sides[load->which];

    if (NULL == side->place || r2_stage_copies(exec, load->op)) {
        return R2_OK;
    }
    if (r2_loan_prepare(exec, load->op) || r2_nic_prepare(exec, load->op)) {
        const r2_status_t status = r2_stage_follow(side);

        return R2_IN_PROGRESS == status ? R2_OK : status;
    }
    return r2_stage_load_span(exec, load->which, load->span);
}

/* Copies come in the order in which they are started, so that is the order of the ops, not the one
 * in which these are ready: else all that is sent at once is loaded before what is reduced first,
 * and results come late. */
r2_status_t r2_stage_load_ahead(r2_exec_t *exec)
{
    const r2_touch_t *touch = exec->stage->touch;
    r2_staged_t *stage = exec->stage;
    r2_status_t status = R2_OK;

    while (R2_OK == status && stage->ahead < stage->load_count) {
        status = r2_stage_begin_load(exec, &touch->loads[stage->ahead]);
        stage->ahead += R2_OK == status ? 1 : 0;
    }
    return status;
}

/* How far a span is loaded. Segments that were are not looked at again: an op is asked for as often
 * as its pieces come. @param ready_p grows. @return R2_OK: all; R2_IN_PROGRESS: the next one is not
 * there, or missing; R2_ERR_GPU. */
static r2_status_t r2_stage_advance(r2_staged_t *stage, r2_staged_side_t *side,
                                    const r2_touch_span_t *span, uint32_t *ready_p)
{
    r2_status_t status = R2_OK;

    while (R2_OK == status && span->first + *ready_p < span->end) {
        const uint64_t ticket = side->loaded[span->first + *ready_p];

        ++stage->looked;
        if (R2_STAGE_MISSING == ticket) {
            status = R2_IN_PROGRESS;
        } else if (0 != ticket) {
            status = r2_mem_queue_test(&side->place->loads, ticket);
        }
        *ready_p += R2_OK == status ? 1 : 0;
    }
    return status;
}

/* What was lent, or received by its peer's memory, and is needed here after all. */
static r2_status_t r2_stage_load_missing(r2_exec_t *exec, uint32_t which,
                                         const r2_touch_span_t *span)
{
    const r2_staged_side_t *side = &exec->stage->sides[which];
    r2_status_t status = r2_mem_queue_room(&side->place->loads);

    for (uint32_t s = span->first, end; R2_OK == status && s < span->end; s = end + 1) {
        for (end = s; end < span->end && R2_STAGE_MISSING == side->loaded[end]; ++end) {
            ++exec->stage->looked;
        }
        if (end > s) {
            status = r2_stage_load_span(exec, which, (r2_touch_span_t){s, end});
        }
    }
    return status;
}

static bool r2_stage_lacks_some(r2_staged_t *stage, const r2_staged_side_t *side,
                                r2_touch_span_t span)
{
    while (span.first < span.end && R2_STAGE_MISSING != side->loaded[span.first]) {
        ++stage->looked;
        ++span.first;
    }
    return span.first < span.end;
}

/* All that is missing is loaded at once, also behind what is on its way: else an op would wait for
 * one load after the other. It is looked for once, since no other op takes anything away. */
static r2_status_t r2_stage_side_load(r2_exec_t *exec, uint32_t index, bool is_dst)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    r2_staged_t *stage = exec->stage;
    const r2_buf_t buf = is_dst ? op->dst.buf : op->src.buf;
    const uint32_t which = R2_BUF_IN == buf ? 0 : 1;
    const r2_touch_span_t *span = is_dst ? &stage->touch->dst[index] : &stage->touch->src[index];
    uint32_t *ready_p = is_dst ? &stage->ready_dst[index] : &stage->ready_src[index];
    bool *sought_p = is_dst ? &exec->ops[index].sought_dst : &exec->ops[index].sought_src;
    r2_staged_side_t *side = &stage->sides[which];
    r2_touch_span_t rest;
    r2_status_t status;

    if (R2_BUF_SCRATCH == buf || NULL == side->place) {
        return R2_OK;
    }
    status = r2_stage_advance(exec->stage, side, span, ready_p);
    if (R2_IN_PROGRESS != status ||
        (*sought_p && R2_STAGE_MISSING != side->loaded[span->first + *ready_p])) {
        return status;
    }
    rest = (r2_touch_span_t){span->first + *ready_p, span->end};
    status = R2_OK;
    if (r2_stage_lacks_some(stage, side, rest)) {
        status = r2_stage_load_ahead(exec);
        status = R2_OK == status ? r2_stage_load_missing(exec, which, &rest) : status;
    }
    *sought_p = R2_OK == status;
    return status < 0 ? status : r2_stage_advance(stage, side, span, ready_p);
}

r2_status_t r2_stage_load(r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    const r2_touch_t *touch = exec->stage->touch;
    const uint8_t direct = touch->direct[index];
    r2_status_t status = R2_OK, dst_status = R2_OK;

    if (r2_stage_copies(exec, index)) {
        return R2_OK;
    }
    if (r2_loan_prepare(exec, index) || r2_nic_prepare(exec, index)) {
        const r2_buf_t buf = R2_OP_RECV == op->kind ? op->dst.buf : op->src.buf;

        return r2_stage_follow(&exec->stage->sides[R2_BUF_IN == buf ? 0 : 1]);
    }
    if (r2_touch_reads_src(op) && 0 == (direct & R2_TOUCH_DIRECT_SRC)) {
        status = r2_stage_side_load(exec, index, false);
    }
    if (status >= 0 && r2_touch_writes_dst(op) && 0 == (direct & R2_TOUCH_DIRECT_DST)) {
        dst_status = r2_stage_side_load(exec, index, true);
    }
    return R2_OK == status || dst_status < 0 ? dst_status : status;
}

void r2_stage_begin(r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];

    if (r2_touch_writes_dst(op) && NULL != r2_exec_staged(exec, op->dst.buf)) {
        r2_stage_set(&exec->stage->sides[R2_BUF_IN == op->dst.buf ? 0 : 1],
                     &exec->stage->touch->dst[index], 0);
    }
}

void r2_stage_lacks(r2_exec_t *exec, uint32_t index)
{
    exec->ops[index].direct = true;
    r2_stage_set(&exec->stage->sides[1], &exec->stage->touch->dst[index], R2_STAGE_MISSING);
}

void r2_stage_note(r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    r2_staged_t *stage = exec->stage;

    if (r2_touch_writes_dst(op) && R2_BUF_OUT == op->dst.buf && NULL != stage->sides[1].place &&
        !exec->ops[index].direct) {
        stage->written[stage->written_tail++] = index;
        r2_stage_await(exec);
    } else if (0 == exec->ops_left) {
        r2_stage_await(exec);
    }
}

/* An op has written a span: what nobody will write any more goes to the user. */
static r2_status_t r2_stage_written(r2_exec_t *exec, const r2_touch_span_t *span)
{
    r2_staged_side_t *side = &exec->stage->sides[1];
    r2_status_t status = R2_OK;

    for (uint32_t s = span->first, end; R2_OK == status && s < span->end; s = end + 1) {
        for (end = s; end < span->end && 0 == --side->writes[end]; ++end) {
        }
        if (end > s) {
            status = r2_stage_move(exec, 1, s, end, true);
        }
    }
    return status;
}

/* @param span_p the next segments that have come. @return false: there are none. */
static bool r2_stage_take_arrived(r2_exec_t *exec, r2_touch_span_t *span_p)
{
    r2_staged_t *stage = exec->stage;
    uint32_t index, first;

    if (0 == stage->arriving_count) {
        return false;
    }
    index = stage->arriving[--stage->arriving_count];
    first = stage->touch->dst[index].first;
    *span_p = (r2_touch_span_t){first + stage->taken[index], first + stage->arrived[index]};
    stage->taken[index] = stage->arrived[index];
    return true;
}

r2_status_t r2_stage_store(r2_exec_t *exec, unsigned *stored_p)
{
    r2_staged_t *stage = exec->stage;
    r2_mem_queue_t *stores = NULL == stage->sides[1].place ? NULL : &stage->sides[1].place->stores;
    r2_status_t status = R2_OK;
    r2_touch_span_t span;

    if (stage->written_head < stage->written_tail || stage->arriving_count > 0) {
        status = r2_mem_queue_room(stores);
        while (R2_OK == status && r2_stage_take_arrived(exec, &span)) {
            status = r2_stage_written(exec, &span);
            ++*stored_p;
        }
        while (R2_OK == status && stage->written_head < stage->written_tail) {
            const uint32_t op = stage->written[stage->written_head++];

            span = stage->touch->dst[op];
            span.first += stage->taken[op];
            status = r2_stage_written(exec, &span);
            ++*stored_p;
        }
        if (R2_OK == status) {
            status = r2_mem_queue_mark(stores, &stage->stored);
        }
    }
    if (R2_OK == status && 0 != stage->stored) {
        status = r2_mem_queue_test(stores, stage->stored);
    }
    stage->stored = R2_OK == status ? 0 : stage->stored;
    return status;
}
