/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Health of one process: evidence in, verdicts, notices and the health map out.
 */
#ifndef R2_HEALTH_HEALTH_H
#define R2_HEALTH_HEALTH_H

#include "base/clock.h"
#include "base/logger.h"
#include "model/health_map.h"
#include "model/hosts.h"
#include "r2/nic.h"
#include "r2/params.h"

/*
 * Pure state machine: engine lock, no I/O, time as an argument. What it wants done goes through its
 * ports; everything that happens comes in by the calls below. Hosts are indices in order of their
 * lowest rank; on the wire a host is named by that rank.
 */

typedef struct r2_health r2_health_t;

/** This process. */
typedef struct r2_health_self {
    uint32_t rank;
    uint64_t rail_speed[R2_RAILS_MAX]; /* of its host, bytes per second; 0: unknown */
} r2_health_self_t;

/** What was decided, for log and event file. Strings are valid during the call. */
typedef struct r2_verdict_event {
    uint64_t time_ns;
    r2_verdict_t verdict;
    r2_direction_t direction;
    uint32_t host, rail; /* blamed; for PATH and AMBIGUOUS also host_b; rail UINT32_MAX: all */
    uint32_t host_b;
    uint32_t rank;        /* PEER_*: the process; else UINT32_MAX */
    uint32_t capacity;    /* now, 0..R2_CAPACITY_FULL */
    uint32_t version;     /* of the map's entry; 0: not in the map (yet) */
    bool own;             /* concluded here, not only heard of */
    bool written;         /* this process put it into the map: no other one will say the same */
    uint64_t since_ns;    /* first evidence */
    const char *evidence; /* one line: what was tried and what answered */
} r2_verdict_event_t;

/** What the machine wants done. */
typedef struct r2_health_ports {
    /** Sends a notice by the best healthy lane and out of band. May get lost, doubled,
     * reordered. */
    void (*notify)(void *arg, uint32_t rank, const void *data, size_t bytes);
    /** Starts a probe of `rank`'s NIC on `rail`; r2_health_probed() will be called. */
    void (*probe)(void *arg, uint32_t rank, uint32_t rail, uint64_t timeout_ns, uint64_t id);
    /** Sends a beacon to `rank` over `rail`. */
    void (*beacon)(void *arg, uint32_t rank, uint32_t rail, uint64_t id);
    /**
     * The rail of a host is known to be dead (dead true): lanes over it are failed at once and not
     * tried again before `retry_ns`; or to be well again: lanes are tried now. host may be the own
     * one.
     */
    void (*rail_state)(void *arg, uint32_t host, uint32_t rail, bool dead, uint64_t retry_ns);
    /** The same for the path to one host only. */
    void (*path_state)(void *arg, uint32_t host, uint32_t rail, bool dead, uint64_t retry_ns);
    /**
     * When a lane between this process and any process of `host` over `rail` last had something
     * acknowledged; 0: never. NULL: nothing is known.
     */
    uint64_t (*delivered_ns)(void *arg, uint32_t host, uint32_t rail);
    /**
     * True if a lane between this process and any process of `host` over `rail` goes another way
     * than probes, is tried, also again and again, and is not up. NULL: there is no such lane.
     */
    bool (*mute)(void *arg, uint32_t host, uint32_t rail);
    /** The same of lanes over a rail of ours, to whatever host: others may number theirs in another
     * way. NULL, too, where mute is. */
    bool (*own_mute)(void *arg, uint32_t rail);
    /**
     * True if nothing but lanes reaches our rail: while none is up it cannot be probed, and lanes
     * are tried instead. NULL: all can be probed.
     */
    bool (*unprobed)(void *arg, uint32_t rail);
    /**
     * True if this process was away a moment ago and may not have read all that came meanwhile.
     * NULL: nothing is known.
     */
    bool (*reads_on)(void *arg);
    /** Our NIC has carrier and an address now. */
    bool (*carrier)(void *arg, uint32_t rail);
    /** The process is known to be gone (a member of its host said so). */
    void (*peer_gone)(void *arg, uint32_t rank);
    /** What people call a rail of a host; NULL: it has no name but its number. */
    void (*name)(void *arg, uint32_t host, uint32_t rail, char *text_p, size_t text_bytes);
    /** Something for the log and the event file. */
    void (*event)(void *arg, const r2_verdict_event_t *event);
    /** The map changed; plans may be due. */
    void (*changed)(void *arg);
    void *arg; /* borrowed: outlives the machine */
} r2_health_ports_t;

/**
 * @param hosts borrowed: outlives the machine.
 * @return R2_OK, R2_ERR_NO_MEMORY, R2_ERR_PARAM.
 */
r2_status_t r2_health_create(const r2_hosts_t *hosts, const r2_health_self_t *self,
                             const r2_params_t *params, const r2_health_ports_t *ports,
                             uint64_t now_ns, r2_health_t **health_p);
void r2_health_destroy(r2_health_t *health);

/* ---- evidence ---- */

/** A lane to `rank` over our `rail` (equal to the peer's rail number `peer_rail`). */
void r2_health_lane(r2_health_t *health, uint32_t rank, uint32_t rail, uint32_t peer_rail,
                    r2_lane_event_t event, r2_status_t why, uint64_t now_ns);
/**
 * Our NIC lost or got carrier, its address or its RDMA port; or, at the start, has none. It was not
 * so before.
 * @param evidence what is missing, for the verdict.
 */
void r2_health_carrier(r2_health_t *health, uint32_t rail, bool carrier, const char *evidence,
                       uint64_t now_ns);
/**
 * Throughput of one lane over the last interval in which its link always had more to send (or,
 * inbound, the peer had). Given for all lanes of the link in a row, for the same interval.
 * @param bytes acknowledged or received in `interval_ns`.
 */
void r2_health_rate(r2_health_t *health, uint32_t rank, uint32_t rail, bool outbound,
                    uint64_t bytes, uint64_t interval_ns, uint64_t now_ns);
/** All lanes to a process are silent, or it answers again. */
void r2_health_peer(r2_health_t *health, uint32_t rank, bool silent, bool gone, uint64_t now_ns);
void r2_health_probed(r2_health_t *health, uint64_t id, bool alive, bool unable, uint64_t now_ns);
void r2_health_heard(r2_health_t *health, uint32_t rank, uint32_t rail, uint64_t id,
                     uint64_t now_ns);
/** A notice of another process, in band or out of band. Never trusts the bytes. @return R2_OK or
 * R2_ERR_WIRE. */
r2_status_t r2_health_noticed(r2_health_t *health, uint32_t rank, const void *data, size_t bytes,
                              uint64_t now_ns);
/** Timers. */
void r2_health_tick(r2_health_t *health, uint64_t now_ns);
/** When tick() has work; R2_NEVER_NS: not at all: a healthy job costs no wakeup. */
uint64_t r2_health_deadline_ns(const r2_health_t *health);

/* ---- answers ---- */

const r2_health_map_t *r2_health_map(const r2_health_t *health);
/** True if no process of our host that is not known to be gone comes before this one. */
bool r2_health_is_first(const r2_health_t *health);
/** True if a process is known to be gone, by ourselves or by others. */
bool r2_health_gone(const r2_health_t *health, uint32_t rank);
/**
 * Lines for help texts: every rail of the two hosts with verdict and since when; the processes of
 * host_b that are gone.
 * @param text_p each line begins with two blanks and ends with a line feed; cut off where it is
 * full.
 */
void r2_health_describe(const r2_health_t *health, uint32_t host_a, uint32_t host_b,
                        uint64_t now_ns, char *text_p, size_t text_bytes);
/** The same for everything that is known to be broken anywhere; "" where nothing is. */
void r2_health_describe_broken(const r2_health_t *health, uint64_t now_ns, char *text_p,
                               size_t text_bytes);

#endif
