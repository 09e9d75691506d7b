/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info: rails, versions, parameters and problems of this host's installation of r2.
 */
#include "r2_config.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "info/info.h"

static const char info_usage[] =
    "usage: r2_info [--json | --params-md]\n"
    "\n"
    "Shows what r2 would use on this host: versions, rails with speed and distance, the failover\n"
    "chain, parameters in force, and what is wrong with the installation, with remedies.\n"
    "\n"
    "  --json       the same as JSON\n"
    "  --params-md  the parameter reference in Markdown (docs/parameters.md)\n"
    "  --version    the version of r2\n"
    "  --help       this text\n"
    "\n"
    "Exit status: 0, 1 if r2 cannot run here, 2 for bad arguments.\n";

enum {
    INFO_SHOW_TEXT,
    INFO_SHOW_JSON,
    INFO_SHOW_PARAMS_MD,
    INFO_SHOW_VERSION,
    INFO_SHOW_HELP,
    INFO_SHOW_ERROR
};

/** What the arguments ask for. */
static int info_parse(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, INFO_SHOW_JSON},
                                            {"params-md", no_argument, NULL, INFO_SHOW_PARAMS_MD},
                                            {"version", no_argument, NULL, INFO_SHOW_VERSION},
                                            {"help", no_argument, NULL, INFO_SHOW_HELP},
                                            {NULL, 0, NULL, 0}};
    int show = INFO_SHOW_TEXT, option;

    while (-1 != (option = getopt_long(argc, argv, "", options, NULL))) {
        if ('?' == option || INFO_SHOW_TEXT != show) {
            return INFO_SHOW_ERROR; /* unknown, or more than one */
        }
        show = option;
    }
    return optind == argc ? show : INFO_SHOW_ERROR;
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

int main(int argc, char **argv)
{
    switch (info_parse(argc, argv)) {
    case INFO_SHOW_TEXT:
        return info_show(false);
    case INFO_SHOW_JSON:
        return info_show(true);
    case INFO_SHOW_PARAMS_MD:
        return 0 == info_print_params_md(stdout) ? 0 : 1;
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
