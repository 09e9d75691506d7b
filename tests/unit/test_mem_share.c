/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of other processes that is open, over a driver that this test plays: addresses are used
 * again, as real ones are and those of tests/fakecuda are not; refusals; who is closed when.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mem/share.h"

enum { START = 0x10000, LENGTH = 4096 };

static unsigned exports, opens, closes;
static uint64_t id; /* of the allocation at START */
static int is_capable;
static r2_cu_result_t opening; /* what opening returns */
static r2_cu_at_t last_closed;
static r2_mem_t mem;
static r2_mem_shares_t shares;
static const r2_mem_at_t here = {R2_MEM_DEVICE, 0, (r2_cu_context_t) 1};

static r2_cu_result_t attributes(unsigned count, r2_cu_attribute_t *which, void **data_p,
                                 r2_cu_at_t at)
{
    (void) at;
    for (unsigned i = 0; i < count; ++i) {
        switch (which[i]) {
        case R2_CU_ATTRIBUTE_BUFFER_ID:
            memcpy(data_p[i], &id, sizeof(id));
            break;
        case R2_CU_ATTRIBUTE_RANGE_START:
            *(r2_cu_at_t *) data_p[i] = START;
            break;
        case R2_CU_ATTRIBUTE_RANGE_BYTES:
            *(size_t *) data_p[i] = LENGTH;
            break;
        default:
            *(int *) data_p[i] = is_capable;
        }
    }
    return R2_CU_OK;
}

static r2_cu_result_t push(r2_cu_context_t context)
{
    (void) context;
    return R2_CU_OK;
}

static r2_cu_result_t pop(r2_cu_context_t *context_p)
{
    (void) context_p;
    return R2_CU_OK;
}

static r2_cu_result_t get(r2_cu_ipc_t *handle_p, r2_cu_at_t at)
{
    (void) at;
    ++exports;
    memset(handle_p, 0, sizeof(*handle_p));
    memcpy(handle_p->bytes, &id, sizeof(id));
    return R2_CU_OK;
}

/* Where it is mapped tells what it is. */
static r2_cu_result_t open_it(r2_cu_at_t *at_p, r2_cu_ipc_t handle, unsigned flags)
{
    uint64_t which;

    (void) flags;
    ++opens;
    memcpy(&which, handle.bytes, sizeof(which));
    *at_p = which << 32;
    return opening;
}

static r2_cu_result_t close_it(r2_cu_at_t at)
{
    ++closes;
    last_closed = at;
    return R2_CU_OK;
}

static int start(void **state)
{
    (void) state;
    exports = opens = closes = 0;
    last_closed = 0;
    id = 7;
    is_capable = 1;
    opening = R2_CU_OK;
    memset(&mem, 0, sizeof(mem));
    mem.driver.pointer_attributes = attributes;
    mem.driver.push = push;
    mem.driver.pop = pop;
    mem.driver.ipc_get = get;
    mem.driver.ipc_open = open_it;
    mem.driver.ipc_close = close_it;
    r2_mem_shares_init(&shares, &mem);
    return 0;
}

static int end(void **state)
{
    (void) state;
    r2_mem_shares_fini(&shares);
    return 0;
}

static r2_mem_share_t share(uint64_t offset)
{
    r2_mem_share_t made;

    assert_int_equal(
        r2_mem_share(&shares, &here, (const void *) (START + offset), LENGTH - offset, &made),
        R2_OK);
    return made;
}

static r2_mem_opened_t *opened(uint32_t owner, const r2_mem_share_t *what, const r2_mem_at_t *at)
{
    r2_mem_opened_t *found = NULL;
    const void *memory = NULL;

    assert_int_equal(r2_mem_open(&shares, owner, at, what, &found, &memory), R2_OK);
    assert_int_equal((uintptr_t) memory, (what->id << 32) + what->offset_bytes);
    return found;
}

static void what_is_open_stays_open(void **state)
{
    const r2_mem_at_t other = {R2_MEM_DEVICE, 1, (r2_cu_context_t) 2};
    r2_mem_share_t first, later;

    (void) state;
    first = share(0);
    later = share(100);
    assert_int_equal(exports, 1);
    r2_mem_close(opened(3, &first, &here));
    r2_mem_close(opened(3, &later, &here));
    assert_int_equal(opens, 1);
    r2_mem_close(opened(3, &first, &other)); /* another context, another process */
    r2_mem_close(opened(4, &first, &here));
    assert_int_equal(opens, 3);
    assert_int_equal(closes, 0);
}

/* The address is that of memory that was freed: neither its handle nor what is open of it will
 * do. */
static void an_address_that_is_used_again_is_other_memory(void **state)
{
    r2_mem_share_t old, now;

    (void) state;
    old = share(8);
    r2_mem_close(opened(3, &old, &here));
    id = 8;
    now = share(8);
    assert_int_equal(exports, 2);
    r2_mem_close(opened(3, &now, &here));
    assert_int_equal(opens, 2);
    assert_int_equal(closes, 1); /* what was there before */
    assert_int_equal(last_closed, (uint64_t) 7 << 32);
}

static void what_is_read_stays_open(void **state)
{
    r2_mem_share_t old, now;
    r2_mem_opened_t *reading;

    (void) state;
    old = share(0);
    reading = opened(3, &old, &here);
    id = 8;
    now = share(0);
    r2_mem_close(opened(3, &now, &here));
    assert_int_equal(closes, 0);
    r2_mem_close(reading);
    r2_mem_close(opened(3, &now, &here));
    assert_int_equal(closes, 1);
}

/* What was used least lately makes room; of what is in use nothing does. */
static void room_is_bounded(void **state)
{
    r2_mem_opened_t *held[R2_MEM_SHARES], *found;
    r2_mem_share_t what = share(0);
    const void *memory;

    (void) state;
    for (uint32_t owner = 0; owner < R2_MEM_SHARES; ++owner) {
        held[owner] = opened(owner, &what, &here);
    }
    assert_int_equal(r2_mem_open(&shares, 99, &here, &what, &found, &memory), R2_ERR_AGAIN);
    for (uint32_t owner = 0; owner < R2_MEM_SHARES; ++owner) {
        r2_mem_close(held[owner]);
    }
    r2_mem_close(opened(0, &what, &here));
    r2_mem_close(opened(99, &what, &here));
    assert_int_equal(closes, 1);
    r2_mem_close(opened(0, &what, &here));
    assert_int_equal(opens, R2_MEM_SHARES + 1);
    r2_mem_close(opened(1, &what, &here)); /* that one had to go */
    assert_int_equal(opens, R2_MEM_SHARES + 2);
    r2_mem_shares_fini(&shares);
    assert_int_equal(closes, opens);
}

static void what_cannot_be_shared_is_not(void **state)
{
    const r2_mem_at_t managed = {R2_MEM_MANAGED, 0, (r2_cu_context_t) 1};
    r2_mem_opened_t *found;
    r2_mem_share_t made = share(0);
    const void *memory;

    (void) state;
    assert_int_equal(r2_mem_share(&shares, &managed, (void *) START, 1, &made), R2_ERR_UNSUPPORTED);
    assert_int_equal(r2_mem_share(&shares, &here, (void *) (START + 1), LENGTH, &made),
                     R2_ERR_UNSUPPORTED); /* more than the allocation */
    is_capable = 0;
    assert_int_equal(r2_mem_share(&shares, &here, (void *) START, 1, &made), R2_ERR_UNSUPPORTED);
    opening = 1;
    assert_int_equal(r2_mem_open(&shares, 0, &here, &made, &found, &memory), R2_ERR_UNSUPPORTED);
    opening = R2_CU_OK;
    r2_mem_close(opened(0, &made, &here));
    mem.driver.ipc_open = NULL; /* an old driver */
    assert_int_equal(r2_mem_open(&shares, 0, &here, &made, &found, &memory), R2_ERR_UNSUPPORTED);
    mem.driver.ipc_get = NULL;
    is_capable = 1;
    assert_int_equal(r2_mem_share(&shares, &here, (void *) START, 1, &made), R2_ERR_UNSUPPORTED);
}

#define T(test) cmocka_unit_test_setup_teardown(test, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_is_open_stays_open),
        T(an_address_that_is_used_again_is_other_memory),
        T(what_is_read_stays_open),
        T(room_is_bounded),
        T(what_cannot_be_shared_is_not),
    };

    return cmocka_run_group_tests_name("memory of other processes", tests, NULL, NULL);
}
