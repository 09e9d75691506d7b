/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reads scenarios.
 */
#include "r2_config.h"

#include "scenario_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "link/wire.h"
#include "plan/kinds.h"

typedef bool (*statement_fn_t)(scenario_t *scenario, const statement_t *st);

/* ---- machine ---- */

typedef enum setting_unit {
    SETTING_NUMBER,
    SETTING_TIME,
    SETTING_PERCENT
} setting_unit_t;

#define SETTING(word, unit, field)                                                    \
    {                                                                                 \
        word, unit, offsetof(scenario_t, field), sizeof(((scenario_t *) NULL)->field) \
    }

/** Statements of one word and one value, and where the value goes. */
static const struct {
    const char *word;
    setting_unit_t unit;
    size_t offset, bytes;
} settings[] = {
    SETTING("seed", SETTING_NUMBER, sim.seed),
    SETTING("hosts", SETTING_NUMBER, sim.host_count),
    SETTING("ppn", SETTING_NUMBER, ppn),
    SETTING("rails", SETTING_NUMBER, sim.rail_count),
    SETTING("rate", SETTING_NUMBER, sim.rail_bytes_per_s),
    SETTING("told", SETTING_NUMBER, sim.told_bytes_per_s),
    SETTING("latency", SETTING_TIME, sim.rail_latency_ns),
    SETTING("socket", SETTING_NUMBER, sim.socket_bytes),
    SETTING("receive", SETTING_NUMBER, sim.receive_bytes),
    SETTING("keep", SETTING_PERCENT, sim.keep_ppm),
    SETTING("retry", SETTING_TIME, sim.retry_max_ns),
    SETTING("batch", SETTING_NUMBER, sim.batch),
    SETTING("crowded", SETTING_PERCENT, sim.crowded_ppm),
    SETTING("jitter", SETTING_TIME, jitter_ns),
    SETTING("first-seq", SETTING_NUMBER, first_seq),
    SETTING("rdma", SETTING_NUMBER, rdma_hosts),
    SETTING("gpu", SETTING_NUMBER, gpu_bytes_per_s),
    SETTING("near", SETTING_NUMBER, near),
    SETTING("hello-loss", SETTING_PERCENT, hello_loss_ppm),
    SETTING("post-loss", SETTING_PERCENT, post_loss_ppm),
    SETTING("post-twice", SETTING_PERCENT, post_twice_ppm),
    SETTING("post-delay", SETTING_TIME, post_delay_ns),
    SETTING("probe-loss", SETTING_PERCENT, probe_loss_ppm),
    SETTING("backlog", SETTING_NUMBER, backlog),
    SETTING("limit", SETTING_TIME, limit_ns),
    SETTING("verbose", SETTING_NUMBER, verbose),
};

static bool set_setting(scenario_t *sc, size_t at, const char *word)
{
    void *field = (char *) sc + settings[at].offset;
    uint64_t value = 0;
    uint32_t narrow;

    if (!(SETTING_TIME == settings[at].unit      ? word_time(word, &value)
          : SETTING_PERCENT == settings[at].unit ? word_percent(word, &value)
                                                 : word_number(word, &value))) {
        return false;
    }
    narrow = (uint32_t) value;
    memcpy(field, sizeof(narrow) == settings[at].bytes ? (void *) &narrow : (void *) &value,
           settings[at].bytes);
    return true;
}

static bool on_param(scenario_t *sc, const statement_t *st)
{
    scenario_param_t *param = &sc->params[sc->param_count];

    if (3 != st->count || SCENARIO_PARAMS_MAX == sc->param_count) {
        return false;
    }
    snprintf(param->name, sizeof(param->name), "%s", st->words[1]);
    snprintf(param->value, sizeof(param->value), "%s", st->words[2]);
    ++sc->param_count;
    return true;
}

static bool on_rails_of(scenario_t *sc, const statement_t *st)
{
    uint64_t count;
    uint32_t host;

    if (3 != st->count || !word_index(st->words[1], "h", &host) ||
        !word_number(st->words[2], &count) || host >= SCENARIO_RANKS_MAX) {
        return false;
    }
    sc->rails_of[host] = (uint32_t) count;
    return true;
}

static bool on_flag(scenario_t *sc, const statement_t *st)
{
    if (0 == strcmp(st->words[0], "allow-changes")) {
        sc->sim.allow_changes = true;
        return 1 == st->count;
    }
    sc->any_outcome = 2 == st->count && 0 == strcmp(st->words[1], "any");
    sc->healthy = 2 == st->count && 0 == strcmp(st->words[1], "healthy");
    return 2 == st->count && (sc->any_outcome || sc->healthy || 0 == strcmp(st->words[1], "ok"));
}

static uint8_t wire_kind(const void *header, size_t header_bytes)
{
    r2_wire_header_t h;

    if (sizeof(r2_wire_short_t) == header_bytes) {
        return R2_WIRE_DATA;
    }
    if (header_bytes != sizeof(h)) {
        return 0;
    }
    memcpy(&h, header, sizeof(h));
    return h.kind;
}

static bool match_acks(const void *header, size_t header_bytes, size_t data_bytes)
{
    (void) data_bytes;
    return R2_WIRE_ACK == wire_kind(header, header_bytes);
}

static bool match_data(const void *header, size_t header_bytes, size_t data_bytes)
{
    (void) data_bytes;
    return R2_WIRE_DATA == wire_kind(header, header_bytes);
}

static bool match_control(const void *header, size_t header_bytes, size_t data_bytes)
{
    (void) data_bytes;
    return wire_kind(header, header_bytes) > R2_WIRE_DATA;
}

static bool match_hello(const void *header, size_t header_bytes, size_t data_bytes)
{
    uint8_t kind = wire_kind(header, header_bytes);

    (void) data_bytes;
    return R2_WIRE_HELLO == kind || R2_WIRE_HELLO_ACK == kind;
}

static bool on_rule(scenario_t *sc, const statement_t *st)
{
    static const char *const actions[] = {"drop", "break", "duplicate", "delay", "error", "fail"};
    static const char *const onlies[] = {"acks", "data", "control", "hello"};
    static bool (*const matches[])(const void *, size_t, size_t) = {match_acks, match_data,
                                                                    match_control, match_hello};
    r2_fault_rule_t *rule = &sc->rules[sc->rule_count];
    const char *only = option_text(st, 3, "only");
    int action = st->count < 3 ? -1 : word_find(st->words[1], actions, 6);
    int kind = NULL == only ? 0 : word_find(only, onlies, 4);
    uint64_t ppm;

    if (action < 0 || kind < 0 || R2_FAULT_RULES_MAX == sc->rule_count ||
        !word_percent(st->words[2], &ppm) || !option_time(st, 3, "delay", &rule->delay_ns) ||
        !option_number(st, 3, "limit", &rule->limit) ||
        !option_time(st, 3, "from", &rule->from_ns) ||
        !option_time(st, 3, "until", &rule->until_ns)) {
        return false;
    }
    rule->action = (r2_fault_action_t) action;
    rule->ppm = (uint32_t) ppm;
    rule->status = R2_ERR_LANE_DOWN;
    rule->match = NULL == only ? NULL : matches[kind];
    rule->from_ns += R2_NS_PER_S; /* the simulator's clock starts there */
    rule->until_ns += 0 == rule->until_ns ? 0 : R2_NS_PER_S;
    ++sc->rule_count;
    return true;
}

/* ---- program ---- */

/* The newest with this name. */
static int find_comm(const scenario_t *sc, const char *name)
{
    for (uint32_t i = sc->comm_count; i-- > 0;) {
        if (0 == strcmp(sc->comms[i].name, name)) {
            return (int) i;
        }
    }
    return -1;
}

static scenario_step_t *add_step(scenario_t *sc, scenario_step_kind_t kind)
{
    scenario_step_t *step = &sc->steps[sc->step_count];

    if (SCENARIO_STEPS_MAX == sc->step_count) {
        return NULL;
    }
    memset(step, 0, sizeof(*step));
    step->kind = kind;
    step->times = 1;
    step->rank = -1;
    ++sc->step_count;
    return step;
}

static bool read_ranks(const char *word, scenario_comm_t *comm)
{
    char *end;

    for (comm->size = 0; '\0' != *word; ++comm->size) {
        if (SCENARIO_RANKS_MAX == comm->size) {
            return false;
        }
        comm->ranks[comm->size] = (uint32_t) strtoul(word, &end, 10);
        if (end == word || (',' != *end && '\0' != *end)) {
            return false;
        }
        word = ',' == *end ? end + 1 : end;
    }
    return comm->size > 0;
}

static bool same_comm(const scenario_comm_t *a, const scenario_comm_t *b)
{
    return a->cid == b->cid && a->size == b->size && 0 == strcmp(a->name, b->name) &&
           0 == memcmp(a->ranks, b->ranks, (size_t) a->size * sizeof(a->ranks[0]));
}

static bool on_comm(scenario_t *sc, const statement_t *st)
{
    scenario_comm_t comm = {.size = 0};
    const char *ranks = option_text(st, 2, "ranks");
    scenario_step_t *step;
    int found;

    if (4 != st->count || NULL == ranks || !option_number(st, 2, "cid", &comm.cid) ||
        !read_ranks(ranks, &comm)) {
        return false;
    }
    snprintf(comm.name, sizeof(comm.name), "%s", st->words[1]);
    found = find_comm(sc, comm.name);
    if (found < 0 || !same_comm(&comm, &sc->comms[found])) {
        if (SCENARIO_COMMS_MAX == sc->comm_count) {
            return false;
        }
        found = (int) sc->comm_count;
        sc->comms[sc->comm_count++] = comm;
    }
    if (sc->comms[found].live) {
        return false; /* a context id belongs to one communicator at a time */
    }
    sc->comms[found].live = true;
    step = add_step(sc, STEP_CREATE);
    if (NULL != step) {
        step->comm = (uint32_t) found;
    }
    return NULL != step;
}

static bool on_free(scenario_t *sc, const statement_t *st)
{
    int found = 2 == st->count ? find_comm(sc, st->words[1]) : -1;
    scenario_step_t *step = found < 0 ? NULL : add_step(sc, STEP_FREE);

    if (NULL == step || !sc->comms[found].live) {
        return false;
    }
    sc->comms[found].live = false;
    step->comm = (uint32_t) found;
    return true;
}

/** A collective as in coll_kinds.def, with "-" between words. */
static int find_kind(const char *word)
{
    for (int kind = 0; kind < R2_COLL_KIND_COUNT; ++kind) {
        const char *name = r2_kind((r2_coll_kind_t) kind)->name, *at = word;

        while ('\0' != *name && (*name == *at || ('-' == *at && NULL != strchr("_ ", *name)))) {
            ++name;
            ++at;
        }
        if ('\0' == *name && '\0' == *at) {
            return kind;
        }
    }
    return -1;
}

static bool on_coll(scenario_t *sc, const statement_t *st)
{
    static const char *const types[] = {"i64", "f64", "matrix", "bytes3"};
    const char *on = option_text(st, 4, "on");
    int kind = st->count < 4 ? -1 : find_kind(st->words[1]);
    int type = kind < 0 ? -1 : word_find(st->words[2], types, TYPE_COUNT);
    int comm = NULL == on ? 0 : find_comm(sc, on);
    uint64_t root = 0, times = 1, parts = 1, astray = UINT64_MAX, count;
    scenario_step_t *step;

    if (type < 0 || comm < 0 || !sc->comms[comm].live || !word_number(st->words[3], &count) ||
        !option_number(st, 4, "root", &root) || !option_number(st, 4, "times", &times) ||
        !option_number(st, 4, "parts", &parts) || !option_number(st, 4, "astray", &astray)) {
        return false;
    }
    step = add_step(sc, STEP_COLL);
    if (NULL == step) {
        return false;
    }
    step->comm = (uint32_t) comm;
    step->coll = (r2_coll_kind_t) kind;
    step->type = (scenario_type_t) type;
    step->count = count;
    step->root = (int32_t) root;
    step->astray = (int32_t) astray;
    step->times = (uint32_t) times;
    step->parts = (uint32_t) parts;
    step->in_place = option_flag(st, 4, "in-place");
    step->persistent = option_flag(st, 4, "persistent");
    step->nonblocking = step->persistent || option_flag(st, 4, "nb");
    return true;
}

static bool on_start(scenario_t *sc, const statement_t *st)
{
    scenario_step_t *step = add_step(sc, STEP_START);
    uint64_t rank = UINT64_MAX, times = 1;

    if (NULL == step || !option_number(st, 1, "rank", &rank) ||
        !option_number(st, 1, "times", &times)) {
        return false;
    }
    step->rank = (int32_t) rank;
    step->times = (uint32_t) times;
    return true;
}

static bool on_close(scenario_t *sc, const statement_t *st)
{
    return 1 == st->count && NULL != add_step(sc, STEP_CLOSE);
}

static bool on_compute(scenario_t *sc, const statement_t *st)
{
    scenario_step_t *step = add_step(sc, STEP_COMPUTE);
    uint64_t rank = UINT64_MAX;

    if (NULL == step || st->count < 2 || !word_time(st->words[1], &step->compute_ns) ||
        !option_number(st, 2, "rank", &rank)) {
        return false;
    }
    step->rank = (int32_t) rank;
    return true;
}

static bool on_wait(scenario_t *sc, const statement_t *st)
{
    return 1 == st->count && NULL != add_step(sc, STEP_WAIT);
}

/* ---- the whole ---- */

static const struct {
    const char *word;
    statement_fn_t fn;
} statements[] = {
    {"param", on_param}, {"rails-of", on_rails_of},  {"rule", on_rule},
    {"comm", on_comm},   {"free", on_free},          {"coll", on_coll},
    {"start", on_start}, {"close", on_close},        {"compute", on_compute},
    {"wait", on_wait},   {"at", scenario_on_event},  {"expect-map", scenario_on_expect_map},
    {"expect", on_flag}, {"allow-changes", on_flag},
};

static bool run_statement(scenario_t *sc, statement_t *st)
{
    char *save = NULL;
    char *word;
    size_t i;

    st->count = 0;
    for (word = strtok_r(st->text, " \t", &save); NULL != word && st->count < WORDS_MAX;
         word = strtok_r(NULL, " \t", &save)) {
        st->words[st->count++] = word;
    }
    if (0 == st->count || '#' == st->words[0][0]) {
        return true;
    }
    for (i = 0; i < r2_array_count(settings); ++i) {
        if (0 == strcmp(st->words[0], settings[i].word)) {
            return 2 == st->count && set_setting(sc, i, st->words[1]);
        }
    }
    for (i = 0; i < r2_array_count(statements); ++i) {
        if (0 == strcmp(st->words[0], statements[i].word)) {
            return statements[i].fn(sc, st);
        }
    }
    return false;
}

static void set_defaults(scenario_t *sc)
{
    memset(sc, 0, sizeof(*sc));
    sc->sim.host_count = 2;
    sc->sim.rail_count = 2;
    sc->sim.keep_ppm = 500000;
    sc->ppn = 1;
    sc->jitter_ns = 1000;
    sc->comm_count = 1;
    snprintf(sc->comms[0].name, sizeof(sc->comms[0].name), "world");
    sc->comms[0].live = true;
}

static bool set_world(scenario_t *sc)
{
    uint32_t ranks = sc->sim.host_count * sc->ppn;

    if (0 == ranks || ranks > SCENARIO_RANKS_MAX) {
        return false;
    }
    sc->sim.node_count = ranks;
    sc->comms[0].size = (int32_t) ranks;
    for (uint32_t i = 0; i < ranks; ++i) {
        sc->comms[0].ranks[i] = i;
    }
    return true;
}

bool scenario_parse(const char *source, scenario_t *scenario_p, char *text_p, size_t text_bytes)
{
    statement_t st;
    size_t length;

    set_defaults(scenario_p);
    for (; '\0' != *source; source += length + ('\0' == source[length] ? 0 : 1)) {
        char copy[sizeof(st.text)];

        length = strcspn(source, ";\n");
        if (length >= sizeof(st.text)) {
            snprintf(text_p, text_bytes, "statement too long: %.40s", source);
            return false;
        }
        memcpy(copy, source, length);
        copy[length] = '\0';
        memcpy(st.text, copy, sizeof(st.text));
        if (!run_statement(scenario_p, &st)) {
            snprintf(text_p, text_bytes, "cannot read: %s", copy);
            return false;
        }
    }
    if (!set_world(scenario_p)) {
        snprintf(text_p, text_bytes, "no ranks or too many");
        return false;
    }
    return true;
}

void scenario_near(const scenario_t *scenario, size_t rails, r2_near_gpus_t *near_p)
{
    r2_near_gpu_t *gpu = &near_p->of[0];

    memset(near_p, 0, sizeof(*near_p));
    snprintf(gpu->pci, sizeof(gpu->pci), "0000:00:00.0");
    for (size_t rail = 0; 0 != scenario->near && rail < rails; ++rail) {
        near_p->count = 1;
        gpu->itself.tells = gpu->copies.tells = true;
        gpu->itself.steps[rail] = gpu->copies.steps[rail] =
            (uint8_t) ((rail + rails - (scenario->near - 1) % rails) % rails);
    }
}
