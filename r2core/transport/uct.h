/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of the UCT transport. For transport/uct*.c only: the only files that know UCX.
 */
#ifndef R2_TRANSPORT_UCT_H
#define R2_TRANSPORT_UCT_H

#include <stdatomic.h>
#include <uct/api/uct.h>

#include "base/util.h"
#include "r2/transport.h"

/* Ids of active messages. */
#define R2_UCT_AM_PACKET 1
#define R2_UCT_AM_PIECE  2

/*
 * What was found by crashes and by reading (UCX 1.13 to 1.22) and must stay as it is:
 * - Endpoints are connected to endpoints where the transport can (uct_ep_connect_to_ep). A tcp
 *   endpoint that was connected to an interface is freed by UCX in its read handler and used in its
 *   write handler, when both ends are closed while the rest of a packet waits for room.
 * - An endpoint is destroyed outside of all callbacks. tcp completes what it holds of the caller's
 *   memory inside of uct_ep_destroy().
 * - A completion is reported twice, in one call of UCX's, when a zero-copy send fails (tcp_ep.c,
 *   uct_tcp_ep_sendv()): its record stays in place until that call has returned.
 * - RX_SEG_SIZE must take the largest packet of any peer: the hello compares segment sizes.
 * - Without CONN_NB=y connecting over a dead rail blocks the process for seconds.
 * TCP_SYN_CNT must not be set: the interface cannot be opened then.
 */

typedef struct r2_uct_memory r2_uct_memory_t;
typedef struct r2_uct_region r2_uct_region_t;

/** The instance. Engine lock. */
typedef struct r2_uct {
    bool filters_log;
    uint32_t ports;            /* open: with the first, UCX starts its thread */
    r2_uct_memory_t *memories; /* borrowed: of all devices */
    uint64_t uses;             /* of regions */
} r2_uct_t;

/* ---- uct_port.c: memory domains and interfaces, for lanes and probes ---- */

/** A setting of a transport, by its name without the transport's prefix. */
typedef struct r2_uct_setting {
    char name[32];
    char value[32];
} r2_uct_setting_t;

/** A NIC as UCX's memory domain and transport. */
typedef struct r2_uct_domain {
    uct_md_h md;                /* owned */
    uct_component_h component;  /* borrowed: UCX's, for ever */
    uct_iface_config_t *config; /* owned */
    uct_tl_resource_desc_t resource;
    bool needs_handles; /* memory must be registered before it is sent from */
    bool takes_gpus;    /* memory of CUDA devices can be registered */
    size_t key_bytes;   /* of what lets others write to registered memory */
    int gid_index;      /* RoCE: of the address; -1: UCX chooses. Set before it is opened */
} r2_uct_domain_t;

/** An interface with its worker. */
typedef struct r2_uct_port {
    r2_uct_t *uct;              /* borrowed: outlives the port; NULL: not open */
    ucs_async_context_t *async; /* owned */
    uct_worker_h worker;        /* owned */
    uct_iface_h iface;          /* owned */
    uct_iface_attr_t attr;
    bool is_tcp;
    int fd;       /* readable, when armed, if there is something to do; UCX's, or: */
    int event_fd; /* owned: written where UCX has no descriptor but calls back; -1: it has one */
} r2_uct_port_t;

/**
 * Opens a domain.
 * @param tls one transport such as "tcp". @param name of the device.
 * @return R2_OK, R2_ERR_NO_DEVICE (not there, or down), R2_ERR_UNSUPPORTED (settings refused).
 */
r2_status_t r2_uct_domain_open(const char *tls, const char *name, const r2_uct_setting_t *settings,
                               size_t count, r2_uct_domain_t *domain_p);
void r2_uct_domain_close(r2_uct_domain_t *domain);

/**
 * Opens an interface. @param on_error called by UCX, with `arg`, when an endpoint fails.
 * @return R2_OK, R2_ERR_NO_DEVICE, R2_ERR_NO_DESCRIPTORS, R2_ERR_NO_MEMORY, R2_ERR_UNSUPPORTED
 * (it has no descriptor to wait on).
 */
r2_status_t r2_uct_port_open(r2_uct_t *uct, const r2_uct_domain_t *domain,
                             uct_error_handler_t on_error, void *arg, r2_uct_port_t *port_p);
/** All its endpoints are destroyed before. */
void r2_uct_port_close(r2_uct_port_t *port);
/**
 * @param for_sends the descriptor is to tell, too, when something that was sent is done.
 * @return R2_OK: may sleep; R2_ERR_AGAIN: progress first.
 */
r2_status_t r2_uct_port_arm(const r2_uct_port_t *port, bool for_sends);
/** What a UCX error breaks; what is not told apart breaks the lane. */
r2_status_t r2_uct_status(ucs_status_t rc);
/** True if there is room for that many descriptors beyond those of others. */
bool r2_uct_has_room(void *tp, uint32_t devices, uint32_t workers, uint32_t eps);

/* ---- uct_address.c ---- */

/** What an address says, aligned as UCX wants it, with zeros behind each part. */
typedef struct r2_uct_address {
    _Alignas(8) uint8_t device[64];
    _Alignas(8) uint8_t iface[64];
    _Alignas(8) uint8_t ep[64];
    uint32_t pid; /* of the process */
} r2_uct_address_t;

/**
 * Writes the address of an interface, and of an endpoint on it if `ep` is not NULL.
 * @param room bytes at address_p.
 * @return R2_OK, R2_ERR_UNSUPPORTED (too long), R2_ERR_NO_DEVICE.
 */
r2_status_t r2_uct_address_write(const r2_uct_port_t *port, uct_ep_h ep, void *address_p,
                                 size_t room, size_t *bytes_p);
/** Takes an address apart; trusts nothing. @return false: it is not one that this port can use. */
bool r2_uct_address_read(const r2_uct_port_t *port, bool has_ep, const void *address, size_t bytes,
                         r2_uct_address_t *address_p);

/* ---- uct_unmaps.c: what is unmapped ---- */

#define R2_UCT_UNMAPS_MAX 256 /* noted at a time; after more, nothing is kept */

/** Pages that are no more. */
typedef struct r2_uct_unmap {
    uintptr_t start, end;
} r2_uct_unmap_t;

/** What any thread unmaps, for the holder of the engine lock: it may not wait for that lock. */
typedef struct r2_uct_unmaps {
    atomic_uintptr_t low, high; /* nothing is registered outside of these */
    atomic_bool any;
    atomic_flag busy; /* for all below: a spin lock, taken inside of munmap() */
    bool all;         /* more than there is room for */
    uint32_t count;
    r2_uct_unmap_t rows[R2_UCT_UNMAPS_MAX];
} r2_uct_unmaps_t;

/** Begins to note. The memory is zero. @return false: UCX cannot tell what is unmapped. */
bool r2_uct_unmaps_init(r2_uct_unmaps_t *unmaps);
void r2_uct_unmaps_fini(r2_uct_unmaps_t *unmaps);
/** Widens what is looked at, before it is registered. */
void r2_uct_unmaps_watch(r2_uct_unmaps_t *unmaps, uintptr_t start, uintptr_t end);
/** Takes all notes. @return how many rows are written. */
uint32_t r2_uct_unmaps_take(r2_uct_unmaps_t *unmaps, r2_uct_unmap_t rows_p[R2_UCT_UNMAPS_MAX]);

/* ---- uct_memory.c: registered memory, kept until it is unmapped ---- */

/** @return NULL: no memory, or UCX cannot tell what is unmapped: nothing may be kept then. */
r2_uct_memory_t *r2_uct_memory_create(r2_uct_t *uct, uct_md_h md);
/** All regions have been put. */
void r2_uct_memory_destroy(r2_uct_memory_t *memory);
/** Gives back what was unmapped. */
void r2_uct_memory_reap(r2_uct_memory_t *memory);
/**
 * Takes what is registered around some data.
 * @param whole what the data are part of, which is registered at once if it is not yet; NULL: the
 * data alone.
 * @return NULL: it cannot be registered (now).
 */
r2_uct_region_t *r2_uct_region_get(r2_uct_memory_t *memory, const void *data, size_t bytes,
                                   const r2_tp_memory_t *whole);
/** True if memory of a GPU was refused: it is not asked for any more. */
bool r2_uct_memory_refuses_gpus(const r2_uct_memory_t *memory);
void r2_uct_region_put(r2_uct_memory_t *memory, r2_uct_region_t *region);
/**
 * Gives back what was not used for longest, of all devices: the limit is the process's.
 * @return false: all that is left is in use.
 */
bool r2_uct_make_room(r2_uct_t *uct, size_t bytes);
/** The first memory that could not be registered; bytes 0: there was none. */
const r2_tp_refusal_t *r2_uct_memory_refusal(const r2_uct_memory_t *memory);
/** True if so much more could be registered now. */
bool r2_uct_memory_is_left(uct_md_h md, size_t bytes);
uct_mem_h r2_uct_region_handle(const r2_uct_region_t *region);
/** What is to be registered so that region_get() finds it, and its neighbours; NULL: it is, or was
 * refused, or there is no memory. Ended before the memory is destroyed. */
r2_uct_region_t *r2_uct_region_begin(r2_uct_memory_t *memory, const void *data, size_t bytes);
/** Registers it. Any thread, without the engine lock. */
void r2_uct_region_pin(const r2_uct_memory_t *memory, r2_uct_region_t *region);
/** Keeps it, if it is registered, was not unmapped meanwhile, and no other has all of it. */
void r2_uct_region_end(r2_uct_memory_t *memory, r2_uct_region_t *region);

/* ---- the transport table ---- */

/** What may be sent how, on a worker; bytes of frame, header and data together. */
typedef struct r2_uct_limits {
    size_t copied;     /* header and data are copied into one buffer */
    size_t vector;     /* as they lie; UCX copies what it cannot send at once */
    size_t piece;      /* UCX copies: most of a piece of a packet that does not go in another way */
    size_t zcopy_data; /* from here on; 0: all that does not go in the ways above */
    size_t zcopy;      /* as they lie; UCX refers to the data until it has sent them. 0: never */
    size_t zcopy_head; /* of these frame and header, at most */
    size_t put;        /* bytes that one put may write; 0: there are none */
    size_t get;        /* bytes that one get may read; 0: there are none */
    size_t get_least;  /* and those that it has to */
} r2_uct_limits_t;

/** What is particular to one of UCX's transports. */
typedef struct r2_uct_kind {
    const char *tls;
    bool is_local;   /* within the host: nobody but the kernel tells when a peer's process ends */
    bool signals;    /* descriptors tell of all there is to do, armed or not */
    bool tells_room; /* armed descriptors tell when there is room for what waits */
    bool is_loose;   /* what is sent to an endpoint that is not connected yet is lost for a while */
    bool copies;     /* nothing is sent zero-copy: UCX would say that it is done when it is not */
    bool puts;       /* the peer's NIC writes, and what follows on the endpoint comes after that */
} r2_uct_kind_t;

struct r2_tp_device {
    const r2_tp_ops_t *ops; /* first, as in all transports */
    r2_uct_t *uct;          /* borrowed: outlives the device */
    r2_uct_domain_t domain;
    const r2_uct_kind_t *kind; /* borrowed: static */
    r2_uct_memory_t *memory;   /* owned; NULL: nothing has to be registered, or can be */
    size_t segment_bytes;
};

/* RDMA: packets whose buffers UCX takes at once, 1,024 by itself. */
#define R2_UCT_RC_GROW 16
/* About what it takes to open a worker. */
#define R2_UCT_WORKER_BYTES ((size_t) 12 << 20)

/** In front of each packet. */
typedef struct r2_uct_frame {
    uint8_t header_bytes;
} r2_uct_frame_t;

/** Names an endpoint to its peers: unique on the host. */
typedef struct r2_uct_stream {
    uint64_t worker; /* random */
    uint64_t number; /* of the endpoint */
} r2_uct_stream_t;

/** In front of a piece of a packet: the packet's header comes with each. */
typedef struct r2_uct_piece {
    r2_uct_stream_t stream;
    uint64_t data_bytes; /* of the packet */
    uint64_t offset;     /* of this piece in the packet's data, bytes */
    uint64_t header_bytes;
    char header[R2_TP_HEADER_MAX];
} r2_uct_piece_t;

static_assert(0 == sizeof(r2_uct_piece_t) % 8 && 40 == offsetof(r2_uct_piece_t, header),
              "no holes");
static_assert(sizeof(r2_uct_piece_t) <= UINT8_MAX, "a frame tells the length of every header");

/** A send that is not done yet. */
typedef struct r2_uct_record {
    struct r2_uct_record *prev, *next; /* in ep->waiting, ->in_flight, worker->completed, ->spare */
    r2_tp_worker_t *worker;            /* borrowed: outlives the record */
    r2_tp_ep_t *ep;                    /* borrowed: outlives the record's use */
    r2_tp_send_t *op;                  /* borrowed until `sent` */
    r2_uct_region_t *region;           /* owned: of the data while in flight; NULL: none needed */
    uct_completion_t done;             /* UCX knows it while the record is in flight */
    size_t sent_bytes;                 /* data that went in pieces */
    r2_status_t status;                /* of a completed send; R2_IN_PROGRESS: in flight */
    /** Goes on with it. @return R2_IN_PROGRESS, R2_OK (done), R2_ERR_AGAIN: no room, else
     * broken. */
    r2_status_t (*send)(r2_tp_ep_t *ep, struct r2_uct_record *record);
    bool posted;             /* of a put: UCX has the write */
    bool waits;              /* of such: the header behind it waits for room */
    bool reads;              /* of such: it is a get */
    uint64_t address;        /* of a put */
    char key[R2_TP_KEY_MAX]; /* of a put */
} r2_uct_record_t;

struct r2_tp_ep {
    const r2_tp_ops_t *ops;  /* first, as in all transports */
    r2_tp_ep_t *prev, *next; /* in worker->eps */
    r2_tp_worker_t *worker;  /* borrowed: outlives the endpoint */
    uct_ep_h uct_ep;         /* owned; NULL: not made yet, or never */
    void *arg;               /* borrowed: for failed() */
    r2_uct_stream_t stream;
    r2_uct_record_t *in_flight;              /* UCX refers to their data */
    r2_uct_record_t *waiting;                /* for room at UCX, in order */
    r2_tp_ep_t *waiting_prev, *waiting_next; /* in worker->waiting */
    int pidfd;                               /* owned: of the peer's process; -1: none */
    bool connected;
    r2_status_t failure; /* R2_OK, or why it failed */
    bool failure_told;
};

typedef struct r2_uct_slab r2_uct_slab_t;
typedef struct r2_uct_join r2_uct_join_t;

/* All fields belong to the holder of the engine lock. */
struct r2_tp_worker {
    const r2_tp_ops_t *ops; /* first, as in all transports */
    r2_uct_port_t port;
    r2_uct_limits_t limits;
    bool to_ep;                 /* endpoints have addresses of their own */
    bool in_progress;           /* inside worker_progress(): packets may be handed up */
    bool busy;                  /* UCX had something to do when it was last asked */
    bool failures;              /* an endpoint failed and its owner does not know yet */
    bool armed;                 /* since the last progress */
    uint32_t calls;             /* of progress */
    uint32_t in_flight;         /* records that UCX knows */
    r2_uct_record_t *completed; /* UCX is done, `sent` not yet called */
    r2_uct_record_t *spare;     /* singly linked */
    r2_tp_ep_t *waiting;        /* endpoints with packets that UCX had no room for */
    r2_tp_ep_t *eps;            /* owned */
    r2_uct_slab_t *slabs;       /* owned: memory of all records */
    r2_uct_join_t *joins;       /* owned: hash by stream */
    r2_uct_join_t *spare_joins; /* owned */
    r2_uct_stream_t stream;     /* of the newest endpoint */
    r2_tp_callbacks_t callbacks;
    void *arg;              /* borrowed: outlives the worker */
    r2_tp_device_t *device; /* borrowed: outlives the worker */
    int fd; /* local: owned, epoll of UCX's (no data) and of the peers' processes (endpoint); else
             * UCX's */
};

/* ---- uct.c ---- */

extern const r2_tp_ops_t r2_uct_ops;

/* ---- uct_record.c ---- */

/** @return a record of the worker, or NULL without memory. */
r2_uct_record_t *r2_uct_record_get(r2_tp_worker_t *worker);
/** The record is in no list and UCX does not know it. */
void r2_uct_record_put(r2_uct_record_t *record);
/** Gives the operation of a record back to the caller, and puts the record. */
void r2_uct_record_tell(r2_uct_record_t *record, r2_status_t status);
/** Notes that an endpoint failed; its owner is told by the next progress. */
void r2_uct_ep_fail(r2_tp_ep_t *ep, r2_status_t status);
void r2_uct_records_free(r2_tp_worker_t *worker);

/* ---- uct_worker.c ---- */

r2_status_t r2_uct_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                 void *arg, r2_tp_worker_t **worker_p);
void r2_uct_worker_destroy(r2_tp_worker_t *worker);
unsigned r2_uct_worker_progress(r2_tp_worker_t *worker);
int r2_uct_worker_fd(r2_tp_worker_t *worker);
r2_status_t r2_uct_worker_arm(r2_tp_worker_t *worker);
bool r2_uct_worker_signals(const r2_tp_worker_t *worker);
bool r2_uct_worker_is_loose(const r2_tp_worker_t *worker);

/* ---- uct_ep.c ---- */

r2_status_t r2_uct_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p);
r2_status_t r2_uct_ep_address(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p);
r2_status_t r2_uct_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes);
void r2_uct_ep_close(r2_tp_ep_t *ep);
/** Fails the endpoints whose peers' processes have ended (within the host). */
void r2_uct_eps_watch(r2_tp_worker_t *worker);

/* ---- uct_send.c ---- */

void r2_uct_limits_init(r2_uct_limits_t *limits, const uct_iface_attr_t *attr,
                        const r2_tp_device_t *device);
r2_status_t r2_uct_send(r2_tp_ep_t *ep, r2_tp_send_t *op);
bool r2_uct_ep_reads_gpus(const r2_tp_ep_t *ep);
/** True if what is sent is memory of a GPU. */
static inline bool r2_uct_is_gpus(const r2_tp_send_t *op)
{
    return NULL != op->memory && 0 != op->memory->gpu_id && 0 != op->data_bytes;
}
/** Has a record's data registered where they must be. @return false: they cannot. */
bool r2_uct_refer(r2_uct_record_t *record);
/** Sends what waits, as far as UCX has room. */
void r2_uct_send_waiting(r2_tp_ep_t *ep);
/** Moves what waits to worker->completed without sending it. */
void r2_uct_send_withdraw(r2_tp_ep_t *ep);
/** A record of a send that is not done yet. @return NULL: no memory. */
r2_uct_record_t *r2_uct_record_of(r2_tp_ep_t *ep, r2_tp_send_t *op);
/** Sends a record, or lets it wait: it is freed if neither can be. @return as send(). */
r2_status_t r2_uct_record_begin(r2_tp_ep_t *ep, r2_uct_record_t *record, bool may_send);
/** Sends header and no data. @return R2_OK, R2_ERR_AGAIN (no room now), else broken. */
r2_status_t r2_uct_send_header(r2_tp_ep_t *ep, const r2_tp_send_t *op);

/* ---- uct_grant.c: memory that peers write to and read, and doing so with theirs ---- */

r2_status_t r2_uct_grant(r2_tp_worker_t *worker, void *data, size_t bytes,
                         const r2_tp_memory_t *memory, void *key_p, size_t *key_bytes_p,
                         void **grant_p);
void r2_uct_ungrant(r2_tp_worker_t *worker, void *grant);
void *r2_uct_pin_begin(r2_tp_worker_t *worker, void *data, size_t bytes);
void r2_uct_pin(r2_tp_worker_t *worker, void *pin);
void r2_uct_pin_end(r2_tp_worker_t *worker, void *pin);
r2_status_t r2_uct_put(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target);
r2_status_t r2_uct_get(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target);

/* ---- uct_piece.c ---- */

/** Joins a piece to its packet; hands the packet up when it is whole. Drops what makes no sense. */
void r2_uct_piece_arrived(r2_tp_worker_t *worker, const void *head, size_t head_bytes,
                          const void *data, size_t bytes);
void r2_uct_pieces_free(r2_tp_worker_t *worker);

/* ---- uct_log.c: keeps UCX's complaints about dead NICs and peers off the user's terminal ---- */

/** @return false: the user wants to see everything; then without r2_ucx_log_fini(). */
bool r2_ucx_log_init(void);
void r2_ucx_log_fini(void);
/** Between these two calls warnings and errors of UCX in this thread are dropped. May be nested. */
void r2_ucx_enter(void);
void r2_ucx_leave(void);

#endif
