/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Prints one line for each drawn scenario: what a change that only moves code must leave as it was.
 */
#include "r2_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "generate.h"
#include "scenario.h"

#define RUN_SECONDS_MAX 300 /* real time of one run */

/* Every second seed draws unhelpful peers. Not short memory: which allocation fails depends on how
 * many the code makes, and that may change. */
static uint32_t axes_of(uint64_t seed)
{
    return 0 == seed % 2 ? (1u << GENERATE_AXES) - 1 - (1u << GENERATE_MEMORY) : 0;
}

static void run_seed(uint64_t seed)
{
    static char text[GENERATE_BYTES];
    static scenario_t scenario;
    scenario_result_t result;

    memset(&result, 0, sizeof(result));
    alarm(RUN_SECONDS_MAX);
    generate_scenario(seed, axes_of(seed), text);
    if (!scenario_parse(text, &scenario, result.text, sizeof(result.text))) {
        printf("seed %" PRIu64 " wrong: %s\n", seed, result.text);
        return;
    }
    scenario_run(&scenario, false, &result);
    printf("seed %" PRIu64 " %s digest=%016" PRIx64 " errors=%u error=%d verdicts=%" PRIu64
           " map_changes=%" PRIu64 " epochs=%" PRIu64 " failed=%" PRIu64 " healed=%" PRIu64
           " | ns=%" PRIu64 " packets=%" PRIu64 " resent=%" PRIu64 "%s%s\n",
           seed, result.ok ? "ok" : "failed", result.digest, result.errors, (int) result.error,
           result.counters.verdicts, result.counters.map_changes, result.counters.epochs,
           result.counters.lanes_failed, result.counters.lanes_healed, result.time_ns,
           result.sim.packets, result.counters.resent_chunks, result.ok ? "" : " ", result.text);
}

int main(int argc, char **argv)
{
    uint64_t seed, end;

    if (3 != argc) {
        fprintf(stderr, "usage: record SEED RUNS\n");
        return 2;
    }
    seed = strtoull(argv[1], NULL, 0);
    for (end = seed + strtoull(argv[2], NULL, 0); seed < end; ++seed) {
        pid_t pid = fork();
        int state = -1;

        if (0 == pid) {
            run_seed(seed);
            fflush(stdout);
            _exit(0);
        }
        if (pid < 0 || pid != waitpid(pid, &state, 0) || 0 != state) {
            printf("seed %" PRIu64 " died: %d\n", seed, state);
        }
        fflush(stdout);
    }
    return 0;
}
