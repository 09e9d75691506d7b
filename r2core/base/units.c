/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Numbers with units: one table for parameters, tools, benchmarks and scenarios.
 */
#include "r2_config.h"

#include "r2/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "r2/macros.h"

/** Factors are whole where they are 1 or more. */
static const struct {
    r2_unit_t unit;
    const char *name;
    double factor;
} unit_rows[] = {
    {R2_UNIT_NUMBER, "", 1},         {R2_UNIT_BYTES, "", 1},
    {R2_UNIT_BYTES, "k", 0x1p10},    {R2_UNIT_BYTES, "m", 0x1p20},
    {R2_UNIT_BYTES, "g", 0x1p30},    {R2_UNIT_BYTES, "kib", 0x1p10},
    {R2_UNIT_BYTES, "mib", 0x1p20},  {R2_UNIT_BYTES, "gib", 0x1p30},
    {R2_UNIT_TIME, "ns", 1},         {R2_UNIT_TIME, "us", 1e3},
    {R2_UNIT_TIME, "ms", 1e6},       {R2_UNIT_TIME, "s", 1e9},
    {R2_UNIT_RATE, "", 1e6},         {R2_UNIT_RATE, "k", 1e3},
    {R2_UNIT_RATE, "m", 1e6},        {R2_UNIT_RATE, "g", 1e9},
    {R2_UNIT_RATE, "kbit", 1e3 / 8}, {R2_UNIT_RATE, "mbit", 1e6 / 8},
    {R2_UNIT_RATE, "gbit", 1e9 / 8}, {R2_UNIT_PERCENT, "%", 0.01},
};

static const char *const unit_forms[R2_UNIT_COUNT] = {
    [R2_UNIT_NUMBER] = "number",
    [R2_UNIT_BYTES] = "size like 4096, 64K or 16M",
    [R2_UNIT_TIME] = "time like 5us or 1ms",
    [R2_UNIT_RATE] = "rate like 1250 (MB/s), 50G or 400gbit",
    [R2_UNIT_PERCENT] = "percentage like 30%",
};

const char *r2_unit_form(r2_unit_t unit)
{
    return unit_forms[unit];
}

/** @return what the unit's name stands for; 0: there is no such name. */
static double r2_unit_factor(r2_unit_t unit, const char *name)
{
    for (size_t i = 0; i < r2_array_count(unit_rows); ++i) {
        if (unit == unit_rows[i].unit && 0 == strcasecmp(name, unit_rows[i].name)) {
            return unit_rows[i].factor;
        }
    }
    return 0;
}

r2_status_t r2_unit_whole(const char *text, r2_unit_t unit, uint64_t least, uint64_t most,
                          uint64_t *value_p)
{
    unsigned long long value;
    uint64_t factor;
    char *end;

    if (!isdigit((unsigned char) text[0])) {
        return R2_ERR_PARAM; /* strtoull would take blanks and signs */
    }
    errno = 0;
    value = strtoull(text, &end, 10);
    factor = (uint64_t) r2_unit_factor(unit, end);
    if (0 != errno || 0 == factor || value > UINT64_MAX / factor || value * factor < least ||
        value * factor > most) {
        return R2_ERR_PARAM;
    }
    *value_p = value * factor;
    return R2_OK;
}

r2_status_t r2_unit_real(const char *text, r2_unit_t unit, double *value_p)
{
    double value;
    char *end;

    if (!isdigit((unsigned char) text[0]) || ('0' == text[0] && 'x' == tolower(text[1]))) {
        return R2_ERR_PARAM; /* strtod would take blanks, signs, "inf" and hexadecimal */
    }
    value = strtod(text, &end) * r2_unit_factor(unit, end);
    if (0 == r2_unit_factor(unit, end) || !isfinite(value)) {
        return R2_ERR_PARAM;
    }
    *value_p = value;
    return R2_OK;
}
