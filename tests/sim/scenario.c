/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reads scenarios.
 */
#include "r2_config.h"

#include "scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "link/wire.h"
#include "plan/kinds.h"

#define WORDS_MAX 16

/** One statement, cut into words. */
typedef struct statement {
    char text[256];
    char *words[WORDS_MAX];
    uint32_t count;
} statement_t;

typedef bool (*statement_fn_t)(scenario_t *scenario, const statement_t *st);

/* ---- words ---- */

static bool read_number(const char *word, uint64_t *value_p)
{
    char *end;

    *value_p = (uint64_t) strtoll(word, &end, 0);
    return end != word && '\0' == *end;
}

static bool read_time(const char *word, uint64_t *ns_p)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double value = strtod(word, &end);
    size_t i;

    for (i = 0; i < r2_array_count(units); i++) {
        if (end != word && value >= 0 && 0 == strcmp(end, units[i].unit)) {
            *ns_p = (uint64_t) (value * units[i].ns + 0.5);
            return true;
        }
    }
    return false;
}

static bool read_percent(const char *word, uint64_t *ppm_p)
{
    char *end;
    double value = strtod(word, &end);

    *ppm_p = (uint64_t) (value * 1e4 + 0.5);
    return end != word && ('\0' == *end || 0 == strcmp(end, "%")) && value >= 0 && value <= 100;
}

/* Words such as "h2", "rail0", "r5". */
static bool read_index(const char *word, const char *prefix, uint32_t *index_p)
{
    size_t length = strlen(prefix);
    uint64_t value;

    if (0 != strncmp(word, prefix, length) || !read_number(word + length, &value) ||
        value > SCENARIO_RANKS_MAX) {
        return false;
    }
    *index_p = (uint32_t) value;
    return true;
}

/* @return the text behind "name=" among the words from `first` on, or NULL. */
static const char *find_option(const statement_t *st, uint32_t first, const char *name)
{
    size_t length = strlen(name);
    uint32_t i;

    for (i = first; i < st->count; i++) {
        if (0 == strncmp(st->words[i], name, length) && '=' == st->words[i][length]) {
            return st->words[i] + length + 1;
        }
    }
    return NULL;
}

static bool find_flag(const statement_t *st, uint32_t first, const char *name)
{
    uint32_t i;

    for (i = first; i < st->count; i++) {
        if (0 == strcmp(st->words[i], name)) {
            return true;
        }
    }
    return false;
}

static bool option_number(const statement_t *st, uint32_t first, const char *name,
                          uint64_t *value_p)
{
    const char *word = find_option(st, first, name);

    return NULL == word || read_number(word, value_p);
}

static bool option_time(const statement_t *st, uint32_t first, const char *name, uint64_t *value_p)
{
    const char *word = find_option(st, first, name);

    return NULL == word || read_time(word, value_p);
}

static int find_name(const char *word, const char *const *names, int count)
{
    int i;

    for (i = 0; i < count; i++) {
        if (0 == strcmp(word, names[i])) {
            return i;
        }
    }
    return -1;
}

/* ---- machine ---- */

static bool on_setting(scenario_t *sc, const statement_t *st)
{
    const char *name = st->words[0];
    uint64_t value = 0;
    bool is_time = 0 == strcmp(name, "latency") || 0 == strcmp(name, "retry") ||
                   0 == strcmp(name, "jitter") || 0 == strcmp(name, "limit") ||
                   0 == strcmp(name, "post-delay");
    bool is_percent = 0 == strcmp(name, "keep") || 0 == strcmp(name, "hello-loss") ||
                      0 == strcmp(name, "post-loss") || 0 == strcmp(name, "post-twice") ||
                      0 == strcmp(name, "probe-loss");

    if (st->count != 2 || !(is_time      ? read_time(st->words[1], &value)
                            : is_percent ? read_percent(st->words[1], &value)
                                         : read_number(st->words[1], &value))) {
        return false;
    }
    if (0 == strcmp(name, "seed")) {
        sc->sim.seed = value;
    } else if (0 == strcmp(name, "hosts")) {
        sc->sim.host_count = (uint32_t) value;
    } else if (0 == strcmp(name, "ppn")) {
        sc->ppn = (uint32_t) value;
    } else if (0 == strcmp(name, "rails")) {
        sc->sim.rail_count = (uint32_t) value;
    } else if (0 == strcmp(name, "rate")) {
        sc->sim.rail_bytes_per_s = value;
    } else if (0 == strcmp(name, "latency")) {
        sc->sim.rail_latency_ns = value;
    } else if (0 == strcmp(name, "socket")) {
        sc->sim.socket_bytes = value;
    } else if (0 == strcmp(name, "receive")) {
        sc->sim.receive_bytes = value;
    } else if (0 == strcmp(name, "keep")) {
        sc->sim.keep_ppm = (uint32_t) value;
    } else if (0 == strcmp(name, "retry")) {
        sc->sim.retry_max_ns = value;
    } else if (0 == strcmp(name, "batch")) {
        sc->sim.batch = (uint32_t) value;
    } else if (0 == strcmp(name, "jitter")) {
        sc->jitter_ns = value;
    } else if (0 == strcmp(name, "first-seq")) {
        sc->first_seq = value;
    } else if (0 == strcmp(name, "hello-loss")) {
        sc->hello_loss_ppm = (uint32_t) value;
    } else if (0 == strcmp(name, "post-loss")) {
        sc->post_loss_ppm = (uint32_t) value;
    } else if (0 == strcmp(name, "post-twice")) {
        sc->post_twice_ppm = (uint32_t) value;
    } else if (0 == strcmp(name, "post-delay")) {
        sc->post_delay_ns = value;
    } else if (0 == strcmp(name, "probe-loss")) {
        sc->probe_loss_ppm = (uint32_t) value;
    } else if (0 == strcmp(name, "limit")) {
        sc->limit_ns = value;
    } else {
        sc->verbose = (uint32_t) value;
    }
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
    sc->param_count++;
    return true;
}

static bool on_rails_of(scenario_t *sc, const statement_t *st)
{
    uint64_t count;
    uint32_t host;

    if (3 != st->count || !read_index(st->words[1], "h", &host) ||
        !read_number(st->words[2], &count) || host >= SCENARIO_RANKS_MAX) {
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
    return 2 == st->count && (sc->any_outcome || 0 == strcmp(st->words[1], "ok"));
}

static uint8_t wire_kind(const void *header, size_t header_bytes)
{
    r2_wire_header_t h;

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
    const char *only = find_option(st, 3, "only");
    int action = st->count < 3 ? -1 : find_name(st->words[1], actions, 6);
    int kind = NULL == only ? 0 : find_name(only, onlies, 4);
    uint64_t ppm;

    if (action < 0 || kind < 0 || R2_FAULT_RULES_MAX == sc->rule_count ||
        !read_percent(st->words[2], &ppm) || !option_time(st, 3, "delay", &rule->delay_ns) ||
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
    sc->rule_count++;
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
    sc->step_count++;
    return step;
}

static bool read_ranks(const char *word, scenario_comm_t *comm)
{
    char *end;

    for (comm->size = 0; '\0' != *word; comm->size++) {
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
    const char *ranks = find_option(st, 2, "ranks");
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
    for (int kind = 0; kind < R2_COLL_KIND_COUNT; kind++) {
        const char *name = r2_kind((r2_coll_kind_t) kind)->name, *at = word;

        while ('\0' != *name && (*name == *at || ('-' == *at && NULL != strchr("_ ", *name)))) {
            name++;
            at++;
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
    const char *on = find_option(st, 4, "on");
    int kind = st->count < 4 ? -1 : find_kind(st->words[1]);
    int type = kind < 0 ? -1 : find_name(st->words[2], types, TYPE_COUNT);
    int comm = NULL == on ? 0 : find_comm(sc, on);
    uint64_t root = 0, times = 1, parts = 1, astray = UINT64_MAX, count;
    scenario_step_t *step;

    if (type < 0 || comm < 0 || !sc->comms[comm].live || !read_number(st->words[3], &count) ||
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
    step->in_place = find_flag(st, 4, "in-place");
    step->nonblocking = find_flag(st, 4, "nb");
    return true;
}

static bool on_compute(scenario_t *sc, const statement_t *st)
{
    scenario_step_t *step = add_step(sc, STEP_COMPUTE);
    uint64_t rank = UINT64_MAX;

    if (NULL == step || st->count < 2 || !read_time(st->words[1], &step->compute_ns) ||
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

/* ---- faults ---- */

static bool read_event(const statement_t *st, scenario_event_t *event)
{
    const char *const *w = (const char *const *) st->words;
    bool place = st->count >= 5 && read_index(w[3], "h", &event->host) &&
                 read_index(w[4], "rail", &event->rail);

    switch (event->verb) {
    case VERB_RATE:
        return 6 == st->count && place && read_number(w[5], &event->value);
    case VERB_LOSS:
        return 6 == st->count && place && read_percent(w[5], &event->value);
    case VERB_CUT:
    case VERB_JOIN:
        return 6 == st->count && read_index(w[3], "h", &event->host) &&
               read_index(w[4], "h", &event->host_b) && read_index(w[5], "rail", &event->rail);
    case VERB_STOP:
    case VERB_CONT:
    case VERB_KILL:
        return 4 == st->count && read_index(w[3], "r", &event->rank);
    case VERB_POST_CUT:
    case VERB_POST_JOIN:
        return 4 == st->count && read_index(w[3], "h", &event->host);
    case VERB_HEAL:
        return 3 == st->count;
    case VERB_DOWN:
    case VERB_UP:
    case VERB_DROP:
    case VERB_DROP_IN:
    case VERB_DROP_OUT:
    case VERB_PASS:
    case VERB_BREAK:
        return 5 == st->count && place;
    case VERB_COUNT:
        break;
    }
    return false;
}

/* A capacity, or the least and the most, as in 1-4. */
static bool read_capacities(char *word, scenario_expect_t *expect)
{
    char *most = strchr(word, '-');
    uint64_t least_value, most_value;

    if (NULL != most) {
        *most++ = '\0';
    }
    if (!read_number(word, &least_value) || !read_number(NULL == most ? word : most, &most_value)) {
        return false;
    }
    expect->least = (uint32_t) least_value;
    expect->most = (uint32_t) most_value;
    return true;
}

static bool on_expect_map(scenario_t *sc, const statement_t *st)
{
    scenario_expect_t *expect = &sc->expects[sc->expect_count];

    if (6 != st->count || SCENARIO_EXPECTS_MAX == sc->expect_count
        || !read_index(st->words[1], "h", &expect->host)
        || !read_index(st->words[2], "rail", &expect->rail)
        || !read_capacities(st->words[3], expect) || 0 != strcmp(st->words[4], "at")
        || !read_time(st->words[5], &expect->at_ns)) {
        return false;
    }
    sc->expect_count++;
    return true;
}

static bool on_event(scenario_t *sc, const statement_t *st)
{
    static const char *const verbs[] = {"down", "up",    "drop", "drop-in", "drop-out",
                                        "pass", "break", "rate", "loss",    "cut",
                                        "join", "stop",  "cont", "kill",    "post-cut",
                                        "post-join", "heal"};
    scenario_event_t *event = &sc->events[sc->event_count];
    int verb = st->count < 3 ? -1 : find_name(st->words[2], verbs, VERB_COUNT);

    if (verb < 0 || SCENARIO_EVENTS_MAX == sc->event_count ||
        !read_time(st->words[1], &event->at_ns)) {
        return false;
    }
    event->verb = (scenario_verb_t) verb;
    if (!read_event(st, event)) {
        return false;
    }
    sc->event_count++;
    return true;
}

/* ---- the whole ---- */

static const struct {
    const char *word;
    statement_fn_t fn;
} statements[] = {
    {"seed", on_setting},      {"hosts", on_setting},   {"ppn", on_setting},
    {"rails", on_setting},     {"rate", on_setting},    {"latency", on_setting},
    {"socket", on_setting},    {"receive", on_setting}, {"keep", on_setting},
    {"retry", on_setting},     {"batch", on_setting},   {"jitter", on_setting},
    {"first-seq", on_setting}, {"limit", on_setting},   {"hello-loss", on_setting},
    {"post-loss", on_setting}, {"post-twice", on_setting}, {"post-delay", on_setting},
    {"probe-loss", on_setting}, {"expect-map", on_expect_map},
    {"verbose", on_setting},   {"param", on_param},     {"rails-of", on_rails_of},
    {"rule", on_rule},         {"comm", on_comm},       {"free", on_free},
    {"coll", on_coll},         {"compute", on_compute}, {"wait", on_wait},
    {"at", on_event},          {"expect", on_flag},     {"allow-changes", on_flag},
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
    for (i = 0; i < r2_array_count(statements); i++) {
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
    for (uint32_t i = 0; i < ranks; i++) {
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
