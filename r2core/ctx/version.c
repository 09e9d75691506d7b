/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Versions of r2 and of the libraries it runs on.
 */
#include "r2_config.h"

#include "r2/version.h"

#include <hwloc.h>
#include <sodium.h>
#include <stdio.h>

#include "base/util.h"
#include "oob/oob.h"
#include "r2/transport.h"

const char *r2_version(void)
{
    return PACKAGE_VERSION;
}

const r2_library_t *r2_libraries(size_t *count_p)
{
    static char hwloc[32];
    static r2_library_t libraries[4];
    const unsigned api = hwloc_get_api_version();

    snprintf(hwloc, sizeof(hwloc), "API %u.%u.%u", api >> 16, api >> 8 & 0xff, api & 0xff);
    libraries[0] = (r2_library_t){"UCX", r2_tp_ucx_version()};
    libraries[1] = (r2_library_t){"PMIx", r2_oob_pmix_version()};
    libraries[2] = (r2_library_t){"hwloc", hwloc};
    libraries[3] = (r2_library_t){"libsodium", sodium_version_string()};
    *count_p = r2_array_count(libraries);
    return libraries;
}
