/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_T performance variables by name.
 */
#include "r2_config.h"

#include "pvar.h"

#include <string.h>

static const char *const names[R2_BENCH_PVAR_COUNT] = {
    [R2_BENCH_PVAR_RESENT] = "coll_r2_resent_bytes",
    [R2_BENCH_PVAR_GAP] = "coll_r2_longest_gap_ns",
    [R2_BENCH_PVAR_LANES] = "coll_r2_lanes_failed",
    [R2_BENCH_PVAR_COLLECTIVES] = "coll_r2_collectives",
};

/* Which of ours is it? @return R2_BENCH_PVAR_COUNT if none. */
static int find_name(const char *name)
{
    int i = 0;

    while (i < R2_BENCH_PVAR_COUNT && 0 != strcmp(name, names[i])) {
        ++i;
    }
    return i;
}

/* Variable number `index` of the library: take it if it is one of ours and not bound to an
 * object. */
static void look_at(r2_bench_pvars_t *pvars, int index)
{
    char name[128];
    int name_length = sizeof(name);
    int ignored_length = 0;
    int verbosity, class, binding, read_only, continuous, atomic, count, mine;
    MPI_Datatype type;
    MPI_T_enum values;

    if (MPI_SUCCESS != MPI_T_pvar_get_info(index, name, &name_length, &verbosity, &class, &type,
                                           &values, NULL, &ignored_length, &binding, &read_only,
                                           &continuous, &atomic)) {
        return;
    }
    mine = find_name(name);
    if (R2_BENCH_PVAR_COUNT == mine || MPI_T_BIND_NO_OBJECT != binding || pvars->there[mine]) {
        return;
    }
    if (MPI_SUCCESS !=
        MPI_T_pvar_handle_alloc(pvars->session, index, NULL, &pvars->handles[mine], &count)) {
        return;
    }
    if (1 != count) {
        MPI_T_pvar_handle_free(pvars->session, &pvars->handles[mine]);
        return;
    }
    if (!continuous) {
        MPI_T_pvar_start(pvars->session, pvars->handles[mine]);
    }
    pvars->types[mine] = type;
    pvars->there[mine] = true;
}

void r2_bench_pvars_init(r2_bench_pvars_t *pvars)
{
    int provided;
    int count = 0;

    memset(pvars, 0, sizeof(*pvars));
    if (MPI_SUCCESS != MPI_T_init_thread(MPI_THREAD_SINGLE, &provided)) {
        return;
    }
    if (MPI_SUCCESS != MPI_T_pvar_session_create(&pvars->session)) {
        MPI_T_finalize();
        return;
    }
    pvars->open = true;
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count; ++i) {
        look_at(pvars, i);
    }
}

void r2_bench_pvars_fini(r2_bench_pvars_t *pvars)
{
    if (!pvars->open) {
        return;
    }
    for (int i = 0; i < R2_BENCH_PVAR_COUNT; ++i) {
        if (pvars->there[i]) {
            MPI_T_pvar_handle_free(pvars->session, &pvars->handles[i]);
        }
    }
    MPI_T_pvar_session_free(&pvars->session);
    MPI_T_finalize();
    pvars->open = false;
}

static double read_one(const r2_bench_pvars_t *pvars, int i)
{
    union {
        unsigned as_unsigned;
        unsigned long as_long;
        unsigned long long as_long_long;
        double as_double;
    } value;

    memset(&value, 0, sizeof(value));
    if (!pvars->there[i] ||
        MPI_SUCCESS != MPI_T_pvar_read(pvars->session, pvars->handles[i], &value)) {
        return -1;
    }
    if (MPI_UNSIGNED_LONG_LONG == pvars->types[i]) {
        return (double) value.as_long_long;
    }
    if (MPI_UNSIGNED_LONG == pvars->types[i]) {
        return (double) value.as_long;
    }
    if (MPI_UNSIGNED == pvars->types[i]) {
        return value.as_unsigned;
    }
    return MPI_DOUBLE == pvars->types[i] ? value.as_double : -1;
}

void r2_bench_pvars_read(const r2_bench_pvars_t *pvars, double *values_p)
{
    for (int i = 0; i < R2_BENCH_PVAR_COUNT; ++i) {
        values_p[i] = read_one(pvars, i);
    }
}
