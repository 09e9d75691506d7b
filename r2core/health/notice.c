/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Validation of received notices.
 */
#include "r2_config.h"

#include "health/notice.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "health/verdict_rules.h"
#include "r2/nic.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#    error "the wire format is little endian; add conversions to health/notice.c"
#endif

/* Which fields a kind uses; the others have to be 0. */
typedef struct r2_notice_form {
    bool rail, id, answer, host_a, host_b, entry_version, entry, flags;
} r2_notice_form_t;

static const r2_notice_form_t r2_notice_forms[R2_NOTICE_KIND_END] = {
    [R2_NOTICE_ACK] = {.id = true},
    [R2_NOTICE_WANT_PROBE] = {.rail = true, .id = true, .host_b = true},
    [R2_NOTICE_ANSWER_PROBE] = {.rail = true, .id = true, .answer = true},
    [R2_NOTICE_WANT_BEACON] = {.rail = true, .id = true},
    [R2_NOTICE_ANSWER_BEACON] = {.rail = true, .id = true, .answer = true},
    [R2_NOTICE_CHANGE] = {.rail = true,
                          .id = true,
                          .host_a = true,
                          .entry_version = true,
                          .entry = true,
                          .flags = true},
    [R2_NOTICE_PATH] = {.rail = true,
                        .id = true,
                        .host_a = true,
                        .host_b = true,
                        .entry_version = true,
                        .flags = true},
    [R2_NOTICE_GONE] = {.id = true, .host_a = true, .flags = true},
    [R2_NOTICE_CLAIM] = {.rail = true,
                         .id = true,
                         .host_a = true,
                         .entry_version = true,
                         .entry = true,
                         .flags = true},
};

static bool r2_notice_unused_is_0(const r2_notice_t *notice, const r2_notice_form_t *form)
{
    return (form->rail || 0 == notice->rail) && (form->id || 0 == notice->id) &&
           (form->answer || 0 == notice->answer) && (form->host_a || 0 == notice->host_a) &&
           (form->host_b || 0 == notice->host_b) && (form->flags || 0 == notice->flags) &&
           (form->entry_version || 0 == notice->entry_version) &&
           (form->entry || (0 == notice->capacity && 0 == notice->verdict &&
                            0 == notice->direction && 0 == notice->age));
}

#define R2_NOTICE_AGE_BITS                                                \
    3 /* behind the first one, which is always set where there is a shift \
       */

uint8_t r2_notice_age(uint64_t age_ns)
{
    uint64_t age_ms = r2_min(age_ns / R2_NS_PER_MS, (uint64_t) UINT32_MAX);
    uint32_t shift = 0;

    while (age_ms >> shift >= 2u << R2_NOTICE_AGE_BITS) {
        ++shift;
    }
    if (0 == shift && age_ms < 1u << R2_NOTICE_AGE_BITS) {
        return (uint8_t) age_ms;
    }
    return (uint8_t) ((shift + 1) << R2_NOTICE_AGE_BITS |
                      ((age_ms >> shift) & ((1u << R2_NOTICE_AGE_BITS) - 1)));
}

uint64_t r2_notice_age_ns(uint8_t age)
{
    uint32_t shift = age >> R2_NOTICE_AGE_BITS;
    uint64_t low = age & ((1u << R2_NOTICE_AGE_BITS) - 1);

    return (0 == shift ? low : (low | 1u << R2_NOTICE_AGE_BITS) << (shift - 1)) * R2_NS_PER_MS;
}

/* What an entry of the map may say; the other verdicts are about a process, or two hosts. */
static bool r2_notice_is_of_entry(uint8_t verdict)
{
    return R2_VERDICT_HEALTHY == verdict || R2_VERDICT_NIC == verdict ||
           R2_VERDICT_PLANE == verdict || R2_VERDICT_SLOW == verdict;
}

r2_status_t r2_notice_parse(const void *data, size_t bytes, r2_notice_t *notice_p)
{
    r2_notice_t notice;

    if (sizeof(notice) != bytes) {
        return R2_ERR_WIRE;
    }
    memcpy(&notice, data, sizeof(notice));
    if (R2_NOTICE_VERSION != notice.version || notice.kind < R2_NOTICE_ACK ||
        notice.kind >= R2_NOTICE_KIND_END || 0 != (notice.flags & ~R2_NOTICE_FLAGS_ALL) ||
        notice.answer > R2_ANSWER_NO || notice.rail >= R2_RAILS_MAX ||
        notice.entry_version > R2_HEALTH_VERSION_MAX || notice.capacity > R2_CAPACITY_FULL ||
        !r2_notice_is_of_entry(notice.verdict) || notice.direction >= R2_DIRECTION_COUNT) {
        return R2_ERR_WIRE;
    }
    if (!r2_notice_unused_is_0(&notice, &r2_notice_forms[notice.kind])) {
        return R2_ERR_WIRE;
    }
    *notice_p = notice;
    return R2_OK;
}
