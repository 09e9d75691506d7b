/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Names and texts of status codes.
 */
#include "r2_config.h"

#include "r2/status.h"

const char *r2_status_string(r2_status_t status)
{
    switch (status) {
#define R2_STATUS(name, value, text) \
    case name:                       \
        return text;
#include "base/status.def"
#undef R2_STATUS
    }
    return "unknown status";
}

const char *r2_status_name(r2_status_t status)
{
    switch (status) {
#define R2_STATUS(name, value, text) \
    case name:                       \
        return #name;
#include "base/status.def"
#undef R2_STATUS
    }
    return "R2_UNKNOWN";
}
