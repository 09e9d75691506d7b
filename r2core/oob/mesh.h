/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Post driver "mesh": authenticated TCP messages between the service threads of a job.
 */
#ifndef R2_OOB_MESH_H
#define R2_OOB_MESH_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/logger.h"
#include "oob/post.h"
#include "r2/nic.h"

/*
 * What waits for a peer goes as one call of a hello driver of the mesh's own (rail/hello.h): a
 * connection that is opened when there is something to say, proves the job key both ways, carries
 * up to R2_HELLO_BYTES_MAX bytes of messages, is acknowledged and closed. So nothing stays open
 * while nothing is said, strangers are kept out as there, and an end that could not be reached is
 * noticed at once: the messages then go to the peer's next address. The order of addresses: the
 * socket within the host, the management network, rails. One that failed comes last for a while. A
 * message whose acknowledgement was lost comes twice.
 *
 * Request: rank of the sender u32, then for each message its length u16 and its bytes; little
 * endian.
 */

#define R2_MESH_ADDRESS_MAX 256 /* bytes of a published address */
#define R2_MESH_PLACES_MAX  4   /* NICs that are published */
#define R2_MESH_QUEUE_MAX   32  /* messages that wait for one peer; the oldest goes */
#define R2_MESH_CALLS_MAX   64  /* connections that a process opens at one time */

/**
 * Address of another process, as its r2_mesh_address() gave it. Must not block.
 * @param blob_p R2_MESH_ADDRESS_MAX bytes.
 * @return R2_OK, or an error: not known (yet), send() then answers R2_ERR_NO_PATH.
 */
typedef r2_status_t (*r2_mesh_lookup_fn_t)(void *arg, uint32_t rank, void *blob_p, size_t *bytes_p);

/** What a mesh is made of. */
typedef struct r2_mesh_config {
    const r2_clock_t *clock; /* borrowed: outlives the mesh */
    const r2_log_t *log;     /* borrowed: outlives the mesh */
    uint32_t rank, size;
    const char *nics;      /* parameter oob_nics; borrowed for the call */
    const r2_nic_t *rails; /* of this process: second choice; borrowed for the call */
    size_t rail_count;
    uint64_t give_up_ns; /* a message that could not be delivered for so long is dropped */
    r2_mesh_lookup_fn_t lookup;
    void *lookup_arg; /* borrowed: outlives the mesh */
} r2_mesh_config_t;

/**
 * Opens the listeners. Without any NIC that can be used (R2_OK) only processes of this host are
 * reached.
 * @return R2_OK, R2_ERR_PARAM (text in the log: no such NIC), R2_ERR_SYSTEM, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_mesh_create(const r2_mesh_config_t *config, r2_post_t *post_p);
/** Closes everything, drops what was not sent. Not from inside an upcall. */
void r2_mesh_destroy(r2_post_t *post);

/** What to publish. @param blob_p R2_MESH_ADDRESS_MAX bytes. */
r2_status_t r2_mesh_address(r2_post_t *post, void *blob_p, size_t *bytes_p);

#endif
