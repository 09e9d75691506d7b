/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The text form of topologies: one statement a line (docs/simulation.md).
 */
#include "r2_config.h"

#include "topology.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "r2/macros.h"
#include "r2/units.h"

#define TOPO_WORDS_MAX     5u
#define TOPO_LINE_BYTES    256u
#define TOPO_CAPACITY_FULL 16u

/** State while reading. Sizes and default rate come before what needs them. */
typedef struct topo_reader {
    topo_t *topo; /* borrowed */
    const char *name;
    unsigned line;
    uint64_t hosts, rails, ranks; /* 0: not said yet */
    double rate;                  /* 0: not said yet */
    double latency_s;
    double derating, reduce_rate; /* 0: not said */
    bool crowded;
    bool flat;
    char *error; /* borrowed */
    size_t error_bytes;
} topo_reader_t;

/** @return R2_ERR_PARAM, for `return topo_fail(...)`. */
static r2_status_t __attribute__((format(printf, 2, 3)))
topo_fail(const topo_reader_t *reader, const char *format, ...)
{
    int used = snprintf(reader->error, reader->error_bytes, "%s:%u: ", reader->name, reader->line);
    va_list args;

    if (used > 0 && (size_t) used < reader->error_bytes) {
        va_start(args, format);
        vsnprintf(reader->error + used, reader->error_bytes - (size_t) used, format, args);
        va_end(args);
    }
    return R2_ERR_PARAM;
}

/** A number below `limit`, with an optional word before it: "3" or "h3". */
static bool parse_index(const char *text, const char *word, uint64_t limit, uint32_t *index_p)
{
    size_t skip = 0 == strncmp(text, word, strlen(word)) ? strlen(word) : 0;
    uint64_t value;

    if (R2_OK != r2_unit_whole(text + skip, R2_UNIT_NUMBER, 0, limit - 1, &value)) {
        return false;
    }
    *index_p = (uint32_t) value;
    return true;
}

/** A number above 0. @return R2_OK, or R2_ERR_PARAM after saying what is wrong. */
static r2_status_t parse_unit(const topo_reader_t *reader, const char *text, r2_unit_t unit,
                              double *value_p)
{
    double value;

    if (R2_OK != r2_unit_real(text, unit, &value) || !(value > 0)) {
        return topo_fail(reader, "\"%s\" is no %s above 0", text, r2_unit_form(unit));
    }
    *value_p = value;
    return R2_OK;
}

/* ---- statements: words[0] is the keyword */

/** Makes the topology once sizes and rate are known. */
static r2_status_t reader_make(topo_reader_t *reader)
{
    r2_status_t status;

    if (NULL != reader->topo->rate) {
        return R2_OK;
    }
    if (0 == reader->hosts || 0 == reader->rails || !(reader->rate > 0)) {
        return topo_fail(reader, "\"hosts\", \"rails\" and \"rate\" come first");
    }
    if (0 != reader->ranks && reader->ranks < reader->hosts) {
        return topo_fail(reader, "every one of %u hosts needs a rank", (unsigned) reader->hosts);
    }
    status =
        topo_init(reader->topo, (uint32_t) reader->hosts, (uint32_t) reader->rails, reader->rate);
    return R2_OK == status && 0 != reader->ranks
               ? topo_set_ranks(reader->topo, (uint32_t) reader->ranks)
               : status;
}

static r2_status_t read_count(topo_reader_t *reader, char **words, uint64_t most, uint64_t *count_p)
{
    uint32_t count;

    if (NULL != reader->topo->rate || 0 != *count_p) {
        return topo_fail(reader, "\"%s\" is said once, before what is broken", words[0]);
    }
    if (!parse_index(words[1], "", most + 1, &count) || 0 == count) {
        return topo_fail(reader, "\"%s\" is no number from 1 to %u", words[1], (unsigned) most);
    }
    *count_p = count;
    return R2_OK;
}

static r2_status_t read_hosts(topo_reader_t *reader, char **words)
{
    return read_count(reader, words, TOPO_HOSTS_MAX, &reader->hosts);
}

static r2_status_t read_rails(topo_reader_t *reader, char **words)
{
    return read_count(reader, words, TOPO_RAILS_MAX, &reader->rails);
}

static r2_status_t read_rate(topo_reader_t *reader, char **words)
{
    if (NULL != reader->topo->rate || reader->rate > 0) {
        return topo_fail(reader, "\"rate\" is said once, before what is broken");
    }
    return parse_unit(reader, words[1], R2_UNIT_RATE, &reader->rate);
}

static r2_status_t read_network(topo_reader_t *reader, char **words)
{
    reader->flat = 0 == strcasecmp(words[1], "flat");
    return reader->flat || 0 == strcasecmp(words[1], "aligned")
               ? R2_OK
               : topo_fail(reader, "\"%s\" is neither aligned nor flat", words[1]);
}

static r2_status_t read_any_pairing(topo_reader_t *reader, char **words)
{
    (void) words;
    reader->flat = true;
    return R2_OK;
}

static r2_status_t read_ranks(topo_reader_t *reader, char **words)
{
    return read_count(reader, words, TOPO_RANKS_MAX, &reader->ranks);
}

static r2_status_t read_latency(topo_reader_t *reader, char **words)
{
    double ns;

    if (R2_OK != r2_unit_real(words[1], R2_UNIT_TIME, &ns)) {
        return topo_fail(reader, "\"%s\" is no %s", words[1], r2_unit_form(R2_UNIT_TIME));
    }
    reader->latency_s = ns / 1e9;
    return R2_OK;
}

static r2_status_t read_derating(topo_reader_t *reader, char **words)
{
    return parse_unit(reader, words[1], R2_UNIT_PERCENT, &reader->derating);
}

static r2_status_t read_reduce(topo_reader_t *reader, char **words)
{
    return parse_unit(reader, words[1], R2_UNIT_RATE, &reader->reduce_rate);
}

static r2_status_t read_crowded(topo_reader_t *reader, char **words)
{
    (void) words;
    reader->crowded = true;
    return R2_OK;
}

static r2_status_t read_host(const topo_reader_t *reader, const char *word, uint32_t *host_p)
{
    return parse_index(word, "h", reader->hosts, host_p)
               ? R2_OK
               : topo_fail(reader, "there is no host \"%s\": h0 to h%u", word,
                           (unsigned) reader->hosts - 1);
}

static r2_status_t read_rail(const topo_reader_t *reader, const char *word, uint32_t *rail_p)
{
    return parse_index(word, "rail", reader->rails, rail_p)
               ? R2_OK
               : topo_fail(reader, "there is no rail \"%s\": rail0 to rail%u", word,
                           (unsigned) reader->rails - 1);
}

/** HOST RAIL. @param at_p index of the NIC. */
static r2_status_t read_nic_at(topo_reader_t *reader, char **words, size_t *at_p)
{
    r2_status_t status = reader_make(reader);
    uint32_t host = 0, rail = 0;

    status = R2_OK == status ? read_host(reader, words[0], &host) : status;
    status = R2_OK == status ? read_rail(reader, words[1], &rail) : status;
    *at_p = (size_t) host * reader->rails + rail;
    return status;
}

static r2_status_t read_rate_of(topo_reader_t *reader, char **words)
{
    size_t at;
    r2_status_t status = read_nic_at(reader, words + 1, &at);

    return R2_OK == status ? parse_unit(reader, words[3], R2_UNIT_RATE, &reader->topo->rate[at])
                           : status;
}

static r2_status_t read_fail(topo_reader_t *reader, char **words)
{
    size_t at;
    r2_status_t status = read_nic_at(reader, words + 1, &at);

    if (R2_OK == status) {
        reader->topo->left[at] = 0;
    }
    return status;
}

static r2_status_t read_slow(topo_reader_t *reader, char **words)
{
    size_t at;
    double left;
    r2_status_t status = read_nic_at(reader, words + 1, &at);

    if (R2_OK != status) {
        return status;
    }
    if (R2_OK != r2_unit_real(words[3], R2_UNIT_PERCENT, &left) || left > 1) {
        return topo_fail(reader, "\"%s\" is no rest from 0%% to 100%%", words[3]);
    }
    reader->topo->left[at] = left;
    return R2_OK;
}

static r2_status_t read_capacity(topo_reader_t *reader, char **words)
{
    size_t at;
    uint32_t sixteenths;
    r2_status_t status = read_nic_at(reader, words + 1, &at);

    if (R2_OK != status) {
        return status;
    }
    if (!parse_index(words[3], "", TOPO_CAPACITY_FULL + 1, &sixteenths)) {
        return topo_fail(reader, "\"%s\" is no number of sixteenths, 0 to 16", words[3]);
    }
    reader->topo->left[at] = (double) sixteenths / TOPO_CAPACITY_FULL;
    return R2_OK;
}

static r2_status_t read_cut(topo_reader_t *reader, char **words)
{
    r2_topology_cut_t cut = {.host_a = 0};
    r2_status_t status = reader_make(reader);

    status = R2_OK == status ? read_host(reader, words[1], &cut.host_a) : status;
    status = R2_OK == status ? read_host(reader, words[2], &cut.host_b) : status;
    status = R2_OK == status ? read_rail(reader, words[3], &cut.rail) : status;
    if (R2_OK == status && cut.host_a == cut.host_b) {
        return topo_fail(reader, "a cut is between two hosts");
    }
    return R2_OK == status ? topo_cut(reader->topo, cut) : status;
}

static r2_status_t read_host_of(topo_reader_t *reader, char **words)
{
    r2_status_t status = reader_make(reader);
    uint32_t rank = 0, host = 0;

    if (R2_OK == status && !parse_index(words[1], "", reader->topo->rank_count, &rank)) {
        return topo_fail(reader, "there is no rank \"%s\": 0 to %u", words[1],
                         (unsigned) reader->topo->rank_count - 1);
    }
    status = R2_OK == status ? read_host(reader, words[2], &host) : status;
    if (R2_OK == status) {
        reader->topo->host_of[rank] = host;
    }
    return status;
}

/** Every host has a rank. */
static r2_status_t reader_check(const topo_reader_t *reader)
{
    const topo_t *topo = reader->topo;

    for (uint32_t h = 0; h < topo->host_count; ++h) {
        uint32_t r = 0;

        while (r < topo->rank_count && topo->host_of[r] != h) {
            ++r;
        }
        if (r == topo->rank_count) {
            return topo_fail(reader, "no rank is on h%u", (unsigned) h);
        }
    }
    return R2_OK;
}

static r2_status_t read_name(topo_reader_t *reader, char **words)
{
    r2_status_t status = reader_make(reader);
    uint32_t host = 0;

    status = R2_OK == status ? read_host(reader, words[1], &host) : status;
    return R2_OK == status ? topo_name(reader->topo, host, words[2]) : status;
}

typedef struct topo_statement {
    const char *word;
    size_t words; /* with the keyword */
    const char *form;
    r2_status_t (*read)(topo_reader_t *reader, char **words);
} topo_statement_t;

static const topo_statement_t statements[] = {
    {"hosts", 2, "hosts N", read_hosts},
    {"rails", 2, "rails N", read_rails},
    {"rate", 2, "rate RATE", read_rate},
    {"network", 2, "network aligned|flat", read_network},
    {"any-pairing", 1, "any-pairing", read_any_pairing},
    {"ranks", 2, "ranks N", read_ranks},
    {"latency", 2, "latency TIME", read_latency},
    {"pace", 2, "pace PERCENT%", read_derating},
    {"reduce", 2, "reduce RATE", read_reduce},
    {"crowded", 1, "crowded", read_crowded},
    {"name", 3, "name HOST NAME", read_name},
    {"host-of", 3, "host-of RANK HOST", read_host_of},
    {"rate-of", 4, "rate-of HOST RAIL RATE", read_rate_of},
    {"fail", 3, "fail HOST RAIL", read_fail},
    {"slow", 4, "slow HOST RAIL PERCENT%", read_slow},
    {"capacity", 4, "capacity HOST RAIL SIXTEENTHS", read_capacity},
    {"cut", 4, "cut HOST HOST RAIL", read_cut},
};

static r2_status_t read_statement(topo_reader_t *reader, char **words, size_t count)
{
    for (size_t i = 0; i < r2_array_count(statements); ++i) {
        if (0 != strcasecmp(words[0], statements[i].word)) {
            continue;
        }
        return count == statements[i].words
                   ? statements[i].read(reader, words)
                   : topo_fail(reader, "expected \"%s\"", statements[i].form);
    }
    return topo_fail(reader, "unknown statement \"%.40s\"", words[0]);
}

static r2_status_t read_line(topo_reader_t *reader, char *line)
{
    char *words[TOPO_WORDS_MAX + 1], *at = NULL;
    size_t count = 0;

    line[strcspn(line, "#\r\n")] = '\0';
    for (char *word = strtok_r(line, " \t", &at); NULL != word && count <= TOPO_WORDS_MAX;
         word = strtok_r(NULL, " \t", &at)) {
        words[count++] = word;
    }
    return 0 == count ? R2_OK : read_statement(reader, words, count);
}

r2_status_t topo_read(FILE *in, const char *name, topo_t *topo_p, char *error_p, size_t error_bytes)
{
    topo_reader_t reader = {
        .topo = topo_p, .name = name, .error = error_p, .error_bytes = error_bytes};
    char line[TOPO_LINE_BYTES];
    r2_status_t status = R2_OK;

    memset(topo_p, 0, sizeof(*topo_p));
    snprintf(error_p, error_bytes, "%s: out of memory", name);
    while (R2_OK == status && NULL != fgets(line, sizeof(line), in)) {
        ++reader.line;
        if (NULL == strchr(line, '\n') && !feof(in)) {
            status = topo_fail(&reader, "longer than %u characters", TOPO_LINE_BYTES - 2);
        } else {
            status = read_line(&reader, line);
        }
    }
    if (R2_OK == status && 0 != ferror(in)) {
        status = topo_fail(&reader, "cannot be read");
    }
    status = R2_OK == status ? reader_make(&reader) : status;
    status = R2_OK == status ? reader_check(&reader) : status;
    if (R2_OK != status) {
        topo_fini(topo_p);
        return status;
    }
    topo_p->flat = reader.flat;
    topo_p->latency_s = reader.latency_s;
    topo_p->derating = reader.derating > 0 ? reader.derating : 1;
    topo_p->reduce_rate = reader.reduce_rate;
    topo_p->crowded = reader.crowded;
    return R2_OK;
}

r2_status_t topo_load(const char *path, topo_t *topo_p, char *error_p, size_t error_bytes)
{
    FILE *in = 0 == strcmp(path, "-") ? stdin : fopen(path, "re");
    r2_status_t status;

    if (NULL == in) {
        snprintf(error_p, error_bytes, "%s: %s", path, strerror(errno));
        return R2_ERR_PARAM;
    }
    status = topo_read(in, path, topo_p, error_p, error_bytes);
    if (stdin != in) {
        fclose(in);
    }
    return status;
}
