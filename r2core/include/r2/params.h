/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Parameters: one table (params.def) gives the struct, defaults, ranges and documentation.
 */
#ifndef R2_PARAMS_H
#define R2_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"

#define R2_PARAM_CTYPE_BOOL   bool
#define R2_PARAM_CTYPE_UINT   uint64_t
#define R2_PARAM_CTYPE_SIZE   size_t
#define R2_PARAM_CTYPE_STRING const char *

/** Values of all parameters; field names and units as in base/params.def. Strings are borrowed. */
typedef struct r2_params {
#define R2_PARAM(name, type, dflt, min, max, unit, level, help) R2_PARAM_CTYPE_##type name;
#include "base/params.def"
#undef R2_PARAM
} r2_params_t;

typedef enum r2_param_type {
    R2_PARAM_BOOL,
    R2_PARAM_UINT,
    R2_PARAM_SIZE,
    R2_PARAM_STRING
} r2_param_type_t;

/** One row of the parameter table. */
typedef struct r2_param_info {
    const char *name;
    r2_param_type_t type;
    size_t offset; /* of the field in r2_params_t, bytes */
    /* in `unit`; of strings max is 0, or they are sizes or "auto" and dflt is unused */
    uint64_t dflt, min, max;
    const char *dflt_string; /* strings only */
    const char *unit;
    int level; /* MPI_T level 1..9 */
    const char *help;
} r2_param_info_t;

/** The parameter table. @param count_p number of rows. @return the first row, static. */
R2_EXPORT const r2_param_info_t *r2_params_table(size_t *count_p);

/** A second name of a parameter: same value, same unit. */
typedef struct r2_param_synonym {
    const char *name;
    const char *stands_for; /* name of a row of the parameter table */
} r2_param_synonym_t;

/** The table of synonyms. @param count_p number of rows. @return the first row, static. */
R2_EXPORT const r2_param_synonym_t *r2_params_synonyms(size_t *count_p);

/** Sets every field to its default. */
R2_EXPORT void r2_params_init(r2_params_t *params);

/**
 * Checks all ranges and the relations between parameters.
 * @param text_p on error: what is wrong, with name, value and range; static buffer of `text_bytes`.
 * @return R2_OK or R2_ERR_PARAM.
 */
R2_EXPORT r2_status_t r2_params_check(const r2_params_t *params, char *text_p, size_t text_bytes);

/** As a size that is "auto". */
#define R2_PARAM_AUTO UINT64_MAX

/** A size with the word "auto" in place of a number, as a string has it.
 * @param most the largest number @param bytes_p R2_PARAM_AUTO: "auto"
 * @return R2_OK, R2_ERR_PARAM. */
r2_status_t r2_params_size(const char *text, uint64_t most, uint64_t *bytes_p);

/**
 * Sets one parameter, by its name or a synonym, from text ("64k" style suffixes k, m, g accepted
 * for sizes).
 * @return R2_OK, R2_ERR_NOT_FOUND (no such name) or R2_ERR_PARAM (unparsable or out of range).
 */
R2_EXPORT r2_status_t r2_params_set(r2_params_t *params, const char *name, const char *text);

/** The text of a parameter in the environment, as the user or mpirun put it there. @return NULL: it
 * is not there. */
R2_EXPORT const char *r2_params_env_text(const char *name);

/**
 * @param framework of Open MPI: "coll" or "btl".
 * @return true if the environment selects r2 by name there, and this process is the one of its host
 * to tell the user something about that.
 */
R2_EXPORT bool r2_params_names_r2(const char *framework);

/** True for the one process of a host that tells what concerns all of them. */
bool r2_params_first_of_host(void);

/** The variable of the environment by which UCX takes a setting ("TLS"). @return NULL: not set. */
const char *r2_params_ucx(const char *name);

/** Where the environment says that components of Open MPI are; NULL: it does not say. */
const char *r2_params_component_path(void);

/**
 * How many tasks a step of Slurm started without telling them of each other: srun without PMIx.
 * They are jobs of one process each. @return 0: that is not so, or this process is not the first of
 * them.
 */
R2_EXPORT unsigned r2_params_lone_tasks(void);

/**
 * Applies OMPI_MCA_coll_r2_<name> of the environment, for tools that run outside Open MPI. The name
 * of the table goes before its synonym.
 */
R2_EXPORT r2_status_t r2_params_from_env(r2_params_t *params, char *text_p, size_t text_bytes);

#endif
