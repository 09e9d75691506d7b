/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls: messages that nobody announced. Their receiver learns of them here and posts a row then. Links take
 * turns, so that one peer's calls never bar another's.
 */
#include "r2_config.h"

#include <utlist.h>

#include "link/rx.h"

void r2_rx_call(r2_link_t *link, r2_rx_match_t *match, uint64_t bytes, bool complete)
{
    r2_call_t which = complete ? R2_CALL_COMPLETE : R2_CALL_ASKING;
    r2_callers_t *callers = &link->rx.calls[which];

    r2_rx_uncall(link, match);
    if (R2_LINK_CALL_KEY != match->tag.comm_key || match->posted) {
        return;
    }
    match->bytes = bytes;
    match->calling = which;
    if (NULL == callers->calls) {
        callers->link = link;
        DL_APPEND(link->net->callers[which], callers);
        ++link->net->caller_count[which];
    }
    DL_APPEND(callers->calls, match);
}

void r2_rx_uncall(r2_link_t *link, r2_rx_match_t *match)
{
    r2_callers_t *callers = &link->rx.calls[match->calling];

    if (R2_CALL_NONE == match->calling) {
        return;
    }
    DL_DELETE(callers->calls, match);
    if (NULL == callers->calls) {
        DL_DELETE(link->net->callers[match->calling], callers);
        --link->net->caller_count[match->calling];
    }
    match->calling = R2_CALL_NONE;
}

bool r2_net_call(const r2_net_t *net, r2_call_t which, r2_link_t **link_p, r2_tag_t *tag_p,
                 uint64_t *bytes_p)
{
    const r2_callers_t *callers = net->callers[which];

    if (NULL == callers) {
        return false;
    }
    *link_p = callers->link;
    *tag_p = callers->calls->tag;
    *bytes_p = callers->calls->bytes;
    return true;
}

void r2_net_call_turn(r2_net_t *net, r2_call_t which)
{
    r2_callers_t *callers = net->callers[which];

    if (NULL != callers) {
        DL_DELETE(net->callers[which], callers);
        DL_APPEND(net->callers[which], callers);
    }
}
