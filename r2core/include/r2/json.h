/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Writer of JSON: one line into fixed memory, or an indented text into a file. For programs of this
 * tree: not installed.
 */
#ifndef R2_JSON_H
#define R2_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "r2/status.h"

/** A text under construction. No allocation. */
typedef struct r2_json {
    char *text; /* borrowed: `bytes` long, always terminated; NULL: goes to `out` */
    size_t bytes;
    size_t used;
    FILE *out;      /* borrowed */
    uint32_t depth; /* of the element that comes next */
    bool overflow;  /* of fixed memory: the line is not whole, throw it away */
    bool comma;     /* the next member or element needs one before it */
} r2_json_t;

/** Starts with an empty line in fixed memory. @param bytes > 0. */
void r2_json_init(r2_json_t *json, char *text, size_t bytes);
/** Starts a text of many lines, indented by two. */
void r2_json_init_file(r2_json_t *json, FILE *out);
/** Ends the last line of a file. @return R2_OK, R2_ERR_SYSTEM (it could not be written). */
r2_status_t r2_json_end_file(r2_json_t *json);

/** Opens an object or array, as a member if `key` is not NULL. @param bracket '{' or '['. */
void r2_json_open(r2_json_t *json, const char *key, char bracket);
/** @param bracket '}' or ']'. */
void r2_json_close(r2_json_t *json, char bracket);

/* Members; elements of an array if `key` is NULL. Keys are written as they are. */
void r2_json_u64(r2_json_t *json, const char *key, uint64_t value);
void r2_json_bool(r2_json_t *json, const char *key, bool value);
/** As exact as the number is; null if it is not finite. */
void r2_json_real(r2_json_t *json, const char *key, double value);
void r2_json_null(r2_json_t *json, const char *key);
/**
 * Escapes quotes, backslashes and control characters (RFC 8259); bytes that are no UTF-8 become
 * U+FFFD. @param value NULL: null.
 */
void r2_json_string(r2_json_t *json, const char *key, const char *value);

#endif
