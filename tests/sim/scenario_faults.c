/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reads faults and what is expected of health maps.
 */
#include "r2_config.h"

#include "scenario_parts.h"

#include <string.h>

static bool read_event(const statement_t *st, scenario_event_t *event)
{
    const char *const *w = (const char *const *) st->words;
    bool place = st->count >= 5 && word_index(w[3], "h", &event->host) &&
                 word_index(w[4], "rail", &event->rail);

    switch (event->verb) {
    case VERB_RATE:
        return 6 == st->count && place && word_number(w[5], &event->value);
    case VERB_LOSS:
        return 6 == st->count && place && word_percent(w[5], &event->value);
    case VERB_CUT:
    case VERB_JOIN:
        return 6 == st->count && word_index(w[3], "h", &event->host) &&
               word_index(w[4], "h", &event->host_b) && word_index(w[5], "rail", &event->rail);
    case VERB_STOP:
    case VERB_KILL:
        return 4 == st->count && word_index(w[3], "r", &event->rank);
    case VERB_POST_CUT:
    case VERB_POST_JOIN:
        return 4 == st->count && word_index(w[3], "h", &event->host);
    case VERB_NO_LISTENER: /* listeners are opened at the start */
        return 5 == st->count && 0 == event->at_ns && word_index(w[3], "r", &event->rank) &&
               word_index(w[4], "rail", &event->rail);
    case VERB_CONT:
        event->value = option_flag(st, 4, "woken");
        return 4 + event->value == st->count && word_index(w[3], "r", &event->rank);
    case VERB_REFUSE:
        event->value = option_flag(st, 5, "probes");
        return 5 + event->value == st->count && place;
    case VERB_SLOW:
        return 5 == st->count && word_index(w[3], "r", &event->rank) &&
               word_time(w[4], &event->value);
    case VERB_DESCRIPTORS:
        return 5 == st->count && word_index(w[3], "r", &event->rank) &&
               word_number(w[4], &event->value);
    case VERB_MEMORY:
        return 6 == st->count && word_index(w[3], "r", &event->rank) &&
               word_percent(w[4], &event->value) && word_number(w[5], &event->least);
    case VERB_HEAL:
        return 3 == st->count;
    case VERB_DOWN:
    case VERB_UP:
    case VERB_DROP:
    case VERB_DROP_IN:
    case VERB_DROP_OUT:
    case VERB_PASS:
    case VERB_PORT_DOWN:
    case VERB_PORT_UP:
    case VERB_BREAK:
    case VERB_ACCEPT:
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
    if (!word_number(word, &least_value) || !word_number(NULL == most ? word : most, &most_value)) {
        return false;
    }
    expect->least = (uint32_t) least_value;
    expect->most = (uint32_t) most_value;
    return true;
}

bool scenario_on_expect_map(scenario_t *sc, const statement_t *st)
{
    scenario_expect_t *expect = &sc->expects[sc->expect_count];

    if (6 != st->count || SCENARIO_EXPECTS_MAX == sc->expect_count ||
        !word_index(st->words[1], "h", &expect->host) ||
        !word_index(st->words[2], "rail", &expect->rail) ||
        !read_capacities(st->words[3], expect) || 0 != strcmp(st->words[4], "at") ||
        !word_time(st->words[5], &expect->at_ns)) {
        return false;
    }
    ++sc->expect_count;
    return true;
}

bool scenario_on_event(scenario_t *sc, const statement_t *st)
{
    static const char *const verbs[] = {
        "down",      "up",      "drop",     "drop-in",   "drop-out",    "pass",
        "port-down", "port-up", "break",    "rate",      "loss",        "cut",
        "join",      "stop",    "cont",     "kill",      "post-cut",    "post-join",
        "heal",      "refuse",  "accept",   "no-listener", "slow",      "descriptors",
        "memory"};
    scenario_event_t *event = &sc->events[sc->event_count];
    int verb = st->count < 3 ? -1 : word_find(st->words[2], verbs, VERB_COUNT);

    if (verb < 0 || SCENARIO_EVENTS_MAX == sc->event_count ||
        !word_time(st->words[1], &event->at_ns)) {
        return false;
    }
    event->verb = (scenario_verb_t) verb;
    if (!read_event(st, event)) {
        return false;
    }
    ++sc->event_count;
    return true;
}
