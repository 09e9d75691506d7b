/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Printer of one JSON object on one line into fixed memory.
 */
#ifndef R2_TELEMETRY_JSON_H
#define R2_TELEMETRY_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A line under construction. No allocation; what does not fit sets `overflow`. */
typedef struct r2_json {
    char *text;     /* borrowed: `bytes` long, always terminated */
    size_t bytes;
    size_t used;
    bool overflow;  /* the line is not whole: throw it away */
    bool comma;     /* the next member or element needs one before it */
} r2_json_t;

/** Starts with an empty line. @param bytes > 0. */
void r2_json_init(r2_json_t *json, char *text, size_t bytes);

/** Opens an object or array, as a member if `key` is not NULL. @param bracket '{' or '['. */
void r2_json_open(r2_json_t *json, const char *key, char bracket);
/** @param bracket '}' or ']'. */
void r2_json_close(r2_json_t *json, char bracket);

/* Members; elements of an array if `key` is NULL. Keys are written as they are. */
void r2_json_u64(r2_json_t *json, const char *key, uint64_t value);
void r2_json_bool(r2_json_t *json, const char *key, bool value);
/** Escapes quotes, backslashes and control characters (RFC 8259); bytes that are no UTF-8 become U+FFFD. */
void r2_json_string(r2_json_t *json, const char *key, const char *value);

#endif
