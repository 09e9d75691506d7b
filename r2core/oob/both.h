/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Post driver "both": every message by two drivers.
 */
#ifndef R2_OOB_BOTH_H
#define R2_OOB_BOTH_H

#include "oob/post.h"

/**
 * Sends every message by both drivers, so that it arrives by the quicker one and, mostly, twice.
 * What only one of them knows is asked of that one, and of the first where both do.
 * @param first, second borrowed: outlive the driver; both with a descriptor.
 * @return R2_OK, R2_ERR_NO_DESCRIPTORS, R2_ERR_NO_MEMORY, R2_ERR_SYSTEM.
 */
r2_status_t r2_post_both_create(const r2_post_t *first, const r2_post_t *second, r2_post_t *post_p);
void r2_post_both_destroy(r2_post_t *post);

#endif
