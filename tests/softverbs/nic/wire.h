/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What NICs send each other in UDP datagrams. All hosts of a lab are one machine: host byte order.
 *
 * SEND and WRITE take a sequence number (psn) for each packet and are acknowledged. READ takes one
 * for each packet of its answer, ATOMIC takes one; only the answers move the requester over them.
 * A READ longer than the window is asked for in pieces. Every packet carries what it does, so a
 * responder keeps no more than the psn it expects and the receive that it is filling.
 */
#ifndef SV_WIRE_H
#define SV_WIRE_H

#include <stdbool.h>
#include <stdint.h>

enum { SV_MAGIC = 0x53564232, SV_UDP_PORT = 18600, SV_SEGMENT = 8192, SV_WINDOW = 64 };

typedef enum sv_op {
    SV_OP_SEND,
    SV_OP_WRITE,
    SV_OP_READ,
    SV_OP_ATOMIC,
    SV_OP_ANSWER,     /* data of a read or an atomic */
    SV_OP_ACK,        /* all before psn has arrived */
    SV_OP_NAK_GAP,    /* the same, and something behind it has arrived, too */
    SV_OP_NAK_RNR,    /* the same, and no receive is posted; value is the time to wait */
    SV_OP_NAK_ACCESS, /* a key does not allow it */
    SV_OP_NAK_LENGTH, /* the receive is too short, or the request makes no sense */
    SV_OP_NAK_FAILED, /* the responder failed by itself */
    SV_OP_DATAGRAM,
    SV_OPS
} sv_op_t;

enum { SV_WANTS_ACK = 1, SV_SOLICITED = 2, SV_HAS_IMM = 4, SV_COMPARES = 8 };

typedef struct sv_head {
    uint32_t magic;
    uint8_t op;      /* sv_op_t */
    uint8_t flags;   /* SV_WANTS_ACK and so on */
    uint16_t length; /* of the payload */
    uint32_t dest_qpn, source_qpn;
    uint32_t psn;
    uint32_t packets; /* READ: packets of the answer that is asked for */
    uint32_t offset;  /* of the payload in the message */
    uint32_t message_length;
    uint32_t rkey; /* DATAGRAM: the queue key */
    uint32_t imm;
    uint64_t remote_addr;
    uint64_t value, swap; /* operands of atomics */
} sv_head_t;

_Static_assert(64 == sizeof(sv_head_t), "no padding");

typedef struct sv_packet {
    uint32_t ip; /* where to, or where from; host order of bytes as in in_addr */
    uint32_t unused;
    sv_head_t head;
    uint8_t payload[SV_SEGMENT];
} sv_packet_t;

#endif
