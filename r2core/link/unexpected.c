/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Unexpected messages: messages that nobody announced. Their receiver learns of them here and posts
 * a receive then. Links take turns, so that one peer's calls never bar another's.
 */
#include "r2_config.h"

#include <utlist.h>

#include "link/rx.h"

void r2_rx_unexpected(r2_link_t *link, r2_rx_match_t *match, uint64_t bytes, bool complete)
{
    r2_unexpected_t which = complete ? R2_UNEXPECTED_COMPLETE : R2_UNEXPECTED_ASKING;
    r2_unexpected_queue_t *queue = &link->rx.unexpected[which];

    r2_rx_expected(link, match);
    if (R2_LINK_UNEXPECTED_KEY != match->tag.comm_key || match->posted) {
        return;
    }
    match->bytes = bytes;
    match->unexpected = which;
    if (NULL == queue->matches) {
        queue->link = link;
        DL_APPEND(link->net->unexpected[which], queue);
        ++link->net->unexpected_count[which];
    }
    DL_APPEND(queue->matches, match);
}

void r2_rx_expected(r2_link_t *link, r2_rx_match_t *match)
{
    r2_unexpected_queue_t *queue = &link->rx.unexpected[match->unexpected];

    if (R2_UNEXPECTED_NONE == match->unexpected) {
        return;
    }
    DL_DELETE(queue->matches, match);
    if (NULL == queue->matches) {
        DL_DELETE(link->net->unexpected[match->unexpected], queue);
        --link->net->unexpected_count[match->unexpected];
    }
    match->unexpected = R2_UNEXPECTED_NONE;
}

bool r2_net_unexpected(const r2_net_t *net, r2_unexpected_t which, r2_link_t **link_p,
                       r2_tag_t *tag_p, uint64_t *bytes_p)
{
    const r2_unexpected_queue_t *queue = net->unexpected[which];

    if (NULL == queue) {
        return false;
    }
    *link_p = queue->link;
    *tag_p = queue->matches->tag;
    *bytes_p = queue->matches->bytes;
    return true;
}

void r2_net_unexpected_turn(r2_net_t *net, r2_unexpected_t which)
{
    r2_unexpected_queue_t *queue = net->unexpected[which];

    if (NULL != queue) {
        DL_DELETE(net->unexpected[which], queue);
        DL_APPEND(net->unexpected[which], queue);
    }
}
