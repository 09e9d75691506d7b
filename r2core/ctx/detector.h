/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Joins the detector with rails, links, probes and the out-of-band path of this process.
 */
#ifndef R2_CTX_DETECTOR_H
#define R2_CTX_DETECTOR_H

#include "ctx/core.h"
#include "ctx/host_table.h"
#include "ctx/lane_asks.h"
#include "ctx/rail_log.h"
#include "health/health.h"
#include "oob/post.h"

/**
 * Evidence that waits for the end of a progress pass. What comes again by itself, or is about an
 * interval, is dropped beyond this; what happens once (a lane fails, a process is gone, a probe is
 * answered) is kept however much it is: a switch that dies takes a lane of every link with it, in
 * one progress pass.
 */
#define R2_NOTE_MAX 256u

typedef enum r2_note_kind {
    R2_NOTE_LANE,
    R2_NOTE_PEER,
    R2_NOTE_GONE,
    R2_NOTE_NOTICE,
    R2_NOTE_RATE,
    R2_NOTE_PROBED,
    R2_NOTE_HEARD
} r2_note_kind_t;

/** Something that was noted inside a callback. Which fields count depends on the kind. */
typedef struct r2_note {
    r2_note_kind_t kind;
    uint32_t rank, rail, peer_rail;
    r2_lane_event_t event;
    r2_status_t why;
    bool flag; /* silent; outbound; alive */
    bool unable;
    uint64_t id, bytes, interval_ns;
    uint32_t data_bytes;
    uint8_t data[R2_NOTICE_BYTES_MAX];
} r2_note_t;

/** The detector with what it stands on. Engine lock. */
typedef struct r2_ctx_health {
    r2_core_t *core;         /* borrowed: outlives this */
    const r2_post_t *post;   /* borrowed: the out-of-band path; ops NULL: there is none */
    r2_health_t *machine;    /* owned */
    const r2_hosts_t *hosts; /* borrowed: outlives this */
    uint8_t *unanswered;     /* owned: [rank] notices sent since something was heard */
    r2_lane_asks_t asks;     /* of rails that nothing but lanes reaches */
    r2_rail_log_t *rails;    /* owned: what is told of rails at the default level */
    r2_note_t *queue;        /* owned: [room] */
    uint32_t queued, room;
    /* a note had no memory: links from this rank on tell their state; NOBODY: none */
    uint32_t missed;
} r2_ctx_health_t;

/**
 * Starts the detector, when all processes of the job are known. Without one (some process does not
 * run r2) lanes still fail over and heal by themselves; nobody is told why. Engine lock.
 * @param hosts, post borrowed: outlive it. @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_ctx_health_create(r2_core_t *core, const r2_hosts_t *hosts, const r2_post_t *post,
                                 r2_ctx_health_t **health_p);

/* Of all that follows: without a detector (NULL) nothing happens, and nothing is known. */
void r2_ctx_health_destroy(r2_ctx_health_t *health);
/** Our NIC lost or got carrier, its address or its RDMA port. Engine lock. */
void r2_ctx_health_carrier(r2_ctx_health_t *health, uint32_t rail, bool carrier);
/** Hands what was noted to the detector and lets it act. Engine lock, outside of callbacks. */
void r2_ctx_health_run(r2_ctx_health_t *health);
/** Next time r2_ctx_health_run() has work. */
uint64_t r2_ctx_health_deadline_ns(const r2_ctx_health_t *health);
/** True if others say that this process is gone. */
bool r2_ctx_health_says_gone(const r2_ctx_health_t *health, uint32_t rank);
/** What is known of all rails. @return NULL: nothing. */
const r2_health_map_t *r2_ctx_health_known(const r2_ctx_health_t *health);

/**
 * What is known of the rails of our host and those of a process's host, in lines; for a process
 * that is none of the job, of all that is broken.
 */
void r2_ctx_health_describe(const r2_ctx_health_t *health, uint32_t rank, char *text_p,
                            size_t text_bytes);
/** What the detector can have done (health_ports.c). */
void r2_ctx_health_ports(r2_ctx_health_t *health, r2_health_ports_t *ports_p);

/* notes.c: evidence. Only noted; also inside of callbacks. Engine lock. */
void r2_note_lane(r2_ctx_health_t *health, uint32_t rank, uint32_t rail, uint32_t peer_rail,
                  r2_lane_event_t event, r2_status_t why);
/** No lane to a peer is up though one is wanted (silent), or one is again. */
void r2_note_peer(r2_ctx_health_t *health, uint32_t rank, bool silent);
/** A process was given up for good. */
void r2_note_gone(r2_ctx_health_t *health, uint32_t rank);
void r2_note_notice(r2_ctx_health_t *health, uint32_t rank, const void *data, size_t bytes);
void r2_note_rate(r2_ctx_health_t *health, uint32_t rank, uint32_t rail, bool outbound,
                  uint64_t bytes, uint64_t interval_ns);
/** A probe was answered, or could not be sent. */
void r2_note_probed(r2_ctx_health_t *health, uint64_t id, r2_probe_answer_t answer);
void r2_note_heard(r2_ctx_health_t *health, uint32_t rank, uint32_t rail, uint64_t id);
/** Hands all of it to the detector. Outside of callbacks. */
void r2_notes_give(r2_ctx_health_t *health, uint64_t now_ns);

#endif
