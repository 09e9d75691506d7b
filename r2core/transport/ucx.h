/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of the UCX transport. For transport/ucx*.c only: the only files that know UCX.
 */
#ifndef R2_TRANSPORT_UCX_H
#define R2_TRANSPORT_UCX_H

#include <ucp/api/ucp.h>

#include "base/util.h"
#include "transport/transport.h"

/* Ids of active messages. */
#define R2_UCX_AM_PACKET 1
#define R2_UCX_AM_PIECE  2

/*
 * What was found by crashes (UCX 1.13.1, tcp) and must stay as it is:
 * - A packet that UCX cannot send at once waits in our queue, never in UCX's: the flag
 *   FORCE_IMM_CMPL makes UCX refuse it. A packet in UCX's queue starts UCX's wire-up messages, and
 * an endpoint that is closed, or whose peer dies, with one of those in a queue aborts the process.
 *   This needs UCX's short protocol for packets of any size: TX_SEG_SIZE takes a whole packet,
 *   ZCOPY_THRESH and RNDV_THRESH are inf, and PROTO_ENABLE is n (its default until 1.15).
 * - An endpoint is closed by force, and only when its worker is destroyed in the same call: until
 *   then a closed one stays open to UCX, and what arrives or fails there is nobody's. Closing by
 *   force does not close the socket, but gives up sending on it; when the peer does the same while
 *   the rest of a packet waits for room, UCX (1.13 to 1.22 at least) uses memory that it has freed.
 * - No endpoint to the same peer is created on that worker again.
 * - RX_SEG_SIZE must be equal on all peers: the hello compares segment sizes.
 * - Without CONN_NB=y creating an endpoint on a dead rail blocks the process for seconds.
 * TCP_SYN_CNT must not be set: worker creation fails.
 */

#define R2_UCX_RESERVE_FDS 4

/** The instance: what is known of the UCX library in use, and descriptors. Engine lock. */
typedef struct r2_ucx {
    unsigned major, minor;
    bool filters_log;
    uint32_t contexts;               /* open */
    int reserve[R2_UCX_RESERVE_FDS]; /* owned: descriptors for calls that must not lack them; -1:
                                        not had */
    bool lent;                       /* the reserve is closed, for the call under way */
    bool gone;                       /* the application has taken the others */
    uint32_t calls;                  /* of progress */
} r2_ucx_t;

struct r2_tp_device {
    r2_ucx_t *ucx;         /* borrowed: outlives the device */
    ucp_context_h context; /* owned */
    size_t segment_bytes;
    size_t immediate_bytes; /* header + data that UCX takes at once; 0: use UCX's queue */
    bool signals;           /* descriptors tell of all input, armed or not */
};

/** Names an endpoint to its peers: unique on the host. */
typedef struct r2_ucx_stream {
    uint64_t worker; /* random */
    uint64_t number; /* of the endpoint */
} r2_ucx_stream_t;

/** In front of a piece of a packet: the packet's header comes with each. Within one host only. */
typedef struct r2_ucx_piece {
    r2_ucx_stream_t stream;
    uint64_t data_bytes; /* of the packet */
    uint64_t offset;     /* of this piece in the packet's data, bytes */
    uint64_t header_bytes;
    char header[R2_TP_HEADER_MAX];
} r2_ucx_piece_t;

static_assert(0 == sizeof(r2_ucx_piece_t) % 8 && 40 == offsetof(r2_ucx_piece_t, header),
              "no holes");

/**
 * A send that is not done yet. UCX and the caller both know this record only: after the endpoint is
 * closed `op` is NULL, and a late completion touches nothing of the caller.
 */
typedef struct r2_ucx_record {
    struct r2_ucx_record *prev, *next; /* in ep->sends, worker->orphans, ->completed or ->spare */
    r2_tp_worker_t *worker;            /* borrowed: outlives the record */
    r2_tp_ep_t *ep;                    /* borrowed; NULL: the endpoint is closed */
    r2_tp_send_t *op;                  /* borrowed until `sent`; NULL: given back */
    size_t sent_bytes;                 /* data that went in pieces */
    r2_status_t status;                /* of a completed send */
} r2_ucx_record_t;

struct r2_tp_ep {
    r2_tp_ep_t *prev, *next; /* in worker->eps or worker->left_eps */
    r2_tp_worker_t *worker;  /* borrowed: outlives the endpoint */
    ucp_ep_h ucp_ep;         /* owned; NULL: not connected */
    void *arg;               /* borrowed: for failed() */
    r2_ucx_stream_t stream;
    r2_ucx_record_t *sends; /* in UCX's hands; immediate: waiting for it, in order */
    r2_tp_ep_t *waiting_prev, *waiting_next; /* in worker->waiting while immediate sends wait */
    bool left;                               /* closed by its owner, in worker->left_eps */
    r2_status_t failure;                     /* R2_OK, or why it failed */
    bool failure_told;
};

typedef struct r2_ucx_slab r2_ucx_slab_t;
typedef struct r2_ucx_join r2_ucx_join_t;

/* All fields belong to the holder of the engine lock. */
struct r2_tp_worker {
    ucp_worker_h ucp_worker;    /* owned */
    bool in_progress;           /* inside worker_progress(): packets may be handed up */
    bool failures;              /* an endpoint failed and its owner does not know yet */
    r2_ucx_record_t *completed; /* UCX is done, `sent` not yet called */
    r2_ucx_record_t *spare;     /* singly linked */
    r2_ucx_record_t *orphans;   /* of closed endpoints, UCX is not done */
    r2_tp_ep_t *waiting;        /* endpoints with packets that UCX had no room for */
    r2_tp_ep_t *eps;            /* owned */
    r2_tp_ep_t *left_eps;       /* owned */
    r2_ucx_slab_t *slabs;       /* owned: memory of all records */
    r2_ucx_join_t *joins;       /* owned: hash by stream */
    r2_ucx_join_t *spare_joins; /* owned */
    r2_ucx_stream_t stream;     /* of the newest endpoint */
    r2_tp_callbacks_t callbacks;
    void *arg;              /* borrowed: outlives the worker */
    r2_tp_device_t *device; /* borrowed: outlives the worker */
    int fd;                 /* borrowed: UCX's */
};

/** What a UCX error breaks; what is not told apart breaks the lane. */
r2_status_t r2_ucx_status(ucs_status_t rc);

/* ---- ucx_log.c: keeps UCX's complaints about dead NICs and peers off the user's terminal ---- */

/** @return false: the user wants to see everything; then without r2_ucx_log_fini(). */
bool r2_ucx_log_init(void);
void r2_ucx_log_fini(void);
/** Between these two calls warnings and errors of UCX in this thread are dropped. May be nested. */
void r2_ucx_enter(void);
void r2_ucx_leave(void);

/* ---- ucx_fds.c: descriptors; UCX aborts in some calls when it gets none ---- */

void r2_ucx_fds_init(r2_ucx_t *ucx);
void r2_ucx_fds_fini(r2_ucx_t *ucx);
bool r2_ucx_has_room(void *tp, uint32_t devices, uint32_t workers, uint32_t eps);
/** As r2_ucx_enter() and r2_ucx_leave(), around calls that open descriptors: closes the reserve for
 * them if need be. */
void r2_ucx_fds_enter(r2_ucx_t *ucx);
void r2_ucx_fds_leave(r2_ucx_t *ucx);
/** Between these two: false if UCX would lack descriptors in a call that aborts then. */
bool r2_ucx_fds_allow(const r2_ucx_t *ucx, uint32_t contexts);
/** True if the application has taken nearly all: then progress needs the reserve, too. */
bool r2_ucx_fds_gone(r2_ucx_t *ucx);

/* ---- ucx_config.c ---- */

/** True if a worker's descriptor is that of its sockets, and of nothing that has to be armed. */
bool r2_ucx_config_signals(const r2_tp_device_config_t *device);

/**
 * Settings for a device.
 * @param immediate_bytes_p as in r2_tp_device_t.
 * @return UCX's code; on success a configuration for ucp_config_release().
 */
ucs_status_t r2_ucx_config_create(const r2_ucx_t *ucx, const r2_tp_device_config_t *device,
                                  ucp_config_t **config_p, size_t *immediate_bytes_p);

/* ---- ucx_worker.c ---- */

r2_status_t r2_ucx_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                 void *arg, r2_tp_worker_t **worker_p);
void r2_ucx_worker_destroy(r2_tp_worker_t *worker);
unsigned r2_ucx_worker_progress(r2_tp_worker_t *worker);
int r2_ucx_worker_fd(r2_tp_worker_t *worker);
r2_status_t r2_ucx_worker_arm(r2_tp_worker_t *worker);
bool r2_ucx_worker_signals(const r2_tp_worker_t *worker);

/** @return a record of the worker, or NULL without memory. */
r2_ucx_record_t *r2_ucx_record_get(r2_tp_worker_t *worker);
/** The record is in no list and UCX does not know it. */
void r2_ucx_record_put(r2_ucx_record_t *record);
/** Gives the operation of a record back to the caller, and puts the record. */
void r2_ucx_record_tell(r2_ucx_record_t *record, r2_status_t status);
/** Notes that an endpoint failed; its owner is told by the next progress. */
void r2_ucx_ep_fail(r2_tp_ep_t *ep, r2_status_t status);

/* ---- ucx_ep.c ---- */

r2_status_t r2_ucx_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p);
/** The address of its worker: that is what UCP connects to. */
r2_status_t r2_ucx_ep_address(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p);
r2_status_t r2_ucx_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes);
void r2_ucx_ep_close(r2_tp_ep_t *ep);
/** Closes what UCX knows of an endpoint; the endpoint is to be freed. */
void r2_ucx_ep_force(r2_tp_ep_t *ep);

/* ---- ucx_send.c ---- */

r2_status_t r2_ucx_send(r2_tp_ep_t *ep, r2_tp_send_t *op);
/** Sends what waits in our queue, as far as UCX has room, and moves it to worker->completed. */
void r2_ucx_send_waiting(r2_tp_ep_t *ep);
/** Moves what waits in our queue to worker->completed without sending it. */
void r2_ucx_send_withdraw(r2_tp_ep_t *ep);

/* ---- ucx_piece.c ---- */

/** Joins a piece to its packet; hands the packet up when it is whole. Drops what makes no sense. */
void r2_ucx_piece_arrived(r2_tp_worker_t *worker, const void *head, size_t head_bytes,
                          const void *data, size_t bytes);
void r2_ucx_pieces_free(r2_tp_worker_t *worker);

#endif
