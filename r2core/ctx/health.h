/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Joins the detector with rails, links, probes and the out-of-band path of this process.
 */
#ifndef R2_CTX_HEALTH_H
#define R2_CTX_HEALTH_H

#include "ctx/hosts.h"
#include "ctx/rail_log.h"
#include "health/health.h"

struct r2_ctx;

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
    bool flag;                 /* silent; outbound; alive */
    bool unable;
    uint64_t id, bytes, interval_ns;
    uint32_t data_bytes;
    uint8_t data[R2_NOTICE_BYTES_MAX];
} r2_note_t;

/** The detector with what it stands on. Engine lock. */
typedef struct r2_ctx_health {
    struct r2_ctx *ctx;             /* borrowed: outlives this */
    r2_health_t *machine;      /* owned */
    r2_hosts_t *hosts;         /* owned */
    uint32_t *rail_count;      /* owned: [host] */
    const char **host_name;    /* owned: [host]; strings borrowed from hosts */
    uint8_t *unanswered;       /* owned: [rank] notices sent since something was heard */
    r2_rail_log_t *rails;      /* owned: what is told of rails at the default level */
    r2_note_t *queue;          /* owned: [room] */
    uint32_t queued, room;
    uint32_t missed;           /* a note had no memory: links from this rank on tell their state; NOBODY: none */
} r2_ctx_health_t;

/**
 * Starts the detector, when all processes of the job are known. Without one (some process does not run
 * r2) lanes still fail over and heal by themselves; nobody is told why.
 */
r2_status_t r2_ctx_health_create(struct r2_ctx *ctx);
void r2_ctx_health_destroy(struct r2_ctx *ctx);

/** Gives the upcalls of the net, the probes and the out-of-band path. Before the net is started. */
void r2_ctx_health_bind(struct r2_ctx *ctx);
/** Our NIC lost or got carrier or its address. Engine lock. */
void r2_ctx_health_carrier(struct r2_ctx *ctx, uint32_t rail, bool carrier);
/** A process was given up for good. Engine lock; only noted. */
void r2_ctx_health_gone(struct r2_ctx *ctx, uint32_t rank);
/** Hands what was noted to the detector and lets it act. Engine lock, outside of callbacks. */
void r2_ctx_health_run(struct r2_ctx *ctx);
/** Polls probes and out-of-band path where they have no descriptor or a timer of theirs is due. */
void r2_ctx_health_poll(struct r2_ctx *ctx);
/** Next time r2_ctx_health_poll() or _run() has work. */
uint64_t r2_ctx_health_deadline_ns(const struct r2_ctx *ctx);

/**
 * What is known of the rails of our host and those of a process's host, in lines; for a process that is
 * none of the job, of all that is broken.
 */
void r2_ctx_health_describe(void *ctx, uint32_t rank, char *text_p, size_t text_bytes);
/** What the detector can have done (health_ports.c). */
void r2_ctx_health_ports(r2_ctx_health_t *health, r2_health_ports_t *ports_p);
/** A probe was answered, or could not be sent; only noted. @param arg the context. */
void r2_note_probed(void *arg, uint64_t id, r2_probe_answer_t answer, uint64_t rtt_ns);

#endif
