/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A collective component that other people may have installed: takes some collectives at a given
 * priority, counts them and passes them on to what is underneath. With coll_standin_memory it owns
 * the device memory of device_memory.c, too, which nobody else can read.
 */
#include "compat.h"

#include <inttypes.h>
#include <stdlib.h>

#include "device_memory.h"

typedef mca_coll_r2_mpi_count_t count_t;

/* name, parameters, arguments for what is underneath */
#define STANDIN_COLLECTIVES(X)                                                                \
    X(allreduce,                                                                              \
      (const void *in, void *out, count_t count, struct ompi_datatype_t *type,                \
       struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *base), \
      (seen(in), seen(out), count, type, op, comm, under))                                    \
    X(reduce,                                                                                 \
      (const void *in, void *out, count_t count, struct ompi_datatype_t *type,                \
       struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,                      \
       mca_coll_base_module_t *base),                                                         \
      (seen(in), seen(out), count, type, op, root, comm, under))                              \
    X(scan,                                                                                   \
      (const void *in, void *out, count_t count, struct ompi_datatype_t *type,                \
       struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *base), \
      (seen(in), seen(out), count, type, op, comm, under))                                    \
    X(bcast,                                                                                  \
      (void *data, count_t count, struct ompi_datatype_t *type, int root,                     \
       struct ompi_communicator_t *comm, mca_coll_base_module_t *base),                       \
      (seen(data), count, type, root, comm, under))                                           \
    X(allgather,                                                                              \
      (const void *in, count_t in_count, struct ompi_datatype_t *in_type, void *out,          \
       count_t out_count, struct ompi_datatype_t *out_type, struct ompi_communicator_t *comm, \
       mca_coll_base_module_t *base),                                                         \
      (seen(in), in_count, in_type, seen(out), out_count, out_type, comm, under))             \
    X(alltoall,                                                                               \
      (const void *in, count_t in_count, struct ompi_datatype_t *in_type, void *out,          \
       count_t out_count, struct ompi_datatype_t *out_type, struct ompi_communicator_t *comm, \
       mca_coll_base_module_t *base),                                                         \
      (seen(in), in_count, in_type, seen(out), out_count, out_type, comm, under))

#define STANDIN_FN(name) mca_coll_base_module_##name##_fn_t

/** The component, with what it counted. */
typedef struct standin {
    mca_coll_base_component_t super;
    int priority;
    bool memory;
#define STANDIN_COUNT(name, parameters, arguments) uint64_t name;
    STANDIN_COLLECTIVES(STANDIN_COUNT)
#undef STANDIN_COUNT
} standin_t;

/** One per communicator: what is underneath. */
typedef struct standin_module {
    mca_coll_base_module_t super;
#define STANDIN_UNDER(name, parameters, arguments) \
    STANDIN_FN(name) name;                         \
    mca_coll_base_module_t *name##_module; /* refcounted */
    STANDIN_COLLECTIVES(STANDIN_UNDER)
#undef STANDIN_UNDER
} standin_module_t;

static void module_construct(standin_module_t *module)
{
#define STANDIN_CLEAR(name, parameters, arguments) \
    module->name = NULL;                           \
    module->name##_module = NULL;
    STANDIN_COLLECTIVES(STANDIN_CLEAR)
#undef STANDIN_CLEAR
}

static void module_destruct(standin_module_t *module)
{
#define STANDIN_RELEASE(name, parameters, arguments) \
    if (NULL != module->name##_module) {             \
        OBJ_RELEASE(module->name##_module);          \
    }
    STANDIN_COLLECTIVES(STANDIN_RELEASE)
#undef STANDIN_RELEASE
}

OBJ_CLASS_DECLARATION(standin_module_t);
OBJ_CLASS_INSTANCE(standin_module_t, mca_coll_base_module_t, module_construct, module_destruct);

static int standin_register(void);
static int standin_close(void);
static int standin_init_query(bool enable_progress_threads, bool enable_mpi_threads);
static mca_coll_base_module_t *standin_comm_query(struct ompi_communicator_t *comm,
                                                  int *priority_p);

OMPI_DECLSPEC extern standin_t mca_coll_standin_component;

standin_t mca_coll_standin_component = {
    .super =
        {
            .collm_version =
                {
                    MCA_COLL_R2_BASE_VERSION,
                    .mca_component_name = "standin",
                    MCA_BASE_MAKE_VERSION(component, 1, 0, 0),
                    .mca_close_component = standin_close,
                    .mca_register_component_params = standin_register,
                },
            .collm_init_query = standin_init_query,
            .collm_comm_query = standin_comm_query,
        },
};

/* Where the host sees device memory. */
static void *seen(const void *at)
{
    const uintptr_t address = (uintptr_t) at;

    return mca_coll_standin_component.memory && address >= DEVICE_AT &&
                   address < DEVICE_AT + DEVICE_BYTES
               ? (void *) (address - DEVICE_AT + DEVICE_HOST_AT)
               : (void *) address;
}

#define STANDIN_CALL(name, parameters, arguments)                         \
    static int standin_##name parameters                                  \
    {                                                                     \
        const standin_module_t *module = (const standin_module_t *) base; \
        mca_coll_base_module_t *under = module->name##_module;            \
                                                                          \
        ++mca_coll_standin_component.name;                                \
        return module->name arguments;                                    \
    }
STANDIN_COLLECTIVES(STANDIN_CALL)
#undef STANDIN_CALL

static int standin_enable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    standin_module_t *module = (standin_module_t *) base;

#define STANDIN_SAVE(name, parameters, arguments)               \
    if (NULL == comm->c_coll->coll_##name) {                    \
        return OMPI_ERR_NOT_AVAILABLE;                          \
    }                                                           \
    module->name = comm->c_coll->coll_##name;                   \
    module->name##_module = comm->c_coll->coll_##name##_module; \
    OBJ_RETAIN(module->name##_module);                          \
    MCA_COLL_R2_INSTALL(comm, name, base->coll_##name, base);
    STANDIN_COLLECTIVES(STANDIN_SAVE)
#undef STANDIN_SAVE
    return OMPI_SUCCESS;
}

static int standin_disable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    const standin_module_t *module = (const standin_module_t *) base;

#define STANDIN_GIVE_BACK(name, parameters, arguments)                        \
    if (base == comm->c_coll->coll_##name##_module) {                         \
        MCA_COLL_R2_INSTALL(comm, name, module->name, module->name##_module); \
    }
    STANDIN_COLLECTIVES(STANDIN_GIVE_BACK)
#undef STANDIN_GIVE_BACK
    return OMPI_SUCCESS;
}

static mca_coll_base_module_t *standin_comm_query(struct ompi_communicator_t *comm, int *priority_p)
{
    standin_module_t *module;

    *priority_p = 0;
    if (OMPI_COMM_IS_INTER(comm) || 2 > ompi_comm_size(comm)) {
        return NULL;
    }
    module = OBJ_NEW(standin_module_t);
    module->super.coll_module_enable = standin_enable;
    MCA_COLL_R2_SET_DISABLE(&module->super, standin_disable);
#define STANDIN_OFFER(name, parameters, arguments) module->super.coll_##name = standin_##name;
    STANDIN_COLLECTIVES(STANDIN_OFFER)
#undef STANDIN_OFFER
    *priority_p = mca_coll_standin_component.priority;
    return &module->super;
}

static int standin_register(void)
{
    standin_t *component = &mca_coll_standin_component;

    component->priority = 90;
    (void) mca_base_component_var_register(&component->super.collm_version, "priority",
                                           "Priority, hcoll's by default.", MCA_BASE_VAR_TYPE_INT,
                                           NULL, 0, 0, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY,
                                           &component->priority);
    (void) mca_base_component_var_register(
        &component->super.collm_version, "memory", "Owns device memory.", MCA_BASE_VAR_TYPE_BOOL,
        NULL, 0, 0, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY, &component->memory);
    return OMPI_SUCCESS;
}

static int standin_init_query(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    return OMPI_SUCCESS;
}

static int standin_close(void)
{
#define STANDIN_TELL(name, parameters, arguments)                                             \
    if (0 != mca_coll_standin_component.name) {                                               \
        opal_output(0, "standin: %s calls %" PRIu64, #name, mca_coll_standin_component.name); \
    }
    STANDIN_COLLECTIVES(STANDIN_TELL)
#undef STANDIN_TELL
    return OMPI_SUCCESS;
}
