/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Programs by shape: a bounded table that forgets what was not used for longest.
 *
 * A loop calls few shapes, so slots are looked through one by one; shapes are compared whole, so a
 * digest that two of them share costs time and nothing else.
 */
#include "r2_config.h"

#include "ctx/programs.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

_Static_assert(sizeof(r2_shape_key_t) == 64, "no padding: it is compared as memory");
_Static_assert(sizeof(r2_edge_t) == 24, "no padding: it is compared as memory");

/** The lists of a shape in their order. */
typedef struct r2_shape_lists {
    struct {
        const void *data; /* NULL with 0 bytes */
        size_t bytes;
    } of[4];
} r2_shape_lists_t;

static r2_shape_lists_t r2_shape_lists(const r2_shape_t *shape)
{
    const size_t bytes = (size_t) shape->key.size * sizeof(*shape->counts);
    const r2_shape_key_t *key = &shape->key;

    return (r2_shape_lists_t){{
        {shape->counts, NULL == shape->counts ? 0 : bytes},
        {shape->displs, NULL == shape->displs ? 0 : bytes},
        {shape->sends, NULL == shape->sends ? 0 : key->send_count * sizeof(*shape->sends)},
        {shape->recvs, NULL == shape->recvs ? 0 : key->recv_count * sizeof(*shape->recvs)},
    }};
}

static bool r2_shape_has_lists(const r2_shape_key_t *key)
{
    return 0 != (key->size | key->send_count | key->recv_count);
}

static bool r2_shape_equal(const r2_shape_t *a, const r2_shape_t *b)
{
    r2_shape_lists_t ours, theirs;

    if (0 != memcmp(&a->key, &b->key, sizeof(a->key))) {
        return false;
    }
    if (!r2_shape_has_lists(&a->key)) {
        return true;
    }
    ours = r2_shape_lists(a);
    theirs = r2_shape_lists(b);
    for (size_t i = 0; i < r2_array_count(ours.of); ++i) {
        if (ours.of[i].bytes != theirs.of[i].bytes ||
            (ours.of[i].bytes > 0 &&
             0 != memcmp(ours.of[i].data, theirs.of[i].data, ours.of[i].bytes))) {
            return false;
        }
    }
    return true;
}

/* @param bytes a multiple of 8. */
static uint64_t r2_shape_fold(uint64_t digest, const void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, (const char *) data + at, sizeof(word));
        digest = (digest ^ word) * 0xff51afd7ed558ccdull;
        digest ^= digest >> 32;
    }
    return digest;
}

static uint64_t r2_shape_digest(const r2_shape_t *shape)
{
    const r2_shape_lists_t lists = r2_shape_lists(shape);
    uint64_t digest = r2_shape_fold(0x9e3779b97f4a7c15ull, &shape->key, sizeof(shape->key));

    for (size_t i = 0; i < r2_array_count(lists.of); ++i) {
        digest = r2_shape_fold(digest, lists.of[i].data, lists.of[i].bytes);
    }
    return digest;
}

/* @param lists_p owned by the caller, NULL: there are none. @return R2_OK, R2_ERR_NO_MEMORY. */
static r2_status_t r2_shape_copy(const r2_shape_t *shape, r2_shape_t *copy, char **lists_p,
                                 size_t *bytes_p)
{
    const r2_shape_lists_t lists = r2_shape_lists(shape);
    const void **places[] = {(const void **) &copy->counts, (const void **) &copy->displs,
                             (const void **) &copy->sends, (const void **) &copy->recvs};
    size_t at = 0;

    *copy = *shape;
    *lists_p = NULL;
    *bytes_p = 0;
    for (size_t i = 0; i < r2_array_count(lists.of); ++i) {
        *bytes_p += lists.of[i].bytes;
    }
    if (0 == *bytes_p) {
        return R2_OK;
    }
    *lists_p = malloc(*bytes_p);
    if (NULL == *lists_p) {
        return R2_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < r2_array_count(lists.of); ++i) {
        if (lists.of[i].bytes > 0) {
            *places[i] = memcpy(*lists_p + at, lists.of[i].data, lists.of[i].bytes);
            at += lists.of[i].bytes;
        }
    }
    return R2_OK;
}

r2_status_t r2_programs_init(r2_programs_t *programs, uint32_t room, size_t bytes_max)
{
    *programs = (r2_programs_t){.room = room, .bytes_max = bytes_max};
    programs->slots = calloc(room, sizeof(*programs->slots));
    return NULL == programs->slots ? R2_ERR_NO_MEMORY : R2_OK;
}

static void r2_programs_clear(r2_programs_t *programs, r2_programs_slot_t *slot)
{
    programs->bytes -= slot->bytes;
    free(slot->lists);
    r2_program_put(slot->program);
    *slot = (r2_programs_slot_t){.used = 0};
}

void r2_programs_fini(r2_programs_t *programs)
{
    for (uint32_t i = 0; i < programs->top; ++i) {
        r2_programs_clear(programs, &programs->slots[i]);
    }
    free(programs->slots);
    *programs = (r2_programs_t){.slots = NULL};
}

static bool r2_programs_has(const r2_programs_slot_t *slot, const r2_shape_t *shape)
{
    return 0 < slot->used && r2_shape_equal(&slot->shape, shape);
}

r2_program_t *r2_programs_find(r2_programs_t *programs, const r2_shape_t *shape, uint32_t *hint_p)
{
    uint32_t at = *hint_p;

    if (at >= programs->top || !r2_programs_has(&programs->slots[at], shape)) {
        const uint64_t digest = r2_shape_digest(shape);

        for (at = 0; at < programs->top; ++at) {
            if (digest == programs->slots[at].digest &&
                r2_programs_has(&programs->slots[at], shape)) {
                break;
            }
        }
    }
    *hint_p = at;
    if (at == programs->top) {
        return NULL;
    }
    programs->slots[at].used = ++programs->turn;
    return programs->slots[at].program;
}

/* @return what was not used for longest; NULL: the table is empty. */
static r2_programs_slot_t *r2_programs_oldest(r2_programs_t *programs)
{
    r2_programs_slot_t *oldest = NULL;

    for (r2_programs_slot_t *slot = programs->slots; slot < programs->slots + programs->top;
         ++slot) {
        if (0 < slot->used && (NULL == oldest || slot->used < oldest->used)) {
            oldest = slot;
        }
    }
    return oldest;
}

/* @return NULL: there is none. */
static r2_programs_slot_t *r2_programs_free_slot(r2_programs_t *programs)
{
    for (uint32_t i = 0; i < programs->room; ++i) {
        if (0 == programs->slots[i].used) {
            programs->top = r2_max(programs->top, i + 1);
            return &programs->slots[i];
        }
    }
    return NULL;
}

/* What programs take grows when a run needs what their ops touch. */
static void r2_programs_weigh(r2_programs_t *programs)
{
    programs->bytes = 0;
    for (uint32_t i = 0; i < programs->top; ++i) {
        r2_programs_slot_t *slot = &programs->slots[i];

        slot->bytes = 0 == slot->used ? 0 : slot->list_bytes + slot->program->bytes;
        programs->bytes += slot->bytes;
    }
}

void r2_programs_keep(r2_programs_t *programs, const r2_shape_t *shape, r2_program_t *program)
{
    r2_programs_slot_t made = {.digest = r2_shape_digest(shape)}, *slot;

    if (R2_OK != r2_shape_copy(shape, &made.shape, &made.lists, &made.list_bytes)) {
        return;
    }
    made.bytes = made.list_bytes + program->bytes;
    if (made.bytes > programs->bytes_max) {
        free(made.lists);
        return;
    }
    r2_programs_weigh(programs);
    while (programs->bytes + made.bytes > programs->bytes_max &&
           NULL != (slot = r2_programs_oldest(programs))) {
        r2_programs_clear(programs, slot);
    }
    slot = r2_programs_free_slot(programs);
    if (NULL == slot && NULL != (slot = r2_programs_oldest(programs))) {
        r2_programs_clear(programs, slot);
    }
    if (NULL == slot) { /* it has room for none */
        free(made.lists);
        return;
    }
    *slot = made;
    slot->program = r2_program_get(program);
    slot->used = ++programs->turn;
    programs->bytes += slot->bytes;
}

void r2_programs_forget(r2_programs_t *programs, uint64_t comm)
{
    for (uint32_t i = 0; i < programs->top; ++i) {
        if (comm == programs->slots[i].shape.key.comm) {
            r2_programs_clear(programs, &programs->slots[i]);
        }
    }
}
