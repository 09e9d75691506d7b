/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a failed call is to the user: an error class, and once in words.
 */
#include "call.h"
#include "ulfm.h"

#include <string.h>

#include "opal/mca/common/r2/help.h"
#include "opal/runtime/opal.h"
#include "r2/log.h"

/* What failed, and why, in words. Once for each communicator: no later call on it works either. */
static void r2_error_tell(const mca_coll_r2_call_t *call, r2_status_t status)
{
    char text[R2_ERROR_TEXT_BYTES];
    const char *cause;

    if (__atomic_test_and_set(&call->module->told, __ATOMIC_RELAXED)) {
        return;
    }
    if (R2_ERR_FORKED == status) { /* no help message: the way to the launcher is the parent's */
        opal_output(0, "coll:r2: a collective call failed: %s", r2_status_string(status));
        return;
    }
    r2_ctx_error_text(mca_coll_r2_component.ctx, text, sizeof(text));
    cause = '\0' == text[0] ? r2_status_string(status) : text;
    if (0 == opal_process_info.my_local_rank) { /* mpirun may lose the help message */
        opal_output(0, "coll:r2: a collective call failed: %s", cause);
    }
    r2_log_lock();
    if (R2_ERR_PLAN_MISMATCH == status) {
        mca_common_r2_help("help-coll-r2.txt", "mismatch", r2_status_string(status), text);
    } else {
        mca_common_r2_help("help-coll-r2.txt",
                           R2_ERR_PEER_GONE == status ? "gone"
                           : R2_ERR_GPU == status     ? "gpu"
                                                      : "failed",
                           cause);
    }
    r2_log_unlock();
}

void mca_coll_r2_errors_init(void)
{
    mca_coll_r2_component.proc_failed = mca_coll_r2_proc_failed_add();
}

int mca_coll_r2_call_error(const mca_coll_r2_call_t *call, r2_status_t status)
{
    if (R2_OK == status) {
        return call->truncated ? MPI_ERR_TRUNCATE : OMPI_SUCCESS;
    }
    if (R2_ERR_NO_MEMORY == status) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (R2_ERR_REVOKED == status || R2_ERR_REVOKED == mca_coll_r2_ulfm_mark(call->module)) {
        /* Which the application knows; the launcher may not have told of a death behind it. */
        return mca_coll_r2_revoked_error();
    }
    r2_error_tell(call, status);
    if (R2_ERR_PEER_GONE == status) {
        return mca_coll_r2_component.proc_failed;
    }
    return R2_ERR_PLAN_MISMATCH == status ? MPI_ERR_COUNT : MPI_ERR_OTHER;
}
