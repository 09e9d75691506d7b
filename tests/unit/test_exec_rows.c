/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Runs on buffers of a GPU that are rows of memory, on the driver of tests/fakecuda: the bytes, and
 * how many copies they take.
 */
#include "r2_config.h"

#include "exec_gpu.h"

#include "base/util.h"

extern const fakecuda_kernel_t fakecuda_kernels[];

/* A buffer of rows: as MPI_Type_vector describes it, `count` of them, nested or backwards. */
typedef struct rows {
    CUdeviceptr at; /* of the first row */
    uint32_t row_bytes, rows, outer;
    int32_t pitch_bytes, outer_bytes; /* from row to row; from group of rows to group */
} rows_t;

/* Where the device has a byte of the packed stream. */
static CUdeviceptr byte_of(const rows_t *rows, uint64_t offset)
{
    const uint64_t row = offset / rows->row_bytes;

    return rows->at +
           (uint64_t) ((int64_t) (row / rows->rows) * rows->outer_bytes +
                       (int64_t) (row % rows->rows) * rows->pitch_bytes) +
           offset % rows->row_bytes;
}

static void tell_rows(void *arg, uint64_t offset, uint64_t bytes, r2_run_fn_t found,
                      void *found_arg)
{
    const rows_t *rows = arg;

    while (bytes > 0) {
        const uint64_t part = r2_min(bytes, rows->row_bytes - offset % rows->row_bytes);

        found(found_arg, (void *) (uintptr_t) byte_of(rows, offset), offset, part);
        offset += part;
        bytes -= part;
    }
}

enum { ODD = 100, ODD_BYTES = 8, ELSEWHERE = 50 };

typedef struct odd {
    CUdeviceptr at;
    char *host; /* where one of the pieces is; NULL: with the others */
} odd_t;

/* Pieces that are no rows: neither their distances nor the lengths of all are equal. */
static CUdeviceptr odd_at(uint64_t piece)
{
    return 40 * piece + 4 * (piece % 3);
}

static void tell_odd(void *arg, uint64_t offset, uint64_t bytes, r2_run_fn_t found, void *found_arg)
{
    const odd_t *odd = arg;

    while (bytes > 0) {
        const uint64_t within = offset % ODD_BYTES, part = r2_min(bytes, ODD_BYTES - within);
        const uint64_t piece = offset / ODD_BYTES;

        found(found_arg,
              ELSEWHERE == piece && NULL != odd->host
                  ? odd->host + within
                  : (char *) (uintptr_t) (odd->at + odd_at(piece) + within),
              offset, part);
        offset += part;
        bytes -= part;
    }
}

/* Copies odd pieces from one buffer to the other. @return launches of the driver */
static uint64_t copy_odd_of(odd_t *from, odd_t *to, uint64_t offset, uint64_t bytes,
                            uint64_t *copies_p)
{
    static uint8_t expected[BYTES];
    const uint64_t launches = fakecuda_counter("launches");
    const uint64_t copies = fakecuda_counter("copies_d2h") + fakecuda_counter("copies_h2d");
    r2_exec_args_t args = arguments(NULL, NULL);
    r2_schedule_t schedule;
    r2_exec_t exec;

    memcpy(expected, seen(out), BYTES);
    for (uint64_t i = offset; i < offset + bytes; ++i) {
        const uint64_t at = odd_at(i / ODD_BYTES) + i % ODD_BYTES;

        if (ELSEWHERE != i / ODD_BYTES || NULL == from->host) {
            expected[at] = *seen(in + at);
        }
    }
    args.at[0] = args.at[1] = place;
    args.convertors[0] = (r2_convertor_t){never, from, tell_odd};
    args.convertors[1] = (r2_convertor_t){never, to, tell_odd};
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_COPY, in_at(offset), out_at(offset), bytes, R2_OP_NONE);
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    start(&exec, &schedule, &args);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_memory_equal(seen(out), expected, BYTES);
    r2_exec_fini(&exec);
    *copies_p = fakecuda_counter("copies_d2h") + fakecuda_counter("copies_h2d") - copies;
    return fakecuda_counter("launches") - launches;
}

static uint64_t copy_odd(uint64_t offset, uint64_t bytes, uint64_t *copies_p)
{
    odd_t from = {in, NULL}, to = {out, NULL};

    return copy_odd_of(&from, &to, offset, bytes, copies_p);
}

static void odd_pieces_are_few_launches(void **state)
{
    uint64_t copies;

    (void) state;
    if (NULL != r2_kernels_missing()) {
        skip();
    }
    fakecuda_add_kernels(fakecuda_kernels);
    (void) copy_odd(0, ODD * ODD_BYTES, &copies); /* the driver is asked now */
    assert_true(copies > ODD / 4);
    r2_kernels_settle(&r2_staging_place(&engine.staging, &place)->kernels);
    assert_int_equal(copy_odd(0, ODD * ODD_BYTES, &copies), 2 * ((ODD + 31) / 32));
    assert_int_equal(copies, 0);
    assert_int_equal(copy_odd(3, 6 * ODD_BYTES, &copies), 2); /* the first and the last cut */
    assert_int_equal(copies, 0);
    assert_int_equal(copy_odd(8, 3 * ODD_BYTES, &copies), 0); /* too few */
    assert_int_equal(copies, 6);
}

/* One piece is memory of the host, which no kernel reaches. */
static void the_host_s_pieces_are_copies(void **state)
{
    char from_host[ODD_BYTES] = "a piece", to_host[ODD_BYTES] = "";
    odd_t from = {in, from_host}, to = {out, to_host};
    uint64_t copies;

    (void) state;
    if (NULL != r2_kernels_missing()) {
        skip();
    }
    (void) copy_odd(0, ODD * ODD_BYTES, &copies);
    r2_kernels_settle(&r2_staging_place(&engine.staging, &place)->kernels);
    assert_true(copy_odd_of(&from, &to, 0, ODD * ODD_BYTES, &copies) > 0);
    assert_string_equal(to_host, "a piece");
    OK(cuCtxSynchronize());
}

/* Where what is staged is no pinned memory each piece is a copy. */
static void kernels_pack_into_pinned_memory(void **state)
{
    uint64_t copies;

    (void) state;
    if (NULL != r2_kernels_missing()) {
        skip();
    }
    set("faults", "cuMemHostAlloc%1000=2");
    (void) copy_odd(0, ODD * ODD_BYTES, &copies);
    if (NULL != r2_staging_place(&engine.staging, &place)) {
        r2_kernels_settle(&r2_staging_place(&engine.staging, &place)->kernels);
    }
    assert_int_equal(copy_odd(0, ODD * ODD_BYTES, &copies), 0);
    assert_int_equal(copies, 2 * (ODD + 2) / 3); /* three of them happen to be as far apart */
}

/* Copies `bytes` at `offset` of one buffer to the same of the other; both are looked at byte by
 * byte, with what lies between the rows. @return copies of the driver */
static uint64_t copy_rows(rows_t from, rows_t to, uint64_t offset, uint64_t bytes)
{
    static uint8_t expected[BYTES];
    const uint64_t before = fakecuda_counter("copies_d2h") + fakecuda_counter("copies_h2d");
    const bool in_place = from.at == to.at;
    r2_exec_args_t args = arguments(NULL, NULL);
    r2_schedule_t schedule;
    r2_exec_t exec;

    from.at += in_place ? out : in;
    to.at += out;
    memcpy(expected, seen(out), BYTES);
    for (uint64_t i = offset; i < offset + bytes; ++i) {
        expected[byte_of(&to, i) - out] = *seen(byte_of(&from, i));
    }
    args.at[0] = args.at[1] = place;
    args.convertors[0] = (r2_convertor_t){never, &from, tell_rows};
    args.convertors[1] = (r2_convertor_t){never, &to, tell_rows};
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_COPY, in_at(offset), out_at(offset), bytes, R2_OP_NONE);
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    start(&exec, &schedule, &args);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_memory_equal(seen(out), expected, BYTES);
    r2_exec_fini(&exec);
    return fakecuda_counter("copies_d2h") + fakecuda_counter("copies_h2d") - before;
}

static void rows_are_few_copies(void **state)
{
    const rows_t vector = {0, 8, 1000, 1, 48, 48000}, dense = {7, 8000, 1, 1, 8000, 8000};
    const rows_t column = {16, 8, 1000, 1, 40, 40000};

    (void) state;
    assert_int_equal(copy_rows(vector, column, 0, 8000), 2);
    assert_int_equal(copy_rows(vector, dense, 0, 8000), 2);
    assert_int_equal(copy_rows(dense, vector, 0, 8000), 2);
    assert_int_equal(copy_rows(vector, dense, 3, 7992), 4);  /* part of a row at both ends */
    assert_int_equal(copy_rows(vector, vector, 8, 7992), 2); /* in place: the same memory */
}

/* Several elements of a datatype, rows within rows, and rows that go backwards. */
static void rows_of_other_forms_are_right(void **state)
{
    const rows_t dense = {0, 8000, 1, 1, 8000, 8000};
    const rows_t three = {0, 8, 100, 3, 24, 2384}, resized = {5, 8, 100, 3, 24, 2400};
    const rows_t nested = {0, 4, 10, 20, 12, 400}, interleaved = {0, 4, 10, 20, 160, 8};
    const rows_t backwards = {40000, 8, 1, 100, 8, -32}, up = {40000, 8, 50, 4, 16, -2000};

    (void) state;
    assert_int_equal(copy_rows(three, dense, 0, 2400), 4); /* elements are not one vector */
    assert_int_equal(copy_rows(dense, resized, 0, 2400), 2);
    assert_true(copy_rows(nested, dense, 0, 800) <= 40);
    assert_true(copy_rows(dense, interleaved, 0, 800) <= 40);
    assert_int_equal(copy_rows(backwards, dense, 0, 800), 101);
    assert_int_equal(copy_rows(dense, up, 4, 1592), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_GPU(rows_are_few_copies),
        T_GPU(rows_of_other_forms_are_right),
        T_GPU(odd_pieces_are_few_launches),
        T_GPU(the_host_s_pieces_are_copies),
        T_GPU(kernels_pack_into_pinned_memory),
    };

    return cmocka_run_group_tests_name("staged rows", tests, NULL, NULL);
}
