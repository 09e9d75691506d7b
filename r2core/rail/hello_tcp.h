/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of the TCP hello driver: instance, listeners, connections. The protocol is in
 * hello_auth.h.
 */
#ifndef R2_RAIL_HELLO_TCP_H
#define R2_RAIL_HELLO_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/hello.h"
#include "rail/hello_auth.h"

/* Inbound connections that have not proven the key. They share a small number of slots: */
#define R2_HELLO_STRANGERS_MAX 64                    /* at most that many, over all rails */
#define R2_HELLO_STRANGER_NS   (2000 * R2_NS_PER_MS) /* each at most that long */
#define R2_HELLO_GRACE_NS      (5 * R2_NS_PER_MS) /* when full: an older one makes room at once */
/* Authenticated inbound connections wait that long for reply(). */
#define R2_HELLO_SERVE_NS (30 * R2_NS_PER_S)
/* A call that waits for a stopped process is asked for in pauses that double up to this. */
#define R2_HELLO_WAIT_NS (10 * R2_NS_PER_S)
/* A call that is not connected by then connects anew, and again after twice as long: the kernel
 * repeats a first packet that was lost after 1 s only. */
#define R2_HELLO_DIAL_NS (150 * R2_NS_PER_MS)

/* All that one end may send on one connection: greeting, proof and one frame. */
#define R2_HELLO_STREAM_MAX \
    (R2_HELLO_MAGIC_BYTES + R2_HELLO_NONCE_BYTES + R2_HELLO_PROOF_BYTES + R2_HELLO_FRAME_MAX)

#define R2_HELLO_NAME_BYTES 35 /* abstract socket name: "r2-" and 32 hex digits */

typedef enum r2_hello_family { R2_HELLO_UNIX = 1, R2_HELLO_INET = 4 } r2_hello_family_t;

/** A listener address, decoded. */
typedef struct r2_hello_address {
    r2_hello_family_t family;
    uint8_t rail_idx;               /* of the listener */
    uint16_t port;                  /* host byte order; inet */
    uint32_t ipv4;                  /* network byte order, 0 = not known yet; inet */
    char name[R2_HELLO_NAME_BYTES]; /* unix; not terminated */
    uint8_t id[R2_HELLO_ID_BYTES];  /* random, of the listener: part of the proofs */
} r2_hello_address_t;

/** @param bytes_p R2_HELLO_ADDRESS_MAX bytes. @return bytes written. */
size_t r2_hello_address_encode(const r2_hello_address_t *address, void *bytes_p);
/** Never trusts the bytes. @return R2_OK or R2_ERR_WIRE. */
r2_status_t r2_hello_address_decode(const void *from, size_t bytes, r2_hello_address_t *address_p);

/**
 * Opens a listening socket that only this NIC can reach, also while it is down or has no address.
 * @param address family, name or port (0: any) on input; the port is set.
 */
r2_status_t r2_hello_socket_listen(const r2_nic_t *nic, r2_hello_address_t *address, int *fd_p);
/** Starts connecting through this NIC only. @return R2_OK, R2_IN_PROGRESS or an error of call(). */
r2_status_t r2_hello_socket_connect(const r2_nic_t *nic, const r2_hello_address_t *address,
                                    int *fd_p);
/**
 * Binds a new IPv4 socket to a NIC: to the device, and to its address where it has one.
 * @param port host byte order, 0: any.
 */
r2_status_t r2_hello_socket_bind(int fd, const r2_nic_t *nic, uint16_t port);
/** Status of an errno value of connect(), send() or recv(). */
r2_status_t r2_hello_socket_status(int error);

struct r2_hello_tcp;
struct r2_hello_conn;

/** What an epoll event belongs to: first member of listeners and connections. */
typedef enum r2_hello_source { R2_HELLO_LISTENER, R2_HELLO_CONN } r2_hello_source_t;

typedef struct r2_hello_listener {
    r2_hello_source_t source;
    int fd; /* owned; -1 = not open */
    uint32_t rail_idx;
    r2_nic_t nic;
    r2_hello_address_t address; /* as published */
    struct r2_hello_tcp *hello; /* borrowed: outlives the listener */
} r2_hello_listener_t;

/** States of a connection; names and handlers are in hello_conn.c. */
typedef enum r2_hello_state {
    R2_HELLO_CONNECTING, /* client: waits for the connection */
    R2_HELLO_GREETED,    /* client: sent its nonce, waits for nonce and proof */
    R2_HELLO_REQUESTED,  /* client: sent proof and request, waits for the reply */
    R2_HELLO_STRANGER,   /* server: waits for a nonce */
    R2_HELLO_CHALLENGED, /* server: sent nonce and proof, waits for a proof */
    R2_HELLO_PROVEN,     /* server: authenticated, waits for the rest of the request */
    R2_HELLO_SERVING,    /* server: request() was called, waits for reply() */
    R2_HELLO_ANSWERING,  /* server: sends the reply */
    R2_HELLO_CLOSED      /* to be freed when no event can refer to it */
} r2_hello_state_t;

typedef struct r2_hello_conn {
    r2_hello_source_t source;
    int fd; /* owned; -1 = closed */
    r2_hello_state_t state;
    uint32_t events;                   /* that epoll watches for */
    struct r2_hello_tcp *hello;        /* borrowed: outlives the connection */
    struct r2_hello_conn *prev, *next; /* in one of the lists of the instance */
    uint64_t id;                       /* client: call id; server: token */
    uint64_t since_ns;                 /* accepted or called */
    uint64_t deadline_ns;
    uint64_t timeout_ns;        /* client: at most, from one deadline to the next */
    uint64_t dial_ns;           /* client, connecting: when to connect anew */
    uint32_t own_idx;           /* client: our rail */
    uint32_t rail_idx;          /* the server's rail */
    r2_hello_address_t address; /* client: of the server */
    uint8_t listener_id[R2_HELLO_ID_BYTES];
    uint8_t nonce[R2_HELLO_NONCE_BYTES]; /* ours */
    r2_hello_session_t session;
    size_t want_bytes, rx_bytes; /* the state's handler runs when rx_bytes reaches want_bytes */
    size_t tx_bytes, sent_bytes;
    size_t request_bytes;
    uint8_t rx[R2_HELLO_STREAM_MAX];
    uint8_t tx[R2_HELLO_STREAM_MAX];
    uint8_t request[]; /* client: until it is sent */
} r2_hello_conn_t;

/** The instance. Engine lock. */
typedef struct r2_hello_tcp {
    const r2_clock_t *clock; /* borrowed */
    const r2_log_t *log;     /* borrowed */
    r2_hello_upcalls_t upcalls;
    int epoll_fd; /* owned */
    bool has_key;
    bool polling; /* inside poll(): closed connections are kept */
    uint8_t key[R2_JOB_KEY_BYTES];
    uint64_t next_token;
    uint64_t next_ns;   /* no timer is due before */
    uint64_t resume_ns; /* accepting pauses until; 0 = it does not pause */
    bool full;          /* it pauses for a slot: a free one ends the pause */
    size_t stranger_count;
    r2_hello_conn_t *strangers; /* owned: inbound, not authenticated, oldest first */
    r2_hello_conn_t *conns;     /* owned: all others */
    r2_hello_conn_t *dead;      /* owned: closed */
    r2_hello_listener_t listeners[R2_RAILS_MAX + 1];
} r2_hello_tcp_t;

/* hello_conn.c */

/** Starts a call on a socket that is connecting (R2_IN_PROGRESS) or connected. Takes the socket. */
r2_status_t r2_hello_conn_call(r2_hello_tcp_t *hello, uint32_t own_idx, int fd, bool connected,
                               const r2_hello_address_t *address, const void *request, size_t bytes,
                               uint64_t timeout_ns, uint64_t connect_id);
/** Takes an accepted socket. */
void r2_hello_conn_accept(r2_hello_listener_t *listener, int fd, uint64_t now_ns);
/** Handles epoll events of a connection. */
void r2_hello_conn_event(r2_hello_conn_t *conn, uint32_t events);
/** Sends the reply to an authenticated request and closes. */
void r2_hello_conn_reply(r2_hello_conn_t *conn, const void *reply, size_t bytes);
/** Ends a connection with an error: a call gets its result. Only inside poll(). */
void r2_hello_conn_fail(r2_hello_conn_t *conn, r2_status_t status);
/** Connects anew, if that is due. The call goes on as it is if it cannot be done. */
void r2_hello_conn_dial(r2_hello_conn_t *conn, uint64_t now_ns);
/** Closes without a result and frees it, inside poll() at its end. */
void r2_hello_conn_close(r2_hello_conn_t *conn);
/** Frees closed connections. */
void r2_hello_conn_reap(r2_hello_tcp_t *hello);
/** Name of a state, for log lines and tests. */
const char *r2_hello_state_name(r2_hello_state_t state);

#endif
