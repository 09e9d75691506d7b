/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Pinned memory, kept.
 */
#include "r2_config.h"

#include "exec/pins.h"

#include <stdlib.h>
#include <string.h>

/* Lengths are this times a power of two, so that other calls can use it. */
#define R2_PINS_BYTES 4096u

void r2_pins_init(r2_pins_t *pins, r2_mem_t *mem, size_t keep_bytes)
{
    memset(pins, 0, sizeof(*pins));
    pins->mem = mem;
    pins->keep_bytes = keep_bytes;
}

/* A driver that has ended has taken its memory along, and says so. After a device was reset its
 * address may be the application's. */
static void r2_pins_free(r2_pins_t *pins, r2_pin_t *pin)
{
    if (pin->is_heap) {
        free(pin->memory);
    } else if (0 == pin->id || pin->id == r2_mem_id(pins->mem, pin->memory)) {
        r2_mem_unpin(pins->mem, &pins->at, pin->memory);
    }
    free(pin);
}

static r2_pin_t *r2_pins_unlink(r2_pins_t *pins, r2_pin_t **at)
{
    r2_pin_t *pin = *at;

    *at = pin->next;
    pins->kept_bytes -= pin->bytes;
    return pin;
}

void r2_pins_fini(r2_pins_t *pins)
{
    while (NULL != pins->free) {
        r2_pins_free(pins, r2_pins_unlink(pins, &pins->free));
    }
}

/* Its address may be that of other memory by now, which is not ours to give back: what it is called
 * tells. */
static bool r2_pins_is_there(const r2_pins_t *pins, const r2_pin_t *pin)
{
    return 0 == pins->forgets || pin->is_heap ||
           (0 != pin->id && pin->id == r2_mem_id(pins->mem, pin->memory));
}

void r2_pins_forget(r2_pins_t *pins)
{
    r2_pin_t **at = &pins->free;

    ++pins->forgets;
    while (NULL != *at) {
        if (r2_pins_is_there(pins, *at)) {
            at = &(*at)->next;
        } else {
            free(r2_pins_unlink(pins, at)); /* the driver has taken back what it pinned */
        }
    }
}

static size_t r2_pins_length(size_t bytes)
{
    size_t length = R2_PINS_BYTES;

    while (length < bytes) {
        length *= 2;
    }
    return length;
}

r2_pin_t *r2_pins_new(r2_mem_t *mem, const r2_mem_at_t *at, size_t bytes)
{
    r2_pin_t *pin = calloc(1, sizeof(*pin));
    const size_t length = r2_pins_length(bytes);
    void *memory = NULL;

    if (NULL == pin) {
        return NULL;
    }
    pin->is_heap = R2_OK != r2_mem_pin(mem, at, length, &memory);
    pin->memory = pin->is_heap ? aligned_alloc(R2_PINS_BYTES, length) : memory;
    pin->id = pin->is_heap ? 0 : r2_mem_id(mem, memory);
    pin->bytes = length;
    if (NULL == pin->memory) {
        free(pin);
        return NULL;
    }
    return pin;
}

r2_pin_t *r2_pins_kept(r2_pins_t *pins, size_t bytes)
{
    const size_t length = r2_pins_length(bytes);

    for (r2_pin_t **at = &pins->free; NULL != *at; at = &(*at)->next) {
        if ((*at)->bytes == length) {
            return r2_pins_unlink(pins, at);
        }
    }
    return NULL;
}

r2_pin_t *r2_pins_get(r2_pins_t *pins, size_t bytes)
{
    r2_pin_t *pin = r2_pins_kept(pins, bytes);

    return NULL == pin ? r2_pins_new(pins->mem, &pins->at, bytes) : pin;
}

bool r2_pins_take(r2_pins_t *pins, r2_pins_wanted_t *wanted)
{
    bool is_all = true;

    for (uint32_t i = 0; i < wanted->count; ++i) {
        wanted->pins[i] = r2_pins_kept(pins, wanted->bytes[i]);
        is_all = is_all && NULL != wanted->pins[i];
    }
    return is_all;
}

void r2_pins_fill(r2_mem_t *mem, const r2_mem_at_t *at, r2_pins_wanted_t *wanted)
{
    for (uint32_t i = 0; i < wanted->count; ++i) {
        if (NULL == wanted->pins[i]) {
            wanted->pins[i] = r2_pins_new(mem, at, wanted->bytes[i]);
        }
    }
}

static void r2_pins_keep(r2_pins_t *pins, r2_pin_t *pin)
{
    if (!r2_pins_is_there(pins, pin)) {
        free(pin);
        return;
    }
    pin->next = pins->free;
    pins->free = pin;
    pins->kept_bytes += pin->bytes;
}

void r2_pins_give(r2_pins_t *pins, r2_pins_wanted_t *wanted)
{
    for (uint32_t i = 0; i < wanted->count; ++i) {
        if (NULL != wanted->pins[i]) {
            r2_pins_keep(pins, wanted->pins[i]);
        }
    }
    wanted->count = 0;
}

/* The oldest ones make room. */
void r2_pins_put(r2_pins_t *pins, r2_pin_t *pin)
{
    if (NULL == pin) {
        return;
    }
    r2_pins_keep(pins, pin);
    while (pins->kept_bytes > pins->keep_bytes) {
        r2_pin_t **at = &pins->free;

        while (NULL != (*at)->next) {
            at = &(*at)->next;
        }
        r2_pins_free(pins, r2_pins_unlink(pins, at));
    }
}
