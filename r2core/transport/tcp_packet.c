/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory for packets that come over TCP.
 */
#include "r2_config.h"

#include "transport/tcp.h"

#include <stdlib.h>
#include <utlist.h>

/* Of a worker: one read takes two at a time. */
#define SPARES_MAX 8

r2_tcp_packet_t *r2_tcp_packet_get(r2_tcp_worker_t *worker)
{
    r2_tcp_packet_t *packet = worker->spare;

    if (NULL != packet) {
        worker->spare = packet->next;
        --worker->spares;
    } else {
        packet = malloc(sizeof(*packet) + R2_TP_HEADER_MAX + R2_TCP_ALIGN_BYTES +
                        worker->device->segment_bytes);
    }
    if (NULL != packet) {
        packet->got_bytes = 0;
        packet->need_bytes = sizeof(packet->frame);
        packet->landing = NULL;
        packet->lent = false;
        packet->asked = false;
    }
    return packet;
}

void r2_tcp_packet_put(r2_tcp_worker_t *worker, r2_tcp_packet_t *packet)
{
    if (worker->spares == SPARES_MAX) {
        free(packet);
        return;
    }
    LL_PREPEND(worker->spare, packet);
    ++worker->spares;
}

bool r2_tcp_packet_is_spare(r2_tcp_worker_t *worker)
{
    if (NULL == worker->spare) {
        r2_tcp_packet_t *packet = r2_tcp_packet_get(worker);

        if (NULL == packet) {
            return false; /* what has come stays with the kernel */
        }
        r2_tcp_packet_put(worker, packet);
    }
    return true;
}
