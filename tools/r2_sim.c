/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_sim: times of collectives on a topology with failures, by simulation of flows.
 */
#include "r2_config.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "r2/macros.h"
#include "r2/units.h"
#include "r2/version.h"
#include "sim/draws.h"
#include "sim/picture.h"
#include "sim/real.h"
#include "sim/report.h"
#include "topology.h"

#define SIM_DRAWS_MAX 1000000u
#define SIM_RANKS_MAX 4096u /* memory goes with the square */

static const char sim_usage[] =
    "usage: r2_sim [OPTION...]\n"
    "\n"
    "Times of an allreduce on hosts with several rails, of which random NICs are dead: over "
    "healthy,\n"
    "over the least possible, and overhead, per algorithm.\n"
    "\n"
    "  --hosts N             hosts, 2 to 4096 (default 64)\n"
    "  --rails N             rails of every host, 1 to 64 (default 8)\n"
    "  --ranks N             ranks in blocks on hosts, as equal as can be, up to 4096 (default one "
    "on "
    "each); more\n"
    "                        only with --schedule\n"
    "  --rate RATE           one direction of one rail: 50G (bytes/s) or 400gbit (default "
    "400gbit)\n"
    "  --network NAME        aligned (rail r reaches rail r only) or flat (default aligned)\n"
    "  --latency TIME        of one message, like 5us (default 0us)\n"
    "  --topology FILE       instead of the six above: a topology file, - for standard input\n"
    "  --bytes SIZE          of the vector, like 64M (default 1G)\n"
    "  --failures N | A..B   dead NICs besides those of the topology (default 1..10; 0 with a "
    "file)\n"
    "  --draws N             random draws, up to 1000000 (default 1000; 1 without failures)\n"
    "  --seed N              of the draws (default 1)\n"
    "  --algorithm LIST      ring, balance, r2-allreduce, recursive, direct, weighted or all\n"
    "                        (default all)\n"
    "  --schedule NAME       instead: the schedule that r2 itself builds, row by row, without "
    "draws; NAME is\n"
    "                        an algorithm of coll_r2_allreduce_algorithm, or auto\n"
    "  --json                JSON instead of a table\n"
    "  --plot FILE           also writes a plot, .svg or .png, by r2_timeline\n"
    "  --version             the version of r2\n"
    "  --help                this text\n"
    "\n"
    "Exit status: 0, 1 if something failed, 2 for bad arguments or a bad topology file.\n";

typedef struct sim_options {
    uint64_t hosts, rails, ranks, seed, draws, failures_first, failures_last;
    bool failures_set, draws_set, json;
    double rate, latency_s;
    uint64_t bytes;
    bool flat;
    const char *topology, *plot, *schedule; /* borrowed: arguments, or NULL */
    const char *shape; /* borrowed: first option that --topology replaces, or NULL */
    const predict_algorithm_t *algorithms[DRAWS_ALGORITHMS_MAX];
    size_t algorithm_count;
    const char *(*show)(void); /* text to print instead of a simulation, or NULL */
} sim_options_t;

/** One option: reads its value. @return false: bad value. */
typedef bool (*sim_read_fn_t)(sim_options_t *options, const char *value);

static bool read_number(const char *text, uint64_t low, uint64_t high, uint64_t *number_p)
{
    return R2_OK == r2_unit_whole(text, R2_UNIT_NUMBER, low, high, number_p);
}

static bool read_hosts(sim_options_t *options, const char *value)
{
    return read_number(value, 2, TOPO_HOSTS_MAX, &options->hosts);
}

static bool read_rails(sim_options_t *options, const char *value)
{
    return read_number(value, 1, TOPO_RAILS_MAX, &options->rails);
}

static bool read_ranks(sim_options_t *options, const char *value)
{
    return read_number(value, 2, SIM_RANKS_MAX, &options->ranks);
}

static bool read_rate(sim_options_t *options, const char *value)
{
    return R2_OK == r2_unit_real(value, R2_UNIT_RATE, &options->rate) && options->rate > 0;
}

static bool read_network(sim_options_t *options, const char *value)
{
    options->flat = 0 == strcmp(value, "flat");
    return options->flat || 0 == strcmp(value, "aligned");
}

static bool read_latency(sim_options_t *options, const char *value)
{
    double ns;

    if (R2_OK != r2_unit_real(value, R2_UNIT_TIME, &ns)) {
        return false;
    }
    options->latency_s = ns / 1e9;
    return true;
}

static bool read_topology(sim_options_t *options, const char *value)
{
    options->topology = value;
    return true;
}

static bool read_schedule(sim_options_t *options, const char *value)
{
    options->schedule = value;
    return '\0' != value[0];
}

static bool read_bytes(sim_options_t *options, const char *value)
{
    return R2_OK == r2_unit_whole(value, R2_UNIT_BYTES, 1, INT64_MAX / 2, &options->bytes);
}

static bool read_failures(sim_options_t *options, const char *value)
{
    const char *dots = strstr(value, "..");
    char first[32];

    options->failures_set = true;
    if (NULL == dots) {
        options->failures_first = 0;
        if (!read_number(value, 0, DRAWS_FAILURES_MAX, &options->failures_last)) {
            return false;
        }
        options->failures_first = options->failures_last;
        return true;
    }
    if ((size_t) (dots - value) >= sizeof(first)) {
        return false;
    }
    memcpy(first, value, (size_t) (dots - value));
    first[dots - value] = '\0';
    return read_number(dots + 2, 0, DRAWS_FAILURES_MAX, &options->failures_last) &&
           read_number(first, 0, options->failures_last, &options->failures_first);
}

static bool read_draws(sim_options_t *options, const char *value)
{
    options->draws_set = true;
    return read_number(value, 1, SIM_DRAWS_MAX, &options->draws);
}

static bool read_seed(sim_options_t *options, const char *value)
{
    return read_number(value, 0, UINT64_MAX, &options->seed);
}

static bool add_algorithm(sim_options_t *options, const predict_algorithm_t *algorithm)
{
    if (NULL == algorithm || DRAWS_ALGORITHMS_MAX == options->algorithm_count) {
        return false;
    }
    options->algorithms[options->algorithm_count++] = algorithm;
    return true;
}

static bool read_algorithms(sim_options_t *options, const char *value)
{
    size_t count;
    const predict_algorithm_t *all = predict_table(&count);
    char list[256], *at = NULL;
    bool good = strlen(value) < sizeof(list) && '\0' != value[0];

    options->algorithm_count = 0;
    if (0 == strcmp(value, "all")) {
        for (size_t i = 0; i < count; ++i) {
            good = good && add_algorithm(options, &all[i]);
        }
        return good;
    }
    snprintf(list, sizeof(list), "%s", value);
    for (char *name = strtok_r(list, ",", &at); good && NULL != name;
         name = strtok_r(NULL, ",", &at)) {
        good = add_algorithm(options, predict_find(name));
    }
    return good && options->algorithm_count > 0;
}

static bool read_json(sim_options_t *options, const char *value)
{
    (void) value;
    options->json = true;
    return true;
}

static bool read_plot(sim_options_t *options, const char *value)
{
    options->plot = value;
    return true;
}

static const char *text_version(void)
{
    static char text[64];

    snprintf(text, sizeof(text), "r2_sim %s\n", r2_version());
    return text;
}

static const char *text_usage(void)
{
    return sim_usage;
}

static bool read_version(sim_options_t *options, const char *value)
{
    (void) value;
    options->show = text_version;
    return true;
}

static bool read_help(sim_options_t *options, const char *value)
{
    (void) value;
    options->show = text_usage;
    return true;
}

/** `shape`: says what a topology file says, too. `unit`: of a value, for the message. */
static const struct {
    const char *name;
    int argument;
    bool shape;
    sim_read_fn_t read;
    r2_unit_t unit;
} sim_table[] = {
    {"hosts", required_argument, true, read_hosts, R2_UNIT_NUMBER},
    {"rails", required_argument, true, read_rails, R2_UNIT_NUMBER},
    {"ranks", required_argument, true, read_ranks, R2_UNIT_NUMBER},
    {"rate", required_argument, true, read_rate, R2_UNIT_RATE},
    {"network", required_argument, true, read_network, R2_UNIT_NUMBER},
    {"latency", required_argument, true, read_latency, R2_UNIT_TIME},
    {"topology", required_argument, false, read_topology, R2_UNIT_NUMBER},
    {"bytes", required_argument, false, read_bytes, R2_UNIT_BYTES},
    {"failures", required_argument, false, read_failures, R2_UNIT_NUMBER},
    {"draws", required_argument, false, read_draws, R2_UNIT_NUMBER},
    {"seed", required_argument, false, read_seed, R2_UNIT_NUMBER},
    {"algorithm", required_argument, false, read_algorithms, R2_UNIT_NUMBER},
    {"schedule", required_argument, false, read_schedule, R2_UNIT_NUMBER},
    {"json", no_argument, false, read_json, R2_UNIT_NUMBER},
    {"plot", required_argument, false, read_plot, R2_UNIT_NUMBER},
    {"version", no_argument, false, read_version, R2_UNIT_NUMBER},
    {"help", no_argument, false, read_help, R2_UNIT_NUMBER},
};

/** @return false after saying on stderr what is wrong. */
static bool sim_parse(int argc, char **argv, sim_options_t *options)
{
    struct option names[r2_array_count(sim_table) + 1] = {{NULL, 0, NULL, 0}};
    int at;

    for (size_t i = 0; i < r2_array_count(sim_table); ++i) {
        names[i] = (struct option){sim_table[i].name, sim_table[i].argument, NULL, (int) i + 1};
    }
    while (-1 != (at = getopt_long(argc, argv, "", names, NULL))) {
        if ('?' == at) {
            return false;
        }
        if (!sim_table[at - 1].read(options, optarg)) {
            fprintf(stderr, "r2_sim: --%s: \"%s\" is no %s\n", sim_table[at - 1].name, optarg,
                    R2_UNIT_NUMBER == sim_table[at - 1].unit
                        ? "valid value"
                        : r2_unit_form(sim_table[at - 1].unit));
            return false;
        }
        if (sim_table[at - 1].shape) {
            options->shape = sim_table[at - 1].name;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "r2_sim: unexpected argument \"%s\"\n", argv[optind]);
        return false;
    }
    if (NULL != options->topology && NULL != options->shape) {
        fprintf(stderr, "r2_sim: --%s is what the topology file says\n", options->shape);
        return false;
    }
    return true;
}

/** @return why a topology is not simulated, NULL: it is. */
static const char *sim_refusal(const sim_options_t *options, const topo_t *topo)
{
    if (topo->host_count < 2) {
        return "there are less than 2 hosts";
    }
    if (topo->cut_count > R2_TOPOLOGY_CUTS_MAX) {
        return "more paths are cut than the planner knows";
    }
    if (NULL == options->schedule) {
        return topo_is_rank_per_host(topo)
                   ? NULL
                   : "several ranks on a host, or ranks in another order, only with --schedule";
    }
    return topo->rank_count > SIM_RANKS_MAX ? "too many ranks to be simulated" : NULL;
}

/** From a file, or from options. @return false after saying on stderr what is wrong. */
static bool sim_topology(const sim_options_t *options, topo_t *topo_p)
{
    const uint64_t ranks = 0 == options->ranks ? options->hosts : options->ranks;
    char error[512] = "out of memory";
    r2_status_t status;

    if (NULL != options->topology) {
        status = topo_load(options->topology, topo_p, error, sizeof(error));
    } else if (ranks < options->hosts) {
        snprintf(error, sizeof(error), "--ranks: every host needs a rank");
        status = R2_ERR_PARAM;
    } else {
        status =
            topo_init(topo_p, (uint32_t) options->hosts, (uint32_t) options->rails, options->rate);
        status = R2_OK == status ? topo_set_ranks(topo_p, (uint32_t) ranks) : status;
        topo_p->flat = options->flat;
        topo_p->latency_s = options->latency_s;
    }
    if (R2_OK == status && NULL != sim_refusal(options, topo_p)) {
        snprintf(error, sizeof(error), "%s", sim_refusal(options, topo_p));
        topo_fini(topo_p);
        status = R2_ERR_PARAM;
    }
    if (R2_OK != status) {
        fprintf(stderr, "r2_sim: %s\n", error);
    }
    return R2_OK == status;
}

/** What r2_timeline draws. */
typedef struct sim_picture {
    const draws_case_t *ask;      /* borrowed */
    const draws_result_t *result; /* borrowed */
} sim_picture_t;

static r2_status_t sim_picture(const void *arg, FILE *json)
{
    const sim_picture_t *picture = arg;

    return 0 == report_json(picture->ask, picture->result, json) ? R2_OK : R2_ERR_SYSTEM;
}

static int sim_report(const sim_options_t *options, const draws_case_t *ask,
                      const draws_result_t *result)
{
    const sim_picture_t picture = {.ask = ask, .result = result};
    int rc = options->json ? report_json(ask, result, stdout) : report_text(ask, result, stdout);
    r2_status_t status;

    if (0 != rc || NULL == options->plot) {
        return rc;
    }
    status = picture_draw(options->plot, sim_picture, &picture);
    if (R2_OK != status) {
        fprintf(stderr, "r2_sim: %s: %s\n", options->plot,
                R2_ERR_NOT_FOUND == status ? "r2_timeline draws it, and is not there"
                                           : r2_status_string(status));
    }
    return R2_OK == status ? 0 : -1;
}

static int sim_run(const sim_options_t *options, topo_t *topo)
{
    draws_case_t ask = {.topo = topo,
                        .bytes = (double) options->bytes,
                        .failures_first = (uint32_t) options->failures_first,
                        .failures_last = (uint32_t) options->failures_last,
                        .draw_count = (uint32_t) options->draws,
                        .seed = options->seed,
                        .algorithm_count = options->algorithm_count};
    draws_result_t result;
    r2_status_t status;
    int rc;

    memcpy(ask.algorithms, options->algorithms, sizeof(ask.algorithms));
    if (NULL != options->topology && !options->failures_set) {
        ask.failures_first = ask.failures_last = 0;
    }
    if (0 == ask.failures_last && !options->draws_set) {
        ask.draw_count = 1;
    }
    status = draws_run(&ask, &result);
    if (R2_ERR_PARAM == status) {
        fprintf(stderr, "r2_sim: %u dead NICs more would leave a host without any\n",
                (unsigned) ask.failures_last);
        return 2;
    }
    if (R2_OK != status) {
        fprintf(stderr, "r2_sim: %s\n", r2_status_string(status));
        return 1;
    }
    rc = sim_report(options, &ask, &result);
    draws_result_fini(&result);
    return 0 == rc ? 0 : 1;
}

/** The schedule that r2 builds, on the topology as it is. */
static int sim_schedule(const sim_options_t *options, const topo_t *topo)
{
    const char *name = 0 == strcmp(options->schedule, "auto") ? NULL : options->schedule;
    const predict_case_t ask = {.topo = topo, .bytes = (double) options->bytes};
    report_schedule_t report = {.topo = topo, .bytes = ask.bytes};
    char names[128];
    real_t real;
    r2_status_t status = real_build(&real, topo, R2_COLL_ALLREDUCE, options->bytes, name);

    if (R2_ERR_PARAM == status) {
        fprintf(stderr, "r2_sim: --schedule: r2 has no allreduce \"%s\" here: auto, %s\n",
                options->schedule, r2_plan_names(R2_COLL_ALLREDUCE, names, sizeof(names)));
        return 2;
    }
    if (R2_OK == status) {
        report.algorithm = real.schedules[0].algorithm;
        report.bound_s = predict_bound(&ask);
        status = real_run(&real, topo, NULL, NULL, &report.result);
        real_fini(&real);
    }
    if (R2_OK != status) {
        fprintf(stderr, "r2_sim: %s\n", r2_status_string(status));
        return 1;
    }
    return 0 == report_schedule(&report, options->json, stdout) ? 0 : 1;
}

int main(int argc, char **argv)
{
    sim_options_t options = {.hosts = 64,
                             .rails = 8,
                             .rate = 50e9,
                             .bytes = 1ull << 30,
                             .failures_first = 1,
                             .failures_last = 10,
                             .draws = 1000,
                             .seed = 1};
    topo_t topo;
    int rc;

    read_algorithms(&options, "all");
    if (!sim_parse(argc, argv, &options)) {
        fputs("r2_sim --help explains the arguments\n", stderr);
        return 2;
    }
    if (NULL != options.show) {
        return EOF != fputs(options.show(), stdout) && 0 == fflush(stdout) ? 0 : 1;
    }
    if (!sim_topology(&options, &topo)) {
        return 2;
    }
    rc = NULL != options.schedule ? sim_schedule(&options, &topo) : sim_run(&options, &topo);
    topo_fini(&topo);
    return rc;
}
