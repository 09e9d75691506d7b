# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Public headers of r2core, installed in $(includedir)/r2.
r2include_HEADERS += \
    r2core/include/r2/coll.h \
    r2core/include/r2/counters.h \
    r2core/include/r2/ctx.h \
    r2core/include/r2/device_cost.h \
    r2core/include/r2/gpu.h \
    r2core/include/r2/gpu_rates.h \
    r2core/include/r2/kernel.h \
    r2core/include/r2/log.h \
    r2core/include/r2/mem_kind.h \
    r2core/include/r2/nic.h \
    r2core/include/r2/p2p.h \
    r2core/include/r2/params.h \
    r2core/include/r2/r2.h \
    r2core/include/r2/status.h \
    r2core/include/r2/tp_key.h \
    r2core/include/r2/verdict.h \
    r2core/include/r2/version.h

# For programs of this tree (docs/architecture.md): not installed.
noinst_HEADERS += \
    r2core/include/r2/cost_params.h \
    r2core/include/r2/fds.h \
    r2core/include/r2/json.h \
    r2core/include/r2/macros.h \
    r2core/include/r2/near.h \
    r2core/include/r2/planner.h \
    r2core/include/r2/prng.h \
    r2core/include/r2/schedule.h \
    r2core/include/r2/topology.h \
    r2core/include/r2/transport.h \
    r2core/include/r2/units.h

# The tables that the public headers include as "base/NAME.def".
r2includebasedir = $(r2includedir)/base
r2includebase_HEADERS = \
    r2core/base/coll_kinds.def \
    r2core/base/counters.def \
    r2core/base/kernels.def \
    r2core/base/params.def \
    r2core/base/status.def
