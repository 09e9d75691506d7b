/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Lanes of ucx_flaps, and what a process knows.
 */
#ifndef R2_TESTS_UCX_FLAPS_H
#define R2_TESTS_UCX_FLAPS_H

#include <time.h>

#include "base/clock.h"
#include "base/util.h"
#include "r2/transport.h"

#define RANKS_MAX    8
#define DATA_MAX     131072u
#define WINDOW       4
#define PACKETS      256
#define BUFFER_BYTES (DATA_MAX + 256)
#define CALL_NS      (500 * R2_NS_PER_MS)
#define WIRING_NS    (1500 * R2_NS_PER_MS)
#define SILENCE_NS   (600 * R2_NS_PER_MS)
#define RETRY_NS     (5 * R2_NS_PER_MS)
#define QUIET_NS     (5 * R2_NS_PER_S) /* at the end */
#define PERIOD_NS    (4 * R2_NS_PER_S) /* calm, hectic, calm, .. */
#define CPU_MAX_NS   (300 * R2_NS_PER_MS)
#define WALL_MAX_NS  (2 * R2_NS_PER_S)
#define WORKERS_MAX  64

#define MAGIC 0x7532666cu

typedef enum kind { HELLO, HELLO_ACK, DATA, ACK, CALL, ANSWER, NOTICE } kind_t;

/** Header of a packet. */
typedef struct header {
    uint32_t magic, kind;
    uint64_t id; /* what the receiver of this connection chose */
    uint32_t seq, bytes, acked, pad;
} header_t;

/** A datagram on the control path. */
typedef struct control {
    uint32_t kind, from;
    uint64_t id;       /* packets to the sender of this carry it */
    uint64_t reply_to; /* ANSWER: id of the call; NOTICE: id that is closed */
    uint64_t address_bytes;
    char address[R2_TP_ADDRESS_MAX];
} control_t;

typedef struct packet {
    r2_tp_send_t op;
    struct packet *next;
    header_t header;
} packet_t;

/** A worker generation. */
typedef struct generation {
    struct generation *next;
    r2_tp_worker_t *worker;
    uint32_t served; /* bit per rank that had an endpoint here */
    uint32_t users;
} generation_t;

typedef enum state { DOWN, CALLING, WIRING, UP } state_t;

typedef struct lane {
    uint32_t rank;
    state_t state;
    uint64_t since_ns, retry_ns;
    generation_t *generation; /* from CALLING on */
    r2_tp_ep_t *ep;           /* from CALLING on */
    uint64_t tx_id, rx_id;
    bool hello_seen, hello_acked, hello_owed, ack_owed, failed;
    uint32_t sent, acked, got; /* data packets */
    uint64_t progress_ns;      /* something was acknowledged, or nothing was outstanding */
    char *buffer;              /* owned: mapped while the endpoint is connected */
} lane_t;

/** This process. */
typedef struct process {
    uint32_t rank, ranks;
    const char *folder;
    r2_tp_t tp;
    r2_tp_device_t *device;
    generation_t *generations; /* newest first */
    lane_t lanes[RANKS_MAX];
    packet_t packets[PACKETS], *spare;
    char *pattern;
    int control;
    uint64_t random, now_ns, start_ns, end_ns, flap_ns;
    char carrier[64];
    /* results */
    uint64_t ups, at_will, timeouts, failures, notices, wiring, delivered, bytes, ghosts, wrong;
    uint64_t cpu_max_ns, wall_max_ns;
    uint32_t workers, workers_max;
} process_t;

extern process_t me;

typedef struct watch {
    uint64_t cpu_ns, wall_ns;
} watch_t;

uint64_t clock_ns(clockid_t clock);
uint64_t random_u64(void);
/** Starts to measure a call of the transport. */
watch_t watch_start(void);
/** The longest of all calls are kept in `me`. */
void watch_end(watch_t start);
/** Destroys workers that nobody uses any more, but for the newest. */
void generations_sweep(void);
/** Takes what other processes say beside the rails. */
void control_receive(void);
/** Closes a lane with packets in flight. @param tell The peer is told. */
void lane_close(lane_t *lane, bool tell);
/** One step of a lane in whatever state. */
void lane_turn(lane_t *lane);

#endif
