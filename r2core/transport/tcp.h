/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of the TCP transport: one socket per lane. For transport/tcp*.c only.
 */
#ifndef R2_TRANSPORT_TCP_H
#define R2_TRANSPORT_TCP_H

#include "base/util.h"
#include "r2/transport.h"

/*
 * A worker is a listening socket at the NIC's address and an epoll set. Of two endpoints that are
 * connected to one another, the one with the smaller token dials, and its first bytes are a
 * greeting: to which endpoint, from which. Then come packets, each behind a frame.
 */

#define R2_TCP_MAGIC UINT64_C(0x72327463702d3031) /* "r2tcp-01" */
/* Bytes read beyond a long packet: what begins there is copied once. */
#define R2_TCP_AHEAD_BYTES 4096u
/* Packets of which so many bytes are still to come may land where they belong. */
#define R2_TCP_LAND_BYTES 16384u
/* Data of long packets begins at multiples of it: those of the widest vectors of processors. */
#define R2_TCP_ALIGN_BYTES 64u
/* Packets of up to so many bytes are awaited by reading, longer ones with the epoll set. */
#define R2_TCP_HOT_BYTES 36864u
/* Sockets that have not said yet for which endpoint they are, of one worker, beyond those that are
 * awaited. */
#define R2_TCP_GUESTS_MAX 64u

/** Names an endpoint to its peer. */
typedef struct r2_tcp_token {
    uint64_t worker; /* random */
    uint64_t number; /* of the endpoint */
} r2_tcp_token_t;

/** An endpoint's address; network byte order as the kernel has it, else the host's. */
typedef struct r2_tcp_address {
    uint32_t ipv4;
    uint16_t port;
    uint16_t zero;
    r2_tcp_token_t token;
} r2_tcp_address_t;

/** The first bytes on a connection. */
typedef struct r2_tcp_greeting {
    uint64_t magic;
    r2_tcp_token_t to, from;
} r2_tcp_greeting_t;

/** In front of each packet. */
typedef struct r2_tcp_frame {
    uint32_t header_bytes : 8;
    uint32_t data_bytes : 24;
} r2_tcp_frame_t;

#define R2_TCP_DATA_MAX ((1u << 24) - 1) /* bytes, that a frame can tell */

static_assert(24 == sizeof(r2_tcp_address_t) && 40 == sizeof(r2_tcp_greeting_t) &&
                  4 == sizeof(r2_tcp_frame_t),
              "no holes: they travel");
static_assert(R2_TP_HEADER_MAX <= UINT8_MAX, "a frame tells the length of every header");

/** True if `a` dials when it connects to `b`. */
static inline bool r2_tcp_dials(const r2_tcp_token_t *a, const r2_tcp_token_t *b)
{
    return a->worker < b->worker || (a->worker == b->worker && a->number < b->number);
}

typedef struct r2_tcp_device r2_tcp_device_t;
typedef struct r2_tcp_worker r2_tcp_worker_t;
typedef struct r2_tcp_ep r2_tcp_ep_t;

/** What an event of the epoll set is about: its first member. */
typedef enum r2_tcp_source { R2_TCP_LISTENER, R2_TCP_GUEST, R2_TCP_EP } r2_tcp_source_t;

/** A connection of which it is not known yet for which endpoint it is. */
typedef struct r2_tcp_guest {
    r2_tcp_source_t source;
    struct r2_tcp_guest *prev, *next; /* in worker->guests */
    int fd;                           /* owned */
    size_t got_bytes;                 /* of the greeting */
    r2_tcp_greeting_t greeting;
} r2_tcp_guest_t;

/** Memory for a packet that is not whole yet. */
typedef struct r2_tcp_packet {
    struct r2_tcp_packet *next; /* in worker->spare */
    size_t got_bytes;           /* with the frame */
    size_t need_bytes;          /* the frame's, then the packet's with it */
    char *landing;              /* where the data is; NULL: behind the header */
    bool lent;                  /* that is borrowed memory, not the packet's own */
    bool asked;                 /* whether it may land */
    /* behind it and a header of 92 bytes (link/wire.h) data suit every type */
    _Alignas(max_align_t) r2_tcp_frame_t frame;
    char bytes[]; /* header, up to R2_TCP_ALIGN_BYTES, data: as the device's segment */
} r2_tcp_packet_t;

struct r2_tcp_ep {
    const r2_tp_ops_t *ops; /* first, as in all transports */
    r2_tcp_source_t source;
    r2_tcp_ep_t *prev, *next;   /* in worker->eps */
    r2_tcp_worker_t *worker;    /* borrowed: outlives the endpoint */
    void *arg;                  /* borrowed: for failed() */
    int fd;                     /* owned; -1: none yet */
    r2_tcp_token_t own, peer;   /* the peer's: once connected, or greeted */
    bool connected;             /* ep_connect() was called */
    bool dials;                 /* the connection is being set up, by us */
    bool open;                  /* packets may be sent */
    bool awaits_room;           /* the epoll set tells when the socket takes more */
    size_t last_bytes;          /* of the last packet that came, with its frame */
    uint32_t expects_long;      /* packets in which another long one is thought to come */
    bool unwatched;             /* the socket is not in the epoll set: it is looked at always */
    r2_tp_send_t *first, *last; /* what waits, linked through transport_private */
    size_t sent_bytes;          /* of the first, with its frame */
    r2_tcp_packet_t *packet;    /* owned: what has come of a packet; NULL: nothing */
    r2_status_t failure;        /* R2_OK, or why it failed */
    bool failure_told;
};

/* All fields belong to the holder of the engine lock. */
struct r2_tcp_worker {
    const r2_tp_ops_t *ops;  /* first, as in all transports */
    r2_tcp_source_t source;  /* of its listener */
    r2_tcp_device_t *device; /* borrowed: outlives the worker */
    r2_tp_callbacks_t callbacks;
    void *arg;       /* borrowed: outlives the worker */
    int listener_fd; /* owned */
    int epoll_fd;    /* owned */
    uint32_t ipv4;   /* of the NIC, and */
    uint16_t port;   /* of the listener, as the kernel has them */
    uint64_t random;
    uint64_t numbers;       /* endpoints so far */
    r2_tcp_ep_t *eps;       /* owned */
    r2_tcp_ep_t *recent;    /* borrowed from eps: the last that something came from; or NULL */
    r2_tcp_guest_t *guests; /* owned, oldest first */
    uint32_t guest_count;
    r2_tcp_packet_t *spare; /* owned, singly linked */
    uint32_t spares;        /* their number */
    bool failures;          /* an endpoint failed and its owner does not know yet */
    bool deaf;              /* no descriptor for who calls: the listener is out of the epoll set */
    bool in_progress;       /* inside worker_progress() */
    uint32_t calls;         /* of progress */
    uint32_t streak;        /* of them, those that found something at `recent`, since arm() */
};

struct r2_tcp_device {
    const r2_tp_ops_t *ops; /* first, as in all transports */
    char name[32];
    size_t segment_bytes;
};

/* ---- tcp_socket.c ---- */

/** What an error of the kernel's breaks. */
r2_status_t r2_tcp_status(int error);
/**
 * The NIC's IPv4 address.
 * @return R2_OK, R2_ERR_NO_DEVICE (it is not there, is down, or has none), R2_ERR_NO_DESCRIPTORS,
 * R2_ERR_NO_MEMORY.
 */
r2_status_t r2_tcp_nic_ipv4(const char *name, uint32_t *ipv4_p);
/** A socket that listens at the NIC's address and accepts nothing from other NICs. */
r2_status_t r2_tcp_listen(const char *nic, uint32_t ipv4, int *fd_p, uint16_t *port_p);
/** Starts a connection from the NIC's address. */
r2_status_t r2_tcp_dial(const char *nic, uint32_t ipv4, const r2_tcp_address_t *to, int *fd_p);
/** What an open connection needs. */
void r2_tcp_tune(int fd);

/* ---- tcp_watch.c ---- */

/** Watches a descriptor. @param source what the event is about. @return false: no memory. */
bool r2_tcp_watch(const r2_tcp_worker_t *worker, int operation, int fd, uint32_t events,
                  r2_tcp_source_t *source);

/** Has the epoll set tell of an endpoint's socket what it waits for. */
void r2_tcp_ep_watch(r2_tcp_ep_t *ep);
/** Something came by an endpoint. */
void r2_tcp_ep_is_recent(r2_tcp_ep_t *ep);
/** There may be a descriptor for who calls. */
void r2_tcp_hear(r2_tcp_worker_t *worker);
/** Notes that an endpoint failed; its owner is told by the next progress. */
void r2_tcp_ep_fail(r2_tcp_ep_t *ep, r2_status_t status);

/* ---- tcp_packet.c ---- */

/** @return memory for a packet of which nothing has come, or NULL. */
r2_tcp_packet_t *r2_tcp_packet_get(r2_tcp_worker_t *worker);
void r2_tcp_packet_put(r2_tcp_worker_t *worker, r2_tcp_packet_t *packet);
/** True if the next r2_tcp_packet_get() returns memory. */
bool r2_tcp_packet_is_spare(r2_tcp_worker_t *worker);

/* ---- tcp_worker.c ---- */

r2_status_t r2_tcp_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                 void *arg, r2_tp_worker_t **worker_p);
void r2_tcp_worker_destroy(r2_tp_worker_t *worker);
unsigned r2_tcp_worker_progress(r2_tp_worker_t *worker);
unsigned r2_tcp_ep_progress(r2_tp_worker_t *worker, r2_tp_ep_t *ep);
int r2_tcp_worker_fd(r2_tp_worker_t *worker);
r2_status_t r2_tcp_worker_arm(r2_tp_worker_t *worker);
bool r2_tcp_worker_signals(const r2_tp_worker_t *worker);
/* ---- tcp_guest.c ---- */

/** Takes all connections that wait at the listener. */
void r2_tcp_accept(r2_tcp_worker_t *worker);
/** Reads of its greeting, and gives the socket to the endpoint that it is for, if there is one. */
void r2_tcp_guest_read(r2_tcp_worker_t *worker, r2_tcp_guest_t *guest);
void r2_tcp_guest_close(r2_tcp_worker_t *worker, r2_tcp_guest_t *guest);

/* ---- tcp_ep.c ---- */

r2_status_t r2_tcp_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p);
r2_status_t r2_tcp_ep_address(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p);
r2_status_t r2_tcp_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes);
void r2_tcp_ep_close(r2_tp_ep_t *ep);
/** Gives an endpoint the connection that its peer has made. */
void r2_tcp_ep_greeted(r2_tcp_ep_t *ep, int fd, const r2_tcp_token_t *from);
/** The socket of an endpoint that dials is connected, or cannot be. */
void r2_tcp_ep_dialed(r2_tcp_ep_t *ep);

/* ---- tcp_send.c ---- */

r2_status_t r2_tcp_send(r2_tp_ep_t *ep, r2_tp_send_t *op);
/** Sends what waits, as far as the socket takes it. @return packets that are sent. */
unsigned r2_tcp_flush(r2_tcp_ep_t *ep);
/** Gives back what waits, as canceled. */
void r2_tcp_withdraw(r2_tcp_ep_t *ep);

/* ---- tcp_receive.c ---- */

/** Reads what has come, and hands up the packets in it. @return their number, at least 1 if
 * anything came. */
unsigned r2_tcp_receive(r2_tcp_ep_t *ep);

void r2_tcp_ep_land_off(r2_tp_ep_t *ep);
/** As ep_path_rate() of r2_tp_ops_t, by the kernel's TCP_INFO (tcp_path.c). */
uint64_t r2_tcp_ep_path_rate(const r2_tp_ep_t *ep, uint64_t *window_bytes_p);

extern const r2_tp_ops_t r2_tcp_ops;

#endif
