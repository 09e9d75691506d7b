/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One module per communicator: which functions r2 takes, and which it found underneath.
 */
#include "ulfm.h"

#include <stdlib.h>

#include "ompi/proc/proc.h"

static void r2_module_construct(mca_coll_r2_module_t *module)
{
    memset(&module->saved, 0, sizeof(module->saved));
    module->r2 = NULL;
    module->ids = module->group_ids = NULL;
    module->told = false;
    module->watched = NULL;
    module->next = NULL;
    module->word_missing = false;
}

static void r2_module_destruct(mca_coll_r2_module_t *module)
{
    mca_coll_r2_ulfm_forget(module);
    if (NULL != module->r2 && NULL != mca_coll_r2_component.ctx) {
        r2_comm_destroy(module->r2);
    }
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
 * What is not offered stays with whom it belongs to.
 */
static int r2_module_enable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    mca_coll_r2_module_t *module = (mca_coll_r2_module_t *) base;

#define MCA_COLL_R2_COLLECTIVE(name)                                      \
    if (NULL == comm->c_coll->coll_##name) {                              \
        base->coll_##name = NULL;                                         \
    } else if (NULL != base->coll_##name) {                               \
        module->saved.name = comm->c_coll->coll_##name;                   \
        module->saved.name##_module = comm->c_coll->coll_##name##_module; \
        OBJ_RETAIN(module->saved.name##_module);                          \
        MCA_COLL_R2_INSTALL(comm, name, base->coll_##name, base);         \
    }
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE
    return OMPI_SUCCESS;
}

/* Since Open MPI 6: modules are disabled in descending priority, so what is ours goes back to whom
 * it was taken from. */
static int r2_module_disable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    const mca_coll_r2_module_t *module = (mca_coll_r2_module_t *) base;

#define MCA_COLL_R2_COLLECTIVE(name)                                                      \
    if (base == comm->c_coll->coll_##name##_module) {                                     \
        MCA_COLL_R2_INSTALL(comm, name, module->saved.name, module->saved.name##_module); \
    }
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE
    return OMPI_SUCCESS;
}

/* Process numbers of the members. @return false: some are of another job (spawned): not for r2. */
static bool r2_module_ranks(struct ompi_communicator_t *comm, uint32_t *ranks)
{
    ompi_group_t *group = comm->c_local_group;

    for (int i = 0; i < ompi_comm_size(comm); ++i) {
        opal_process_name_t name = ompi_group_get_proc_name(group, i);

        if (name.jobid != ompi_proc_local()->super.proc_name.jobid ||
            name.vpid >= r2_ctx_size(mca_coll_r2_component.ctx)) {
            return false;
        }
        ranks[i] = (uint32_t) name.vpid;
    }
    return true;
}

/* @return R2_OK; R2_ERR_UNSUPPORTED: not for r2, as all members see; or an error of this
 * process. */
static r2_status_t r2_module_comm(struct ompi_communicator_t *comm, mca_coll_r2_module_t *module)
{
    int size = ompi_comm_size(comm);
    uint32_t *ranks = malloc((size_t) size * sizeof(*ranks));
    r2_status_t status = R2_ERR_UNSUPPORTED;

    if (NULL == ranks) {
        return R2_ERR_NO_MEMORY;
    }
    if (r2_module_ranks(comm, ranks)) {
        status = r2_comm_create(mca_coll_r2_component.ctx, mca_coll_r2_comm_id(comm), ranks, size,
                                ompi_comm_rank(comm), &module->r2);
    }
    free(ranks);
    if (R2_OK == status) {
        status = mca_coll_r2_ids_open(module);
    }
    return status;
}

/* What r2 takes; where what it does not make by memory is left to others, what can be made so. */
static void r2_module_offer(mca_coll_r2_module_t *module)
{
    mca_coll_base_module_t *base = &module->super;

    if (!r2_comm_leaves(module->r2)) {
#define MCA_COLL_R2_COLLECTIVE(name) base->coll_##name = mca_coll_r2_##name;
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE
        return;
    }
    base->coll_allgather = mca_coll_r2_allgather;
    base->coll_allreduce = mca_coll_r2_allreduce;
    base->coll_alltoall = mca_coll_r2_alltoall;
    base->coll_barrier = mca_coll_r2_barrier;
    base->coll_bcast = mca_coll_r2_bcast;
    base->coll_exscan = mca_coll_r2_exscan;
    base->coll_gather = mca_coll_r2_gather;
    base->coll_reduce = mca_coll_r2_reduce;
    base->coll_reduce_scatter = mca_coll_r2_reduce_scatter;
    base->coll_reduce_scatter_block = mca_coll_r2_reduce_scatter_block;
    base->coll_scan = mca_coll_r2_scan;
    base->coll_scatter = mca_coll_r2_scatter;
}

mca_coll_base_module_t *mca_coll_r2_comm_query(struct ompi_communicator_t *comm, int *priority_p)
{
    mca_coll_r2_module_t *module;
    r2_status_t status;

    *priority_p = 0;
    if (OMPI_COMM_IS_INTER(comm) || !mca_coll_r2_is_agreed() ||
        (2 > ompi_comm_size(comm) && !r2_mem_differs(mca_coll_r2_component.ctx))) {
        return NULL; /* who is alone needs r2 for nothing but copies within a GPU */
    }
    /* From here on all members do the same: who cannot ends the job, since the others would wait
     * for it. */
    module = OBJ_NEW(mca_coll_r2_module_t);
    status = NULL == module ? R2_ERR_NO_MEMORY : r2_module_comm(comm, module);
    if (R2_OK != status) {
        if (NULL != module) {
            OBJ_RELEASE(module);
        }
        if (R2_ERR_UNSUPPORTED != status && R2_ERR_FORKED != status) {
            mca_coll_r2_abort("no communicator", status);
        }
        return NULL;
    }
    mca_coll_r2_ulfm_watch(module, comm);
    module->super.coll_module_enable = r2_module_enable;
    MCA_COLL_R2_SET_DISABLE(&module->super, r2_module_disable);
    r2_module_offer(module);
    *priority_p = mca_coll_r2_component.priority;
    return &module->super;
}
