/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Runs many drawn scenarios; prints the seed and a shrunk scenario of every failure.
 */
#include "r2_config.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "generate.h"
#include "scenario.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
/* Processes that run scenarios end without it: each seed answers for what it loses. */
static bool leaks(void)
{
    return 0 != __lsan_do_recoverable_leak_check();
}
#else
static bool leaks(void)
{
    return false;
}
#endif

#define RUN_SECONDS_MAX 60  /* processor time of one run: others may want the cores, too */
#define RUN_STUCK_TIMES 10u /* so many times of that by the clock: it waits for something */
#define SHRINK_RUNS_MAX 600 /* attempts to make a scenario shorter */
#define LINES_MAX       512

/** What the process that runs scenarios shares with the one that watches it. */
typedef struct shared {
    uint64_t seed; /* under way */
    uint64_t runs, virtual_ns, packets, resent, duplicates, ghosts, failed_lanes;
    uint64_t puts, late, refused, held_back; /* of puts; receives that waited for them */
    char text[512];                          /* of the failure */
} shared_t;

typedef struct options {
    uint64_t seed, runs;
    uint32_t failures_max;
    uint32_t axes; /* of unhelpful peers */
    bool print_only, shrink;
} options_t;

/* Ends the process when a run takes too long. @param seconds 0: it is over. */
static void limit_time(unsigned seconds)
{
    const struct itimerval limit = {.it_value.tv_sec = seconds};

    (void) setitimer(ITIMER_PROF, &limit, NULL);
    alarm(RUN_STUCK_TIMES * seconds);
}

static bool run_text(const char *text, shared_t *shared, bool dump)
{
    scenario_t *scenario = malloc(sizeof(*scenario));
    scenario_result_t result;
    bool ok = NULL != scenario;

    memset(&result, 0, sizeof(result));
    limit_time(RUN_SECONDS_MAX);
    ok = ok && scenario_parse(text, scenario, result.text, sizeof(result.text));
    if (ok) {
        scenario_run(scenario, dump, &result);
        ok = result.ok;
    }
    free(scenario);
    if (ok && leaks()) {
        snprintf(result.text, sizeof(result.text), "leaks memory");
        ok = false;
    }
    limit_time(0);
    shared->virtual_ns += result.time_ns;
    shared->packets += result.sim.packets;
    shared->resent += result.counters.resent_chunks;
    shared->duplicates += result.counters.rx_duplicates;
    shared->ghosts += result.counters.rx_stale;
    shared->failed_lanes += result.counters.lanes_failed;
    shared->puts += result.sim.puts;
    shared->late += result.sim.puts_late;
    shared->refused += result.sim.puts_refused;
    shared->held_back += result.counters.held_back;
    snprintf(shared->text, sizeof(shared->text), "%s", result.text);
    return ok;
}

/* In a process of its own, as it may crash. */
static bool run_apart(const char *text, shared_t *shared, bool quiet)
{
    pid_t pid;
    int state = 0;

    fflush(NULL);
    snprintf(shared->text, sizeof(shared->text), "crashed or ran too long");
    pid = fork();
    if (0 == pid) {
        if (quiet && NULL == freopen("/dev/null", "w", stderr)) {
            _exit(3);
        }
        _exit(run_text(text, shared, !quiet) ? 0 : 1);
    }
    waitpid(pid, &state, 0);
    return WIFEXITED(state) && 0 == WEXITSTATUS(state);
}

/* ---- shrinking: leave out statements while it still fails ---- */

static uint32_t split_lines(const char *text, char lines[][256])
{
    uint32_t count = 0;

    while ('\0' != *text && count < LINES_MAX) {
        size_t length = strcspn(text, "\n");

        snprintf(lines[count], 256, "%.*s", (int) length, text);
        count += length > 0 ? 1 : 0;
        text += length + ('\n' == text[length] ? 1 : 0);
    }
    return count;
}

/* Without these a scenario may get stuck rightly. */
static bool is_repair(const char *line)
{
    return NULL != strstr(line, " heal") || NULL != strstr(line, " cont ") ||
           NULL != strstr(line, "no_path_timeout") || NULL != strstr(line, "expect any");
}

static void join_lines(char lines[][256], uint32_t count, uint32_t skip, uint32_t skipped,
                       char *text)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < count; ++i) {
        if (i < skip || i >= skip + skipped || is_repair(lines[i])) {
            used += (size_t) snprintf(text + used, GENERATE_BYTES - used, "%s\n", lines[i]);
        }
    }
}

/* What a failure is about: its text without numbers. */
static void signature(const char *text, char *sign, size_t size)
{
    size_t used = 0;

    for (; '\0' != *text && used + 1 < size; ++text) {
        if (NULL == strchr("0123456789.-", *text)) {
            sign[used++] = *text;
        }
    }
    sign[used] = '\0';
}

static bool fails_alike(const char *text, const char *sign, shared_t *shared)
{
    char other[64];

    if (run_apart(text, shared, true)) {
        return false;
    }
    signature(shared->text, other, sizeof(other));
    return 0 == strcmp(sign, other);
}

static void shrink(char *text, shared_t *shared)
{
    char sign[64];
    static char lines[LINES_MAX][256];
    static char shorter[GENERATE_BYTES];
    uint32_t count = split_lines(text, lines);
    uint32_t attempts = 0;

    signature(shared->text, sign, sizeof(sign));
    for (uint32_t piece = count / 2; piece > 0; piece = piece > 1 ? piece / 2 : 0) {
        bool any = true;

        while (any && attempts < SHRINK_RUNS_MAX) {
            any = false;
            for (uint32_t at = 0; at + piece <= count && attempts < SHRINK_RUNS_MAX;) {
                join_lines(lines, count, at, piece, shorter);
                ++attempts;
                if (!fails_alike(shorter, sign, shared)) {
                    ++at;
                    continue;
                }
                any = any || strlen(shorter) < strlen(text);
                at += strlen(shorter) < strlen(text) ? 0 : 1;
                strcpy(text, shorter);
                count = split_lines(text, lines);
            }
        }
    }
}

/* ---- the campaign ---- */

static void report(const options_t *options, shared_t *shared)
{
    static char text[GENERATE_BYTES];
    char cause[512];

    generate_scenario(shared->seed, options->axes, text);
    snprintf(cause, sizeof(cause), "%s", shared->text);
    printf("seed %" PRIu64 " failed: %s\n", shared->seed, cause);
    fflush(stdout);
    if (options->shrink) {
        shrink(text, shared);
    }
    run_apart(text, shared, false);
    printf("---- scenario: %s\n%s----\n", shared->text, text);
    fflush(stdout);
}

/* Runs from shared->seed on. Leaves the seed of a failure there. */
static void work(const options_t *options, shared_t *shared, uint64_t end)
{
    static char text[GENERATE_BYTES];

    for (; shared->seed < end; ++shared->seed) {
        snprintf(shared->text, sizeof(shared->text), "crashed or ran too long");
        generate_scenario(shared->seed, options->axes, text);
        if (!run_text(text, shared, false)) {
            _exit(1);
        }
        ++shared->runs;
    }
    _exit(0);
}

static uint32_t campaign(const options_t *options, shared_t *shared)
{
    uint64_t end = options->seed + options->runs;
    uint32_t failures = 0;

    shared->seed = options->seed;
    while (shared->seed < end && failures < options->failures_max) {
        pid_t pid;

        fflush(NULL);
        pid = fork();
        if (0 == pid) {
            work(options, shared, end);
        }
        waitpid(pid, NULL, 0);
        if (shared->seed < end) {
            ++failures;
            report(options, shared);
            ++shared->seed;
        }
    }
    return failures;
}

static int usage(void)
{
    fprintf(stderr, "usage: campaign [--seed S] [--runs N] [--failures N] [--no-shrink] [--print]\n"
                    "                [--unhelpful AXIS,AXIS,..|all] [--puts]\n"
                    "  --unhelpful draws peers that are healthy but unhelpful, and faults less "
                    "often\n  --puts draws reliable connections, and long calls that are put\n"
                    "  --print shows the scenario of the seed and does not run it\n");
    return 2;
}

/* Names of axes, separated by commas. */
static bool parse_axes(char *list, uint32_t *axes_p)
{
    for (char *save = NULL, *word = strtok_r(list, ",", &save); NULL != word;
         word = strtok_r(NULL, ",", &save)) {
        uint32_t before = *axes_p;

        for (uint32_t i = 0; i < GENERATE_AXES; ++i) {
            if (0 == strcmp(word, generate_axis_names[i]) || 0 == strcmp(word, "all")) {
                *axes_p |= 1u << i;
            }
        }
        if (before == *axes_p) {
            fprintf(stderr, "no such kind of unhelpful peer, or twice: %s\n", word);
            return false;
        }
    }
    return true;
}

static bool parse_options(int argc, char **argv, options_t *options)
{
    static const struct option longs[] = {
        {"seed", required_argument, NULL, 's'},     {"runs", required_argument, NULL, 'n'},
        {"failures", required_argument, NULL, 'f'}, {"no-shrink", no_argument, NULL, 'k'},
        {"print", no_argument, NULL, 'p'},          {"unhelpful", required_argument, NULL, 'u'},
        {"puts", no_argument, NULL, 't'},           {NULL, 0, NULL, 0}};
    int c;

    *options = (options_t){.seed = 1, .runs = 1000, .failures_max = 5, .shrink = true};
    while (-1 != (c = getopt_long(argc, argv, "", longs, NULL))) {
        switch (c) {
        case 's':
            options->seed = strtoull(optarg, NULL, 0);
            break;
        case 'n':
            options->runs = strtoull(optarg, NULL, 0);
            break;
        case 'f':
            options->failures_max = (uint32_t) strtoul(optarg, NULL, 0);
            break;
        case 'k':
            options->shrink = false;
            break;
        case 'u':
            if (!parse_axes(optarg, &options->axes)) {
                return false;
            }
            break;
        case 't':
            options->axes |= GENERATE_PUTS;
            break;
        case 'p':
            options->print_only = true;
            break;
        default:
            return false;
        }
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    static char text[GENERATE_BYTES];
    time_t start = time(NULL);
    options_t options;
    shared_t *shared;
    uint32_t failures;

    if (!parse_options(argc, argv, &options)) {
        return usage();
    }
    if (options.print_only) {
        generate_scenario(options.seed, options.axes, text);
        printf("%s", text);
        return 0;
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == shared) {
        perror("mmap");
        return 1;
    }
    memset(shared, 0, sizeof(*shared));
    failures = campaign(&options, shared);
    printf("%" PRIu64 " scenarios from seed %" PRIu64 ", %u failed, %ld s; %.1f s of virtual time, "
           "%" PRIu64 " packets, %" PRIu64 " chunks sent again, %" PRIu64 " duplicates, %" PRIu64
           " ghosts, %" PRIu64 " lanes failed; %" PRIu64 " puts, %" PRIu64 " late, %" PRIu64
           " refused, %" PRIu64 " receives held back\n",
           shared->runs + failures, options.seed, failures, (long) (time(NULL) - start),
           (double) shared->virtual_ns / 1e9, shared->packets, shared->resent, shared->duplicates,
           shared->ghosts, shared->failed_lanes, shared->puts, shared->late, shared->refused,
           shared->held_back);
    return 0 == failures ? 0 : 1;
}
