/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Writer of JSON.
 */
#include "r2_config.h"

#include "r2/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/util.h"

#define R2_JSON_INDENT 2

void r2_json_init(r2_json_t *json, char *text, size_t bytes)
{
    *json = (r2_json_t){.text = text, .bytes = bytes};
    text[0] = '\0';
}

void r2_json_init_file(r2_json_t *json, FILE *out)
{
    *json = (r2_json_t){.out = out};
}

static void r2_json_put(r2_json_t *json, const char *text, size_t bytes)
{
    if (NULL == json->text) {
        fwrite(text, 1, bytes, json->out);
        return;
    }
    if (json->overflow || bytes >= json->bytes - json->used) {
        json->overflow = true;
        return;
    }
    memcpy(json->text + json->used, text, bytes);
    json->used += bytes;
    json->text[json->used] = '\0';
}

static void r2_json_putf(r2_json_t *json, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For short texts. */
static void r2_json_putf(r2_json_t *json, const char *format, ...)
{
    char text[64];
    va_list args;
    int used;

    va_start(args, format);
    used = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    r2_assert(used >= 0 && (size_t) used < sizeof(text));
    r2_json_put(json, text, (size_t) used);
}

/* In files: a new line for what is at json->depth. */
static void r2_json_break(r2_json_t *json)
{
    if (NULL == json->text) {
        fprintf(json->out, "\n%*s", (int) json->depth * R2_JSON_INDENT, "");
    }
}

/* Comma and key. */
static void r2_json_lead(r2_json_t *json, const char *key)
{
    if (json->comma) {
        r2_json_put(json, ",", 1);
    }
    if (json->depth > 0) {
        r2_json_break(json);
    }
    json->comma = true;
    if (NULL != key) {
        r2_json_put(json, "\"", 1);
        r2_json_put(json, key, strlen(key));
        r2_json_put(json, "\": ", NULL == json->text ? 3 : 2);
    }
}

void r2_json_open(r2_json_t *json, const char *key, char bracket)
{
    r2_json_lead(json, key);
    r2_json_put(json, &bracket, 1);
    json->comma = false;
    ++json->depth;
}

void r2_json_close(r2_json_t *json, char bracket)
{
    --json->depth;
    if (json->comma) { /* not empty */
        r2_json_break(json);
    }
    r2_json_put(json, &bracket, 1);
    json->comma = true;
}

r2_status_t r2_json_end_file(r2_json_t *json)
{
    r2_assert(0 == json->depth);
    fputc('\n', json->out);
    return 0 == fflush(json->out) && 0 == ferror(json->out) ? R2_OK : R2_ERR_SYSTEM;
}

void r2_json_u64(r2_json_t *json, const char *key, uint64_t value)
{
    r2_json_lead(json, key);
    r2_json_putf(json, "%" PRIu64, value);
}

void r2_json_bool(r2_json_t *json, const char *key, bool value)
{
    r2_json_lead(json, key);
    r2_json_putf(json, "%s", value ? "true" : "false");
}

void r2_json_null(r2_json_t *json, const char *key)
{
    r2_json_lead(json, key);
    r2_json_put(json, "null", 4);
}

void r2_json_real(r2_json_t *json, const char *key, double value)
{
    char text[40];

    if (!isfinite(value)) {
        r2_json_null(json, key);
        return;
    }
    snprintf(text, sizeof(text), "%.17g", value);
    r2_json_lead(json, key);
    r2_json_putf(json, "%s%s", text, NULL == strpbrk(text, ".e") ? ".0" : "");
}

/*
 * Length of the UTF-8 sequence at `text`. @return 0: there is none (RFC 3629: overlong forms,
 * surrogates and what is beyond U+10FFFF are none).
 */
static size_t r2_utf8_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    size_t bytes = 0;
    uint32_t code;

    while (bytes < r2_array_count(forms) && (text[0] & forms[bytes].mask) != forms[bytes].lead) {
        ++bytes;
    }
    if (r2_array_count(forms) == bytes) {
        return 0;
    }
    code = text[0] & (unsigned char) ~forms[bytes].mask;
    for (size_t i = 1; i <= bytes; ++i) {
        if (0x80 != (text[i] & 0xc0)) {
            return 0; /* the terminating null, too */
        }
        code = code << 6 | (text[i] & 0x3fu);
    }
    return code < forms[bytes].least || code > 0x10ffff || 0xd800 == (code & 0xfffff800)
               ? 0
               : bytes + 1;
}

void r2_json_string(r2_json_t *json, const char *key, const char *value)
{
    const unsigned char *next = (const unsigned char *) value;

    if (NULL == value) {
        r2_json_null(json, key);
        return;
    }
    r2_json_lead(json, key);
    r2_json_put(json, "\"", 1);
    while ('\0' != *next && !json->overflow) {
        size_t bytes = r2_utf8_bytes(next);

        if (0 == bytes) {
            r2_json_put(json, "\\ufffd", 6);
        } else if (*next < 0x20 || 0x7f == *next) {
            r2_json_putf(json, "\\u%04x", *next);
        } else if ('"' == *next || '\\' == *next) {
            r2_json_putf(json, "\\%c", *next);
        } else {
            r2_json_put(json, (const char *) next, bytes);
        }
        next += 0 == bytes ? 1 : bytes;
    }
    r2_json_put(json, "\"", 1);
}
