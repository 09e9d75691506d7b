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
};

size_t r2_bench_type_bytes(r2_bench_type_t type)
{
    return types[type].bytes;
}

const char *r2_bench_type_name(r2_bench_type_t type)
{
    return types[type].name;
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

/* MAX, MIN:MAX, MIN: or :MAX. */
static bool parse_range(const char *text, r2_bench_options_t *options)
{
    const char *colon = strchr(text, ':');

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

/* AT: "100" is an iteration, "2.5s" is a time. */
static bool parse_when(const char *text, r2_bench_fault_t *fault)
{
    double ns;

    fault->at_iteration =
        R2_OK == r2_unit_whole(text, R2_UNIT_NUMBER, 0, UINT64_MAX, &fault->iteration);
    if (!fault->at_iteration && R2_OK == r2_unit_real(text, R2_UNIT_TIME, &ns)) {
        fault->seconds = ns / 1e9;
        return true;
    }
    return fault->at_iteration;
}

/* "AT KIND[=V] HOST RAIL". The command may take more words; those three are the least. */
static bool parse_fault(const char *text, r2_bench_fault_t *fault)
{
    char *copy = strdup(text);
    char *rest = NULL;
    char *when = NULL != copy ? strtok_r(copy, " \t", &rest) : NULL;
    bool ok;

    memset(fault, 0, sizeof(*fault));
    ok = NULL != when && parse_when(when, fault);
    if (ok) {
        rest += strspn(rest, " \t");
        fault->text = strdup(rest);
        fault->words[0] = strdup(rest);
        ok = NULL != fault->text && NULL != fault->words[0];
    }
    free(copy);
    if (!ok) {
        free(fault->text);
        free(fault->words[0]);
        return false;
    }
    copy = fault->words[0];
    rest = NULL;
    for (char *word = strtok_r(copy, " \t", &rest); ok && NULL != word;
         word = strtok_r(NULL, " \t", &rest)) {
        ok = fault->words_count < R2_BENCH_MAX_WORDS;
        if (ok) {
            fault->words[fault->words_count++] = word;
        }
    }
    if (!ok || fault->words_count < 3) {
        free(fault->text);
        free(copy);
        return false;
    }
    return true;
}

static bool add_fault(r2_bench_options_t *options, const char *text)
{
    r2_bench_fault_t *faults;

    if (options->faults_count == R2_BENCH_MAX_FAULTS) {
        return false;
    }
    faults = realloc(options->faults, (options->faults_count + 1) * sizeof(*faults));
    if (NULL == faults) {
        return false;
    }
    options->faults = faults;
    if (!parse_fault(text, &faults[options->faults_count])) {
        return false;
    }
    ++options->faults_count;
    return true;
}

/* One option with a value. @return NULL, or what the value should have been. */
static const char *parse_value(r2_bench_options_t *options, int option, const char *value)
{
    switch (option) {
    case 'm':
        return parse_range(value, options) ? NULL : "MAX, MIN:MAX or MIN: in bytes, e.g. 4:16M";
    case 'i':
        return parse_count(value, 1, &options->iterations) ? NULL
                                                           : "a number of iterations, at least 1";
    case 'x':
        return parse_count(value, 0, &options->warmup) ? NULL : "a number of iterations";
    case 'T':
        return parse_type(value, &options->type) ? NULL
                                                 : "mpi_char, mpi_int, mpi_float or mpi_double";
    case 't':
        return parse_count(value, 0, &options->tests) ? NULL : "a number of calls";
    case OPT_SECONDS:
        return parse_positive(value, &options->seconds) ? NULL : "a time in seconds above 0";
    case OPT_LINE_RATE:
        return parse_positive(value, &options->line_rate) ? NULL : "a rate in MB/s above 0";
    case OPT_FAULT:
        return add_fault(options, value) ? NULL
                                         : "'AT KIND[=V] HOST RAIL', e.g. '2.5s down h1 rail2'";
    case OPT_FAULT_CMD:
        options->fault_cmd = value;
        return '\0' != value[0] ? NULL : "a command";
    case OPT_CSV:
        options->csv = value;
        return '\0' != value[0] ? NULL : "a file name";
    case OPT_PLANT:
        return parse_plant(value, &options->plant) ? NULL : "sum, hole, send, guard or early";
    default:
        return "nothing"; /* not reached: every option with a value is above */
    }
}

/* Can this defect be put into this collective? */
static bool can_plant(const r2_bench_kind_t *kind, r2_bench_plant_t plant)
{
    switch (plant) {
    case R2_BENCH_PLANT_NONE:
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

/* What single options cannot see. @return NULL, or the error. */
static const char *check_together(r2_bench_options_t *options, const r2_bench_task_t *task)
{
    size_t unit = r2_bench_type_bytes(options->type);

    if (r2_bench_kind_reduces(task->kind) && R2_BENCH_CHAR == options->type) {
        return "MPI has no sum of mpi_char: use -T mpi_int, mpi_float or mpi_double";
    }
    if (options->min_bytes < unit) {
        options->min_bytes = unit;
    }
    if (options->max_bytes < options->min_bytes) {
        return "-m: the largest size is below the smallest, or below one element";
    }
    if (options->max_bytes / unit > INT_MAX) {
        return "-m: more than 2^31 - 1 elements";
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

r2_bench_request_t r2_bench_options_init(r2_bench_options_t *options, int argc, char **argv,
                                         const r2_bench_task_t *task, char *error_p)
{
    const char *problem;
    int option;

    memset(options, 0, sizeof(*options));
    options->max_bytes = (size_t) 1 << 20;
    options->warmup = UINT64_MAX;
    (void) parse_type(task->kind->default_type, &options->type);
    opterr = 0;
    while (-1 != (option = getopt_long(argc, argv, ":m:i:x:fcT:t:hv", long_options, NULL))) {
        problem = NULL;
        switch (option) {
        case 'h':
            return R2_BENCH_HELP;
        case 'v':
            return R2_BENCH_VERSION;
        case 'f':
            options->full = true;
            break;
        case 'c':
            options->validate = true;
            break;
        case OPT_DIGEST:
            options->digest = true;
            break;
        case OPT_PROGRESS:
            options->progress = true;
            break;
        case ':':
            snprintf(error_p, ERROR_BYTES, "option %s needs a value", argv[optind - 1]);
            return R2_BENCH_BAD;
        case '?':
            snprintf(error_p, ERROR_BYTES, "unknown option %s", argv[optind - 1]);
            return R2_BENCH_BAD;
        default:
            problem = parse_value(options, option, optarg);
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

void r2_bench_options_usage(const r2_bench_task_t *task, FILE *out)
{
    fprintf(
        out,
        "usage: mpirun [mpirun options] %s [options]\n"
        "\n"
        "as in the OSU micro-benchmarks:\n"
        "  -m, --message-size [MIN:]MAX  sizes in bytes, doubled from MIN to MAX; K, M, G work\n"
        "                                (default: one element to 1M)\n"
        "  -i, --iterations N            measured iterations of each size\n"
        "                                (default: 1000, above 8K 100)\n"
        "  -x, --warmup N                iterations before them (default: 200, above 8K 10)\n"
        "  -f, --full                    also minimum, maximum and number of iterations\n"
        "  -c, --validation              check every result, exactly\n"
        "  -T, --type TYPE               %smpi_int, mpi_float or mpi_double (default: %s)\n"
        "  -t, --num-test-calls N        MPI_Test calls during the computation (nonblocking\n"
        "                                collectives; default: 0)\n"
        "  -h, --help    -v, --version\n"
        "\n"
        "of this suite:\n"
        "  --seconds S                   run each size for S seconds instead of -i\n"
        "  --line-rate R                 MB/s of all NICs of one host: adds a column\n"
        "  --fault 'AT KIND[=V] HOST RAIL'  break or heal a rail during the run; repeatable;\n"
        "                                AT is an iteration (100) or a time (2.5s)\n"
        "  --fault-cmd CMD               carries it out: called as CMD KIND[=V] HOST RAIL\n"
        "  --csv FILE                    one line per iteration\n"
        "  --digest                      hash of all results, from data whose sum depends\n"
        "                                on the order of the additions\n"
        "  --progress                    a line on stderr each second\n",
        task->program, r2_bench_kind_reduces(task->kind) ? "" : "mpi_char, ",
        task->kind->default_type);
}
