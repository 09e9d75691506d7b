/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The stand-in for the CUDA driver: copies in two dimensions. Only the rows are touched, and who
 * did not wait for just these is told.
 */
#include "fakecuda/parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { BYTES = 16384, WIDTH = 24, PITCH = 80, ROWS = 50 };

static CUstream a, b; /* that wait for nobody */
static CUevent event;
static CUdeviceptr memory;
static unsigned char *pinned;
static uint64_t mistakes; /* so far */

static int set_up(void **state)
{
    (void) state;
    start_device();
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAlloc(&memory, BYTES));
    OK(cuMemAllocHost((void **) &pinned, BYTES));
    return 0;
}

static int start(void **state)
{
    (void) state;
    must(0 == fakecuda_set("delay_us", "0"), "delay_us", __FILE__, __LINE__);
    OK(cuCtxSynchronize());
    mistakes = fakecuda_counter("mistakes");
    return 0;
}

/* Rows from the device to the host, packed there; `UNIFIED` both. */
static CUDA_MEMCPY2D out_of(CUdeviceptr from, void *to)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = from,
                           .srcPitch = PITCH,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = (CUdeviceptr) (uintptr_t) to,
                           .dstPitch = WIDTH,
                           .WidthInBytes = WIDTH,
                           .Height = ROWS};
}

static CUDA_MEMCPY2D into(CUdeviceptr to, const void *from)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = from,
                           .srcPitch = WIDTH,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .dstPitch = PITCH,
                           .WidthInBytes = WIDTH,
                           .Height = ROWS};
}

static CUresult run(CUDA_MEMCPY2D what, CUstream stream)
{
    return cuMemcpy2DAsync(&what, stream);
}

static unsigned char pattern(int i)
{
    return (unsigned char) (i % 251 + 1);
}

/* Nothing between the rows, and nothing behind them. */
static void rows_go_in_and_out(void **state)
{
    const uint64_t copies = fakecuda_counter("copies_d2h"), bytes = fakecuda_counter("bytes_d2h");
    const unsigned char *seen = fakecuda_look(memory, BYTES);

    (void) state;
    OK(cuMemsetD8(memory, 0xee, BYTES));
    OK(cuCtxSynchronize());
    for (int i = 0; i < ROWS * WIDTH; ++i) {
        pinned[i] = pattern(i);
    }
    OK(run(into(memory + 8, pinned), a));
    OK(cuStreamSynchronize(a));
    for (int i = 0; i < BYTES; ++i) {
        const int row = (i - 8) / PITCH, column = (i - 8) % PITCH;
        const int is_row = i >= 8 && row < ROWS && column < WIDTH;

        assert_int_equal(seen[i], is_row ? pattern(row * WIDTH + column) : 0xee);
    }
    memset(pinned, 0, BYTES);
    OK(run(out_of(memory + 8, pinned), a));
    OK(cuStreamSynchronize(a));
    for (int i = 0; i < BYTES; ++i) {
        assert_int_equal(pinned[i], i < ROWS * WIDTH ? pattern(i) : 0);
    }
    assert_int_equal(fakecuda_counter("copies_d2h"), copies + 1);
    assert_int_equal(fakecuda_counter("bytes_d2h"), bytes + ROWS * WIDTH);
    assert_int_equal(fakecuda_counter("mistakes"), mistakes);
}

/* Where the two sides start by coordinates. */
static void rows_start_at_coordinates(void **state)
{
    CUDA_MEMCPY2D what = out_of(memory, pinned);

    (void) state;
    for (int i = 0; i < BYTES; ++i) {
        *(unsigned char *) fakecuda_look(memory + (unsigned) i, 1) = pattern(i);
    }
    what.srcXInBytes = 3;
    what.srcY = 2;
    what.Height = 2;
    memset(pinned, 0, BYTES);
    OK(run(what, a));
    OK(cuStreamSynchronize(a));
    assert_int_equal(pinned[0], pattern(2 * PITCH + 3));
    assert_int_equal(pinned[WIDTH], pattern(3 * PITCH + 3));
    assert_int_equal(pinned[2 * WIDTH], 0);
}

/* Pageable memory: what is read is taken at once, and what is written is there at the end. */
static void pageable_rows_are_taken_at_once(void **state)
{
    static unsigned char own[ROWS * WIDTH];
    static sem_t gate; /* a stream may still wait when the test ends */

    (void) state;
    memset(own, 7, sizeof(own));
    close_gate(a, &gate);
    OK(run(into(memory, own), a));
    memset(own, 8, sizeof(own));
    sem_post(&gate);
    OK(run(out_of(memory, own), a));
    assert_true(7 == own[0] && 7 == own[ROWS * WIDTH - 1]);
}

static void what_cannot_be_is_refused(void **state)
{
    CUDA_MEMCPY2D what = out_of(memory, pinned);
    CUdeviceptr next;

    (void) state;
    what.srcPitch = WIDTH - 1;
    assert_int_equal(run(what, a), CUDA_ERROR_INVALID_VALUE);
    what.srcPitch = (size_t) 1 << 31;
    assert_int_equal(run(what, a), CUDA_ERROR_INVALID_VALUE);
    what.srcPitch = PITCH;
    what.Height = BYTES / PITCH + 2;
    assert_int_equal(run(what, a), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc(&next, BYTES)); /* rows of two allocations */
    what = out_of(memory, pinned);
    what.Height = 2;
    what.srcPitch = (size_t) (next - memory);
    assert_int_equal(run(what, a), CUDA_ERROR_INVALID_VALUE);
    what = out_of(memory, pinned);
    what.srcMemoryType = CU_MEMORYTYPE_HOST;
    what.srcHost = (const void *) (uintptr_t) memory;
    assert_int_equal(run(what, a), CUDA_ERROR_INVALID_VALUE);
    what = out_of(memory, pinned);
    what.Height = 0;
    OK(run(what, a));
    assert_int_equal(fakecuda_counter("mistakes"), mistakes);
    OK(cuMemFree(next));
}

/* What lies between the rows is nobody's; the rows are. */
static void a_missing_wait_for_a_row_is_told(void **state)
{
    static sem_t gate; /* a stream may still wait when the test ends */

    (void) state;
    close_gate(a, &gate);
    OK(run(out_of(memory, pinned), a));
    OK(cuMemsetD8Async(memory + WIDTH, 1, PITCH - WIDTH, b));
    OK(run(into(memory + WIDTH, pinned + BYTES / 2), b));
    OK(run(into(memory + ROWS * PITCH, pinned + BYTES / 2), b));
    assert_int_equal(fakecuda_counter("mistakes"), mistakes);
    OK(cuMemsetD8Async(memory + 30 * PITCH - 1, 1, 2, b));
    assert_int_equal(fakecuda_counter("mistakes"), mistakes + 1);
    assert_non_null(strstr(fakecuda_mistake(), "missing wait"));
    OK(run(into(memory + 2 * WIDTH + 9, pinned + BYTES / 2), b));
    assert_int_equal(fakecuda_counter("mistakes"), mistakes + 2);
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(run(into(memory, pinned + BYTES / 2), b));
    assert_int_equal(fakecuda_counter("mistakes"), mistakes + 2);
    sem_post(&gate);
}

/* Packed rows of pinned memory are a piece of it that the CPU may not touch early. */
static void an_early_touch_of_packed_rows_is_told(void **state)
{
    CUDA_MEMCPY2D what = out_of(memory, pinned);
    volatile unsigned char *first = pinned;
    static sem_t gate; /* a stream may still wait when the test ends */

    (void) state;
    what.WidthInBytes = what.dstPitch = 64;
    what.Height = 64;
    close_gate(a, &gate);
    OK(run(what, a));
    (void) *first;
    assert_int_equal(fakecuda_counter("mistakes"), mistakes + 1);
    assert_non_null(strstr(fakecuda_mistake(), "touches pinned memory"));
    sem_post(&gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_go_in_and_out, start),
        cmocka_unit_test_setup(rows_start_at_coordinates, start),
        cmocka_unit_test_setup(pageable_rows_are_taken_at_once, start),
        cmocka_unit_test_setup(what_cannot_be_is_refused, start),
        cmocka_unit_test_setup(a_missing_wait_for_a_row_is_told, start),
        cmocka_unit_test_setup(an_early_touch_of_packed_rows_is_told, start),
    };

    return cmocka_run_group_tests_name("fakecuda rows", tests, set_up, NULL);
}
