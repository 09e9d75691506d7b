/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info: rails, versions, parameters and problems of this host's installation of r2.
 */
#include "r2_config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info/info.h"
#include "info/plan.h"
#include "r2/coll.h"
#include "r2/units.h"

static const char info_usage[] =
    "usage: r2_info [--json | --params-md]\n"
    "       r2_info --plan [FILE | --hosts N] [--bytes SIZE] [--algorithm NAME]\n"
    "               [--draw FILE.svg] [--json]\n"
    "       mpirun -n HOSTS --map-by node r2_info --plan --job [--bytes SIZE] [...]\n"
    "       r2_info --gpu-rates[=DEVICE] [--bytes SIZE] [--json]\n"
    "\n"
    "Shows what r2 would use on this host: versions, rails with speed and distance, the failover\n"
    "chain, parameters in force, and what is wrong with the installation, with remedies.\n"
    "\n"
    "  --json        the same as JSON\n"
    "  --params-md   the parameter reference in Markdown (docs/parameters.md)\n"
    "  --plan        instead: the allreduce that r2 plans, with predicted times, on one of these:\n"
    "    FILE        a topology (docs/simulation.md; - is standard input), or what a running job\n"
    "                plans from: the file that its parameter coll_r2_plan_file names\n"
    "    --job       the hosts that mpirun starts this program on, as their rails are now: looked\n"
    "                at for some four seconds, with a load\n"
    "    --hosts N   that many hosts like this one, 2 to 4096 (default 4)\n"
    "  --bytes SIZE  of the vector, like 64M (default 16M)\n"
    "  --algorithm NAME  not what the planner chooses, but this one\n"
    "  --draw FILE   also draws the planned schedule, .svg or .png: hosts x time, rails coloured\n"
    "  --gpu-rates   instead: how fast a GPU (default 0) copies, and reduces by r2's kernels; in\n"
    "                buffers of --bytes (default 64M). Takes seconds\n"
    "  --version     the version of r2\n"
    "  --help        this text\n"
    "\n"
    "Exit status: 0, 1 if r2 cannot run here or something failed, 2 for bad arguments or a bad\n"
    "topology file.\n";

enum {
    INFO_SHOW_TEXT,
    INFO_SHOW_JSON,
    INFO_SHOW_PARAMS_MD,
    INFO_SHOW_PLAN,
    INFO_SHOW_GPU_RATES,
    INFO_SHOW_VERSION,
    INFO_SHOW_HELP,
    INFO_SHOW_ERROR,
    /* options that go with INFO_SHOW_PLAN */
    INFO_PLAN_HOSTS,
    INFO_PLAN_JOB,
    INFO_PLAN_BYTES,
    INFO_PLAN_ALGORITHM,
    INFO_PLAN_DRAW
};

static bool info_knows_algorithm(const char *name)
{
    r2_params_t params;
    char text[512];

    r2_params_init(&params);
    params.allreduce_algorithm = name;
    if (R2_OK == r2_coll_params_check(&params, text, sizeof(text))) {
        return true;
    }
    fprintf(stderr, "r2_info: --algorithm %s: %s\n", name, text);
    return false;
}

#define INFO_PLAN_BYTES_USUAL (UINT64_C(16) << 20)
#define INFO_GPU_BYTES        (UINT64_C(64) << 20)
#define INFO_GPU_BYTES_MAX    (UINT64_C(4) << 30)

/** Value of an option of --plan. @return false: it makes no sense. */
static bool info_parse_plan(info_plan_ask_t *plan, int option, const char *value)
{
    uint64_t hosts;

    switch (option) {
    case INFO_PLAN_HOSTS:
        if (R2_OK != r2_unit_whole(value, R2_UNIT_NUMBER, 2, TOPO_HOSTS_MAX, &hosts)) {
            return false;
        }
        plan->hosts = (uint32_t) hosts;
        return true;
    case INFO_PLAN_JOB:
        plan->job = true;
        return true;
    case INFO_PLAN_BYTES:
        return R2_OK == r2_unit_whole(value, R2_UNIT_BYTES, 1, INT64_MAX / 2, &plan->bytes);
    case INFO_PLAN_ALGORITHM:
        plan->algorithm = value;
        return info_knows_algorithm(value) && '\0' != value[0];
    default:
        plan->draw = value;
        return true;
    }
}

/** What the arguments ask for. */
static int info_parse(int argc, char **argv, info_plan_ask_t *plan)
{
    static const struct option options[] = {{"json", no_argument, NULL, INFO_SHOW_JSON},
                                            {"params-md", no_argument, NULL, INFO_SHOW_PARAMS_MD},
                                            {"plan", optional_argument, NULL, INFO_SHOW_PLAN},
                                            {"hosts", required_argument, NULL, INFO_PLAN_HOSTS},
                                            {"job", no_argument, NULL, INFO_PLAN_JOB},
                                            {"bytes", required_argument, NULL, INFO_PLAN_BYTES},
                                            {"algorithm", required_argument, NULL,
                                             INFO_PLAN_ALGORITHM},
                                            {"draw", required_argument, NULL, INFO_PLAN_DRAW},
                                            {"gpu-rates", optional_argument, NULL,
                                             INFO_SHOW_GPU_RATES},
                                            {"version", no_argument, NULL, INFO_SHOW_VERSION},
                                            {"help", no_argument, NULL, INFO_SHOW_HELP},
                                            {NULL, 0, NULL, 0}};
    int show = INFO_SHOW_TEXT, option;
    bool planned = false;

    while (-1 != (option = getopt_long(argc, argv, "", options, NULL))) {
        if (option > INFO_SHOW_ERROR && '?' != option) {
            planned = true;
            if (!info_parse_plan(plan, option, optarg)) {
                return INFO_SHOW_ERROR;
            }
        } else if (INFO_SHOW_JSON == option && !plan->json) {
            plan->json = true;
        } else if ('?' == option || INFO_SHOW_JSON == option || INFO_SHOW_TEXT != show) {
            return INFO_SHOW_ERROR; /* unknown, or more than one */
        } else {
            show = option;
            plan->file = INFO_SHOW_PLAN == option || INFO_SHOW_GPU_RATES == option ? optarg : NULL;
        }
    }
    if (INFO_SHOW_PLAN == show) {
        if (NULL == plan->file && optind < argc) {
            plan->file = argv[optind++];
        }
        /* one source */
        return optind == argc && (NULL != plan->file) + (0 != plan->hosts) + plan->job <= 1
                   ? show
                   : INFO_SHOW_ERROR;
    }
    if (INFO_SHOW_GPU_RATES == show) { /* of the options of plans --bytes alone */
        return optind == argc && 0 == plan->hosts && !plan->job && NULL == plan->algorithm &&
                       NULL == plan->draw
                   ? show
                   : INFO_SHOW_ERROR;
    }
    if (planned || optind != argc || (plan->json && INFO_SHOW_TEXT != show)) {
        return INFO_SHOW_ERROR;
    }
    return plan->json ? INFO_SHOW_JSON : show;
}

static int info_show(bool json)
{
    static info_t info;
    static info_problem_t problems[INFO_PROBLEMS_MAX];
    size_t count;
    int rc;

    info_collect(&info);
    count = info_problems(&info, problems);
    rc = json ? info_print_json(&info, problems, count, stdout)
              : info_print_text(&info, problems, count, stdout);
    for (size_t i = 0; i < count; ++i) {
        rc = INFO_ERROR == problems[i].level ? -1 : rc;
    }
    info_free(&info);
    return 0 == rc ? 0 : 1;
}

static int info_show_gpu(const info_plan_ask_t *ask)
{
    const uint64_t bytes = 0 == ask->bytes ? INFO_GPU_BYTES : ask->bytes / 512 * 512;
    char *end = NULL;
    const long device = NULL == ask->file ? 0 : strtol(ask->file, &end, 10);

    if (device < 0 || device > 1023 || (NULL != end && ('\0' != *end || end == ask->file)) ||
        0 == bytes || bytes > INFO_GPU_BYTES_MAX) {
        fputs(info_usage, stderr);
        return 2;
    }
    return 0 == info_gpu_rates((int) device, (size_t) bytes, ask->json, stdout) ? 0 : 1;
}

int main(int argc, char **argv)
{
    info_plan_ask_t plan = {0};

    switch (info_parse(argc, argv, &plan)) {
    case INFO_SHOW_TEXT:
        return info_show(false);
    case INFO_SHOW_JSON:
        return info_show(true);
    case INFO_SHOW_PARAMS_MD:
        return 0 == info_print_params_md(stdout) ? 0 : 1;
    case INFO_SHOW_PLAN:
        plan.bytes = 0 == plan.bytes ? INFO_PLAN_BYTES_USUAL : plan.bytes;
        return info_plan(&plan, stdout);
    case INFO_SHOW_GPU_RATES:
        return info_show_gpu(&plan);
    case INFO_SHOW_VERSION:
        printf("r2_info %s\n", r2_version());
        return 0;
    case INFO_SHOW_HELP:
        fputs(info_usage, stdout);
        return 0;
    default:
        fputs(info_usage, stderr);
        return 2;
    }
}
