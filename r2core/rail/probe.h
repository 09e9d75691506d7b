/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Probes: does a peer's NIC answer on one rail, and which way do packets pass.
 */
#ifndef R2_RAIL_PROBE_H
#define R2_RAIL_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "r2/nic.h"
#include "r2/status.h"

#define R2_PROBE_ADDRESS_MAX 64 /* bytes of a published probe address */

typedef enum r2_probe_answer {
    R2_PROBE_ALIVE,  /* the peer's NIC or kernel answered: both ways pass */
    R2_PROBE_SILENT, /* no answer in time */
    R2_PROBE_UNABLE  /* could not be asked (own NIC has no carrier, no descriptor): says nothing */
} r2_probe_answer_t;

/** Upcalls, made inside poll(), under the engine lock. */
typedef struct r2_probe_upcalls {
    void (*result)(void *arg, uint64_t probe_id, r2_probe_answer_t answer, uint64_t rtt_ns);
    /** A beacon of process `rank` came in over our rail `rail_idx`. Authenticated. */
    void (*heard)(void *arg, uint32_t rank, uint32_t rail_idx, uint64_t beacon_id);
    void *arg; /* borrowed: outlives the driver */
} r2_probe_upcalls_t;

/*
 * Two requests. probe(): answered without the peer process, so that a stopped or busy process does
 * not look like a dead NIC: a TCP connection to the rail's hello listener (the peer's kernel
 * completes it; a refusal is an answer, too), or on RDMA a put of no bytes by a worker of its own.
 * beacon(): one datagram, noted by the peer's service thread: tells that one way passes. Neither
 * shares a queue with data; the processes of a host together send at most R2_PROBE_HOST_RATE per
 * second and rail, but each may send R2_PROBE_RATE; the rest waits. A tenth may go at once: a
 * process that looks into 16 hosts, three requests each, three times, has its answers in time where
 * it is alone on its host.
 */
#define R2_PROBE_HOST_RATE 2000u
#define R2_PROBE_RATE      100u
#define R2_PROBE_BURSTS    10u /* times that the burst makes up the rate */

typedef struct r2_probe_ops {
    const char *name;
    void (*bind)(void *probe, const r2_probe_upcalls_t *upcalls);
    /** So many processes of this host, us included, send probes: R2_PROBE_RATE each before that. */
    void (*share)(void *probe, uint32_t processes);
    /** Job key (R2_JOB_KEY_BYTES, copied): beacons are signed with it. Before that none are sent or
     * heard. */
    void (*key)(void *probe, const uint8_t *key);
    /**
     * Prepares a rail, also while its NIC is down; again when address or device changed.
     * @param address_p R2_PROBE_ADDRESS_MAX bytes, to be published beside the hello address.
     */
    r2_status_t (*listen)(void *probe, uint32_t rail_idx, const r2_nic_t *nic, void *address_p,
                          size_t *bytes_p);
    /**
     * @param hello_address of the peer's rail (rail/hello.h). @param address as published by its
     * listen().
     * @return R2_OK: result() will be called, once; else R2_ERR_PARAM, R2_ERR_NO_MEMORY and it will
     * not.
     */
    r2_status_t (*probe)(void *probe, uint32_t rail_idx, const void *hello_address,
                         size_t hello_address_bytes, const void *address, size_t address_bytes,
                         uint64_t timeout_ns, uint64_t probe_id);
    /** Sends a beacon that names us; lost without a word where the way does not pass. */
    void (*beacon)(void *probe, uint32_t rail_idx, const void *hello_address,
                   size_t hello_address_bytes, const void *address, size_t address_bytes,
                   uint32_t own_rank, uint64_t beacon_id);
    int (*fd)(void *probe);
    void (*poll)(void *probe);
    uint64_t (*deadline_ns)(void *probe);
} r2_probe_ops_t;

/** A driver with its instance. */
typedef struct r2_probe {
    const r2_probe_ops_t *ops; /* borrowed: static */
    void *instance;            /* borrowed: outlives all users */
} r2_probe_t;

#endif
