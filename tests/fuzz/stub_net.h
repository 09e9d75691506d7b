/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A net of one process with one peer that the caller plays: transport and hello do what they are
 * told.
 */
#ifndef R2_TESTS_STUB_NET_H
#define R2_TESTS_STUB_NET_H

#include "link/state.h"

#define STUB_RAILS 2

/** A send that the transport has not completed. */
typedef struct stub_send {
    struct stub_send *prev, *next;
    struct r2_tp_ep *ep;
    r2_tp_send_t *op;
} stub_send_t;

/** How the stub transport takes the next sends. */
typedef enum stub_mode { STUB_AT_ONCE, STUB_LATER, STUB_BROKEN, STUB_STARVED } stub_mode_t;

typedef struct stub_net {
    r2_net_t net;
    r2_clock_t clock;
    r2_params_t params;
    r2_counters_t counters;
    r2_log_t log;
    r2_hello_upcalls_t upcalls;
    uint64_t time_ns, random;
    r2_link_t *link;    /* to rank 1 */
    stub_send_t *sends; /* owned list */
    uint32_t send_count;
    stub_mode_t mode;
    bool complete;             /* the next progress call completes all sends */
    r2_status_t complete_as;   /* so */
    bool moves_wait;           /* puts and gets without a header do, until then */
    uint64_t moved_to;         /* address of the newest */
    uint64_t peer_domain;      /* that the peer offers */
    const void *header, *data; /* packet for the next progress call; header NULL: none */
    size_t header_bytes, data_bytes;
    uint64_t connect_id;  /* of the newest connect request */
    uint64_t over_key;    /* communicators with this bit in their key are over */
    struct r2_tp_ep *eps; /* owned list: open */
    uint32_t workers;     /* open */
    uint32_t grants;      /* not given back: a lane's that is told to be of RDMA, with `put` */
    const void *granted;  /* the newest, and whose memory it is (r2_tp_memory_t) */
    uint64_t granted_gpu;
    bool reads_gpus; /* lanes do */
    uint32_t hellos; /* of ours, made up */
    uint32_t strays; /* messages that no row took, where the user counts them */
    bool mute;       /* the workers' descriptors, if there are any, do not tell of input */
    const struct r2_tp_worker *busy; /* each look at it finds something; NULL: at none */
    uint32_t looks;                  /* calls of worker_progress() */
    uint32_t lands_off;              /* calls of ep_land_off() */
    uint64_t path_bytes_per_s;       /* of all lanes; 0: not known */
    uint64_t path_window_bytes;      /* their kernels' */
    uint32_t arms;                   /* calls of worker_arm() */
    bool no_device;                  /* no endpoint can be made */
    bool no_room;                    /* there are no descriptors */
    bool unconnected;                /* nobody is at the other end of connect requests */
    bool old_words;                  /* what the peer says it has said when it started */
    const uint8_t *inbox; /* borrowed: what the peer publishes of its own; NULL: another host */
} stub_net_t;

/** Its instance is the stub_net_t. */
extern const r2_tp_ops_t stub_tp_ops;

/** Makes rank 0 of 2 with STUB_RAILS rails and its link to rank 1, all lanes down. */
stub_net_t *stub_net_create(void);
/** The same with so many rails, 1 to R2_RAILS_MAX. */
stub_net_t *stub_net_create_wide(uint32_t rails);
/** The same in a job of more processes, each on a host of its own. */
stub_net_t *stub_net_create_of(uint32_t size);
/**
 * The same with a peer on this host, so that there is one lane only, and with mailboxes.
 * @param inbox R2_INBOX_ADDRESS_BYTES, outlives it.
 */
stub_net_t *stub_net_create_local(const uint8_t *inbox);
void stub_net_destroy(stub_net_t *stub);
/** Gives the workers descriptors and the net one epoll of them. Before any lane is up. */
void stub_net_watch(stub_net_t *stub);
/** Makes the descriptor of a rail's worker readable, or not. */
void stub_net_signal(stub_net_t *stub, uint32_t rail, bool event);

/** Has a lane called, or its call answered; the peer's HELLO does not come. */
void stub_lane_wire(stub_net_t *stub, uint32_t lane);
/** For so long all connect requests to the peer are refused. */
void stub_refuse(stub_net_t *stub, uint64_t ns);
/** Opens a lane as a well-behaved peer would. */
void stub_lane_up(stub_net_t *stub, uint32_t lane);
/** A hello request from rank 1 with the given bytes. */
void stub_hello(stub_net_t *stub, uint32_t rail, const void *bytes, size_t count);
/** Bytes of a right offer of rank 1 for a lane. @return length. @param offer_p
 * R2_HELLO_BYTES_MAX. */
size_t stub_offer(stub_net_t *stub, uint32_t rail, uint32_t verdict, void *offer_p);
/** A packet arrives. The data is copied to memory of exactly its size. */
void stub_packet(stub_net_t *stub, const void *header, size_t header_bytes, const void *data,
                 size_t data_bytes);
/** The peer has all that was sent, and has used it. */
void stub_acknowledge(stub_net_t *stub, const r2_lane_t *lane);
/** The peer says something on a lane that has nothing to do with what is under way. */
void stub_speak(stub_net_t *stub, const r2_lane_t *lane);

#endif
