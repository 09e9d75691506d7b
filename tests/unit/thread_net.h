/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A transport between ranks that are threads of one process: real time, real locks, real
 * descriptors.
 */
#ifndef R2_TESTS_THREAD_NET_H
#define R2_TESTS_THREAD_NET_H

#include "r2/transport.h"

typedef struct thread_net thread_net_t;

/** The wires between all ranks. */
thread_net_t *thread_net_create(void);
/** After all contexts are gone. */
void thread_net_destroy(thread_net_t *net);

/** The transport of one rank. Valid until thread_net_destroy(). */
r2_tp_t thread_net_rank(thread_net_t *net);

#endif
