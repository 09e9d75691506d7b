/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Topologies as text.
 */
#include "r2_config.h"

#include "topology_file.h"

#include <string.h>

#include "base/util.h"

#define R2_HOSTS_MOST 65536u
#define R2_RANKS_MOST (1u << 20)

/** The head of a file, until the first line that needs a topology. */
typedef struct reader {
    r2_topology_t *topology; /* borrowed */
    unsigned hosts, rails, ranks, rate;
    bool any_pairing, made;
} reader_t;

typedef struct line {
    char word[16];
    unsigned number[3];
    int count; /* numbers */
} line_t;

static r2_status_t make(reader_t *reader)
{
    r2_status_t status = R2_OK;

    if (!reader->made) {
        const unsigned ranks = 0 == reader->ranks ? reader->hosts : reader->ranks;

        status = r2_topology_init(reader->topology, reader->hosts, reader->rails, (int32_t) ranks,
                                  reader->rate);
        reader->topology->any_pairing = reader->any_pairing;
        reader->made = R2_OK == status;
    }
    return status;
}

/** A line of the head. @return false: it is none. */
static bool read_head(reader_t *reader, const line_t *line)
{
    const struct {
        const char *word;
        unsigned *value, most;
    } heads[] = {{"hosts", &reader->hosts, R2_HOSTS_MOST},
                 {"rails", &reader->rails, 16},
                 {"ranks", &reader->ranks, R2_RANKS_MOST},
                 {"rate", &reader->rate, UINT32_MAX}};

    if (reader->made) {
        return false;
    }
    if (0 == strcmp("any-pairing", line->word)) {
        reader->any_pairing = true;
        return 0 == line->count;
    }
    for (size_t i = 0; i < r2_array_count(heads); i++) {
        if (0 == strcmp(heads[i].word, line->word) && 1 == line->count &&
            line->number[0] <= heads[i].most) {
            *heads[i].value = line->number[0];
            return true;
        }
    }
    return false;
}

static bool read_body(r2_topology_t *topology, const line_t *line)
{
    const unsigned *number = line->number;
    const bool names_rail =
        3 == line->count && number[0] < topology->host_count && number[1] < topology->rail_count;

    if (0 == strcmp("capacity", line->word) && names_rail) {
        r2_topology_set_capacity(topology, number[0], number[1], number[2]);
        return number[2] <= R2_CAPACITY_FULL;
    }
    if (0 == strcmp("rate-of", line->word) && names_rail) {
        topology->rate_mbytes_per_s[number[0] * topology->rail_count + number[1]] = number[2];
        return true;
    }
    if (0 == strcmp("cut", line->word) && 3 == line->count) {
        return r2_topology_cut(topology, number[0], number[1], number[2]);
    }
    if (0 == strcmp("host-of", line->word) && 2 == line->count &&
        number[0] < (unsigned) topology->rank_count && number[1] < topology->host_count) {
        topology->host_of[number[0]] = number[1];
        return true;
    }
    return false;
}

static r2_status_t read_line(reader_t *reader, char *text)
{
    line_t line = {.count = 0};
    char rest;
    int found;
    r2_status_t status;

    text[strcspn(text, "#\n")] = '\0';
    found = sscanf(text, "%15s %u %u %u %c", line.word, &line.number[0], &line.number[1],
                   &line.number[2], &rest);
    if (found < 1) {
        return R2_OK;
    }
    line.count = found - 1;
    if (read_head(reader, &line)) {
        return R2_OK;
    }
    status = make(reader);
    if (R2_OK != status) {
        return status;
    }
    return read_body(reader->topology, &line) ? R2_OK : R2_ERR_PARAM;
}

r2_status_t r2_topology_read(FILE *file, r2_topology_t *topology, int *line_p)
{
    reader_t reader = {.topology = topology, .rate = 1000};
    r2_status_t status = R2_OK;
    char text[256];

    *line_p = 0;
    while (R2_OK == status && NULL != fgets(text, sizeof(text), file)) {
        ++*line_p;
        status = read_line(&reader, text);
    }
    status = R2_OK == status ? make(&reader) : status;
    if (R2_OK != status && reader.made) {
        r2_topology_fini(topology);
    }
    return status;
}
