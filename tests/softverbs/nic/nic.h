/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The NIC of a host: devices, and what processes have opened on them. One thread, no locks.
 *
 * Files, bottom to top; none calls one further on:
 *   table    numbered objects
 *   fault    the NIC's own faults
 *   memory   keys, memory of processes
 *   queue    completions, receives, events
 *   packet   packets to send, packets that wait
 *   request  RC: the side that makes requests, errors of queue pairs
 *   answer   RC: the side that answers requests
 *   datagram  UD
 *   arrive   a packet that has come, timers
 *   object   what is made and goes
 *   inject   faults that are given, events of ports
 *   sockets  the network of a host
 *   files    what stands in /sys/class/infiniband
 *   control  requests of processes
 *   commands  listing, counters and faults of a NIC that runs
 *   main     the program
 *
 * What touches the world outside is in sv_world_t, so that tests have a world of their own.
 */
#ifndef SV_NIC_H
#define SV_NIC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "softverbs/abi.h"
#include "softverbs/nic/wire.h"
#include "softverbs/ring.h"

enum { SV_BATCH = 32, SV_QP_PLACES = 65536 };

typedef struct sv_nic sv_nic_t;
typedef struct sv_dev sv_dev_t;
typedef struct sv_context sv_context_t;
typedef struct sv_qp sv_qp_t;

/* Numbered objects. Numbers begin at 1 and come back as late as they can. */
typedef struct sv_table {
    void **at; /* owned; the objects are not */
    uint32_t size, last;
} sv_table_t;

/* The world of a NIC. */
typedef struct sv_world {
    /* Sends packets; those that cannot go are lost. */
    void (*send)(sv_dev_t *dev, sv_packet_t *packets, int count);
    /* Memory of the process of a context: true where all of it is there. */
    bool (*read)(sv_context_t *context, void *to, const struct iovec *from, int count);
    bool (*write)(sv_context_t *context, uint64_t to, const void *from, size_t size);
    /* One of the process's descriptors gets an event or, for channels, a number. */
    void (*tell)(int fd, const void *what, size_t size);
} sv_world_t;

typedef struct sv_mr {
    sv_context_t *context;
    uint64_t addr, length, iova;
    uint32_t key, pd, access;
} sv_mr_t;

typedef struct sv_channel {
    int fd;
} sv_channel_t;

typedef struct sv_cq {
    sv_context_t *context;
    sv_ring_t ring;
    sv_channel_t *channel; /* borrowed, or NULL */
    uint32_t number;
    uint32_t users; /* queue pairs */
    bool has_overrun;
} sv_cq_t;

typedef struct sv_srq {
    sv_ring_t ring;
    uint32_t number, pd;
    uint32_t users; /* queue pairs */
    uint32_t taken; /* receives */
    uint32_t limit; /* an event comes when fewer are left; 0 is none */
} sv_srq_t;

/* Where a send stands on the wire. */
typedef struct sv_flight {
    uint32_t psn, packets;
} sv_flight_t;

struct sv_qp {
    sv_context_t *context;
    sv_dev_t *dev;
    sv_cq_t *send_cq, *recv_cq; /* borrowed: the application destroys them later */
    sv_srq_t *srq;              /* borrowed, or NULL */
    sv_ring_t sends, recvs;
    sv_flight_t *flights; /* owned; of each place of `sends` */
    struct ibv_qp_attr attr;
    uint32_t number, slot, pd, type, peer_ip;
    bool signals_all;

    /* the side that requests */
    uint32_t first, current, fresh; /* sends: oldest, the one that next_psn is in, not yet seen */
    uint32_t una_psn, next_psn, end_psn;
    uint32_t answers; /* reads and atomics in flight */
    uint32_t retries, rnr_retries;
    uint32_t window;        /* packets under way since no receive was posted; 0: SV_WINDOW */
    uint32_t went_back_psn; /* una_psn when it last went back for a gap */
    bool has_gone_back;
    uint64_t deadline_ns, rnr_until_ns; /* 0: none */

    /* the side that answers */
    uint32_t expected_psn;
    uint32_t out_of_order; /* packets in a row */
    uint32_t recvs_taken;
    bool is_receiving, owes_ack;
    sv_recv_t recv; /* being filled */
    struct {
        uint64_t value;
        uint32_t psn;
        bool is_set;
    } atomics[SV_RD_ATOMICS]; /* answers kept for requests that are repeated */
    uint32_t atomics_done;

    sv_qp_t *next_touched; /* in dev->touched */
    bool is_touched;
    sv_qp_t *prev, *next; /* in dev->qps */
};

#define SV_COUNTERS_OF(X) \
    X(registered)         \
    X(sent)               \
    X(received)           \
    X(resent)             \
    X(timeouts)           \
    X(naks)               \
    X(bad_keys)           \
    X(unmapped)           \
    X(overruns)           \
    X(dropped)            \
    X(delayed) X(keys_changed) X(untold) X(late_landed) X(late_refused) X(given_back) X(refused)

#define SV_COUNTER_FIELD(name) uint64_t name;
typedef struct sv_counters {
    SV_COUNTERS_OF(SV_COUNTER_FIELD)
} sv_counters_t;

/* A packet that waits: delayed by a fault, or sent to the device itself. */
typedef struct sv_held {
    struct sv_held *next;
    uint64_t due_ns;
    bool is_late_write;
    sv_packet_t packet;
} sv_held_t;

struct sv_dev {
    sv_nic_t *nic;
    sv_device_t about;
    bool has_own_ip; /* it was given one, which the netdev's address does not change */
    int socket;
    bool sends_singly;                  /* its netdev does not take several packets as one */
    bool has_carrier, is_down, is_dead; /* of its netdev; by a fault; after DEVICE_FATAL */
    uint32_t gid_index, other_index, speed, width;
    uint64_t wake_ns; /* when the earliest timer or waiting packet is due */

    sv_qp_t **places; /* owned; by the low bits of the number */
    uint32_t next_qpn;
    sv_qp_t *qps, *touched;
    sv_table_t mrs;
    sv_held_t *held;
    sv_packet_t *batch; /* owned; SV_BATCH of them */
    int batched;

    struct {
        uint32_t per_million, value;
        uint64_t random;
    } faults[SV_FAULT_KINDS];
    sv_counters_t counters;
};

/* A device that a process has opened. */
struct sv_context {
    sv_nic_t *nic;
    sv_dev_t *dev;
    sv_context_t *next;
    pid_t pid;
    bool is_gone;              /* freed at the end of this round */
    bool is_dead;              /* since DEVICE_FATAL, for good */
    int socket, pidfd, events; /* events: -1 before it is opened */
    sv_bells_t *bells;         /* mapped */
    uint64_t given;            /* where the process has its sv_given_t; 0: it has none */
    sv_qp_t **qps;             /* owned; by slot */
    uint32_t next_slot;
    sv_table_t cqs, srqs, channels;
};

struct sv_nic {
    const sv_world_t *world;
    sv_nic_page_t *page; /* mapped */
    uint64_t now_ns;
    uint32_t segment;              /* bytes of a packet's payload */
    uint64_t least_timeout_ns;     /* no retransmission is earlier */
    sv_dev_t *devices[SV_DEVICES]; /* owned */
    uint32_t device_count;
    sv_context_t *contexts;
    char files[128];
    bool moves_gids; /* to the next index when a link comes back */
    bool is_ib;      /* its ports are InfiniBand's */
    int poll, wake, page_fd, listener, links;
};

/* ---- table.c */
uint32_t sv_table_add(sv_table_t *table, void *object); /* 0: no memory */
void *sv_table_get(const sv_table_t *table, uint32_t number);
void *sv_table_remove(sv_table_t *table, uint32_t number);
void sv_table_fini(sv_table_t *table);

/* ---- fault.c */
bool sv_fault_hits(sv_dev_t *dev, sv_fault_kind_t kind);

/* ---- memory.c */
typedef enum sv_reach { SV_REACHED, SV_TOO_SHORT, SV_BAD_KEY } sv_reach_t;

/* The memory behind a key, for a queue pair: its address, where the key allows it. */
bool sv_key_allows(sv_qp_t *qp, uint32_t key, uint64_t addr, uint64_t size, uint32_t access,
                   uint64_t *addr_p);
/* Bytes of a posted send -> a packet. */
sv_reach_t sv_gather(sv_qp_t *qp, const sv_send_t *send, uint32_t offset, uint8_t *to,
                     uint32_t size);
/* A packet -> pieces of memory, from an offset on. */
sv_reach_t sv_scatter(sv_qp_t *qp, const struct ibv_sge *sge, uint32_t count, uint32_t offset,
                      const uint8_t *from, uint32_t size);
void sv_read(sv_qp_t *qp, void *to, uint64_t from, size_t size);
void sv_write(sv_qp_t *qp, uint64_t to, const void *from, size_t size);
/* The same for a peer, who may not write to what was given back: that is counted. */
void sv_write_for_peer(sv_qp_t *qp, uint64_t to, const void *from, size_t size);

/* ---- queue.c */
void sv_tell_event(sv_context_t *context, uint32_t type, uint32_t object);
void sv_complete(sv_cq_t *cq, const struct ibv_wc *wc, uint32_t flags, uint32_t send_next);
/* A send is over. */
void sv_complete_send(sv_qp_t *qp, uint32_t number, enum ibv_wc_status status);
void sv_complete_recv(sv_qp_t *qp, const sv_recv_t *recv, const sv_head_t *head,
                      enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t size,
                      uint32_t flags);
/* Takes the next receive; false where none is posted. */
bool sv_take_recv(sv_qp_t *qp, sv_recv_t *recv_p);
void sv_flush_recvs(sv_qp_t *qp);

/* ---- packet.c */
bool sv_is_up(const sv_dev_t *dev);
/* The next packet to send; the caller sets what differs from 0. */
sv_packet_t *sv_packet_new(sv_dev_t *dev, uint32_t ip, uint32_t dest_qpn, uint32_t source_qpn,
                           sv_op_t op);
void sv_packet_drop(sv_dev_t *dev); /* takes the last one back */
void sv_packet_flush(sv_dev_t *dev);
void sv_packet_hold(sv_dev_t *dev, const sv_packet_t *packet, uint64_t due_ns, bool is_late_write);
void sv_wake_at(sv_dev_t *dev, uint64_t when_ns);
void sv_touch(sv_qp_t *qp); /* something is to be sent at the end of this round */

/* ---- answer.c */
void sv_rc_control(sv_qp_t *qp, sv_op_t op); /* an acknowledgement, of whichever kind */
void sv_rc_request(sv_qp_t *qp, sv_packet_t *packet);
void sv_rc_late_write(sv_qp_t *qp, const sv_packet_t *packet);

/* ---- request.c */
void sv_rc_error(sv_qp_t *qp, enum ibv_wc_status status);
void sv_rc_posted(sv_qp_t *qp);
void sv_rc_push(sv_qp_t *qp);
void sv_rc_acked(sv_qp_t *qp, const sv_packet_t *packet);
void sv_rc_answer(sv_qp_t *qp, const sv_packet_t *packet);
void sv_rc_timer(sv_qp_t *qp);

/* ---- datagram.c */
void sv_ud_posted(sv_qp_t *qp);
void sv_ud_arrived(sv_qp_t *qp, const sv_packet_t *packet);

/* ---- arrive.c */
void sv_arrived(sv_dev_t *dev, sv_packet_t *packet);
void sv_round_end(sv_dev_t *dev); /* acknowledges and sends, after packets have come */
void sv_timers(sv_dev_t *dev);
void sv_posted(sv_qp_t *qp); /* its doorbell has rung */

/* ---- object.c */
sv_dev_t *sv_dev_create(sv_nic_t *nic, const sv_device_t *about);
uint16_t sv_lid(const sv_dev_t *dev); /* 0: none */
uint32_t sv_ip_of_lid(const sv_dev_t *dev, uint32_t lid);
void sv_dev_destroy(sv_dev_t *dev);
void sv_context_fini(sv_context_t *context); /* all that it has made */
int sv_mr_create(sv_context_t *context, const sv_request_t *request, uint32_t *key_p);
int sv_mr_destroy(sv_context_t *context, uint32_t key);
int sv_cq_create(sv_context_t *context, const sv_ring_t *ring, uint32_t channel,
                 uint32_t *number_p);
int sv_cq_destroy(sv_context_t *context, uint32_t number);
int sv_srq_create(sv_context_t *context, const sv_ring_t *ring, const sv_request_t *request,
                  uint32_t *number_p);
int sv_srq_destroy(sv_context_t *context, uint32_t number);
int sv_channel_create(sv_context_t *context, int fd, uint32_t *number_p);
int sv_channel_destroy(sv_context_t *context, uint32_t number);
int sv_qp_create(sv_context_t *context, const sv_request_t *request, const sv_ring_t *sends,
                 const sv_ring_t *recvs, sv_qp_t **qp_p);
sv_qp_t *sv_qp_of(sv_context_t *context, uint32_t number); /* NULL: not its own */
int sv_qp_modify(sv_qp_t *qp, const struct ibv_qp_attr *attr, uint32_t mask);
uint32_t sv_qp_destroy(sv_qp_t *qp); /* receives of the SRQ that go with it */
int sv_inject(sv_nic_t *nic, const sv_fault_t *fault);
void sv_port_event(sv_dev_t *dev, enum ibv_event_type type);

/* ---- sockets.c */
extern const sv_world_t sv_real_world;
int sv_sockets_open(sv_dev_t *dev);
void sv_sockets_receive(sv_dev_t *dev);
int sv_links_open(void);
void sv_links_changed(sv_nic_t *nic); /* reads news, looks at all NICs again */
void sv_link_look(sv_dev_t *dev);

/* ---- files.c */
int sv_files_create(sv_nic_t *nic);
void sv_files_update(sv_dev_t *dev);
void sv_files_remove(sv_nic_t *nic);

/* ---- control.c */
int sv_control_open(sv_nic_t *nic);
void sv_control_accept(sv_nic_t *nic);
void sv_control_serve(sv_context_t *context);
void sv_control_gone(sv_context_t *context); /* its process, or its socket */
void sv_control_sweep(sv_nic_t *nic);        /* frees what is gone */
/* What the NIC waits for: the kind in the low bits of a pointer. */
typedef enum sv_source {
    SV_FROM_WAKE,
    SV_FROM_LISTENER,
    SV_FROM_LINKS,
    SV_FROM_DEVICE,
    SV_FROM_SOCKET,
    SV_FROM_PROCESS
} sv_source_t;
int sv_wait_for(sv_nic_t *nic, int fd, sv_source_t source, void *object);

/* ---- commands.c */
int sv_command_devices(void);
int sv_command_counters(void);
int sv_command_fault(int argc, char **argv);

#endif
