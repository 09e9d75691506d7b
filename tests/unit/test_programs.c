/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Programs by shape: what is found, what is forgotten, against a plain list.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "ctx/programs.h"
#include "r2/prng.h"

enum { ROOM = 4, KEYS = 9, TURNS = 20000, SIZE = 3 };

/* A program that is told from others by its digest. */
static r2_program_t *make(uint32_t digest, uint32_t ops)
{
    r2_schedule_t schedule;
    r2_program_t *program;

    r2_schedule_init(&schedule);
    for (uint32_t i = 0; i < ops; ++i) {
        r2_schedule_add(&schedule, &(r2_op_t){.kind = R2_OP_COPY, .bytes = 1}, NULL, 0);
    }
    schedule.digest = digest;
    assert_int_equal(R2_OK, r2_program_create(&schedule, &program));
    r2_schedule_fini(&schedule);
    return program;
}

static void keep(r2_programs_t *programs, const r2_shape_t *shape, uint32_t digest, uint32_t ops)
{
    r2_program_t *program = make(digest, ops);

    r2_programs_keep(programs, shape, program);
    r2_program_put(program);
}

/* @return its digest; 0: it is not there. The hint may be anything. */
static uint32_t find(r2_programs_t *programs, const r2_shape_t *shape)
{
    static uint32_t hint = 77;
    const r2_program_t *program = r2_programs_find(programs, shape, &hint);

    hint = 0 == hint % 3 ? hint : 5 * hint + 1;
    return NULL == program ? 0 : program->schedule.digest;
}

/* Shapes that differ in one thing only are different; equal ones at other addresses are not. */
static void test_every_part_counts(void **state)
{
    uint64_t counts[2][SIZE] = {{1, 2, 3}, {1, 2, 4}}, again[SIZE] = {1, 2, 3};
    r2_edge_t edges[2][SIZE] = {{{.peer = 1, .bytes = 8}}, {{.peer = 1, .bytes = 9}}};
    r2_shape_t shapes[18];
    r2_programs_t programs;
    uint32_t count = 0;

    (void) state;
    assert_int_equal(R2_OK, r2_programs_init(&programs, 32, 1 << 20));
    for (; count < r2_array_count(shapes); ++count) {
        shapes[count] = (r2_shape_t){.key = {.comm = 1, .size = SIZE, .send_count = SIZE}};
        shapes[count].counts = counts[0];
        shapes[count].sends = edges[0];
    }
    count = 1;
    shapes[count++].key.comm = 2;
    shapes[count++].key.map = 1;
    shapes[count++].key.element_bytes = 1;
    shapes[count++].key.count = 1;
    shapes[count++].key.meaning = 1;
    shapes[count++].key.send_count = SIZE - 1;
    shapes[count++].key.recv_count = 1;
    shapes[count++].key.size = SIZE - 1;
    shapes[count++].key.root = 1;
    shapes[count++].key.kind = 1;
    shapes[count++].key.flags = 1;
    shapes[count++].counts = counts[1];
    shapes[count++].counts = NULL;
    shapes[count++].displs = counts[0];
    shapes[count++].sends = edges[1];
    shapes[count++].sends = NULL;
    shapes[count].key.recv_count = SIZE;
    shapes[count++].recvs = edges[0];
    assert_int_equal(count, r2_array_count(shapes));
    for (uint32_t i = 0; i < count; ++i) {
        assert_int_equal(0, find(&programs, &shapes[i]));
        keep(&programs, &shapes[i], i + 1, 1);
    }
    for (uint32_t i = 0; i < count; ++i) {
        assert_int_equal(i + 1, find(&programs, &shapes[i]));
    }
    shapes[0].counts = again;
    assert_int_equal(1, find(&programs, &shapes[0]));
    counts[0][0] = 9; /* the lists of a call are gone after it */
    assert_int_equal(1, find(&programs, &shapes[0]));
    r2_programs_forget(&programs, 1);
    assert_int_equal(0, find(&programs, &shapes[0]));
    assert_int_equal(0, find(&programs, &shapes[5]));
    counts[0][0] = 1;
    assert_int_equal(2, find(&programs, &shapes[1]));
    r2_programs_fini(&programs);
    r2_programs_fini(&programs);
}

/* A word more in the digest of programs.c. */
static uint64_t step(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * 0xff51afd7ed558ccdull;
    return digest ^ digest >> 32;
}

/* Two lists that one digest stands for: they are compared. */
static void test_digests_may_be_equal(void **state)
{
    uint64_t counts[2][SIZE] = {{1, 2, 3}, {7, 0, 3}};
    r2_shape_t shapes[] = {{.key = {.comm = 1, .size = SIZE}, .counts = counts[0]},
                           {.key = {.comm = 1, .size = SIZE}, .counts = counts[1]}};
    uint64_t words[sizeof(shapes[0].key) / sizeof(uint64_t)], digest = 0x9e3779b97f4a7c15ull;
    r2_programs_t programs;

    (void) state;
    memcpy(words, &shapes[0].key, sizeof(words));
    for (size_t i = 0; i < r2_array_count(words); ++i) {
        digest = step(digest, words[i]);
    }
    counts[1][1] = counts[0][1] ^ step(digest, counts[0][0]) ^ step(digest, counts[1][0]);
    assert_int_equal(R2_OK, r2_programs_init(&programs, 2, 1 << 20));
    keep(&programs, &shapes[0], 1, 1);
    assert_int_equal(0, find(&programs, &shapes[1]));
    keep(&programs, &shapes[1], 2, 1);
    assert_int_equal(programs.slots[0].digest, programs.slots[1].digest);
    assert_int_equal(1, find(&programs, &shapes[0]));
    assert_int_equal(2, find(&programs, &shapes[1]));
    r2_programs_fini(&programs);
}

/* Random calls: what is kept are the ROOM shapes that were called last. */
static void test_forgets_the_oldest(void **state)
{
    uint64_t used[KEYS] = {0};
    r2_programs_t programs;
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 11);
    assert_int_equal(R2_OK, r2_programs_init(&programs, ROOM, 1 << 20));
    for (uint64_t turn = 1; turn <= TURNS; ++turn) {
        const uint64_t key = r2_prng_below(&prng, KEYS);
        const r2_shape_t shape = {.key = {.comm = 1, .count = key}};
        int later = 0;

        for (int k = 0; k < KEYS; ++k) {
            later += used[k] > used[key] ? 1 : 0;
        }
        if (0 < used[key] && later < ROOM) {
            assert_int_equal(key + 1, find(&programs, &shape));
        } else {
            assert_int_equal(0, find(&programs, &shape));
            keep(&programs, &shape, (uint32_t) key + 1, (uint32_t) key);
        }
        used[key] = turn;
    }
    r2_programs_fini(&programs);
}

/* Bytes are bounded, too, and those of the lists count. What is too long for all is not kept. */
static void test_bytes_are_bounded(void **state)
{
    enum { BYTES = 8192 };
    uint64_t counts[BYTES / 16] = {0};
    r2_programs_t programs;
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 12);
    assert_int_equal(R2_OK, r2_programs_init(&programs, 64, BYTES));
    for (uint64_t turn = 1; turn <= TURNS; ++turn) {
        const r2_shape_t shape = {.key = {.comm = 1,
                                          .count = turn,
                                          .size = (int32_t) r2_prng_below(
                                              &prng, r2_array_count(counts))},
                                  .counts = 0 == turn % 2 ? counts : NULL};
        const uint32_t ops = 0 == turn % 7 ? 200 : (uint32_t) r2_prng_below(&prng, 8);

        keep(&programs, &shape, 1, ops);
        assert_true(programs.bytes <= BYTES);
        assert_int_equal(200 == ops ? 0 : 1, find(&programs, &shape));
    }
    r2_programs_forget(&programs, 1);
    assert_int_equal(0, programs.bytes);
    r2_programs_fini(&programs);
}

/* What runs on memory of GPUs add to a program counts, too: what was not used for longest goes for
 * it. */
static void test_what_is_added_counts(void **state)
{
    enum { BYTES = 65536, OPS = 100 };
    const r2_shape_t shapes[] = {{.key = {.comm = 1}}, {.key = {.comm = 2}}, {.key = {.comm = 3}}};
    r2_program_t *program = make(2, OPS);
    const size_t plain = program->bytes;
    const r2_touch_t *touch;
    r2_programs_t programs;

    (void) state;
    assert_int_equal(R2_OK, r2_programs_init(&programs, 8, BYTES));
    keep(&programs, &shapes[0], 1, OPS);
    r2_programs_keep(&programs, &shapes[1], program);
    assert_int_equal(2 * plain, programs.bytes);
    touch = r2_program_touch(program, R2_TOUCH_NO_GPU);
    assert_non_null(touch);
    assert_ptr_equal(touch, r2_program_touch(program, R2_TOUCH_NO_GPU));
    assert_int_equal(plain + touch->bytes, program->bytes);
    assert_ptr_not_equal(touch, r2_program_touch(program, 4096)); /* one for each length */
    assert_int_equal(4096, r2_program_touch(program, 4096)->gpu_bytes);
    assert_ptr_equal(touch, r2_program_touch(program, R2_TOUCH_NO_GPU));
    assert_int_equal(plain + 2 * touch->bytes, program->bytes);
    programs.bytes_max = 3 * plain + 2 * touch->bytes - 1;
    keep(&programs, &shapes[2], 3, OPS);
    assert_int_equal(2 * plain + 2 * touch->bytes, programs.bytes);
    assert_int_equal(0, find(&programs, &shapes[0]));
    assert_int_equal(2, find(&programs, &shapes[1]));
    assert_int_equal(3, find(&programs, &shapes[2]));
    r2_programs_fini(&programs);
    r2_program_put(program);
}

/* A call goes on with a program that is forgotten. */
static void test_outlives_the_table(void **state)
{
    const r2_shape_t shape = {.key = {.comm = 1}}, other = {.key = {.comm = 2}};
    r2_program_t *program = make(7, 3);
    r2_programs_t programs;

    (void) state;
    assert_int_equal(R2_OK, r2_programs_init(&programs, 1, 1 << 20));
    r2_programs_keep(&programs, &shape, program);
    assert_int_equal(2, program->users);
    keep(&programs, &other, 8, 3);
    assert_int_equal(1, program->users);
    assert_int_equal(0, find(&programs, &shape));
    r2_programs_fini(&programs);
    assert_int_equal(7, program->schedule.digest);
    assert_int_equal(3, program->start_count);
    r2_program_put(program);
    r2_program_put(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_part_counts),
                                       cmocka_unit_test(test_digests_may_be_equal),
                                       cmocka_unit_test(test_forgets_the_oldest),
                                       cmocka_unit_test(test_bytes_are_bounded),
                                       cmocka_unit_test(test_what_is_added_counts),
                                       cmocka_unit_test(test_outlives_the_table)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
