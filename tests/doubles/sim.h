/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Simulator: hosts, rails and processes in virtual time; a transport for many ranks in one process.
 */
#ifndef R2_DOUBLES_SIM_H
#define R2_DOUBLES_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "r2/transport.h"
#include "rail/nic_watch.h"

/*
 * One thread owns a simulator. A node is one process, numbered from 0; node k lives on host k
 * modulo the number of hosts, or where node_host says. Equal rail indices are one switch plane: an
 * endpoint connects a rail to the rail of the same index.
 *
 * A connection behaves like TCP: packets arrive in order and once; `socket_bytes` are taken from
 * the sender at once and stay in its socket until they arrived AND the way back works; a receiver
 * that does not progress fills `receive_bytes` and stops the sender; when the path is broken
 * nothing is lost, everything comes late, some time after the path works again; closing an endpoint
 * drops what was not yet in the socket, and what was in it still arrives, or not (`keep_ppm`); a
 * destroyed worker or a dead process resets the connections that lead to it, which their owners
 * learn only over a working path.
 *
 * On a device of "rc_verbs" peers may put: the NIC writes the data when their packet arrives,
 * whatever the process does. It does so as long as the endpoint that leads back is open, that is,
 * long after the sender has closed its own (`keep_ppm`). A write into memory that was given back is
 * a failure of the simulator, and is not done; one whose endpoint is closed is refused.
 */

#define R2_SIM_LOCAL      R2_RAILS_MAX /* index of the rail within a host */
#define R2_SIM_WORKER_FDS 4 /* more than UCX takes over TCP (r2/fds.h): drawn jobs depend on it */
#define R2_SIM_EP_FDS     2
#define R2_SIM_SLACK_FDS  2 /* of which connect requests take some */
/** What so many lanes take where each has a worker of its own. */
#define R2_SIM_LANES_FDS(lanes) ((lanes) * (R2_SIM_WORKER_FDS + R2_SIM_EP_FDS) + R2_SIM_SLACK_FDS)
#define R2_SIM_CUTS_MAX         64 /* broken (host, host, rail) paths at one time */

typedef struct r2_sim r2_sim_t;

/** Shape of the simulated machine. Zero in a field with "0:" gives the value behind it. */
typedef struct r2_sim_config {
    uint64_t seed;
    uint32_t host_count;
    uint32_t node_count;
    const uint32_t *node_host;  /* borrowed for the call; NULL: node k on host k % host_count */
    uint32_t rail_count;        /* up to R2_RAILS_MAX; the same on every host */
    uint64_t rail_bytes_per_s;  /* 0: 1e9, each way */
    uint64_t told_bytes_per_s;  /* what NICs tell of themselves; 0: what rails carry */
    uint64_t rail_latency_ns;   /* 0: 10 us, one way */
    uint64_t local_bytes_per_s; /* 0: 10e9 */
    uint64_t local_latency_ns;  /* 0: 500 ns */
    size_t socket_bytes;        /* 0: 256 KiB */
    size_t receive_bytes;       /* 0: 256 KiB */
    size_t quantum_bytes;       /* 0: 9000; connections of one rail alternate after so much */
    uint64_t retry_max_ns;      /* 0: 200 ms; longest pause between a repair and the late data */
    uint64_t carrier_delay_ns;  /* 0: 300 us until a host knows of its carrier */
    uint32_t keep_ppm; /* chance that data in the socket survives the closing of its endpoint */
    uint32_t batch;    /* 0: 16 packets per worker_progress() */
    uint32_t
        crowded_ppm; /* part of their time for which nodes wait for a processor, as they tell */
    /** Tells application data by its header; NULL: no check that a lane is wired up before it. */
    bool (*is_application)(const void *header, size_t header_bytes);
    bool allow_changes; /* do not report memory that changes while it is in flight */
} r2_sim_config_t;

/** What a simulator tells its owner. Called from inside r2_sim_step() or any transport call. */
typedef struct r2_sim_hooks {
    /** Something waits for this node: packets, room in a socket, a failure, a hello. */
    void (*wake)(void *arg, uint32_t node);
    /** A host noticed that a rail of its own lost or got carrier. */
    void (*carrier)(void *arg, uint32_t host, uint32_t rail, bool up);
    void *arg; /* borrowed */
} r2_sim_hooks_t;

/** What went over the rails so far, for the tests of the simulator itself. */
typedef struct r2_sim_stats {
    uint64_t packets, bytes; /* delivered to workers */
    uint64_t ghosts;         /* delivered from an endpoint that was closed */
    uint64_t rewinds;        /* times a connection lost what was under way and will send it again */
    uint64_t resets;         /* connections that were reset */
    uint32_t descriptors_max; /* that one process ever had */
    uint64_t puts, put_bytes; /* written by NICs */
    uint64_t puts_late;       /* of these after their endpoint was closed by its owner */
    uint64_t puts_refused;    /* the endpoint that leads back was closed, or its worker destroyed */
} r2_sim_stats_t;

/** @return NULL if out of memory or the configuration makes no sense. */
r2_sim_t *r2_sim_create(const r2_sim_config_t *config, const r2_sim_hooks_t *hooks);
/** All devices must be closed. */
void r2_sim_destroy(r2_sim_t *sim);

/** The transport of one node. Valid until r2_sim_destroy(). */
r2_tp_t r2_sim_transport(r2_sim_t *sim, uint32_t node);
/** Virtual time and a seeded generator for one node. Valid until r2_sim_destroy(). */
const r2_clock_t *r2_sim_clock(r2_sim_t *sim, uint32_t node);
/** NICs of a node's host. @param nics_p R2_RAILS_MAX entries. */
void r2_sim_nics(const r2_sim_t *sim, uint32_t node, r2_nic_t *nics_p, size_t *count_p);
uint32_t r2_sim_host_of(const r2_sim_t *sim, uint32_t node);

/* ---- time ---- */

uint64_t r2_sim_now_ns(const r2_sim_t *sim);
/** Time of the next event; R2_NEVER_NS: none. */
uint64_t r2_sim_next_ns(const r2_sim_t *sim);
/** Moves the clock to the next event and handles it. @return false if there is none. */
bool r2_sim_step(r2_sim_t *sim);
/** Handles everything up to `time_ns` and leaves the clock there. */
void r2_sim_run_until(r2_sim_t *sim, uint64_t time_ns);
/** Calls fn(arg, value) at a time. @return false: out of memory (also a failure of the
 * simulator). */
bool r2_sim_at(r2_sim_t *sim, uint64_t time_ns, void (*fn)(void *arg, uint64_t value), void *arg,
               uint64_t value);

/* ---- faults ---- */

/** Cable or switch port: nothing passes in either direction and the host is told. */
void r2_sim_set_carrier(r2_sim_t *sim, uint32_t host, uint32_t rail, bool up);
/** The port of an RDMA NIC is down, and its network device is up: connect requests and probes pass,
 * what is sent on lanes is lost. */
void r2_sim_set_port_down(r2_sim_t *sim, uint32_t host, uint32_t rail, bool down);
/** Silent drop seen from the host: out and in may pass or not; nobody is told. */
void r2_sim_set_pass(r2_sim_t *sim, uint32_t host, uint32_t rail, bool out, bool in);
/** Rate of both directions. @param bytes_per_s 0: as configured. */
void r2_sim_set_rate(r2_sim_t *sim, uint32_t host, uint32_t rail, uint64_t bytes_per_s);
/** Random loss, parts per million of packets: they come late, as TCP repairs it. */
void r2_sim_set_loss(r2_sim_t *sim, uint32_t host, uint32_t rail, uint32_t ppm);
/** Breaks or repairs one path between two hosts on one rail. */
void r2_sim_set_cut(r2_sim_t *sim, uint32_t host_a, uint32_t host_b, uint32_t rail, bool cut);
/** The network library reports an error on every endpoint that leaves `host` over `rail`. */
void r2_sim_break_endpoints(r2_sim_t *sim, uint32_t host, uint32_t rail);
/**
 * A process may have so many descriptors; 0, the default: any number. What it has it keeps. A
 * worker takes R2_SIM_WORKER_FDS, an endpoint R2_SIM_EP_FDS until its worker is destroyed: where
 * they are missing the answer is R2_ERR_NO_DESCRIPTORS, and it is a failure not to have asked
 * before (has_room). A connect request takes one: R2_ERR_AGAIN.
 */
void r2_sim_set_descriptors(r2_sim_t *sim, uint32_t node, uint32_t most);
/** Takes descriptors of a process. @return false: it may not have so many more. */
bool r2_sim_take_descriptors(r2_sim_t *sim, uint32_t node, uint32_t count);
void r2_sim_put_descriptors(r2_sim_t *sim, uint32_t node, uint32_t count);
/**
 * The simulator takes memory for what is on its way now: no process's. For tests in which a process
 * has none.
 */
extern volatile bool r2_sim_takes_memory; /* compilers know that malloc() does not look */

/** The process is gone: its connections are reset, its listeners refuse. */
void r2_sim_kill(r2_sim_t *sim, uint32_t node);

/* ---- for the drivers beside the transport (hello) and for tests ---- */

bool r2_sim_dead(const r2_sim_t *sim, uint32_t node);
/** True if packets pass from the host of `from` to that of `to` over `rail`, this way. */
bool r2_sim_passes(const r2_sim_t *sim, uint32_t from, uint32_t to, uint32_t rail);
/** What the host of `node` can know: carrier of its own NIC. */
bool r2_sim_carrier(const r2_sim_t *sim, uint32_t node, uint32_t rail);
uint64_t r2_sim_latency_ns(const r2_sim_t *sim, uint32_t rail);
uint64_t r2_sim_random_u64(r2_sim_t *sim);
/** Marks that something waits for a node. */
void r2_sim_wake(r2_sim_t *sim, uint32_t node);
const r2_sim_stats_t *r2_sim_stats(const r2_sim_t *sim);

/** Records a broken call rule or an impossible state. Only the first one is kept. */
void r2_sim_fail(r2_sim_t *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Text of the first failure, or NULL. */
const char *r2_sim_failure(const r2_sim_t *sim);
/** State of all connections that hold data, for a dump. @param write gets one line at a time. */
void r2_sim_dump(const r2_sim_t *sim, void (*write)(void *arg, const char *line), void *arg);

#endif
