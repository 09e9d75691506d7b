/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which of Open MPI's one-sided components is used over r2.
 *
 * osc/rdma takes all windows, by get, put and atomic operations of this transport. Except, with
 * Open MPI 4.1, dynamic windows over several hosts: it takes a lock there twice and waits for
 * itself. These are left to osc/pt2pt, if that is selected.
 */
#include "btl_r2.h"

#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "opal/mca/common/r2/help.h"

static ompi_osc_base_component_query_fn_t r2_osc_rdma_query; /* of osc/rdma itself */

/*
 * More than OMPI_WIN_ACCUMULATE_OPS_SAME_OP: osc/rdma takes a window's accumulate lock for
 * MPI_Compare_and_swap, too. Without it a process of another host compares by this transport,
 * atomically, while one of the owner's host loads, compares and stores with the lock: updates were
 * lost.
 */
#define R2_OSC_ACC_OPS_ANY ((ompi_win_accumulate_ops_t) (OMPI_WIN_ACCUMULATE_OPS_SAME_OP + 1))

static ompi_osc_base_component_t *r2_osc_component(const char *name)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components,
                      mca_base_component_list_item_t) {
        if (0 == strcmp(name, item->cli_component->mca_component_name)) {
            return (ompi_osc_base_component_t *) (uintptr_t) item->cli_component;
        }
    }
    return NULL;
}

static int r2_osc_query(ompi_win_t *win, void **base, size_t size, mca_btl_r2_disp_unit_t disp_unit,
                        ompi_communicator_t *comm, opal_info_t *info, int flavor)
{
    if (MCA_BTL_R2_OSC_DYNAMIC_LOCKS && MPI_WIN_FLAVOR_DYNAMIC == flavor &&
        ompi_group_have_remote_peers(comm->c_local_group)) {
        if (NULL == r2_osc_component("pt2pt")) {
            mca_common_r2_help("help-btl-r2.txt", "dynamic window");
        }
        return -1;
    }
    win->w_acc_ops = R2_OSC_ACC_OPS_ANY;
    return r2_osc_rdma_query(win, base, size, disp_unit, comm, info, flavor);
}

/*
 * Open MPI 5.0's osc/rdma accumulates single elements by atomic operations. Where a window has
 * processes that no one transport reaches (spawned ones), it makes these of messages, and AND, OR
 * and XOR of 8 bytes and all LXOR are wrong. Without, it takes the window's lock.
 */
static void r2_osc_no_atomics(void)
{
    int var_idx = mca_base_var_find("ompi", "osc", "rdma", "acc_use_amo");
    mca_base_var_source_t source;
    bool *use = NULL;

    if (0 <= var_idx && OPAL_SUCCESS == mca_base_var_get_value(var_idx, &use, &source, NULL) &&
        MCA_BASE_VAR_SOURCE_DEFAULT == source && NULL != use) {
        *use = false;
    }
}

/* Its own connections would not survive a rail, and it would come before osc/pt2pt. */
static void r2_osc_not_ucx(void)
{
    int var_idx = mca_base_var_find("ompi", "osc", "ucx", "priority");
    mca_base_var_source_t source;
    unsigned *priority = NULL;

    if (0 <= var_idx && OPAL_SUCCESS == mca_base_var_get_value(var_idx, &priority, &source, NULL) &&
        MCA_BASE_VAR_SOURCE_DEFAULT == source && NULL != priority) {
        *priority = 0;
    }
}

void mca_btl_r2_osc_settle(void)
{
    ompi_osc_base_component_t *rdma;

    if (NULL != r2_osc_rdma_query) {
        return;
    }
    r2_osc_not_ucx();
    if (MCA_BTL_R2_OSC_ATOMICS_WRONG) {
        r2_osc_no_atomics();
    }
    rdma = r2_osc_component("rdma");
    if (NULL != rdma) {
        r2_osc_rdma_query = rdma->osc_query;
        rdma->osc_query = r2_osc_query;
    }
}
