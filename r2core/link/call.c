/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls: messages that nobody announced. Their receiver learns of them here and posts a row then.
 */
#include "r2_config.h"

#include <utlist.h>

#include "link/rx.h"

void r2_rx_call(r2_link_t *link, r2_rx_match_t *match, uint64_t bytes, bool complete)
{
    r2_rx_uncall(link, match);
    if (R2_LINK_CALL_KEY != match->tag.comm_key || match->posted) {
        return;
    }
    match->link = link;
    match->bytes = bytes;
    match->calling = complete ? R2_CALL_COMPLETE : R2_CALL_ASKING;
    DL_APPEND(link->net->calls[match->calling], match);
}

void r2_rx_uncall(r2_link_t *link, r2_rx_match_t *match)
{
    if (R2_CALL_NONE != match->calling) {
        DL_DELETE(link->net->calls[match->calling], match);
        match->calling = R2_CALL_NONE;
    }
}

void r2_net_call_refuse(r2_net_t *net, r2_call_t which)
{
    r2_rx_match_t *match = net->calls[which];

    ++net->counters->rx_malformed;
    r2_rx_match_drop(match->link, match);
}

bool r2_net_call(const r2_net_t *net, r2_call_t which, r2_link_t **link_p, r2_tag_t *tag_p,
                 uint64_t *bytes_p)
{
    const r2_rx_match_t *match = net->calls[which];

    if (NULL == match) {
        return false;
    }
    *link_p = match->link;
    *tag_p = match->tag;
    *bytes_p = match->bytes;
    return true;
}
