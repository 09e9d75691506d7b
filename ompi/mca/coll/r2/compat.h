/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * All differences between Open MPI versions that coll/r2 meets. Included before everything else.
 *
 * Open MPI's configuration header must come before mpi.h, and before ours, because both define the
 * same feature macros.
 */
#ifndef MCA_COLL_R2_COMPAT_H
#define MCA_COLL_R2_COMPAT_H

#include "ompi_config.h"

#include "mpi.h"
#include "ompi/attribute/attribute.h"
#include "ompi/constants.h"
#include "ompi/communicator/communicator.h"
#include "ompi/errhandler/errcode.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_framework.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_vari.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

/* Open MPI's names for its own package: ours follow. */
#undef PACKAGE_BUGREPORT
#undef PACKAGE_NAME
#undef PACKAGE_STRING
#undef PACKAGE_TARNAME
#undef PACKAGE_URL
#undef PACKAGE_VERSION
#include "r2_config.h"

#include "ompi/include/r2_mpi.h"
#include "r2/r2.h"

/* Open MPI's list macros cast volatile away; unlike gcc, clang warns in the macros of system
 * headers. */
#ifdef __clang__
#    pragma clang diagnostic ignored "-Wcast-qual"
#endif

/* The version that a component declares. 4.x: 2.0.0, 5.0: 2.4.0, 6: 3.0.0. configure refuses
 * others. */
#if defined(MCA_COLL_BASE_VERSION_3_0_0)
#    define MCA_COLL_R2_BASE_VERSION MCA_COLL_BASE_VERSION_3_0_0
#elif defined(MCA_COLL_BASE_VERSION_2_4_0)
#    define MCA_COLL_R2_BASE_VERSION MCA_COLL_BASE_VERSION_2_4_0
#elif defined(MCA_COLL_BASE_VERSION_2_0_0)
#    define MCA_COLL_R2_BASE_VERSION MCA_COLL_BASE_VERSION_2_0_0
#else
#    error "this version of Open MPI's coll interface is not known to r2"
#endif

/* Operations of the user whose function is not MPI_User_function in C. 6 has no Java, and functions
 * that take MPI_Count. */
#if defined(MCA_COLL_BASE_VERSION_3_0_0)
#    define MCA_COLL_R2_OP_FOREIGN (OMPI_OP_FLAGS_FORTRAN_FUNC | OMPI_OP_FLAGS_BIGCOUNT)
#else
#    define MCA_COLL_R2_OP_FOREIGN (OMPI_OP_FLAGS_FORTRAN_FUNC | OMPI_OP_FLAGS_JAVA_FUNC)
#endif

/*
 * Counts and displacements. Inside they are size_t and ptrdiff_t, and lists of them are of either
 * width; a negative count of MPI's is more than PTRDIFF_MAX then. Open MPI passes int and lists of
 * int, since 6 size_t and lists of either width.
 */
typedef struct mca_coll_r2_counts {
    const int *narrow;  /* borrowed; NULL: wide is used, if any */
    const size_t *wide; /* borrowed */
} mca_coll_r2_counts_t;

typedef struct mca_coll_r2_displs {
    const int *narrow;     /* borrowed; NULL: wide is used, if any */
    const ptrdiff_t *wide; /* borrowed */
} mca_coll_r2_displs_t;

static inline bool mca_coll_r2_counts_given(mca_coll_r2_counts_t counts)
{
    return NULL != counts.narrow || NULL != counts.wide;
}

static inline size_t mca_coll_r2_count_at(mca_coll_r2_counts_t counts, int idx)
{
    return NULL != counts.narrow ? (size_t) counts.narrow[idx] : counts.wide[idx];
}

static inline bool mca_coll_r2_displs_given(mca_coll_r2_displs_t displs)
{
    return NULL != displs.narrow || NULL != displs.wide;
}

static inline ptrdiff_t mca_coll_r2_displ_at(mca_coll_r2_displs_t displs, int idx)
{
    return NULL != displs.narrow ? displs.narrow[idx] : displs.wide[idx];
}

/* How Open MPI passes them to a component; "far" are those of MPI_Neighbor_alltoallw, which were
 * MPI_Aint always. */
#if defined(MCA_COLL_BASE_VERSION_3_0_0)

typedef size_t mca_coll_r2_mpi_count_t;
typedef ompi_count_array_t mca_coll_r2_mpi_counts_t;
typedef ompi_disp_array_t mca_coll_r2_mpi_displs_t;
typedef ompi_disp_array_t mca_coll_r2_mpi_far_displs_t;

static inline mca_coll_r2_counts_t mca_coll_r2_counts_of(mca_coll_r2_mpi_counts_t counts)
{
    const void *list = ompi_count_array_ptr(counts);

    return ompi_count_array_is_64bit(counts) ? (mca_coll_r2_counts_t){.wide = list}
                                             : (mca_coll_r2_counts_t){.narrow = list};
}

static inline mca_coll_r2_displs_t mca_coll_r2_displs_of(mca_coll_r2_mpi_displs_t displs)
{
    const void *list = ompi_disp_array_ptr(displs);

    return ompi_disp_array_is_64bit(displs) ? (mca_coll_r2_displs_t){.wide = list}
                                            : (mca_coll_r2_displs_t){.narrow = list};
}

static inline mca_coll_r2_displs_t mca_coll_r2_far_displs_of(mca_coll_r2_mpi_far_displs_t displs)
{
    return mca_coll_r2_displs_of(displs);
}

#else

typedef int mca_coll_r2_mpi_count_t;
typedef const int *mca_coll_r2_mpi_counts_t;
typedef const int *mca_coll_r2_mpi_displs_t;
typedef const MPI_Aint *mca_coll_r2_mpi_far_displs_t;

static inline mca_coll_r2_counts_t mca_coll_r2_counts_of(mca_coll_r2_mpi_counts_t counts)
{
    return (mca_coll_r2_counts_t){.narrow = counts};
}

static inline mca_coll_r2_displs_t mca_coll_r2_displs_of(mca_coll_r2_mpi_displs_t displs)
{
    return (mca_coll_r2_displs_t){.narrow = displs};
}

static inline mca_coll_r2_displs_t mca_coll_r2_far_displs_of(mca_coll_r2_mpi_far_displs_t displs)
{
    return (mca_coll_r2_displs_t){.wide = displs};
}

#endif

/*
 * What makes a communicator call the functions of a module that is enabled. Up to 5.0 Open MPI
 * copies them when the module returns; since 6 each module puts them there by itself, and takes
 * them away when it is disabled.
 */
#if defined(MCA_COLL_BASE_VERSION_3_0_0)
#    define MCA_COLL_R2_INSTALL(comm, name, function, module) \
        MCA_COLL_INSTALL_API(comm, name, function, module, "r2")
#    define MCA_COLL_R2_SET_DISABLE(module, function) ((module)->coll_module_disable = (function))
#else
#    define MCA_COLL_R2_INSTALL(comm, name, function, module) \
        ((void) (comm), (void) (function), (void) (module))
#    define MCA_COLL_R2_SET_DISABLE(module, function) ((void) (function))
#endif

/* The context id: a number, since 5.0 two. */
static inline r2_comm_id_t mca_coll_r2_comm_id(const ompi_communicator_t *comm)
{
#if OMPI_MAJOR_VERSION < 5
    return (r2_comm_id_t){comm->c_contextid, 0};
#else
    return (r2_comm_id_t){comm->c_contextid.cid_base, comm->c_contextid.cid_sub.u64};
#endif
}

/*
 * The error of calls that end because a process has died: since 5.0 Open MPI has a class for it, as
 * in ULFM. For 4.1 one is made, as by MPI_Add_error_class(), which cannot be called in MPI_Init,
 * and a code in it: MPI_Error_class() of 4.1 knows the class of a code, but not of such a class.
 * @return an error code, MPI_ERR_OTHER without memory.
 */
static inline int mca_coll_r2_proc_failed_add(void)
{
#ifdef MPI_ERR_PROC_FAILED
    return MPI_ERR_PROC_FAILED;
#else
    static const char text[] = R2_MPI_PROC_FAILED " a process of the communicator has died";
    const int class = ompi_mpi_errclass_add();
    const int code = class < 0 ? class : ompi_mpi_errcode_add(class);

    if (code < 0 || OMPI_SUCCESS != ompi_mpi_errnum_add_string(class, text, sizeof(text)) ||
        OMPI_SUCCESS != ompi_mpi_errnum_add_string(code, text, sizeof(text)) ||
        OMPI_SUCCESS != ompi_attr_set_int(COMM_ATTR, MPI_COMM_WORLD, &MPI_COMM_WORLD->c_keyhash,
                                          MPI_LASTUSEDCODE, ompi_mpi_errcode_lastused, true)) {
        return MPI_ERR_OTHER;
    }
    return code;
#endif
}

/* ULFM: communicators are revoked. In 5.0, where Open MPI was built with it. */
#if OMPI_MAJOR_VERSION >= 5 && OPAL_ENABLE_FT_MPI
#    define MCA_COLL_R2_HAS_ULFM 1
#else
#    define MCA_COLL_R2_HAS_ULFM 0
#endif

/* Error of calls on a revoked communicator: without ULFM there is none. */
static inline int mca_coll_r2_revoked_error(void)
{
#if MCA_COLL_R2_HAS_ULFM
    return MPI_ERR_REVOKED;
#else
    return MPI_ERR_OTHER;
#endif
}

/* ULFM: the peer of a request is dead, or its communicator revoked. */
static inline bool mca_coll_r2_request_has_failed(ompi_request_t *request)
{
#if MCA_COLL_R2_HAS_ULFM
    return ompi_request_is_failed(request);
#else
    (void) request;
    return false;
#endif
}

/* Type of the function coll_<name> of Open MPI's module. */
#define MCA_COLL_R2_FN(name) __typeof__(*((mca_coll_base_module_t *) 0)->coll_##name)

#endif
