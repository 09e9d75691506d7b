/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The component r2 of Open MPI's coll framework: registration, start and end.
 */
#include "coll_r2.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/runtime/mpiruntime.h"

static int r2_component_register(void);
static int r2_component_close(void);
static int r2_component_init_query(bool enable_progress_threads, bool enable_mpi_threads);

mca_coll_r2_component_t mca_coll_r2_component = {
    .super =
        {
            .collm_version =
                {
                    MCA_COLL_R2_BASE_VERSION,
                    .mca_component_name = "r2",
                    MCA_BASE_MAKE_VERSION(component, R2_MAJOR_VERSION, R2_MINOR_VERSION,
                                          R2_RELEASE_VERSION),
                    .mca_close_component = r2_component_close,
                    .mca_register_component_params = r2_component_register,
                },
            .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
            .collm_init_query = r2_component_init_query,
            .collm_comm_query = mca_coll_r2_comm_query,
        },
};

/* Help texts lie in the installation's data directory, or beside the component in a build tree. */
static void r2_help_add_dirs(void)
{
    Dl_info info;
    char *slash;
    char *dir;

    opal_show_help_add_dir(R2_MCA_HELP_DIR);
    if (0 == dladdr(&mca_coll_r2_component, &info) || NULL == info.dli_fname) {
        return;
    }
    dir = strdup(info.dli_fname);
    if (NULL == dir) {
        return;
    }
    slash = strrchr(dir, '/');
    if (NULL != slash) {
        *slash = '\0';
        opal_show_help_add_dir(dir);
    }
    free(dir);
}

static int r2_component_register(void)
{
    int rc;

    r2_help_add_dirs();
    rc = mca_coll_r2_params_register();
    if (OMPI_SUCCESS != rc && OMPI_ERR_BAD_PARAM != rc) {
        return rc;
    }
    /* A bad value ends the job in init_query: failing here would run it silently without r2. */
    mca_coll_r2_component.params_ok = OMPI_SUCCESS == rc;
    return mca_coll_r2_widen_selection(mca_coll_r2_component.fallback);
}

static int r2_component_close(void)
{
    if (R2_LOG_DEBUG > mca_coll_r2_component.params.verbose) {
        return OMPI_SUCCESS;
    }
#define MCA_COLL_R2_COLLECTIVE(name)                                                           \
    if (0 != mca_coll_r2_component.calls.name) {                                               \
        opal_output(0, "coll:r2: %s calls %" PRIu64, #name, mca_coll_r2_component.calls.name); \
    }
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE
    return OMPI_SUCCESS;
}

static int r2_component_init_query(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    if (!mca_coll_r2_component.params_ok) {
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_ARG);
        return OMPI_ERR_BAD_PARAM;
    }
    return OMPI_SUCCESS;
}
