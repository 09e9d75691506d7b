/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Entry points: the three forms of every collective, as Open MPI calls them.
 *
 * A call that r2 declines, decided from what is equal on all ranks, goes to the component
 * underneath.
 */
#include "call.h"

#define MCA_COLL_R2_SAVED(module) (&((mca_coll_r2_module_t *) (module))->saved)

#define MCA_COLL_R2_ENTRY(name, parameters, arguments)                                           \
    int mca_coll_r2_##name(MCA_COLL_R2_LIST parameters, mca_coll_base_module_t *module)          \
    {                                                                                            \
        const mca_coll_r2_saved_t *saved = MCA_COLL_R2_SAVED(module);                            \
        mca_coll_r2_call_t call;                                                                 \
        int rc = mca_coll_r2_make_##name(&call, MCA_COLL_R2_LIST arguments, module);             \
                                                                                                 \
        if (MCA_COLL_R2_DECLINED != rc) {                                                        \
            rc = mca_coll_r2_call_run(rc, &call, &mca_coll_r2_component.calls.name);             \
        }                                                                                        \
        return MCA_COLL_R2_DECLINED != rc                                                        \
                   ? rc                                                                          \
                   : saved->name(MCA_COLL_R2_LIST arguments, saved->name##_module);              \
    }                                                                                            \
                                                                                                 \
    int mca_coll_r2_i##name(MCA_COLL_R2_LIST parameters, ompi_request_t **request,               \
                            mca_coll_base_module_t *module)                                      \
    {                                                                                            \
        const mca_coll_r2_saved_t *saved = MCA_COLL_R2_SAVED(module);                            \
        mca_coll_r2_call_t call;                                                                 \
        int rc = mca_coll_r2_make_##name(&call, MCA_COLL_R2_LIST arguments, module);             \
                                                                                                 \
        if (MCA_COLL_R2_DECLINED == rc) {                                                        \
            return saved->i##name(MCA_COLL_R2_LIST arguments, request, saved->i##name##_module); \
        }                                                                                        \
        return mca_coll_r2_call_start(rc, &call, comm, request,                                  \
                                      &mca_coll_r2_component.calls.i##name);                     \
    }                                                                                            \
                                                                                                 \
    int mca_coll_r2_##name##_init(MCA_COLL_R2_LIST parameters, struct ompi_info_t *info,         \
                                  ompi_request_t **request, mca_coll_base_module_t *module)      \
    {                                                                                            \
        const mca_coll_r2_saved_t *saved = MCA_COLL_R2_SAVED(module);                            \
        mca_coll_r2_call_t call;                                                                 \
        int rc = mca_coll_r2_make_##name(&call, MCA_COLL_R2_LIST arguments, module);             \
                                                                                                 \
        if (MCA_COLL_R2_DECLINED == rc) {                                                        \
            return saved->name##_init(MCA_COLL_R2_LIST arguments, info, request,                 \
                                      saved->name##_init_module);                                \
        }                                                                                        \
        return mca_coll_r2_call_prepare(rc, &call, comm, request,                                \
                                        &mca_coll_r2_component.calls.name##_init);               \
    }
#include "entries.def"
#undef MCA_COLL_R2_ENTRY
