/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Rails: life cycle of one NIC of this process: device, worker generations.
 */
#ifndef R2_RAIL_RAIL_H
#define R2_RAIL_RAIL_H

#include "base/clock.h"
#include "base/hash.h"
#include "base/logger.h"
#include "r2/transport.h"
#include "rail/hello.h"
#include "rail/nic_watch.h"

struct r2_rail;

/** A peer that a worker generation has had an endpoint to: it must not get another one there. */
typedef struct r2_worker_peer {
    uint32_t rank;
    UT_hash_handle hh;
} r2_worker_peer_t;

/** A device as it was opened once. */
typedef struct r2_rail_device {
    r2_tp_device_t *device; /* owned */
    bool is_rdma;           /* nic.rdma by nic.tls; else TCP, or within the host */
    bool is_dead;           /* no workers are made of it any more */
    int gid_index;          /* that it was opened with */
    uint32_t workers;
    uint64_t domain;             /* names what was opened, for keys to memory; 0: no name so far */
    struct r2_rail_device *next; /* newest first */
} r2_rail_device_t;

/** One worker generation of a rail. Lanes join the newest of their transport that has never served
 * their peer. */
typedef struct r2_rail_worker {
    struct r2_rail *rail;        /* borrowed: outlives the worker */
    r2_rail_device_t *device;    /* borrowed: outlives the worker */
    bool is_rdma;                /* as the device's */
    r2_tp_worker_t *worker;      /* owned */
    r2_worker_peer_t *peers;     /* owned: hash by rank */
    uint32_t users;              /* endpoints open on it, zombies included */
    bool readable;               /* its descriptor can be read; found by who waits on epoll_fd */
    uint64_t unread_ns;          /* since when each look found something; 0: the newest did not */
    uint64_t rare_ns;            /* the newest one that did, and came late; 0: none */
    struct r2_rail_worker *next; /* newest first */
} r2_rail_worker_t;

/** One rail of this process. Engine lock. */
typedef struct r2_rail {
    uint32_t idx;                       /* R2_RAILS_MAX: the rail within the host */
    r2_nic_t nic;                       /* nic.carrier follows netlink */
    const r2_tp_t *tp;                  /* borrowed */
    const r2_tp_callbacks_t *callbacks; /* borrowed: given to every worker */
    r2_rail_device_t *devices;          /* owned: list, newest first; of each transport those that
                                         * died, too, as long as they have workers */
    r2_rail_worker_t *workers;          /* owned: list, newest first */
    bool alone;                         /* each lane gets a worker of its own, which goes with it */
    size_t segment_bytes;
    uint64_t reopen_ns;          /* the RDMA device is not opened before */
    bool refusal_told;           /* that memory could not be registered */
    uint64_t shut_ns;            /* known to be dead: lanes are not opened before, 0 = no such */
    uint64_t tx_bytes, rx_bytes; /* payload so far, everything that was sent again included */
    uint64_t under_way_bytes;    /* on all its lanes, not acknowledged yet */
    uint32_t quick;              /* 0 to 32, more where most looks at its paths found them so */
    /* borrowed: gets the descriptors of all workers, data.ptr is the worker; -1: none */
    int epoll_fd;
    void *owner;         /* borrowed: for the callbacks' user */
    const r2_log_t *log; /* borrowed */
} r2_rail_t;

/** Prepares a rail; opens nothing. @param nic NULL: the rail within the host. */
void r2_rail_init(r2_rail_t *rail, uint32_t idx, const r2_nic_t *nic, const r2_tp_t *tp,
                  const r2_tp_callbacks_t *callbacks, size_t segment_bytes, int epoll_fd,
                  void *owner, const r2_log_t *log);
/** Destroys all workers and closes the devices. */
void r2_rail_fini(r2_rail_t *rail);

/** Local rails always work; others need carrier. */
static inline bool r2_rail_usable(const r2_rail_t *rail)
{
    return R2_RAILS_MAX == rail->idx || rail->nic.carrier;
}

/**
 * Takes a worker that has never had an endpoint to `peer`, opening device and worker as needed.
 * Counts as a user until r2_rail_put().
 * @param is_rdma by the RDMA port of the rail, else by TCP.
 * @param pending endpoints that others are about to create: there must be descriptors for those,
 * too.
 * @return R2_OK, R2_ERR_NO_DEVICE (not now), R2_ERR_NO_DESCRIPTORS (the same), R2_ERR_NO_MEMORY,
 *         R2_ERR_UNSUPPORTED.
 */
r2_status_t r2_rail_get(r2_rail_t *rail, bool is_rdma, uint32_t peer, uint32_t pending,
                        uint64_t now_ns, r2_rail_worker_t **worker_p);
/** The name of the device of a worker as it was opened once. */
uint64_t r2_rail_domain(const r2_rail_worker_t *worker, const r2_clock_t *clock);
/** Where the rail's RDMA port has the NIC's address now, from sysfs; -1: UCX chooses. */
int r2_rail_gid_index(const r2_rail_t *rail);
/** An endpoint could not be opened on a worker: the next one may be of a device opened anew. */
void r2_rail_doubt(r2_rail_worker_t *worker, r2_status_t status);
/**
 * Connects an endpoint to `peer` on a worker from r2_rail_get(); that worker never serves the peer
 * again.
 * @return R2_OK, R2_ERR_NO_MEMORY, or the transport's error.
 */
r2_status_t r2_rail_connect(r2_rail_worker_t *worker, r2_tp_ep_t *ep, uint32_t peer,
                            const void *address, size_t address_bytes);
/** The NIC's address is at another place in the port's table of GIDs: what was opened by the old
 * one gets no new lanes. */
void r2_rail_moved(r2_rail_t *rail, int gid_index);
/** Its RDMA device stays dead: nothing that was opened of it gets new lanes, or is waited for. */
void r2_rail_lost(r2_rail_t *rail);
/** Gives a user back. Unused old workers are destroyed by r2_rail_reap(). */
void r2_rail_put(r2_rail_worker_t *worker);
/** Destroys workers that are not used, but for the newest of each transport where lanes share one.
 * Tells, once, of memory that could not be registered. Never from inside a callback. */
void r2_rail_reap(r2_rail_t *rail);
/** Prepares all workers for sleeping on epoll_fd. @return R2_OK, or R2_ERR_AGAIN: progress
 * first. */
r2_status_t r2_rail_arm(r2_rail_t *rail);
/** True if some worker's descriptor says nothing at present, and it has to be asked. */
bool r2_rail_is_hot(const r2_rail_t *rail);
/** Has the descriptors of all workers over TCP tell again what comes. */
void r2_rail_cool(r2_rail_t *rail);
/** Progresses one worker. @param rare it is long since the last time. @return events handled. */
unsigned r2_rail_worker_progress(r2_rail_worker_t *worker, uint64_t now_ns, bool rare);
/** Progresses one endpoint of a worker, or more of that. */
unsigned r2_rail_ep_progress(r2_rail_worker_t *worker, r2_tp_ep_t *ep, uint64_t now_ns, bool rare);
/**
 * Progresses all workers; or those that are readable, and those that cannot tell.
 * @param rare it is long since the last time.
 * @return events handled.
 */
unsigned r2_rail_progress(r2_rail_t *rail, bool all, uint64_t now_ns, bool rare);

#endif
