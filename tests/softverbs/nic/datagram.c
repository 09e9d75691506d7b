/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Unreliable datagrams: sent once, dropped where there is no receive, told nowhere.
 */
#include "softverbs/nic/nic.h"

#include <string.h>

enum { QKEY_OF_QP = 1u << 31, GRH_IPV4 = 20 };

static enum ibv_wc_status send_one(sv_qp_t *qp, const sv_send_t *send)
{
    sv_packet_t *packet;
    sv_head_t *head;

    if (send->length > SV_UD_BYTES || send->length > SV_SEGMENT) {
        return IBV_WC_LOC_LEN_ERR;
    }
    packet = sv_packet_new(
        qp->dev, qp->dev->about.is_ib ? sv_ip_of_lid(qp->dev, send->dest_ip) : send->dest_ip,
        send->dest_qpn, qp->number, SV_OP_DATAGRAM);
    head = &packet->head;
    if (SV_REACHED != sv_gather(qp, send, 0, packet->payload, send->length)) {
        sv_packet_drop(qp->dev);
        return IBV_WC_LOC_PROT_ERR;
    }
    head->length = (uint16_t) send->length;
    head->message_length = send->length;
    head->rkey = 0 != (send->qkey & QKEY_OF_QP) ? qp->attr.qkey : send->qkey;
    head->imm = send->imm;
    head->flags = (uint8_t) ((0 != (send->flags & IBV_SEND_SOLICITED) ? SV_SOLICITED : 0) |
                             (IBV_WR_SEND_WITH_IMM == send->opcode ? SV_HAS_IMM : 0));
    return IBV_WC_SUCCESS;
}

void sv_ud_posted(sv_qp_t *qp)
{
    while (qp->fresh != sv_ring_tail(&qp->sends)) {
        const sv_send_t *send = sv_ring_at(&qp->sends, qp->fresh);
        enum ibv_wc_status status = IBV_WC_WR_FLUSH_ERR;
        if (IBV_QPS_ERR != qp->attr.qp_state) {
            status = send_one(qp, send);
        }
        sv_complete_send(qp, qp->fresh, status);
        qp->first = ++qp->fresh;
        if (IBV_WC_SUCCESS != status) {
            sv_rc_error(qp, IBV_WC_WR_FLUSH_ERR);
        }
    }
}

void sv_ud_arrived(sv_qp_t *qp, const sv_packet_t *packet)
{
    const sv_head_t *head = &packet->head;
    uint8_t grh[SV_GRH_BYTES] = {[GRH_IPV4] = 0x45}; /* RoCE v2: an IPv4 header at its end */
    uint32_t size = head->length + (uint32_t) sizeof(grh);
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    sv_reach_t reach;
    sv_recv_t recv;

    if (head->rkey != qp->attr.qkey || !sv_take_recv(qp, &recv)) {
        return;
    }
    memcpy(grh + GRH_IPV4 + 12, &packet->ip, sizeof(packet->ip));
    memcpy(grh + GRH_IPV4 + 16, &qp->dev->about.ip, sizeof(packet->ip));
    reach = sv_scatter(qp, recv.sge, (uint32_t) recv.sge_count, 0, grh, sizeof(grh));
    if (SV_REACHED == reach) {
        reach = sv_scatter(qp, recv.sge, (uint32_t) recv.sge_count, sizeof(grh), packet->payload,
                           head->length);
    }
    if (SV_REACHED != reach) {
        status = SV_TOO_SHORT == reach ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR;
    }
    sv_complete_recv(qp, &recv, head, status, IBV_WC_RECV, size, IBV_WC_GRH);
}
