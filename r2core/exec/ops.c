/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The four kinds of ops.
 */
#include "r2_config.h"

#include <string.h>

#include "base/util.h"
#include "exec/exec.h"
#include "exec/fuse.h"

/* So many messages of a run ask for their acknowledgement as they leave: one for each of the rails
 * that a host has as a rule. */
#define R2_EXEC_LAST_SENDS 4u

/* Who receives an op's message sends the answer to an offer. */
static r2_op_kind_t r2_exec_kind_of(r2_op_kind_t kind, uint32_t tag)
{
    if (R2_LOAN_ANSWER != (tag & R2_LOAN_MASK)) {
        return kind;
    }
    return R2_OP_SEND == kind ? R2_OP_RECV : R2_OP_SEND;
}

bool r2_exec_has_op(const r2_exec_t *exec, r2_op_kind_t asked, uint32_t rank, uint32_t id,
                    uint32_t digest)
{
    const r2_op_kind_t kind = r2_exec_kind_of(asked, id);
    const uint32_t tag = id & ~R2_LOAN_MASK;

    for (uint32_t i = 0; i < exec->schedule->op_count; ++i) {
        const r2_op_t *op = &exec->schedule->ops[i];

        if (kind == op->kind && tag == op->tag && rank == exec->args.ranks[op->peer]) {
            return digest == r2_exec_digest(exec, op);
        }
    }
    return false;
}

uint32_t r2_exec_lowest(r2_exec_t *exec)
{
    const r2_schedule_t *schedule = exec->schedule;

    while (exec->lowest < schedule->op_count &&
           (R2_OP_SEND != schedule->ops[exec->lowest].kind || exec->ops[exec->lowest].done)) {
        ++exec->lowest;
    }
    return exec->lowest;
}

/*
 * Packs what a SEND op sends. Bounded: an op waits for room while others are under way, but never
 * the first of all: what is under way may wait for peers that wait for it. Ops are in the order of
 * steps, so the message of the lowest step over all ranks can always go.
 */
static r2_status_t r2_exec_pack(r2_exec_t *exec, const r2_op_t *op, r2_exec_op_t *handle)
{
    const r2_convertor_t *convertor = r2_exec_convertor(exec, &op->src);

    if (NULL == convertor || NULL != handle->packed) {
        return R2_OK;
    }
    if (exec->packed_bytes > 0 && exec->packed_bytes + op->bytes > exec->args.pack_bytes &&
        handle - exec->ops != r2_exec_lowest(exec)) {
        return R2_ERR_AGAIN;
    }
    handle->packed = r2_blocks_get(&exec->engine->blocks, op->bytes);
    if (NULL == handle->packed) {
        return R2_ERR_NO_MEMORY;
    }
    exec->packed_bytes += op->bytes;
    convertor->move(convertor->arg, op->src.offset_bytes, handle->packed, op->bytes, false);
    return R2_OK;
}

/* Nothing waits for the acknowledgement of a SEND op that no op waits for, before the run ends. Its
 * last messages ask for theirs, or it would have to ask when all else is done. */
static bool r2_exec_acks_late(const r2_exec_t *exec, const r2_exec_op_t *handle)
{
    const uint32_t *first = &exec->program->first_dependent[handle - exec->ops];

    return NULL == handle->packed && first[0] == first[1] && exec->sends_left > R2_EXEC_LAST_SENDS;
}

/* NICs cannot read it after all: it is loaded (an r2_link_fetch_fn_t). */
static void r2_exec_fetch(void *arg)
{
    r2_exec_op_t *handle = arg;
    r2_exec_t *exec = handle->exec;

    if (!exec->over) {
        handle->fetching = true;
        ++exec->stage->fetches;
        r2_stage_await(exec);
    }
}

static r2_status_t r2_exec_send(r2_exec_t *exec, const r2_op_t *op, r2_exec_op_t *handle,
                                r2_link_done_fn_t done)
{
    r2_link_send_t args = {
        .tag = r2_exec_tag(exec, op),
        .bytes = op->bytes,
        .chunk_bytes = (uint32_t) exec->schedule->chunk_bytes,
        .digest = r2_exec_digest(exec, op),
        .order = op->order,
        .map_pending = exec->carrying && exec->map_pending,
        .brief = exec->program->sent_bytes <= exec->args.copy_bytes,
        .patient = exec->patient,
        .filling = handle->follows || handle->filling,
        .near = r2_stage_near(exec, (uint32_t) (handle - exec->ops)),
        .message_p = &handle->message,
        .done = done,
        .arg = handle,
    };
    r2_tp_memory_t gpu;
    r2_link_t *link;
    r2_status_t status;

    if (r2_loan_is_on(handle)) {
        return r2_loan_offer(exec, (uint32_t) (handle - exec->ops));
    }
    status = r2_exec_pack(exec, op, handle);
    if (R2_OK != status) {
        return status;
    }
    if (r2_loan_is_lent(exec, (uint32_t) (handle - exec->ops))) {
        status =
            r2_loan_lend(exec, (uint32_t) (handle - exec->ops),
                         NULL != handle->packed ? handle->packed : r2_exec_address(exec, &op->src));
        if (R2_ERR_UNSUPPORTED != status) {
            return status;
        }
    }
    args.late_ack = r2_exec_acks_late(exec, handle); /* room for what is packed is waited for */
    if (handle->by_nic) {
        args.data = r2_nic_memory(exec, op, &gpu);
        if (NULL == args.data) { /* the device has failed since */
            return R2_ERR_GPU;
        }
        args.gpu = &gpu;
        args.fetch = r2_exec_fetch;
    } else {
        args.data = NULL != handle->packed ? handle->packed : r2_exec_address(exec, &op->src);
    }
    status = r2_net_link(exec->engine->net, exec->args.ranks[op->peer], &link);
    --exec->sends_left;
    return R2_OK == status ? r2_link_send(link, &args) : status;
}

void r2_exec_pass_on(void *arg, uint64_t bytes)
{
    const r2_exec_op_t *handle = arg;
    const r2_exec_t *exec = handle->exec;
    const r2_program_t *program = exec->program;
    const uint32_t *first = &program->first_dependent[handle - exec->ops];

    for (uint32_t d = first[0]; d < first[1] && !exec->over; ++d) {
        const r2_exec_op_t *send = &exec->ops[program->dependents[d]];

        if (send->follows && NULL != send->message) { /* or it is the link's again */
            r2_link_ready(send->message, bytes);
        }
    }
}

/*
 * Starts the SEND ops that pass on what a RECV op brings, before it: chunks go on as they come. Not
 * what is packed, which is so when all of it is there, nor what carries the map-pending bit on, nor
 * where copies stand for buffers, nor what is read from one process of the host by the next.
 */
static r2_status_t r2_exec_start_following(r2_exec_t *exec, uint32_t recv, r2_link_done_fn_t done)
{
    const r2_program_t *program = exec->program;
    r2_status_t status = R2_OK;

    if (exec->carrying || NULL != exec->stage) {
        return R2_OK;
    }
    for (uint32_t d = program->first_dependent[recv];
         status >= 0 && d < program->first_dependent[recv + 1]; ++d) {
        const uint32_t send = program->dependents[d];
        const r2_op_t *op = &exec->schedule->ops[send];

        if (!exec->ops[send].follows && r2_program_passes_on(program, send) &&
            (!r2_loan_is_lent(exec, send) || !r2_loan_is_lent(exec, recv)) &&
            NULL == r2_exec_convertor(exec, &op->src)) {
            exec->ops[send].follows = exec->ops[recv].follows = true;
            status = r2_exec_send(exec, op, &exec->ops[send], done);
            exec->sending += R2_IN_PROGRESS == status ? 1 : 0;
        }
    }
    return status;
}

/* Part of a message for a buffer that is not contiguous. */
static void r2_exec_sink(void *arg, uint64_t offset, const void *data, uint64_t bytes)
{
    r2_exec_op_t *handle = arg;
    r2_exec_t *exec = handle->exec;
    const r2_op_t *op = &exec->schedule->ops[handle - exec->ops];
    const r2_convertor_t *convertor = r2_exec_convertor(exec, &op->dst);

    convertor->move(convertor->arg, op->dst.offset_bytes + offset, (void *) (uintptr_t) data, bytes,
                    true);
}

/* NICs may write the message where it belongs. Without memory, also of the driver's, it comes as
 * any other. */
static void r2_exec_land(r2_exec_t *exec, const r2_op_t *op, r2_exec_op_t *handle,
                         r2_link_recv_t *args, r2_tp_memory_t *gpu)
{
    args->gpu_data = r2_nic_memory(exec, op, gpu);
    handle->by_nic = NULL != args->gpu_data && r2_landing_new(exec, handle);
    if (handle->by_nic) {
        args->gpu = gpu;
        args->sink = r2_landing_take;
        args->grain_bytes = 1;
    }
}

static r2_status_t r2_exec_recv(r2_exec_t *exec, const r2_op_t *op, r2_exec_op_t *handle,
                                r2_link_done_fn_t done)
{
    bool moved = NULL != r2_exec_convertor(exec, &op->dst);
    bool fused = r2_fuse_is(exec, (uint32_t) (handle - exec->ops)) && 0 == r2_loan_added(handle);
    r2_link_recv_t args = {
        .tag = r2_exec_tag(exec, op),
        .data = moved ? NULL : r2_exec_address(exec, &op->dst),
        .sink = moved   ? r2_exec_sink
                : fused ? r2_fuse_take
                        : NULL,
        .grain_bytes = fused ? R2_REDUCE_GRAIN_BYTES : 0,
        .bytes = op->bytes,
        .digest = r2_exec_digest(exec, op),
        .map_pending = exec->carrying ? &exec->map_pending : NULL,
        .arrived = r2_stream_stores(exec, (uint32_t) (handle - exec->ops)) ? r2_stream_arrived
                   : handle->follows                                       ? r2_exec_pass_on
                                                                           : NULL,
        .done = done,
        .arg = handle,
    };
    r2_tp_memory_t gpu;
    r2_link_t *link;
    r2_status_t status;

    if (r2_loan_is_lent(exec, (uint32_t) (handle - exec->ops))) {
        status = r2_loan_await_place(exec, (uint32_t) (handle - exec->ops));
        return R2_OK == status ? R2_IN_PROGRESS : status;
    }
    status = r2_loan_await(exec, (uint32_t) (handle - exec->ops));
    if (handle->by_nic) {
        r2_exec_land(exec, op, handle, &args, &gpu);
    }
    if (R2_OK == status) {
        status = r2_net_link(exec->engine->net, exec->args.ranks[op->peer], &link);
    }
    status = R2_OK == status ? r2_link_recv(link, &args) : status;
    if (R2_OK == status && NULL != handle->loan) {
        (void) r2_loan_sent(handle->loan, R2_OK);
    }
    return status;
}

static void r2_exec_transfer(r2_exec_t *exec, const r2_region_t *region, uint64_t offset,
                             char *piece, uint64_t bytes, bool write)
{
    const r2_convertor_t *convertor = r2_exec_convertor(exec, region);
    char *memory;

    if (NULL != convertor) {
        convertor->move(convertor->arg, region->offset_bytes + offset, piece, bytes, write);
        return;
    }
    memory = r2_exec_address(exec, region) + offset;
    memcpy(write ? memory : piece, write ? piece : memory, bytes);
}

static void r2_exec_copy(r2_exec_t *exec, const r2_op_t *op)
{
    char piece[8192];

    if (NULL == r2_exec_convertor(exec, &op->src) && NULL == r2_exec_convertor(exec, &op->dst)) {
        memmove(r2_exec_address(exec, &op->dst), r2_exec_address(exec, &op->src), op->bytes);
        return;
    }
    for (uint64_t offset = 0; offset < op->bytes; offset += sizeof(piece)) {
        uint64_t bytes = r2_min(op->bytes - offset, (uint64_t) sizeof(piece));

        r2_exec_transfer(exec, &op->src, offset, piece, bytes, false);
        r2_exec_transfer(exec, &op->dst, offset, piece, bytes, true);
    }
}

static void r2_exec_reduce(r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    uint64_t from = 0;

    if (r2_fuse_has_reduced(exec, index)) {
        return;
    }
    if (r2_fuse_is(exec, index)) {
        const uint32_t copy = r2_fuse_copy_of(exec->schedule, exec->program->partners, index);

        if (R2_OP_NONE != copy) {
            r2_exec_copy(exec, &exec->schedule->ops[copy]);
        }
        from = r2_loan_added(&exec->ops[exec->program->partners[index]]);
    }
    exec->args.reduce(exec->args.reduce_arg, r2_exec_address(exec, &op->src) + from,
                      r2_exec_address(exec, &op->dst) + from,
                      (op->bytes - from) / exec->args.element_bytes);
}

r2_status_t r2_exec_perform(r2_exec_t *exec, uint32_t index, r2_link_done_fn_t done)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    r2_status_t status;

    switch (op->kind) {
    case R2_OP_SEND:
        return r2_exec_send(exec, op, &exec->ops[index], done);
    case R2_OP_RECV:
        status = r2_exec_start_following(exec, index, done);
        return status < 0 ? status : r2_exec_recv(exec, op, &exec->ops[index], done);
    case R2_OP_REDUCE:
        if (r2_stage_reduces(exec, index)) {
            r2_stage_reduce(exec, index);
            return R2_IN_PROGRESS;
        }
        r2_exec_reduce(exec, index);
        break;
    case R2_OP_COPY:
        if (r2_stage_copies(exec, index)) {
            r2_stage_reduce(exec, index);
            return R2_IN_PROGRESS;
        }
        if (!r2_fuse_is(exec, index)) {
            r2_exec_copy(exec, op);
        }
        break;
    }
    return R2_OK;
}
