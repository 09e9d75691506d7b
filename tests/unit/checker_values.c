/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of symbols: every byte is a tree of contributions and a position.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "checker_parts.h"
#include "plan/layout.h"

static r2_value_t *memory_at(const r2_memory_t *memory, int32_t rank, r2_region_t region)
{
    return memory->bytes[rank * R2_BUF_KINDS + (int) region.buf] + region.offset_bytes;
}

/* ---- trees */

static uint32_t tree_hash(const r2_memory_t *memory, uint32_t left, uint32_t right)
{
    return (left * 2654435761u ^ (right * 2246822519u + 0x9e3779b9u)) % memory->bucket_count;
}

static uint32_t tree_append(r2_memory_t *memory, r2_tree_t tree)
{
    if (memory->tree_count == memory->tree_room) {
        memory->tree_room = memory->tree_room * 2 + 256;
        memory->trees = realloc(memory->trees, memory->tree_room * sizeof(*memory->trees));
    }
    memory->trees[memory->tree_count] = tree;
    return memory->tree_count++;
}

static void tree_rehash(r2_memory_t *memory, uint32_t first)
{
    free(memory->buckets);
    memory->bucket_count = memory->bucket_count * 4 + 1024;
    memory->buckets = malloc(memory->bucket_count * sizeof(*memory->buckets));
    memset(memory->buckets, 0xff, memory->bucket_count * sizeof(*memory->buckets));
    for (uint32_t t = first; t < memory->tree_count; ++t) {
        uint32_t b = tree_hash(memory, memory->trees[t].left, memory->trees[t].right);

        while (R2_OP_NONE != memory->buckets[b]) {
            b = (b + 1) % memory->bucket_count;
        }
        memory->buckets[b] = t;
    }
}

/** The tree left OP right; the same index each time. */
static uint32_t tree_join(r2_memory_t *memory, uint32_t leaves, uint32_t left, uint32_t right)
{
    r2_tree_t tree = {.left = left, .right = right, .low = -1, .high = -1};
    const r2_tree_t *l, *r;
    uint32_t b;

    if (2 * memory->tree_count >= memory->bucket_count) {
        tree_rehash(memory, leaves);
    }
    b = tree_hash(memory, left, right);
    while (R2_OP_NONE != memory->buckets[b]) {
        const r2_tree_t *found = &memory->trees[memory->buckets[b]];

        if (found->left == left && found->right == right) {
            return memory->buckets[b];
        }
        b = (b + 1) % memory->bucket_count;
    }
    l = &memory->trees[left];
    r = &memory->trees[right];
    tree.ranks = l->ranks | r->ranks;
    if (l->low >= 0 && r->low >= 0 && l->high + 1 == r->low) {
        tree.low = l->low;
        tree.high = r->high;
    }
    memory->buckets[b] = tree_append(memory, tree);
    return memory->buckets[b];
}

/* ---- start */

static void fill(r2_value_t *bytes, uint64_t length, uint32_t tree, uint64_t position)
{
    for (uint64_t i = 0; i < length; ++i) {
        bytes[i] = (r2_value_t){.tree = tree, .position = (uint32_t) (position + i)};
    }
}

/** Where the contribution of a rank lies before the collective. */
static void memory_contribute(r2_memory_t *memory, const r2_check_job_t *job, int32_t rank)
{
    const r2_plan_input_t *input = &job->inputs[rank];
    r2_region_t place = {.buf = input->in_place ? R2_BUF_OUT : R2_BUF_IN};
    uint64_t length = r2_check_buf_bytes(job, rank, place.buf);
    r2_layout_t blocks;

    if (R2_COLL_SCATTER == input->kind) {
        place.buf = R2_BUF_IN;
        length = rank == input->root ? r2_check_buf_bytes(job, rank, R2_BUF_IN) : 0;
    } else if (R2_COLL_GATHER == input->kind && input->in_place) {
        length = input->count * input->element_bytes;
        place.offset_bytes = (uint64_t) rank * length;
    } else if (R2_COLL_BCAST == input->kind) {
        place.buf = R2_BUF_OUT;
        length = rank == input->root ? r2_check_buf_bytes(job, rank, R2_BUF_OUT) : 0;
    } else if (R2_COLL_ALLGATHER == input->kind || R2_COLL_ALLGATHERV == input->kind) {
        r2_layout_blocks(&blocks, input);
        length = r2_layout_bytes(&blocks, rank);
        place.offset_bytes = input->in_place ? r2_layout_place(&blocks, input, rank) : 0;
        r2_layout_fini(&blocks);
    }
    if (length > 0) {
        fill(memory_at(memory, rank, place), length, (uint32_t) rank, 0);
    }
}

void r2_memory_init(r2_memory_t *memory, const r2_check_job_t *job)
{
    *memory = (r2_memory_t){.bytes = NULL};
    memory->bytes = calloc((size_t) job->size * R2_BUF_KINDS, sizeof(*memory->bytes));
    for (int32_t r = 0; r < job->size; ++r) {
        tree_append(memory, (r2_tree_t){.left = R2_OP_NONE,
                                        .right = R2_OP_NONE,
                                        .ranks = (uint64_t) 1 << r,
                                        .low = r,
                                        .high = r});
    }
    for (int32_t r = 0; r < job->size; ++r) {
        for (int b = 0; b < R2_BUF_KINDS; ++b) {
            uint64_t length = r2_check_buf_bytes(job, r, (r2_buf_t) b);
            r2_value_t *bytes = malloc((length + 1) * sizeof(*bytes));

            fill(bytes, length, R2_TREE_UNDEFINED, 0);
            memory->bytes[r * R2_BUF_KINDS + b] = bytes;
        }
        memory_contribute(memory, job, r);
    }
}

void r2_memory_fini(r2_memory_t *memory, const r2_check_job_t *job)
{
    for (int32_t i = 0; i < job->size * R2_BUF_KINDS; ++i) {
        free(memory->bytes[i]);
    }
    free(memory->bytes);
    free(memory->trees);
    free(memory->buckets);
}

/* ---- ops */

static bool memory_defined(const r2_check_job_t *job, int32_t rank, const r2_op_t *op,
                           const r2_value_t *bytes, r2_check_report_t *report)
{
    for (uint64_t i = 0; R2_COLL_BARRIER != job->inputs[0].kind && i < op->bytes; ++i) {
        if (R2_TREE_UNDEFINED == bytes[i].tree) {
            return r2_check_fail(report, R2_FLAW_UNDEFINED, "rank %d op %ld, byte %lu", rank,
                                 (long) (op - job->schedules[rank].ops), (unsigned long) i);
        }
    }
    return true;
}

bool r2_memory_local(r2_memory_t *memory, const r2_check_job_t *job, int32_t rank,
                     const r2_op_t *op, r2_check_report_t *report)
{
    r2_value_t *src = memory_at(memory, rank, op->src);
    r2_value_t *dst = memory_at(memory, rank, op->dst);

    if (!memory_defined(job, rank, op, src, report)) {
        return false;
    }
    if (R2_OP_COPY == op->kind) {
        memcpy(dst, src, op->bytes * sizeof(*dst));
        return true;
    }
    if (!memory_defined(job, rank, op, dst, report)) {
        return false;
    }
    for (uint64_t i = 0; i < op->bytes; ++i) {
        if (src[i].position != dst[i].position ||
            0 != (memory->trees[src[i].tree].ranks & memory->trees[dst[i].tree].ranks)) {
            return r2_check_fail(report, R2_FLAW_OPERANDS, "rank %d op %ld, byte %lu", rank,
                                 (long) (op - job->schedules[rank].ops), (unsigned long) i);
        }
        dst[i].tree = tree_join(memory, (uint32_t) job->size, src[i].tree, dst[i].tree);
    }
    if (op->frees_src) { /* fused, it was never written: who reads it after all must fail */
        fill(src, op->bytes, R2_TREE_UNDEFINED, 0);
    }
    return true;
}

bool r2_memory_deliver(r2_memory_t *memory, const r2_check_job_t *job, int32_t from,
                       const r2_op_t *send, int32_t to, const r2_op_t *recv,
                       r2_check_report_t *report)
{
    const r2_value_t *src = memory_at(memory, from, send->src);

    if (!memory_defined(job, from, send, src, report)) {
        return false;
    }
    memcpy(memory_at(memory, to, recv->dst), src, send->bytes * sizeof(*src));
    return true;
}

/* ---- results */

/** The tree that all elements on all ranks must be; R2_TREE_UNDEFINED: any. */
static uint32_t expected_tree(r2_memory_t *memory, const r2_check_job_t *job)
{
    uint32_t tree = (uint32_t) job->size - 1;

    if (R2_CLAIM_CANONICAL != job->claim) {
        return R2_TREE_UNDEFINED;
    }
    for (int32_t r = job->size - 2; r >= 0; --r) {
        tree = tree_join(memory, (uint32_t) job->size, (uint32_t) r, tree);
    }
    return tree;
}

/** @param high the last rank that the result has a contribution of. */
static bool check_reduced(r2_memory_t *memory, const r2_check_job_t *job, int32_t rank,
                          uint64_t start, uint64_t length, int32_t high, uint32_t *tree_p,
                          r2_check_report_t *report)
{
    const r2_value_t *out = memory->bytes[rank * R2_BUF_KINDS + R2_BUF_OUT];
    const uint64_t all = UINT64_MAX >> (63 - high);

    for (uint64_t i = 0; i < length; ++i) {
        const r2_tree_t *tree;

        if (R2_TREE_UNDEFINED == out[i].tree || out[i].position != start + i ||
            memory->trees[out[i].tree].ranks != all) {
            return r2_check_fail(report, R2_FLAW_RESULT, "rank %d result byte %lu", rank,
                                 (unsigned long) i);
        }
        tree = &memory->trees[out[i].tree];
        if (R2_CLAIM_EACH_ONCE != job->claim && (0 != tree->low || high != tree->high)) {
            return r2_check_fail(report, R2_FLAW_ORDER, "rank %d result byte %lu", rank,
                                 (unsigned long) i);
        }
        if (R2_CLAIM_EACH_ONCE != job->claim && R2_TREE_UNDEFINED != *tree_p &&
            out[i].tree != *tree_p) {
            return r2_check_fail(report, R2_FLAW_TREE, "rank %d result byte %lu", rank,
                                 (unsigned long) i);
        }
        *tree_p = out[i].tree;
    }
    return true;
}

/** Each byte of OUT is the expected contribution, or untouched where there is none. */
static bool check_gathered(const r2_memory_t *memory, const r2_check_job_t *job, int32_t rank,
                           r2_check_report_t *report)
{
    const r2_plan_input_t *input = &job->inputs[rank];
    const r2_value_t *out = memory->bytes[rank * R2_BUF_KINDS + R2_BUF_OUT];
    const uint64_t length = r2_check_buf_bytes(job, rank, R2_BUF_OUT);
    r2_value_t *expected = malloc((length + 1) * sizeof(*expected));
    bool good = true;
    r2_layout_t blocks;

    if (R2_COLL_BCAST == input->kind) {
        fill(expected, length, (uint32_t) input->root, 0);
    } else if (r2_check_moves(input->kind)) {
        fill(expected, length, input->in_place ? (uint32_t) rank : R2_TREE_UNDEFINED, 0);
        r2_check_expect_moved(job, rank, expected);
    } else {
        fill(expected, length, R2_TREE_UNDEFINED, 0);
        r2_layout_blocks(&blocks, input);
        for (int32_t r = 0; r < job->size; ++r) {
            fill(expected + r2_layout_place(&blocks, input, r), r2_layout_bytes(&blocks, r),
                 (uint32_t) r, 0);
        }
        r2_layout_fini(&blocks);
    }
    for (uint64_t i = 0; good && i < length; ++i) {
        if (out[i].tree != expected[i].tree ||
            (R2_TREE_UNDEFINED != out[i].tree && out[i].position != expected[i].position)) {
            good = r2_check_fail(report, R2_FLAW_RESULT, "rank %d result byte %lu", rank,
                                 (unsigned long) i);
        }
    }
    free(expected);
    return good;
}

/** Result of a prefix reduction: exscan leaves rank 0 as it is. */
static bool check_scanned(r2_memory_t *memory, const r2_check_job_t *job, int32_t rank,
                          r2_check_report_t *report)
{
    const r2_plan_input_t *input = &job->inputs[rank];
    const r2_value_t *out = memory->bytes[rank * R2_BUF_KINDS + R2_BUF_OUT];
    const uint64_t length = r2_check_buf_bytes(job, rank, R2_BUF_OUT);
    const int32_t high = R2_COLL_SCAN == input->kind ? rank : rank - 1;
    uint32_t tree = R2_TREE_UNDEFINED; /* of all elements, but another one on each rank */

    for (uint64_t i = 0; 0 > high && i < length; ++i) {
        if (out[i].tree != (input->in_place ? (uint32_t) rank : R2_TREE_UNDEFINED)) {
            return r2_check_fail(report, R2_FLAW_RESULT, "rank %d byte %lu is written", rank,
                                 (unsigned long) i);
        }
    }
    return 0 > high || check_reduced(memory, job, rank, 0, length, high, &tree, report);
}

bool r2_memory_results(r2_memory_t *memory, const r2_check_job_t *job, r2_check_report_t *report)
{
    const r2_coll_kind_t kind = job->inputs[0].kind;
    const int32_t high = job->size - 1;
    uint32_t tree = expected_tree(memory, job);
    bool good = true;
    r2_layout_t blocks;

    for (int32_t r = 0; good && r < job->size; ++r) {
        if (R2_COLL_ALLREDUCE == kind || R2_COLL_REDUCE == kind) {
            good = check_reduced(memory, job, r, 0, r2_check_buf_bytes(job, r, R2_BUF_OUT), high,
                                 &tree, report);
        } else if (R2_COLL_SCAN == kind || R2_COLL_EXSCAN == kind) {
            good = check_scanned(memory, job, r, report);
        } else if (R2_COLL_REDUCE_SCATTER == kind || R2_COLL_REDUCE_SCATTER_BLOCK == kind) {
            r2_layout_blocks(&blocks, &job->inputs[r]);
            good = check_reduced(memory, job, r, blocks.start[r], r2_layout_bytes(&blocks, r), high,
                                 &tree, report);
            r2_layout_fini(&blocks);
        } else {
            good = check_gathered(memory, job, r, report);
        }
    }
    return good;
}
