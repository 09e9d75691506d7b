/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of the probe driver for Ethernet: instance, rails, requests.
 */
#ifndef R2_RAIL_PROBE_PARTS_H
#define R2_RAIL_PROBE_PARTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/logger.h"
#include "rail/hello_tcp.h"
#include "rail/probe_beacon.h"
#include "rail/probe_limit.h"
#include "rail/probe_tcp.h"
#include "transport/put.h"

/* Published address: version u8 = 2 | bytes of the put address u8 | UDP port u16 | quiet TCP port
 * u16, big endian | put address. */
#define R2_PROBE_ADDRESS_VERSION 2
#define R2_PROBE_ADDRESS_BYTES   6 /* without the put address */

static_assert(R2_PROBE_ADDRESS_BYTES + R2_PUT_ADDRESS_MAX <= R2_PROBE_ADDRESS_MAX,
              "an address fits its buffer");

/** What an epoll event belongs to: first member of rails, askers and put targets. */
typedef enum r2_probe_source { R2_PROBE_RAIL, R2_PROBE_ASKER, R2_PROBE_TARGET } r2_probe_source_t;

/** What asks on a rail (parameter probe). */
typedef enum r2_probe_choice { R2_PROBE_AUTO, R2_PROBE_CONNECT, R2_PROBE_PUT } r2_probe_choice_t;

struct r2_probe_tcp;

/** What others put to on one rail, and what we put with. */
typedef struct r2_probe_put {
    r2_probe_source_t source;
    r2_put_device_t *device; /* owned; NULL: connections ask on this rail */
    r2_put_end_t *target;    /* owned; NULL as device */
    uint8_t address[R2_PUT_ADDRESS_MAX];
    size_t bytes; /* of the address */
} r2_probe_put_t;

typedef struct r2_probe_rail {
    r2_probe_source_t source;
    uint32_t idx;
    int udp_fd;   /* owned; -1: not prepared */
    int quiet_fd; /* owned: holds a TCP port on which nobody listens */
    uint16_t udp_port, quiet_port;
    r2_nic_t nic; /* as the sockets are bound */
    r2_probe_limit_t limit;
    r2_probe_put_t put;
    struct r2_probe_tcp *probe; /* borrowed: outlives the rail */
} r2_probe_rail_t;

/** One connection of a request. */
typedef struct r2_probe_asker {
    r2_probe_source_t source;
    int fd; /* owned; -1: not open */
    uint64_t sent_ns;
    struct r2_probe_request *request; /* borrowed: holds the asker */
} r2_probe_asker_t;

/** A probe until its result was told. Askers: the quiet port, then the hello listener; before them
 * a put. */
typedef struct r2_probe_request {
    struct r2_probe_request *prev, *next;
    r2_probe_rail_t *rail; /* borrowed */
    r2_hello_address_t to[2];
    r2_probe_asker_t askers[2];
    uint64_t start_ns[2]; /* when they begin */
    r2_put_end_t *put;    /* owned; NULL: none under way */
    uint64_t put_ns;      /* when to look after it */
    uint8_t put_address[R2_PUT_ADDRESS_MAX];
    size_t put_bytes; /* 0: no put, or not any more */
    uint64_t id, deadline_ns;
    uint32_t begun; /* askers that had their turn */
    bool sent;      /* a packet left */
    bool done;
    r2_probe_answer_t answer;
    uint64_t rtt_ns;
} r2_probe_request_t;

/** A beacon that waits for its turn. */
typedef struct r2_probe_waiting {
    struct r2_probe_waiting *prev, *next;
    r2_probe_rail_t *rail; /* borrowed */
    uint64_t start_ns;
    struct sockaddr_in to;
    uint8_t datagram[R2_BEACON_BYTES];
} r2_probe_waiting_t;

/** The instance. Engine lock. */
typedef struct r2_probe_tcp {
    r2_put_t put;
    r2_probe_choice_t choice;
    uint32_t puts;           /* under way */
    const r2_clock_t *clock; /* borrowed */
    const r2_log_t *log;     /* borrowed */
    r2_probe_upcalls_t upcalls;
    int epoll_fd; /* owned */
    bool has_key;
    uint8_t beacon_key[R2_JOB_KEY_BYTES];
    uint64_t next_ns;             /* no timer is due before */
    r2_probe_request_t *requests; /* owned list */
    r2_probe_waiting_t *waiting;  /* owned list, in the order of their turns on each rail */
    r2_probe_rail_t rails[R2_RAILS_MAX];
} r2_probe_tcp_t;

/* probe_put.c */

/** @return false: no such word. */
bool r2_probe_choice_find(const char *word, r2_probe_choice_t *choice_p);
/** Makes the target anew if the NIC is one for puts; connections ask where that cannot be. */
void r2_probe_put_open(r2_probe_rail_t *rail, const r2_nic_t *nic);
void r2_probe_put_close(r2_probe_rail_t *rail);
/** Answers those that ask. */
void r2_probe_put_serve(r2_probe_rail_t *rail);
/** Begins to put. @return false: connections have to ask. */
bool r2_probe_put_begin(r2_probe_request_t *request, uint64_t now_ns);
/**
 * Looks after a put, lets connections ask when it failed.
 * @return true: the request is over, with that answer.
 */
bool r2_probe_put_advance(r2_probe_request_t *request, uint64_t now_ns,
                          r2_probe_answer_t *answer_p);
/** Gives a put up. */
void r2_probe_put_drop(r2_probe_request_t *request);

/* probe_rail.c */

/** Opens the sockets, or opens them again where the old ones cannot hear the NIC as it is now. */
r2_status_t r2_probe_rail_open(r2_probe_rail_t *rail, const r2_nic_t *nic);
void r2_probe_rail_close(r2_probe_rail_t *rail);
/** A device that was made anew has another index, and sockets bound to the old one are deaf. */
void r2_probe_rail_follow(r2_probe_rail_t *rail);
/** Asks the kernel, so that an answer does not depend on when the event of a lost carrier is
 * read. */
bool r2_probe_rail_carrier(const r2_probe_rail_t *rail);
void r2_probe_rail_send(const r2_probe_rail_t *rail, const struct sockaddr_in *to,
                        const uint8_t *datagram);
/** Reads the beacons that have come. */
void r2_probe_rail_hear(r2_probe_rail_t *rail);

#endif
