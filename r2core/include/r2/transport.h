/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The transport table: what r2 needs of a network library. Implemented by uct, sim and fault.
 */
#ifndef R2_TRANSPORT_H
#define R2_TRANSPORT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"
#include "r2/tp_key.h"

/*
 * Objects: device (one NIC) > worker (a generation of that device) > endpoint (a lane). All calls
 * are made under the engine lock, never block, and are not made from inside a callback. No callback
 * is made except from inside worker_progress() (receive, sent, error), ep_close() and
 * worker_destroy() (sent with R2_ERR_CANCELED only).
 */

#define R2_TP_ADDRESS_MAX 512 /* bytes of an endpoint's address, any transport */
#define R2_TP_HEADER_MAX  200 /* bytes of a packet header */
/*
 * Largest chunk where somebody holds memory for it before it comes: RDMA locks buffers for some
 * packets at both ends, pinned memory of GPUs goes in slots, and plans share vectors out in these.
 */
#define R2_CHUNK_HELD_BYTES 131072u
/* Largest packet over RDMA: such a chunk, its header, and those of who forwards it. */
#define R2_TP_RDMA_BYTES (R2_CHUNK_HELD_BYTES + 3 * R2_TP_HEADER_MAX)

typedef struct r2_tp_device r2_tp_device_t;
typedef struct r2_tp_worker r2_tp_worker_t;
typedef struct r2_tp_ep r2_tp_ep_t;
typedef struct r2_tp_send r2_tp_send_t;

/** Upcalls of one worker. `arg` is the value given to worker_create(). */
typedef struct r2_tp_callbacks {
    /**
     * A packet arrived. Header and data are valid only inside the call and may be misaligned.
     * The source is not told: the header says it (connection id).
     */
    void (*received)(void *arg, const void *header, size_t header_bytes, const void *data,
                     size_t data_bytes);
    /**
     * NULL: never asked. The header of a packet came, and most of its data is still to come.
     * @return where all of its data may go; received() tells of it there. Until then, or until
     * ep_land_off() or the endpoint fails or is closed, the transport writes there. NULL: nowhere
     * but into memory of the transport's.
     */
    void *(*land)(void *arg, const void *header, size_t header_bytes, size_t data_bytes);
    /**
     * NULL: never asked. @return true if what else has come to an endpoint may be handed up in the
     * same call: it is wanted whenever it comes, and acknowledged once.
     */
    bool (*takes_more)(void *arg);
    /**
     * An endpoint that was connected failed; only notes it. The owner closes it later, outside of
     * any callback.
     */
    void (*failed)(void *arg, void *ep_arg, r2_status_t status);
} r2_tp_callbacks_t;

/** Memory that a message is sent from. */
typedef struct r2_tp_memory {
    const void *data; /* borrowed */
    size_t bytes;
    /* 0: the CPU's. Else of a GPU (ep_reads_gpus()), which the CPU cannot read: what no other
     * memory of this process was or will be called */
    uint64_t gpu_id;
} r2_tp_memory_t;

/**
 * One send operation, embedded in the caller's packet. The caller sets `header`, `header_bytes`,
 * `data`, `data_bytes` and `sent`; all of it stays valid and unchanged until `sent` is called
 * (or send() returns R2_OK).
 */
struct r2_tp_send {
    const void *header; /* borrowed */
    const void *data;   /* borrowed; NULL when data_bytes is 0 */
    uint32_t header_bytes;
    uint32_t data_bytes;
    /** What data is part of, and stays as long; NULL: data alone. A transport that registers memory
     * does so with all of it at once. */
    const r2_tp_memory_t *memory; /* borrowed */
    /** The transport no longer references header and data. Not called if send() returned R2_OK. */
    void (*sent)(r2_tp_send_t *op, r2_status_t status);
    void *transport_private; /* owned by the transport while the operation is in flight */
};

/** Where a put goes: memory that the peer has granted. */
typedef struct r2_tp_target {
    uint64_t address; /* in the peer's process */
    const void *key;  /* borrowed for the call: what grant() wrote there */
    size_t key_bytes;
} r2_tp_target_t;

/** What a device is opened with. */
typedef struct r2_tp_device_config {
    /* NIC such as "rail0", on RDMA device and port such as "mlx5_0:1"; NULL: shared memory of this
     * host */
    const char *name;
    const char *tls;      /* one transport such as "rc_verbs"; NULL: TCP */
    size_t segment_bytes; /* largest header + data of one packet */
    int gid_index;        /* RoCE: of the address to be used; -1: the library chooses */
} r2_tp_device_config_t;

/** Memory that could not be registered: what is sent from it is copied. */
typedef struct r2_tp_refusal {
    size_t bytes;            /* that were asked for */
    size_t registered_bytes; /* of the device, at that time */
    int error;               /* errno; 0: not known */
} r2_tp_refusal_t;

/** The transport table. `tp` is the instance the table came with. */
typedef struct r2_tp_ops {
    const char *name;
    /**
     * NULL: always true. @return true if the process may open the file descriptors that so many
     * devices, workers and endpoints take. Asked before a lane is opened: what the library itself
     * does without them is not sure.
     */
    bool (*has_room)(void *tp, uint32_t devices, uint32_t workers, uint32_t eps);
    /**
     * @return R2_OK, R2_ERR_NO_DEVICE (down now: try later), R2_ERR_NO_DESCRIPTORS (the same),
     * R2_ERR_UNSUPPORTED, R2_ERR_NO_MEMORY.
     */
    r2_status_t (*device_open)(void *tp, const r2_tp_device_config_t *config,
                               r2_tp_device_t **device_p);
    void (*device_close)(r2_tp_device_t *device); /* all its workers are destroyed before */
    /** NULL: never true. @return true: some memory was refused. @param refusal_p the first such. */
    bool (*device_refused)(const r2_tp_device_t *device, r2_tp_refusal_t *refusal_p);
    /** @return R2_OK, R2_ERR_NO_DEVICE (NIC down now: retry), R2_ERR_NO_DESCRIPTORS,
     * R2_ERR_NO_MEMORY. */
    r2_status_t (*worker_create)(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                 void *arg, r2_tp_worker_t **worker_p);
    /** Closes remaining endpoints without flushing. */
    void (*worker_destroy)(r2_tp_worker_t *worker);
    /** @return number of events handled; 0 = nothing to do. */
    unsigned (*worker_progress)(r2_tp_worker_t *worker);
    /**
     * NULL: there is only worker_progress(). Looks at one endpoint of a worker, or at more.
     * @return events, as worker_progress(): what others have is found by that.
     */
    unsigned (*ep_progress)(r2_tp_worker_t *worker, r2_tp_ep_t *ep);
    /** @return a file descriptor to poll for input after arm(), or -1 (no such thing:
     * simulator). */
    int (*worker_fd)(r2_tp_worker_t *worker);
    /** Prepares worker_fd() to signal. @return R2_OK: may sleep; R2_ERR_AGAIN: progress first. */
    r2_status_t (*worker_arm)(r2_tp_worker_t *worker);
    /**
     * NULL: never true. @return true: worker_fd() can be read, without arm(), as soon as
     * worker_progress() has something to do; but for work of the library's own (connections being
     * set up), which may be late.
     */
    bool (*worker_signals)(const r2_tp_worker_t *worker);
    /**
     * NULL: never true. @return true: what is sent to a peer that has not connected yet is lost for
     * a while, and the lane with it if that lasts: who knows that the peer has not waits until it
     * hears of it.
     */
    bool (*worker_is_loose)(const r2_tp_worker_t *worker);
    /**
     * Makes an endpoint that is not connected: it has an address, nothing can be sent on it, and
     * its peer may connect to it before it is connected itself.
     * @return R2_OK, R2_ERR_NO_DEVICE, R2_ERR_NO_DESCRIPTORS, R2_ERR_NO_MEMORY.
     */
    r2_status_t (*ep_open)(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p);
    /** @param address_p at least R2_TP_ADDRESS_MAX bytes; @param bytes_p bytes written. */
    r2_status_t (*ep_address)(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p);
    /**
     * Connects to the endpoint of this address, once; its owner does the same with the address of
     * ours. What is sent from now on waits until both have, or comes before the owner of the other
     * has connected (but worker_is_loose()). @param address
     * not trusted beyond its length.
     * @return R2_OK, or why the endpoint is to be closed: R2_ERR_NO_DEVICE, R2_ERR_NO_DESCRIPTORS,
     * R2_ERR_NO_PATH, R2_ERR_NO_MEMORY, R2_ERR_LANE_DOWN (the peer's was closed already).
     */
    r2_status_t (*ep_connect)(r2_tp_ep_t *ep, const void *address, size_t address_bytes);
    /**
     * Closes by force, without flushing; every send in flight is completed (R2_ERR_CANCELED) inside
     * the call. Never called from inside a callback.
     */
    void (*ep_close)(r2_tp_ep_t *ep);
    /**
     * NULL: no packet lands. Also inside of a callback. What lands by this endpoint goes on in
     * memory of the transport's, with what has come of it: what land() returned is its owner's.
     */
    void (*ep_land_off)(r2_tp_ep_t *ep);
    /**
     * Sends one packet of at most segment_bytes.
     * @return R2_OK: done, op is the caller's again, `sent` is not called; R2_IN_PROGRESS: `sent`
     *         will be called; R2_ERR_NO_MEMORY: not sent, may be tried again; R2_ERR_UNSUPPORTED:
     *         not sent, since it is memory of a GPU that cannot be registered; else < 0: not sent,
     *         the lane is broken. `sent` is not called in either case.
     */
    r2_status_t (*send)(r2_tp_ep_t *ep, r2_tp_send_t *op);
    /**
     * NULL: never known. Bytes per second that the path lately carried from kernel to kernel,
     * however rarely processes look; 0: not known.
     * @param window_bytes_p so many the sending kernel lets be under way: if few, they are the
     *                       limit, not the path.
     */
    uint64_t (*ep_path_rate)(const r2_tp_ep_t *ep, uint64_t *window_bytes_p);
    /** NULL: never true. @return true: memory of GPUs may be sent: the NIC reads it by itself; and
     * granted, where there are puts. */
    bool (*ep_reads_gpus)(const r2_tp_ep_t *ep);
    /**
     * NULL: there are no puts. Lets peers of the worker's endpoints write to memory, with a key,
     * while nobody looks. Who has the key may do so, in this transport's time, until our endpoint
     * to him is closed: ep_close() returns when no write of his can land any more.
     * @param memory what data is part of, as r2_tp_send_t.memory; of a GPU only if
     * ep_reads_gpus() of the endpoint to him. NULL: data alone
     * @param key_p R2_TP_KEY_MAX bytes. @param grant_p for ungrant().
     * @return R2_OK, R2_ERR_UNSUPPORTED (this worker has no puts), R2_ERR_NO_MEMORY (it cannot be
     * registered now).
     */
    r2_status_t (*grant)(r2_tp_worker_t *worker, void *data, size_t bytes,
                         const r2_tp_memory_t *memory, void *key_p, size_t *key_bytes_p,
                         void **grant_p);
    /**
     * The memory is its owner's again. The key may stay good, since what was registered is kept:
     * the caller knows that nobody uses it any more, or has closed the endpoint to who might.
     */
    void (*ungrant)(r2_tp_worker_t *worker, void *grant);
    /**
     * NULL: there is no such thing. Registers memory for grant() in three steps, of which the one
     * that takes long, pin(), is any thread's, without the engine lock, as long as the worker is
     * there. What fails is tried again by grant().
     * @return what the other two take; NULL: there is nothing to be done, or no memory.
     */
    void *(*pin_begin)(r2_tp_worker_t *worker, void *data, size_t bytes);
    void (*pin)(r2_tp_worker_t *worker, void *pin);
    void (*pin_end)(r2_tp_worker_t *worker, void *pin);
    /**
     * NULL as grant. Writes the data of `op` to `target` and sends the header behind them, as a
     * packet without data: who gets it has the data. `sent` as for send(). Without a header nothing
     * tells the peer; what is sent on this endpoint later comes after it.
     * @return as send(); R2_ERR_UNSUPPORTED: not sent, it can be sent, but not put.
     */
    r2_status_t (*put)(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target);
    /**
     * NULL: there is no such thing. Reads from `target` to where `op->data` points, which is
     * writable; there is no header. `sent` as for send(): with R2_OK all of it is there, otherwise
     * it may be written to until the endpoint is closed.
     * @return as put().
     */
    r2_status_t (*get)(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target);
} r2_tp_ops_t;

/** A transport table with its instance. */
typedef struct r2_tp {
    const r2_tp_ops_t *ops; /* borrowed: static */
    void *instance;         /* borrowed: outlives all users */
} r2_tp_t;

/**
 * The transports of a process: own TCP over NICs, UCX for RDMA and within the host.
 * @return as r2_tp_ucx_create().
 */
r2_status_t r2_tp_create(r2_tp_t *tp_p);
void r2_tp_destroy(r2_tp_t *tp);
/** The UCX transport among them. @param tp from r2_tp_create(). */
const r2_tp_t *r2_tp_ucx(const r2_tp_t *tp);

/**
 * The UCX transport (one per process).
 * @return R2_OK, R2_ERR_NO_MEMORY, R2_ERR_VERSION (this UCX may differ from the one r2 was built
 * with in what is compiled into r2).
 */
r2_status_t r2_tp_ucx_create(r2_tp_t *tp_p);
void r2_tp_ucx_destroy(r2_tp_t *tp);

/** True if UCX knows the RDMA device ("mlx5_0") and may open it, whether its ports are up or
 * not. */
bool r2_tp_ucx_sees(const char *device);

/** True if a device can be opened, a worker on it, and an endpoint connected: tries it. Its port is
 * active. @param name, tls as in r2_tp_device_config_t. */
bool r2_tp_ucx_opens(const char *name, const char *tls);

/** True if UCX, as the user has set it, sends and receives CUDA memory by itself. Takes
 * milliseconds. */
bool r2_tp_ucx_takes_cuda(void);

/** "1.13.1" style version of the UCX library in use. */
const char *r2_tp_ucx_version(void);
/** The version r2 was built with. */
const char *r2_tp_ucx_version_built(void);

#endif
