/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What this process's PMIx server is, and whether it carries events.
 */
#include "r2_config.h"

#include <ctype.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "oob/oob.h"
#include "oob/pmix_event.h"

/* The name space of a server, as seen:
 *   prterun-HOST-PID@0, prte-HOST-PID@0   PRRTE
 *   917700608, [14003,0]                  Open MPI 4.1's mpirun
 *   slurm.pmix.JOB.STEP, pmix-server      Slurm (24.11 leaves the library's own name)
 * PRRTE does not tell its version. From 3.0.1 on it tells jobs their session (until 3.0.11, and
 * again from 4), and with PMIx 5 there is no older one.
 */

/** "4.2.2" out of a text such as "OpenPMIx 4.2.2 (PMIx Standard: ...)". */
const char *r2_oob_pmix_version(void)
{
    static char version[32];
    const char *text = PMIx_Get_version();
    const char *digits = strpbrk(text, "0123456789");

    if (NULL == digits) {
        return text;
    }
    snprintf(version, sizeof(version), "%.*s",
             (int) r2_min(strcspn(digits, ", ("), sizeof(version) - 1), digits);
    return version;
}

/** A value that is here since PMIx_Init(). NULL: none; else the caller releases it. */
static pmix_value_t *r2_server_value(const pmix_proc_t *proc, const char *name)
{
    pmix_value_t *value = NULL;
    pmix_info_t info;
    bool yes = true;

    PMIX_INFO_LOAD(&info, PMIX_OPTIONAL, &yes, PMIX_BOOL);
    return PMIX_SUCCESS == PMIx_Get(proc, name, &info, 1, &value) ? value : NULL;
}

static void r2_server_name(const pmix_proc_t *self, char *name_p, size_t bytes)
{
    pmix_value_t *value = r2_server_value(self, PMIX_SERVER_NSPACE);

    snprintf(name_p, bytes, "%s", "?");
    if (NULL != value) {
        if (PMIX_STRING == value->type && NULL != value->data.string) {
            snprintf(name_p, bytes, "%s", value->data.string);
        }
        PMIX_VALUE_RELEASE(value);
    }
}

static bool r2_server_tells_session(const pmix_proc_t *self)
{
    pmix_value_t *value;
    pmix_proc_t job;

    PMIX_LOAD_PROCID(&job, self->nspace, PMIX_RANK_WILDCARD);
    value = r2_server_value(&job, PMIX_SESSION_ID);
    if (NULL == value) {
        return false;
    }
    PMIX_VALUE_RELEASE(value);
    return true;
}

r2_pmix_server_t r2_pmix_server_find(char *name_p, size_t name_bytes)
{
    r2_pmix_server_t server = R2_PMIX_SERVER_UNKNOWN;
    pmix_proc_t self;

    snprintf(name_p, name_bytes, "%s", "?");
    if (PMIX_SUCCESS != PMIx_Init(&self, NULL, 0)) {
        return server;
    }
    r2_server_name(&self, name_p, name_bytes);
    if (0 == strncmp(name_p, "slurm", 5) || 0 == strcmp(name_p, "pmix-server") ||
        '[' == name_p[0] || isdigit((unsigned char) name_p[0])) {
        server = R2_PMIX_SERVER_BREAKS;
    } else if (0 == strncmp(name_p, "prte", 4) &&
               (atoi(r2_oob_pmix_version()) >= 5 || r2_server_tells_session(&self))) {
        server = R2_PMIX_SERVER_CARRIES;
    }
    PMIx_Finalize(NULL, 0); /* counts references */
    return server;
}
