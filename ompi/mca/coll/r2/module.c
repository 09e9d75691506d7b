/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One module per communicator: which functions r2 takes, and which it found underneath.
 */
#include "coll_r2.h"

static void r2_module_construct(mca_coll_r2_module_t *module)
{
    memset(&module->saved, 0, sizeof(module->saved));
}

static void r2_module_destruct(mca_coll_r2_module_t *module)
{
#define MCA_COLL_R2_COLLECTIVE(name)              \
    if (NULL != module->saved.name##_module) {    \
        OBJ_RELEASE(module->saved.name##_module); \
    }
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE
}

OBJ_CLASS_INSTANCE(mca_coll_r2_module_t, mca_coll_base_module_t, r2_module_construct,
                   r2_module_destruct);

/*
 * Modules are enabled in ascending priority: what comm holds now is the best below r2. A function
 * without a predecessor is not offered, since nothing could run the calls that r2 declines.
 */
static int r2_module_enable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    mca_coll_r2_module_t *module = (mca_coll_r2_module_t *) base;

#define MCA_COLL_R2_COLLECTIVE(name)                                      \
    if (NULL == comm->c_coll->coll_##name) {                              \
        base->coll_##name = NULL;                                         \
    } else {                                                              \
        module->saved.name = comm->c_coll->coll_##name;                   \
        module->saved.name##_module = comm->c_coll->coll_##name##_module; \
        OBJ_RETAIN(module->saved.name##_module);                          \
    }
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE
    return OMPI_SUCCESS;
}

mca_coll_base_module_t *mca_coll_r2_comm_query(struct ompi_communicator_t *comm, int *priority_p)
{
    mca_coll_r2_module_t *module;

    *priority_p = 0;
    if (OMPI_COMM_IS_INTER(comm) || 2 > ompi_comm_size(comm) ||
        0 >= mca_coll_r2_component.priority) {
        return NULL;
    }
    module = OBJ_NEW(mca_coll_r2_module_t);
    if (NULL == module) {
        return NULL;
    }
    module->super.coll_module_enable = r2_module_enable;
#define MCA_COLL_R2_COLLECTIVE(name) module->super.coll_##name = mca_coll_r2_##name;
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE
    *priority_p = mca_coll_r2_component.priority;
    return &module->super;
}
