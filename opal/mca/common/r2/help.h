/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Help texts of both components: cause and remedy, by file and topic. Compiled into both.
 */
#ifndef MCA_COMMON_R2_HELP_H
#define MCA_COMMON_R2_HELP_H

#include "opal_config.h"

#include <stdarg.h>

/**
 * Says where the files are: in the installation's data directory, or beside the component in a
 * build tree. Before the first text.
 * @param component any symbol of the component.
 */
void mca_common_r2_help_init(const void *component);

/**
 * Shows a text. With Open MPI up to 5.0 the launcher shows equal ones of several processes once;
 * since 6, which reads no files, each process writes its own to stderr.
 * @param file in these folders. @param topic names a text in it, a format for what follows.
 */
void mca_common_r2_help(const char *file, const char *topic, ...);

#endif
