/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which network devices become rails: by names and patterns, or by themselves.
 */
#include "r2_config.h"

#include "rail/nic_parts.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/** The choice so far. */
typedef struct r2_nic_choice {
    r2_nic_t *nics; /* borrowed: R2_RAILS_MAX */
    size_t count;
    bool overflow; /* more than R2_RAILS_MAX */
} r2_nic_choice_t;

/** Appends to a text as far as there is room. */
static void r2_text_add(char *text, size_t text_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void r2_text_add(char *text, size_t text_bytes, const char *format, ...)
{
    const size_t used = strnlen(text, text_bytes);
    va_list args;

    if (used + 1 < text_bytes) {
        va_start(args, format);
        vsnprintf(text + used, text_bytes - used, format, args);
        va_end(args);
    }
}

/** Lists the NICs there are, for error texts. */
static void r2_nics_text(const r2_nic_seen_t *seen, size_t count, char *text, size_t text_bytes)
{
    const char *separator = "; this host has ";

    for (size_t i = 0; i < count; ++i) {
        const r2_nic_t *nic = &seen[i].nic;
        const char *on = '\0' == nic->rdma[0] ? "" : " on ";
        char ip[INET_ADDRSTRLEN] = "";

        if (seen[i].loopback) {
            continue;
        }
        if (r2_nic_is_bare(nic)) {
            r2_text_add(text, text_bytes, "%s%s (%s, no IP)", separator, nic->name,
                        nic->carrier ? "up" : "down");
        } else if (0 != nic->ipv4) {
            inet_ntop(AF_INET, &nic->ipv4, ip, sizeof(ip));
            r2_text_add(text, text_bytes, "%s%s%s%s (%s, %s/%u)", separator, nic->name, on,
                        nic->rdma, nic->carrier ? "up" : "down", ip, nic->prefix_bits);
        } else {
            r2_text_add(text, text_bytes, "%s%s%s%s (%s, no address)", separator, nic->name, on,
                        nic->rdma, nic->carrier ? "up" : "down");
        }
        separator = ", ";
    }
    if (',' != separator[0]) {
        r2_text_add(text, text_bytes, "; this host has no NIC");
    }
}

static void r2_choice_add(r2_nic_choice_t *choice, const r2_nic_seen_t *seen)
{
    for (size_t i = 0; i < choice->count; ++i) {
        if (0 == strcmp(choice->nics[i].name, seen->nic.name)) {
            return;
        }
    }
    if (choice->count == R2_RAILS_MAX) {
        choice->overflow = true;
        return;
    }
    choice->nics[choice->count++] = seen->nic;
}

static int r2_nic_by_name(const void *a, const void *b)
{
    return strverscmp((*(const r2_nic_seen_t *const *) a)->nic.name,
                      (*(const r2_nic_seen_t *const *) b)->nic.name);
}

/* The RDMA port that comes next after `after` in natural order of names; NULL: none. */
static const char *r2_next_port(const r2_nic_seen_t *const *sorted, size_t count, const char *after)
{
    const char *next = NULL;

    for (size_t i = 0; i < count; ++i) {
        const char *rdma = sorted[i]->nic.rdma;

        if ('\0' != rdma[0] && strverscmp(rdma, after) > 0 &&
            (NULL == next || strverscmp(rdma, next) < 0)) {
            next = rdma;
        }
    }
    return next;
}

/* The NIC that stands for a port: one with an address, and not one that lies on another. */
static const r2_nic_seen_t *r2_nic_on_port(const r2_nic_seen_t *const *sorted, size_t count,
                                           const char *rdma)
{
    const r2_nic_seen_t *best = NULL;
    int best_worth = -1;

    for (size_t i = 0; i < count; ++i) {
        const int worth = (0 != sorted[i]->nic.ipv4 ? 2 : 0) + ('\0' == sorted[i]->kind[0]);

        if (0 == strcmp(rdma, sorted[i]->nic.rdma) && worth > best_worth) {
            best_worth = worth;
            best = sorted[i];
        }
    }
    return best;
}

/** Adds the NICs on the RDMA ports that a word names. @return number of ports that match. */
static size_t r2_choice_add_ports(r2_nic_choice_t *choice, const r2_nic_seen_t *const *sorted,
                                  size_t count, const char *word)
{
    size_t matches = 0;

    for (const char *rdma = r2_next_port(sorted, count, ""); NULL != rdma;
         rdma = r2_next_port(sorted, count, rdma)) {
        if (0 == fnmatch(word, rdma, 0)) {
            r2_choice_add(choice, r2_nic_on_port(sorted, count, rdma));
            ++matches;
        }
    }
    return matches;
}

/** Adds what one word of the selection names. @return number of NICs that match. */
static size_t r2_choice_add_word(r2_nic_choice_t *choice, const r2_nic_seen_t *const *sorted,
                                 size_t count, const char *word)
{
    const bool pattern = NULL != strpbrk(word, "*?[");
    size_t matches = 0;

    if (NULL != strchr(word, ':')) { /* no network device has that in its name */
        return r2_choice_add_ports(choice, sorted, count, word);
    }
    for (size_t i = 0; i < count; ++i) {
        if (r2_nic_is_bare(&sorted[i]->nic)) {
            continue;
        }
        if (pattern ? !sorted[i]->loopback && 0 == fnmatch(word, sorted[i]->nic.name, 0)
                    : 0 == strcmp(word, sorted[i]->nic.name)) {
            r2_choice_add(choice, sorted[i]);
            ++matches;
        }
    }
    return matches;
}

/** Selection by names and patterns. */
static r2_status_t r2_choose_named(const r2_nic_seen_t *const *sorted, size_t count,
                                   const char *selection, r2_nic_choice_t *choice, char *text_p,
                                   size_t text_bytes)
{
    char *words = strdup(selection), *rest = NULL;
    r2_status_t status = R2_OK;

    if (NULL == words) {
        return R2_ERR_NO_MEMORY;
    }
    for (const char *word = strtok_r(words, ", \t", &rest); NULL != word && R2_OK == status;
         word = strtok_r(NULL, ", \t", &rest)) {
        if (0 == r2_choice_add_word(choice, sorted, count, word)) {
            r2_text_add(text_p, text_bytes, "no NIC %s \"%s\"",
                        NULL == strchr(word, ':') ? "matches" : "lies on an RDMA port", word);
            status = R2_ERR_PARAM;
        }
    }
    free(words);
    if (R2_OK == status && 0 == choice->count) {
        r2_text_add(text_p, text_bytes, "the list of rails \"%s\" names no NIC", selection);
        status = R2_ERR_PARAM;
    } else if (R2_OK == status && choice->overflow) {
        r2_text_add(text_p, text_bytes, "more than %d NICs match \"%s\"", R2_RAILS_MAX, selection);
        status = R2_ERR_PARAM;
    }
    return status;
}

static bool r2_nic_link_local(const r2_nic_t *nic)
{
    return 0xa9fe == ntohl(nic->ipv4) >> 16; /* 169.254/16, for example a host's own controller */
}

/** A candidate of the choice by itself. @param devices_only first round. */
static bool r2_nic_candidate(const r2_nic_seen_t *seen, bool devices_only, bool without_address)
{
    static const char *const kinds[] = {"",     "veth",    "bond",   "team",
                                        "vlan", "macvlan", "ipvlan", "ipoib"};
    bool known_kind = false;

    if (seen->loopback || r2_nic_link_local(&seen->nic)) {
        return false;
    }
    if (r2_nic_is_bare(&seen->nic)) {
        return false; /* nothing says that a port without an address is meant to be used */
    }
    if (devices_only) {
        return seen->has_device && (0 != seen->nic.ipv4 || without_address);
    }
    for (size_t i = 0; i < r2_array_count(kinds); ++i) {
        known_kind = known_kind || 0 == strcmp(kinds[i], seen->kind);
    }
    return known_kind && 0 != seen->nic.ipv4;
}

/** True if the choice has a NIC on the same RDMA port: two rails would share one cable. */
static bool r2_choice_has_port(const r2_nic_choice_t *choice, const char *rdma)
{
    for (size_t i = 0; i < choice->count && '\0' != rdma[0]; ++i) {
        if (0 == strcmp(choice->nics[i].rdma, rdma)) {
            return true;
        }
    }
    return false;
}

/** Selection by itself: all candidates of the fastest class. */
static void r2_choose_fastest(const r2_nic_seen_t *const *sorted, size_t count, bool devices_only,
                              bool without_address, r2_nic_choice_t *choice)
{
    uint64_t fastest = 0;

    for (size_t i = 0; i < count; ++i) {
        if (r2_nic_candidate(sorted[i], devices_only, without_address)) {
            fastest = r2_max(fastest, sorted[i]->nic.speed_bytes_per_s);
        }
    }
    for (size_t i = 0; i < count; ++i) {
        const r2_nic_t *nic = &sorted[i]->nic;
        const bool hidden = 0 == nic->speed_bytes_per_s && !nic->carrier;

        if (r2_nic_candidate(sorted[i], devices_only, without_address) &&
            (hidden || 2 * nic->speed_bytes_per_s >= fastest) &&
            !r2_choice_has_port(choice, nic->rdma)) {
            r2_choice_add(choice, sorted[i]);
        }
    }
}

r2_status_t r2_nics_select(const r2_nic_seen_t *seen, size_t count, const char *selection,
                           bool without_address, r2_nic_t *nics_p, size_t *count_p, char *text_p,
                           size_t text_bytes)
{
    r2_nic_choice_t choice = {.nics = nics_p};
    const r2_nic_seen_t **sorted = calloc(count + 1, sizeof(*sorted));
    r2_status_t status = R2_OK;

    if (NULL == sorted) {
        return R2_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        sorted[i] = &seen[i];
    }
    qsort(sorted, count, sizeof(*sorted), r2_nic_by_name);
    if (text_bytes > 0) {
        text_p[0] = '\0';
    }
    if ('\0' != selection[0]) {
        status = r2_choose_named(sorted, count, selection, &choice, text_p, text_bytes);
    } else {
        r2_choose_fastest(sorted, count, true, without_address, &choice);
        if (0 == choice.count) {
            r2_choose_fastest(sorted, count, false, without_address, &choice);
        }
        if (0 == choice.count) {
            r2_text_add(text_p, text_bytes, "no usable NIC was found");
            status = R2_ERR_NOT_FOUND;
        }
    }
    free(sorted);
    if (R2_OK != status) {
        r2_nics_text(seen, count, text_p, text_bytes);
        return status;
    }
    *count_p = choice.count;
    return R2_OK;
}
