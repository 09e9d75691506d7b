/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Numbers with units, as people write them. For programs of this tree: not installed.
 */
#ifndef R2_UNITS_H
#define R2_UNITS_H

#include <stdint.h>

#include "r2/status.h"

/** What a number counts. Case of units does not matter. */
typedef enum r2_unit {
    R2_UNIT_NUMBER,  /* no unit */
    R2_UNIT_BYTES,   /* 4096, 64K, 16M, 1G, 64KiB ..: powers of 1024 */
    R2_UNIT_TIME,    /* 300ns, 5us, 1ms, 2s: in ns */
    R2_UNIT_RATE,    /* 1250 and 1250M (10^6 bytes/s), 50G, 400gbit, 100mbit, 8kbit: in bytes/s */
    R2_UNIT_PERCENT, /* 30%: as a part of one */
    R2_UNIT_COUNT
} r2_unit_t;

/**
 * A whole number: no sign, no blank, no fraction.
 * @return R2_OK; R2_ERR_PARAM: no such number, or not between least and most.
 */
r2_status_t r2_unit_whole(const char *text, r2_unit_t unit, uint64_t least, uint64_t most,
                          uint64_t *value_p);

/**
 * A decimal number of 0 or more, like 1.5 or 2e3.
 * @return R2_OK; R2_ERR_PARAM: no such number, or not finite.
 */
r2_status_t r2_unit_real(const char *text, r2_unit_t unit, double *value_p);

/** For messages, behind "is no": "size like 4096, 64K or 16M". */
const char *r2_unit_form(r2_unit_t unit);

#endif
