/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reads the arguments of the benchmarks.
 */
#include "r2_config.h"

#include "options.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "r2/units.h"

enum {
    ERROR_BYTES = 256,
    MAX_WINDOW = 65536,
    LARGE_BYTES = 8192, /* sizes above it get fewer iterations */
};

enum {
    OPT_SECONDS = 256,
    OPT_LINE_RATE,
    OPT_FAULT,
    OPT_FAULT_CMD,
    OPT_CSV,
    OPT_DIGEST,
    OPT_PROGRESS,
    OPT_PLANT,
};

static const struct option long_options[] = {
    {"message-size", required_argument, NULL, 'm'},
    {"iterations", required_argument, NULL, 'i'},
    {"warmup", required_argument, NULL, 'x'},
    {"full", no_argument, NULL, 'f'},
    {"validation", no_argument, NULL, 'c'},
    {"type", required_argument, NULL, 'T'},
    {"num-test-calls", required_argument, NULL, 't'},
    {"validation-warmup", required_argument, NULL, 'u'},
    {"tail-lat", no_argument, NULL, 'z'},
    {"mem-limit", required_argument, NULL, 'M'},
    {"accelerator", required_argument, NULL, 'd'},
    {"window-size", required_argument, NULL, 'W'},
    {"root-rank", required_argument, NULL, 'k'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"line-rate", required_argument, NULL, OPT_LINE_RATE},
    {"fault", required_argument, NULL, OPT_FAULT},
    {"fault-cmd", required_argument, NULL, OPT_FAULT_CMD},
    {"csv", required_argument, NULL, OPT_CSV},
    {"digest", no_argument, NULL, OPT_DIGEST},
    {"progress", no_argument, NULL, OPT_PROGRESS},
    {"plant-error", required_argument, NULL, OPT_PLANT},
    {NULL, 0, NULL, 0},
};

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [R2_BENCH_CHAR] = {"mpi_char", sizeof(char)},
    [R2_BENCH_INT] = {"mpi_int", sizeof(int)},
    [R2_BENCH_FLOAT] = {"mpi_float", sizeof(float)},
    [R2_BENCH_DOUBLE] = {"mpi_double", sizeof(double)},
};

static const char *const plants[] = {
    [R2_BENCH_PLANT_NONE] = "none",   [R2_BENCH_PLANT_SUM] = "sum",
    [R2_BENCH_PLANT_HOLE] = "hole",   [R2_BENCH_PLANT_SEND] = "send",
    [R2_BENCH_PLANT_GUARD] = "guard", [R2_BENCH_PLANT_EARLY] = "early",
    [R2_BENCH_PLANT_ALL] = "all",
};

size_t r2_bench_type_bytes(r2_bench_type_t type)
{
    return types[type].bytes;
}

const char *r2_bench_type_name(r2_bench_type_t type)
{
    return types[type].name;
}

size_t r2_bench_options_first(const r2_bench_options_t *options)
{
    size_t unit = r2_bench_type_bytes(options->type);

    return options->min_bytes > unit ? options->min_bytes : unit;
}

size_t r2_bench_options_next(const r2_bench_options_t *options, size_t bytes)
{
    for (unsigned i = 0; i < options->sizes_count; ++i) {
        if (options->sizes[i] > bytes) {
            return options->sizes[i];
        }
    }
    return 0 == options->sizes_count && bytes <= options->max_bytes / 2 ? 2 * bytes : 0;
}

uint64_t r2_bench_options_iterations(const r2_bench_options_t *options, size_t bytes)
{
    if (0 != options->iterations) {
        return options->iterations;
    }
    return bytes > LARGE_BYTES ? 100 : 1000;
}

uint64_t r2_bench_options_warmup(const r2_bench_options_t *options, size_t bytes)
{
    if (options->validate && UINT64_MAX != options->checked_warmup) {
        return options->checked_warmup;
    }
    if (UINT64_MAX != options->warmup) {
        return options->warmup;
    }
    return bytes > LARGE_BYTES ? 10 : 200;
}

static bool parse_count(const char *text, uint64_t least, uint64_t *value_p)
{
    return R2_OK == r2_unit_whole(text, R2_UNIT_NUMBER, least, UINT64_MAX, value_p);
}

/* Up to `bytes` characters. Nothing: the value stays as it is. */
static bool parse_bytes(const char *text, size_t bytes, size_t *value_p)
{
    char copy[32];
    uint64_t value = *value_p;
    int used = snprintf(copy, sizeof(copy), "%.*s", (int) bytes, text);

    if (used >= (int) sizeof(copy) ||
        (0 != used && R2_OK != r2_unit_whole(copy, R2_UNIT_BYTES, 0, SIZE_MAX, &value))) {
        return false;
    }
    *value_p = (size_t) value;
    return true;
}

/* SIZE,SIZE..: each larger than the one before. */
static bool parse_list(const char *text, r2_bench_options_t *options)
{
    size_t before = 0;

    for (options->sizes_count = 0; options->sizes_count < R2_BENCH_MAX_SIZES;) {
        size_t length = strcspn(text, ",");
        size_t bytes = 0;

        if (!parse_bytes(text, length, &bytes) || bytes <= before) {
            return false;
        }
        options->sizes[options->sizes_count++] = before = bytes;
        if ('\0' == text[length]) {
            options->min_bytes = options->sizes[0];
            options->max_bytes = bytes;
            return true;
        }
        text += length + 1;
    }
    return false;
}

/* MAX, MIN:MAX, MIN:, :MAX or a list. */
static bool parse_range(const char *text, r2_bench_options_t *options)
{
    const char *colon = strchr(text, ':');

    options->sizes_count = 0;
    if (NULL != strchr(text, ',')) {
        return parse_list(text, options);
    }
    if (NULL == colon) {
        return '\0' != text[0] && parse_bytes(text, strlen(text), &options->max_bytes);
    }
    return '\0' != text[1] && /* ":" alone says nothing */
           parse_bytes(text, (size_t) (colon - text), &options->min_bytes) &&
           parse_bytes(colon + 1, strlen(colon + 1), &options->max_bytes);
}

static bool parse_positive(const char *text, double *value_p)
{
    return R2_OK == r2_unit_real(text, R2_UNIT_NUMBER, value_p) && *value_p > 0;
}

static bool parse_type(const char *text, r2_bench_type_t *type_p)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        if (0 == strcmp(text, types[i].name)) {
            *type_p = (r2_bench_type_t) i;
            return true;
        }
    }
    return false;
}

static const char *parse_types(const char *text, r2_bench_options_t *options)
{
    options->all_types = 0 == strcmp(text, "all");
    return options->all_types || parse_type(text, &options->type)
               ? NULL
               : "all, mpi_char, mpi_int, mpi_float or mpi_double";
}

/* fixed:N or rotate. */
static bool parse_root(const char *text, r2_bench_options_t *options)
{
    static const char fixed[] = "fixed:";
    uint64_t root = 0;

    options->rooted = true;
    options->rotate_root = 0 == strcmp(text, "rotate");
    if (!options->rotate_root &&
        (0 != strncmp(text, fixed, strlen(fixed)) ||
         R2_OK != r2_unit_whole(text + strlen(fixed), R2_UNIT_NUMBER, 0, INT_MAX, &root))) {
        return false;
    }
    options->root = (int) root;
    return true;
}

static bool parse_plant(const char *text, r2_bench_plant_t *plant_p)
{
    for (size_t i = 0; i < sizeof(plants) / sizeof(plants[0]); ++i) {
        if (0 == strcmp(text, plants[i])) {
            *plant_p = (r2_bench_plant_t) i;
            return true;
        }
    }
    return false;
}

/* One option with a value. @return NULL, or what the value should have been. */
static const char *parse_value(r2_bench_options_t *options, int option, const char *value)
{
    switch (option) {
    case 'm':
        return parse_range(value, options)
                   ? NULL
                   : "MAX, MIN:MAX, MIN: or a list that ascends, in bytes, e.g. 4:16M";
    case 'i':
        return parse_count(value, 1, &options->iterations) ? NULL
                                                           : "a number of iterations, at least 1";
    case 'x':
        return parse_count(value, 0, &options->warmup) ? NULL : "a number of iterations";
    case 'T':
        return parse_types(value, options);
    case 'u':
        return parse_count(value, 0, &options->checked_warmup) ? NULL : "a number of iterations";
    case 'M':
        return parse_bytes(value, strlen(value), &options->mem_limit_bytes) ? NULL
                                                                            : "bytes, e.g. 1G";
    case 'W':
        return parse_count(value, 1, &options->window) && options->window <= MAX_WINDOW
                   ? NULL
                   : "a number of messages, 1 to 65536";
    case 'd':
        return r2_bench_place_find(value, &options->place)
                   ? NULL
                   : "host, cuda or managed: no buffers in memory of ROCm or OpenACC";
    case 'k':
        return parse_root(value, options) ? NULL : "fixed:RANK or rotate";
    case 't':
        return parse_count(value, 0, &options->tests) ? NULL : "a number of calls";
    case OPT_SECONDS:
        return parse_positive(value, &options->seconds) ? NULL : "a time in seconds above 0";
    case OPT_LINE_RATE:
        return parse_positive(value, &options->line_rate) ? NULL : "a rate in MB/s above 0";
    case OPT_FAULT:
        return r2_bench_options_add_fault(options, value)
                   ? NULL
                   : "'AT KIND[=V] HOST RAIL', e.g. '2.5s down h1 rail2'";
    case OPT_FAULT_CMD:
        options->fault_cmd = value;
        return '\0' != value[0] ? NULL : "a command";
    case OPT_CSV:
        options->csv = value;
        return '\0' != value[0] ? NULL : "a file name";
    case OPT_PLANT:
        return parse_plant(value, &options->plant) ? NULL : "sum, hole, send, guard, early or all";
    default:
        return "nothing"; /* not reached: every option with a value is above */
    }
}

/* Can this defect be put into this collective? */
static bool can_plant(const r2_bench_kind_t *kind, r2_bench_plant_t plant)
{
    switch (plant) {
    case R2_BENCH_PLANT_NONE:
    case R2_BENCH_PLANT_ALL:
        return true;
    case R2_BENCH_PLANT_SEND:
        return R2_BENCH_NOTHING != kind->send;
    case R2_BENCH_PLANT_SUM:
    case R2_BENCH_PLANT_HOLE:
    case R2_BENCH_PLANT_GUARD:
        return R2_BENCH_NOTHING != kind->recv;
    case R2_BENCH_PLANT_EARLY:
        return R2_BENCH_BARRIER == kind->id;
    }
    return false;
}

r2_bench_plant_t r2_bench_options_plant(const r2_bench_options_t *options,
                                        const r2_bench_kind_t *kind, uint64_t turn)
{
    bool all = R2_BENCH_PLANT_ALL == options->plant;

    if (!all) {
        return 1 == turn ? options->plant : R2_BENCH_PLANT_NONE;
    }
    return turn < R2_BENCH_PLANT_ALL && can_plant(kind, (r2_bench_plant_t) turn)
               ? (r2_bench_plant_t) turn
               : R2_BENCH_PLANT_NONE;
}

/* The types that are measured, one after the other. @return NULL, or the error. */
static const char *choose_types(r2_bench_options_t *options, const r2_bench_kind_t *kind)
{
    bool adds = r2_bench_kind_reduces(kind);

    if (adds && R2_BENCH_CHAR == options->type) {
        return "MPI has no sum of mpi_char: use -T mpi_int, mpi_float or mpi_double";
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        r2_bench_type_t type = (r2_bench_type_t) i;

        if (options->all_types ? !adds || R2_BENCH_CHAR != type : options->type == type) {
            options->types[options->types_count++] = type;
        }
    }
    for (unsigned i = 0; i < options->types_count; ++i) {
        options->type = options->types[i];
        if (options->max_bytes < r2_bench_options_first(options)) {
            return "-m: the largest size is below the smallest, or below one element";
        }
        if (options->max_bytes / r2_bench_type_bytes(options->type) > INT_MAX) {
            return "-m: more than 2^31 - 1 elements";
        }
    }
    options->type = options->types[0];
    return NULL;
}

static bool is_windowed(const r2_bench_kind_t *kind)
{
    return R2_BENCH_ONE_WAY == kind->way || R2_BENCH_BOTH_WAYS == kind->way;
}

/* What single options cannot see. @return NULL, or the error. */
static const char *check_together(r2_bench_options_t *options, const r2_bench_task_t *task)
{
    const char *problem = choose_types(options, task->kind);

    if (NULL != problem) {
        return problem;
    }
    if (0 != options->window && !is_windowed(task->kind)) {
        return "-W is for bw, bibw and mbw_mr";
    }
    options->window = 0 != options->window ? options->window : is_windowed(task->kind) ? 64 : 1;
    if (options->rooted && !task->kind->rooted) {
        return "-k: this collective has no root";
    }
    if (options->rotate_root && R2_BENCH_PERSISTENT == task->form) {
        return "-k rotate: a persistent request has one root";
    }
    if (0 != options->tests && R2_BENCH_NONBLOCKING != task->form) {
        return "-t is for nonblocking collectives";
    }
    if (0 != options->seconds && 0 != options->iterations) {
        return "-i and --seconds exclude each other";
    }
    if (0 != options->faults_count && NULL == options->fault_cmd) {
        return "--fault needs --fault-cmd, the command that carries it out";
    }
    if (R2_BENCH_PLANT_NONE != options->plant && !options->validate) {
        return "--plant-error needs -c";
    }
    if (!can_plant(task->kind, options->plant)) {
        return "--plant-error: this collective has no such buffer: a barrier takes early, the "
               "others sum, hole and guard, and send where there is a send buffer of its own";
    }
    return NULL;
}

static const char *option_name(int option)
{
    for (const struct option *o = long_options; NULL != o->name; ++o) {
        if (o->val == option) {
            return o->name;
        }
    }
    return "?";
}

/* One option without a value. @return false if it is none of them. */
static bool parse_flag(r2_bench_options_t *options, int option)
{
    switch (option) {
    case 'f':
        options->full = true;
        return true;
    case 'c':
        options->validate = true;
        return true;
    case 'z':
        options->tails = true;
        return true;
    case OPT_DIGEST:
        options->digest = true;
        return true;
    case OPT_PROGRESS:
        options->progress = true;
        return true;
    default:
        return false;
    }
}

r2_bench_request_t r2_bench_options_init(r2_bench_options_t *options, int argc, char **argv,
                                         const r2_bench_task_t *task, char *error_p)
{
    const char *problem;
    int option;

    memset(options, 0, sizeof(*options));
    options->max_bytes = (size_t) 1 << 20;
    options->mem_limit_bytes = SIZE_MAX;
    options->warmup = UINT64_MAX;
    options->checked_warmup = UINT64_MAX;
    (void) parse_type(task->kind->default_type, &options->type);
    opterr = 0;
    while (-1 !=
           (option = getopt_long(argc, argv, ":m:i:x:fcT:t:u:zM:d:k:W:hv", long_options, NULL))) {
        problem = NULL;
        switch (option) {
        case 'h':
            return R2_BENCH_HELP;
        case 'v':
            return R2_BENCH_VERSION;
        case ':':
            snprintf(error_p, ERROR_BYTES, "option %s needs a value", argv[optind - 1]);
            return R2_BENCH_BAD;
        case '?':
            snprintf(error_p, ERROR_BYTES, "unknown option %s", argv[optind - 1]);
            return R2_BENCH_BAD;
        default:
            problem = parse_flag(options, option) ? NULL : parse_value(options, option, optarg);
            break;
        }
        if (NULL != problem) {
            snprintf(error_p, ERROR_BYTES, "--%s '%.60s': expected %s", option_name(option), optarg,
                     problem);
            return R2_BENCH_BAD;
        }
    }
    if (optind < argc) {
        snprintf(error_p, ERROR_BYTES, "unexpected argument %.60s", argv[optind]);
        return R2_BENCH_BAD;
    }
    problem = check_together(options, task);
    if (NULL != problem) {
        snprintf(error_p, ERROR_BYTES, "%s", problem);
        return R2_BENCH_BAD;
    }
    return R2_BENCH_RUN;
}

void r2_bench_options_fini(r2_bench_options_t *options)
{
    for (unsigned i = 0; i < options->faults_count; ++i) {
        free(options->faults[i].text);
        free(options->faults[i].words[0]);
    }
    free(options->faults);
    options->faults = NULL;
    options->faults_count = 0;
}
