/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What r2_info knows of this host and installation, and how it is shown.
 */
#ifndef R2_TOOLS_INFO_H
#define R2_TOOLS_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "r2/json.h"
#include "r2/nic.h"
#include "r2/params.h"
#include "r2/version.h"

#define INFO_PROBLEMS_MAX 64
#define INFO_SOURCE_BYTES 64
#define INFO_PARAMS_MAX   128

/** How bad a problem is. */
typedef enum info_level {
    INFO_ERROR,   /* r2 does not run */
    INFO_WARNING, /* r2 runs, with less than it could have */
    INFO_HINT
} info_level_t;

/** A problem of the installation, and what to do. */
typedef struct info_problem {
    info_level_t level;
    char what[1024];
    char remedy[512];
} info_problem_t;

/** All that is shown. */
typedef struct info {
    const r2_library_t *libraries; /* borrowed: static */
    size_t library_count;
    char host_name[64];

    bool ompi_info;             /* the program ran */
    char ompi_version[32];      /* of the Open MPI found, "" = unknown */
    const char *ompi_built_for; /* borrowed: static */
    bool component;             /* Open MPI finds coll/r2 */
    char component_version[32];
    const char *component_dir; /* borrowed: where it was to be installed */
    char pmix_file[256];       /* of PMIx, by which mpirun hides components, "" = none */

    r2_params_t params;
    char *values[INFO_PARAMS_MAX];                    /* owned: texts of the strings in params */
    char sources[INFO_PARAMS_MAX][INFO_SOURCE_BYTES]; /* by row of the table, "default" */
    char params_text[512];                            /* what is wrong with them, "" = nothing */

    r2_nic_t nics[R2_RAILS_MAX];
    size_t nic_count;
    uint32_t chain[R2_RAILS_MAX];
    r2_gpu_place_t gpus[R2_GPUS_MAX];
    size_t gpu_count;
    r2_rdma_seen_t ports[R2_RDMA_PORTS_MAX]; /* of this host, rails or not */
    size_t port_count;
    r2_rdma_setting_t rdma;
    char nics_text[1024]; /* why there is none, "" = there are */

    const char *gpu;         /* borrowed: static; the device file of GPUs, NULL = none */
    char gpu_driver[160];    /* "CUDA 12.4", or why there is none */
    char gpu_reduces[160];   /* who reduces there; empty: it cannot be used */
    char gpu_objection[320]; /* what keeps jobs with this host from r2, "" = nothing */
    uint64_t files_hard;     /* hard limit of open files; UINT64_MAX = none, 0 = not known */
} info_t;

/** Looks at everything. Runs ompi_info. */
void info_collect(info_t *info);

/**
 * Does a parameter file of PMIx set a parameter? Comments and longer names do not count.
 * @return false without the file, too.
 */
bool info_pmix_sets(const char *path, const char *name);

/** Fills in pmix_file, unless the environment says where components are. */
void info_collect_pmix(info_t *info);
void info_free(info_t *info);

/** What is wrong. Pure. @param problems_p INFO_PROBLEMS_MAX rows. @return number of rows. */
size_t info_problems(const info_t *info, info_problem_t *problems_p);
/** "error", "warning", "hint". */
const char *info_level_name(info_level_t level);

/** Text of a parameter's value. */
void info_param_text(const r2_params_t *params, const r2_param_info_t *row, char *text_p,
                     size_t text_bytes);
/** "100 Gbit/s", or "unknown". */
void info_speed_text(uint64_t speed_bytes_per_s, char *text_p, size_t text_bytes);
/** "10.0.0.1/24", or "none". */
void info_address_text(const r2_nic_t *nic, char *text_p, size_t text_bytes);

/** "2001:db8::1", "::ffff:10.0.0.1"; "" if there is none. */
void info_gid_text(const r2_rdma_port_t *port, char *text_p, size_t text_bytes);
/** The transport of a rail: "tcp", "rc_verbs". */
const char *info_transport(const r2_nic_t *nic);
/** The first rail on an RDMA port. @return false: there is none. */
bool info_rail_on(const info_t *info, const char *rdma, size_t *idx_p);

/** Parts of what is shown, for tests. */
void info_print_rails(const info_t *info, FILE *out);
/** GPUs and their NICs; nothing if there are none. */
void info_print_gpus(const info_t *info, FILE *out);
void info_json_rails(r2_json_t *json, const info_t *info);

/** The three ways to show. @return 0, or -1 if writing failed. */
int info_print_text(const info_t *info, const info_problem_t *problems, size_t count, FILE *out);
int info_print_json(const info_t *info, const info_problem_t *problems, size_t count, FILE *out);
int info_print_params_md(FILE *out);

/* gpu_rates.c */
/** Measures a GPU. @return 0, or -1: it cannot be, which is said. */
int info_gpu_rates(int device, size_t bytes, bool json, FILE *out);

#endif
