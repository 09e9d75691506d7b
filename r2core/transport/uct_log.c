/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Keeps UCX's complaints about dead NICs and peers off the user's terminal.
 *
 * To r2 a dead NIC is input, not an error, but UCX prints an error for each. What UCX says in a
 * thread that is inside a call of this transport is dropped, and what it says in its own thread of
 * tcp, whose connections it accepts there, of events of RDMA devices, and of datagrams: other users
 * of UCX in the process keep their messages. A user who raises UCX_LOG_LEVEL above its default sees
 * everything.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>

/* UCX's log handlers have no argument: who is inside r2 can only be known per thread. */
static _Thread_local unsigned depth;

void r2_ucx_enter(void)
{
    ++depth;
}

void r2_ucx_leave(void)
{
    --depth;
}

/** Files of UCX that speak in its own thread: of tcp, of events, of datagrams. */
static bool r2_uct_is_async_file(const char *file)
{
    static const char *const names[] = {"tcp_", "ib_device", "ud_", "ib_log", "mpool"};

    for (size_t i = 0; i < r2_array_count(names); ++i) {
        if (NULL != strstr(file, names[i])) {
            return true;
        }
    }
    return false;
}

/** Is this UCX's own thread? */
static bool r2_uct_is_async_thread(void)
{
    char name[16] = "";

    return 0 == prctl(PR_GET_NAME, name) && 0 == strcmp(name, "async");
}

static ucs_log_func_rc_t r2_uct_on_message(const char *file, unsigned line, const char *function,
                                           ucs_log_level_t level,
                                           const ucs_log_component_config_t *component,
                                           const char *message, va_list args)
{
    bool is_noise = 0 != depth || (r2_uct_is_async_file(file) && r2_uct_is_async_thread());

    (void) line;
    (void) function;
    (void) component;
    (void) message;
    (void) args;
    return is_noise && UCS_LOG_LEVEL_FATAL != level ? UCS_LOG_FUNC_RC_STOP
                                                    : UCS_LOG_FUNC_RC_CONTINUE;
}

/** Did the user ask UCX for more than it says by default? */
static bool r2_uct_user_wants_messages(void)
{
    static const char *const quiet[] = {"fatal", "error", "warn"};
    char level[32] = "";

    if (UCS_OK != ucs_global_opts_get_value("LOG_LEVEL", level, sizeof(level))) {
        return true;
    }
    for (size_t i = 0; i < r2_array_count(quiet); ++i) {
        if (0 == strcasecmp(level, quiet[i])) {
            return false;
        }
    }
    return true;
}

bool r2_ucx_log_init(void)
{
    if (r2_uct_user_wants_messages()) {
        return false;
    }
    ucs_log_push_handler(r2_uct_on_message);
    return true;
}

void r2_ucx_log_fini(void)
{
    ucs_log_pop_handler();
}
