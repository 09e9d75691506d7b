/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * State shared by the files of the simulator.
 */
#ifndef R2_DOUBLES_SIM_STATE_H
#define R2_DOUBLES_SIM_STATE_H

#include <utlist.h>

#include "base/pool.h"
#include "base/util.h"
#include "doubles/sim.h"
#include "r2/prng.h"

#define R2_SIM_OVERHEAD_BYTES 66 /* of a packet on the wire: Ethernet, IPv4, TCP */

/** One future call. */
typedef struct r2_sim_event {
    uint64_t time_ns;
    uint64_t order; /* of creation: breaks ties */
    void (*fn)(void *arg, uint64_t value);
    void *arg; /* borrowed: outlives the event */
    uint64_t value;
} r2_sim_event_t;

/** Where the data of a packet go that is put; key 0: it is sent. */
typedef struct r2_sim_put {
    uint64_t address;
    uint64_t key; /* index in sim->grants, and 1 */
} r2_sim_put_t;

/** Memory that peers may write to, for ever: what was given back is still registered. */
typedef struct r2_sim_grant {
    uint32_t node;
    uintptr_t start, end;
    bool given_back;
} r2_sim_grant_t;

/** One packet in a socket or in a receive queue. */
typedef struct r2_sim_packet {
    struct r2_sim_packet *next;
    struct r2_tp_ep *ep; /* borrowed: who sent it; tombstones stay until the end */
    r2_sim_put_t put;    /* its data are written where it arrives */
    char *landing;       /* borrowed: half of its data is there, and not here; or NULL */
    bool asked;          /* whether it may land */
    uint8_t *header;     /* into bytes[], misaligned on purpose */
    uint8_t *data;       /* into bytes[] */
    size_t header_bytes, data_bytes;
    uint8_t bytes[];
} r2_sim_packet_t;

typedef struct r2_sim_queue {
    r2_sim_packet_t *head, *tail; /* owned list */
} r2_sim_queue_t;

/** One rail of one host: two directions. */
typedef struct r2_sim_port {
    r2_sim_t *sim; /* borrowed */
    uint32_t host, rail;
    uint64_t bytes_per_s;
    uint64_t latency_ns;
    uint64_t in_busy_ns;   /* until then the receiving direction is taken */
    bool sending;          /* the sending direction is taken until its event */
    bool carrier, out, in; /* what passes */
    bool port_down;        /* nothing of lanes does */
    uint32_t loss_ppm;
    struct r2_tp_ep *ready; /* ring of connections with something to send */
} r2_sim_port_t;

/** A send that does not fit into the socket. */
typedef struct r2_sim_pending {
    struct r2_sim_pending *prev, *next;
    r2_tp_send_t *op; /* borrowed: the caller's until `sent` */
    r2_sim_put_t put;
    uint64_t hash; /* of header and data when it was given to us */
} r2_sim_pending_t;

struct r2_tp_device {
    r2_sim_t *sim; /* borrowed */
    uint32_t node, rail;
    bool is_rdma; /* opened as such: nothing may be sent before the peer has connected */
    bool puts;    /* by reliable connections */
    size_t segment_bytes;
    uint32_t worker_count;
    bool closed;
    struct r2_tp_device *all_next;
};

struct r2_tp_worker {
    r2_tp_device_t *device; /* borrowed */
    r2_tp_callbacks_t callbacks;
    void *arg; /* borrowed */
    uint64_t id;
    bool destroyed;
    uint32_t descriptors; /* its own and those of its endpoints, which outlive their closing */
    r2_sim_queue_t received;
    struct r2_tp_ep *offered; /* owned list: endpoints that are not connected */
    struct r2_tp_ep *open;    /* list: endpoints that are not closed */
    struct r2_tp_ep *closed;  /* list: tombstones */
    struct r2_tp_ep *towards; /* list by towards_next: of others, that lead here */
    uint32_t waiting;         /* endpoints with pending sends or an unreported failure */
    struct r2_tp_worker *all_next;
};

/** An endpoint and the connection under it, which may live longer. */
struct r2_tp_ep {
    r2_tp_worker_t *worker;    /* borrowed */
    r2_tp_worker_t *peer;      /* borrowed: tombstones stay until the end; NULL: not connected */
    void *ep_arg;              /* borrowed */
    r2_sim_port_t *port;       /* borrowed */
    r2_sim_port_t *peer_port;  /* borrowed */
    r2_sim_queue_t socket;     /* copied, not yet arrived */
    r2_sim_packet_t *unsent;   /* first of `socket` that is not under way */
    r2_sim_pending_t *pending; /* owned list, not yet copied */
    size_t socket_bytes;       /* in `socket`, and arrived without the sender knowing it */
    size_t part_bytes;         /* of `unsent` that are under way */
    size_t under_way_bytes, unread_bytes, unknown_bytes;
    uint64_t arrival_ns; /* of the newest packet under way: keeps order */
    uint32_t epoch;      /* events of an older one are void */
    uint64_t stalled_since_ns;
    bool stalled;     /* waits for its path or its retry timer */
    bool retrying;    /* the retry event is on its way */
    bool in_ring;     /* of port->ready */
    bool lost;        /* the packet that arrives next was lost */
    bool reset;       /* the connection is gone */
    bool reset_waits; /* gone at the other end; the news has no path yet */
    bool closed;      /* by its owner */
    bool heard;       /* a packet came back from the peer's worker */
    bool report;      /* failed() is to be called */
    bool failed;
    bool counted;       /* in worker->waiting */
    uint64_t delivered; /* packets */
    struct r2_tp_ep *ready_prev, *ready_next;
    struct r2_tp_ep *prev, *next;
    struct r2_tp_ep *all_next;
    struct r2_tp_ep *towards_next;
};

/** One process. Its index is its number. */
typedef struct r2_sim_node {
    r2_sim_t *sim; /* borrowed */
    uint32_t idx, host;
    bool dead;
    uint32_t callbacks;                    /* depth of upcalls of the transport */
    uint32_t descriptors, descriptors_max; /* in use; 0: no limit */
    r2_prng_t prng;
    r2_clock_t clock;
} r2_sim_node_t;

typedef struct r2_sim_cut {
    uint32_t host_a, host_b, rail;
} r2_sim_cut_t;

struct r2_sim {
    r2_sim_config_t config;
    r2_sim_hooks_t hooks;
    uint64_t now_ns;
    uint64_t next_order;
    r2_sim_event_t *heap; /* owned */
    size_t event_count, event_room;
    r2_sim_node_t *nodes; /* owned: node_count */
    r2_sim_port_t *ports; /* owned: host_count x (rail_count + 1), the last is the local one */
    r2_sim_cut_t cuts[R2_SIM_CUTS_MAX];
    uint32_t cut_count;
    r2_tp_device_t *devices; /* owned lists of everything ever made */
    r2_tp_worker_t *workers;
    r2_tp_ep_t *eps;
    uint64_t next_worker;
    r2_sim_grant_t *grants; /* owned: all that were ever made */
    size_t grant_count, grant_room;
    r2_pool_t pendings; /* of r2_sim_pending_t */
    r2_prng_t prng;
    r2_sim_stats_t stats;
    char failure[256];
};

/** Port of a host's rail; R2_SIM_LOCAL is the one within the host. NULL: no such rail. */
r2_sim_port_t *r2_sim_port(const r2_sim_t *sim, uint32_t host, uint32_t rail);
/** True if packets pass this way between two ports of one rail. */
bool r2_sim_ports_pass(const r2_sim_port_t *from, const r2_sim_port_t *to);

/* ---- connections (sim_conn.c) ---- */

/** Puts a packet into the socket; room must have been checked. @return false: out of memory. */
bool r2_sim_conn_push(r2_tp_ep_t *ep, const r2_tp_send_t *op, const r2_sim_put_t *put);
/** True if the socket takes a packet of this size now. */
bool r2_sim_conn_room(const r2_tp_ep_t *ep, size_t bytes);
/** The receiver took a packet out of its queue. */
void r2_sim_conn_read(r2_tp_ep_t *ep, size_t bytes);
/** The sender's side is closed: data in the socket stays or goes. */
void r2_sim_conn_close(r2_tp_ep_t *ep);
/** The receiving worker is gone: tells the sender when there is a path. */
void r2_sim_conn_peer_gone(r2_tp_ep_t *ep);
/** Ends the connection; its owner is told by its next worker_progress(). */
void r2_sim_conn_reset(r2_tp_ep_t *ep);
/** Paths may have become passable: late data, acknowledgements and resets move on. */
void r2_sim_conns_resume(r2_sim_t *sim);
/** Counts the endpoint as one that its worker has work with, and wakes the node. */
void r2_sim_ep_waits(r2_tp_ep_t *ep);

/* ---- transport table (sim.c, sim_send.c) ---- */

extern const r2_tp_ops_t r2_sim_tp_ops;
r2_status_t r2_sim_send(r2_tp_ep_t *ep, r2_tp_send_t *op);
unsigned r2_sim_worker_progress(r2_tp_worker_t *worker);
void r2_sim_ep_land_off(r2_tp_ep_t *ep);
/** Sends, or puts where put->key is not 0. */
r2_status_t r2_sim_give(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_sim_put_t *put);
/** Has the worker an endpoint in this list that leads to another one? */
bool r2_sim_leads_to(const r2_tp_ep_t *list, const r2_tp_worker_t *worker);
/* sim_put.c */
r2_status_t r2_sim_grant(r2_tp_worker_t *worker, void *data, size_t bytes,
                         const r2_tp_memory_t *memory, void *key_p, size_t *key_bytes_p,
                         void **grant_p);
void r2_sim_ungrant(r2_tp_worker_t *worker, void *grant);
r2_status_t r2_sim_put(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target);
/** The NIC of the peer has a packet: writes its data, if it is put, and may. */
void r2_sim_put_arrived(const r2_sim_packet_t *packet);
/** Reports a call on a destroyed worker. */
bool r2_sim_worker_usable(const r2_tp_worker_t *worker, const char *call);
/** Ends a worker without upcalls, as when the process dies: sends stay to be cancelled. */
void r2_sim_worker_end(r2_tp_worker_t *worker);
/** Completes the oldest pending send. */
void r2_sim_ep_complete(r2_tp_ep_t *ep, r2_status_t status);
/** The worker has dealt with what the endpoint waited for. */
void r2_sim_ep_settle(r2_tp_ep_t *ep);

static inline r2_sim_t *r2_sim_of_worker(const r2_tp_worker_t *worker)
{
    return worker->device->sim;
}

static inline r2_sim_node_t *r2_sim_node_of(const r2_tp_worker_t *worker)
{
    return &worker->device->sim->nodes[worker->device->node];
}

static inline size_t r2_sim_packet_bytes(const r2_sim_packet_t *packet)
{
    return packet->header_bytes + packet->data_bytes;
}

#endif
