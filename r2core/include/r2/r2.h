/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * All public headers of r2core.
 */
#ifndef R2_H
#define R2_H

#include "r2/coll.h"
#include "r2/counters.h"
#include "r2/ctx.h"
#include "r2/gpu.h"
#include "r2/log.h"
#include "r2/nic.h"
#include "r2/p2p.h"
#include "r2/params.h"
#include "r2/status.h"
#include "r2/version.h"

#endif
