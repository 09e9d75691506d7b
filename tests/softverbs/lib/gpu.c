/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of GPUs, as the kernel's peer memory has it (SOFTVERBS_PEER_MEMORY=1): the driver, here
 * tests/fakecuda, says where the NIC finds what lies behind an address that the CPU cannot touch.
 * With SOFTVERBS_PEER_MEMORY=refuse it is there, and registers nothing.
 */
#include "softverbs/lib/lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the driver's stand-in exports (fakecuda.h). */
typedef int (*nic_place_fn_t)(uint64_t at, size_t bytes, void **place_p);
typedef void (*nic_touch_fn_t)(uint64_t at, size_t bytes, int writes);

static nic_touch_fn_t touch_of_driver; /* atomic: not NULL once such memory was registered */

static bool is_set_to(const char *which)
{
    const char *word = getenv("SOFTVERBS_PEER_MEMORY");

    return NULL != word && 0 == strcmp(word, which);
}

bool sv_lib_has_peer_memory(void)
{
    return is_set_to("1") || is_set_to("refuse");
}

static nic_place_fn_t find_driver(nic_touch_fn_t *touch_p)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    nic_place_fn_t place = NULL;
    void *symbol;

    *touch_p = NULL;
    if (NULL != library) {
        symbol = dlsym(library, "fakecuda_nic_place");
        memcpy(&place, &symbol, sizeof(place));
        symbol = dlsym(library, "fakecuda_nic_touch");
        memcpy(touch_p, &symbol, sizeof(*touch_p));
        dlclose(library);
    }
    return NULL == *touch_p ? NULL : place;
}

int sv_lib_gpu_place(uint64_t at, size_t bytes, uint64_t *place_p)
{
    nic_touch_fn_t touch;
    const nic_place_fn_t find = find_driver(&touch);
    void *place = NULL;
    const int is_gpus = NULL == find ? 0 : find(at, bytes, &place);

    *place_p = at;
    if (0 == is_gpus) {
        return 0;
    }
    if (is_gpus < 0 || !is_set_to("1")) {
        return EFAULT;
    }
    *place_p = (uintptr_t) place;
    __atomic_store_n(&touch_of_driver, touch, __ATOMIC_RELEASE);
    return 0;
}

void sv_lib_gpu_touch(const struct ibv_send_wr *wr)
{
    const nic_touch_fn_t touch = __atomic_load_n(&touch_of_driver, __ATOMIC_ACQUIRE);
    const bool writes = IBV_WR_RDMA_READ == wr->opcode || IBV_WR_ATOMIC_CMP_AND_SWP == wr->opcode ||
                        IBV_WR_ATOMIC_FETCH_AND_ADD == wr->opcode;

    if (NULL == touch || 0 != (wr->send_flags & IBV_SEND_INLINE)) {
        return;
    }
    for (int i = 0; i < wr->num_sge; ++i) {
        touch(wr->sg_list[i].addr, wr->sg_list[i].length, writes);
    }
}
