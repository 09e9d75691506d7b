/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages in memory of a GPU, which NICs read there. What has to be sent again, or over a lane
 * whose NIC cannot, is fetched: whoever sends it copies it to where the CPU can read it, while the
 * call lasts. Until then the rest of it waits; what is under way stays so.
 */
#include "r2_config.h"

#include "link/tx.h"

bool r2_lane_reads_gpus(const r2_lane_t *lane)
{
    const r2_tp_ops_t *ops = lane->rail->tp->ops;

    return !r2_lane_is_relay(lane) && NULL != lane->conn && NULL != lane->conn->ep &&
           NULL != ops->ep_reads_gpus && ops->ep_reads_gpus(lane->conn->ep);
}

bool r2_link_reads_gpus(const r2_link_t *link)
{
    uint32_t able = 0;

    for (uint32_t i = 0; !link->same_host && i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (r2_lane_is_relay(lane) || !r2_lane_is_usable(lane)) {
            continue;
        }
        if (!r2_lane_reads_gpus(lane)) {
            return false;
        }
        ++able;
    }
    return able > 0;
}

bool r2_link_puts_to_gpus(const r2_link_t *link)
{
    return link->net->params->put && r2_link_reads_gpus(link);
}

/* @return true: there are lanes that are sound (or usable), and none of them can. */
static bool r2_link_is_unable(const r2_link_t *link, bool sound)
{
    bool can_send = false;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (sound ? r2_lane_is_sound(lane) : r2_lane_is_usable(lane)) {
            if (r2_lane_reads_gpus(lane)) {
                return false;
            }
            can_send = true;
        }
    }
    return can_send;
}

/* As packets choose: sound lanes, or where there is none, usable ones. */
bool r2_message_is_stuck(const r2_tx_message_t *message)
{
    const r2_link_t *link = message->link;
    bool sound = false;

    for (uint32_t i = 0; message->on_gpu && i < link->lane_count; ++i) {
        sound = sound || r2_lane_is_sound(&link->lanes[i]);
    }
    return message->on_gpu && r2_link_is_unable(link, sound);
}

void r2_message_fetch(r2_tx_message_t *message)
{
    if (message->on_gpu && !message->fetching && !message->withdrawn) {
        message->fetching = true;
        ++message->link->net->counters->fetched_messages;
        message->fetch(message->arg);
    }
}
