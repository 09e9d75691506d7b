/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Fused ops: which are, and that what arrives in pieces, in any order and at any address, gives the
 * bits of the ops one by one.
 */
#include "exec_links.h"
#include "r2/prng.h"

#define BYTES 20480u /* more than a piece of fuse.c, and not a multiple of it */

typedef enum shape { INTO_ACC, ONTO_ACC, ONTO_COPY, SHAPES } shape_t;

static uint8_t in[BYTES], out[BYTES], brought[BYTES], expected[BYTES];
static uint64_t reduced_count; /* elements */

/* inout = in - inout: not commutative. Counts. */
static void subtract(void *arg, const void *from, void *inout, size_t count)
{
    const uint8_t *a = from;
    uint8_t *b = inout;

    (void) arg;
    assert_int_equal((uintptr_t) from % 8, (uintptr_t) in % 8); /* as aligned as buffers are */
    for (size_t i = 0; i < count; ++i) {
        b[i] = (uint8_t) (a[i] - b[i]);
    }
    reduced_count += count;
}

static bool src_is_kept; /* somebody reads the slot after the REDUCE op */

static uint32_t add(r2_schedule_t *schedule, r2_op_kind_t kind, r2_region_t src, r2_region_t dst,
                    const uint32_t *deps, uint32_t count)
{
    return r2_schedule_add(
        schedule,
        &(r2_op_t){.kind = kind,
                   .peer = 1,
                   .tag = 3,
                   .bytes = BYTES,
                   .src = src,
                   .dst = dst,
                   .frees_src = R2_BUF_SCRATCH == src.buf && !src_is_kept},
        deps, count);
}

static const r2_region_t in_place = {R2_BUF_IN, 0}, out_place = {R2_BUF_OUT, 0},
                         slot = {R2_BUF_SCRATCH, 0};

/* @return the REDUCE op. */
static uint32_t add_shape(r2_schedule_t *schedule, shape_t shape)
{
    uint32_t deps[2], count = 0;

    schedule->scratch_bytes = BYTES;
    if (INTO_ACC == shape) {
        deps[0] = add(schedule, R2_OP_RECV, out_place, out_place, NULL, 0);
        return add(schedule, R2_OP_REDUCE, in_place, out_place, deps, 1);
    }
    if (ONTO_COPY == shape) {
        deps[count++] = add(schedule, R2_OP_COPY, in_place, out_place, NULL, 0);
    }
    deps[count++] = add(schedule, R2_OP_RECV, slot, slot, NULL, 0);
    return add(schedule, R2_OP_REDUCE, slot, out_place, deps, count);
}

static void fill(r2_prng_t *prng, shape_t shape)
{
    for (uint32_t i = 0; i < BYTES; ++i) {
        in[i] = (uint8_t) r2_prng_below(prng, 256);
        out[i] = (uint8_t) r2_prng_below(prng, 256);
        brought[i] = (uint8_t) r2_prng_below(prng, 256);
        expected[i] =
            (uint8_t) (INTO_ACC == shape ? in[i] - brought[i]
                                         : brought[i] - (ONTO_ACC == shape ? out : in)[i]);
    }
}

static uint32_t recv_call(void)
{
    for (uint32_t i = 0; i < call_count; ++i) {
        if (!calls[i].send) {
            return i;
        }
    }
    fail();
    return 0;
}

/* Gives the receive its chunks from the last to the first, at an odd address. */
static void give(const call_t *recv, uint32_t chunk_bytes)
{
    static uint8_t elsewhere[BYTES + 1];

    for (uint32_t offset = BYTES - BYTES % chunk_bytes; offset <= BYTES; offset -= chunk_bytes) {
        const uint32_t bytes = (uint32_t) r2_min(chunk_bytes, BYTES - offset);

        memcpy(elsewhere + 1, brought + offset, bytes);
        if (bytes > 0) {
            recv->sink(recv->arg, offset, elsewhere + 1, bytes);
        }
    }
}

static r2_exec_args_t fusing(void)
{
    r2_exec_args_t args = arguments(in, out);

    args.reduce = subtract;
    args.any_thread = true;
    args.element_bytes = 1;
    return args;
}

static void run(r2_exec_t *exec, shape_t shape, const r2_exec_args_t *args)
{
    r2_schedule_t schedule;

    call_count = 0;
    reduced_count = 0;
    r2_schedule_init(&schedule);
    (void) add_shape(&schedule, shape);
    start(exec, &schedule, args);
}

static void finish(r2_exec_t *exec)
{
    complete(recv_call(), R2_OK);
    r2_engine_run(&engine, true);
    assert_ptr_equal(r2_engine_collect(&engine), exec);
    assert_int_equal(exec->status, R2_OK);
    assert_memory_equal(out, expected, BYTES);
    assert_int_equal(reduced_count, BYTES);
    r2_exec_fini(exec);
}

static void pieces_are_reduced_as_they_come(void **state)
{
    static const uint32_t chunks[] = {64, 8192, 8256, 16384, BYTES};
    const r2_exec_args_t args = fusing();
    r2_prng_t prng;
    r2_exec_t exec;

    (void) state;
    r2_prng_seed(&prng, 5);
    for (shape_t shape = 0; shape < SHAPES; ++shape) {
        for (size_t i = 0; i < r2_array_count(chunks); ++i) {
            fill(&prng, shape);
            run(&exec, shape, &args);
            assert_non_null(calls[recv_call()].sink);
            give(&calls[recv_call()], chunks[i]);
            assert_int_equal(reduced_count, BYTES);
            finish(&exec);
        }
    }
}

/* Chunks that end within a vector go where the op wanted them, and the ops do as they say. */
static void what_is_not_taken_is_reduced_later(void **state)
{
    const r2_exec_args_t args = fusing();
    r2_prng_t prng;
    r2_exec_t exec;

    (void) state;
    r2_prng_seed(&prng, 6);
    for (shape_t shape = 0; shape < SHAPES; ++shape) {
        fill(&prng, shape);
        run(&exec, shape, &args);
        memcpy((void *) (uintptr_t) calls[recv_call()].data, brought, BYTES);
        assert_int_equal(reduced_count, 0);
        finish(&exec);
    }
}

/* Code of the user, buffers with holes, and elements that are no power of two: op by op. */
static void others_are_not_fused(void **state)
{
    r2_exec_args_t users = fusing(), odd = fusing();
    const r2_exec_args_t *const refused[] = {&users, &odd};
    r2_prng_t prng;
    r2_exec_t exec;

    (void) state;
    r2_prng_seed(&prng, 7);
    users.any_thread = false;
    odd.element_bytes = 5;
    for (size_t i = 0; i < r2_array_count(refused); ++i) {
        run(&exec, ONTO_COPY, refused[i]);
        assert_null(calls[recv_call()].sink);
        r2_exec_abort(&exec, R2_ERR_CANCELED);
        assert_ptr_equal(r2_engine_collect(&engine), &exec);
        r2_exec_fini(&exec);
    }
}

/* @return whether a program fuses its ops. */
static bool is_fused(r2_schedule_t *schedule)
{
    r2_program_t *program;
    bool fused;

    assert_int_equal(schedule->status, R2_OK);
    assert_int_equal(r2_program_create(schedule, &program), R2_OK);
    fused = NULL != program->partners;
    r2_program_put(program);
    r2_schedule_fini(schedule);
    return fused;
}

/* Not where somebody else waits for one of them, or the REDUCE op for somebody else. */
static void what_others_need_is_not_fused(void **state)
{
    (void) state;
    for (uint32_t other = 0; other < 6; ++other) {
        r2_schedule_t schedule;
        uint32_t deps[3], before;

        r2_schedule_init(&schedule);
        src_is_kept = 5 == other;
        schedule.scratch_bytes = BYTES;
        before = add(&schedule, R2_OP_SEND, in_place, in_place, NULL, 0);
        deps[0] = add(&schedule, R2_OP_COPY, in_place, out_place, &before, 1 == other ? 1 : 0);
        deps[1] = add(&schedule, R2_OP_RECV, slot, slot, NULL, 0);
        deps[2] = before;
        (void) add(&schedule, R2_OP_REDUCE, slot, out_place, deps, 2 == other ? 3 : 2);
        if (3 == other) {
            (void) add(&schedule, R2_OP_SEND, out_place, out_place, &deps[0], 1);
        } else if (4 == other) {
            (void) add(&schedule, R2_OP_SEND, slot, slot, &deps[1], 1);
        }
        assert_int_equal(is_fused(&schedule), 0 == other);
        src_is_kept = false;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_are_reduced_as_they_come, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_taken_is_reduced_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others_are_not_fused, set_up, tear_down),
        cmocka_unit_test(what_others_need_is_not_fused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
