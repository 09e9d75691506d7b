/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Topology of hosts and rails for the tools: the network as it is, in real numbers, which the
 * planner sees as r2_topology_t (sim/real.h); and its text form.
 */
#ifndef R2_TOOLS_TOPOLOGY_H
#define R2_TOOLS_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "r2/topology.h"

#define TOPO_HOSTS_MAX  4096u
#define TOPO_RAILS_MAX  64u
#define TOPO_RANKS_MAX  (1u << 20)
#define TOPO_NAME_BYTES 64u

/** Hosts with equal numbers of rails, full duplex. */
typedef struct topo {
    uint32_t host_count, rail_count;
    bool flat; /* NICs of different rails reach each other; else rail r reaches rail r only */
    double latency_s; /* of one message, beyond the time on the wire */
    double *rate; /* owned; [host * rail_count + rail], bytes/s of one direction, nothing broken */
    double *left; /* owned; as rate, the fraction that is left: 0 (dead) .. 1 */
    r2_topology_cut_t *cuts; /* owned */
    uint32_t cut_count;
    uint32_t *host_of; /* owned; [rank] */
    uint32_t rank_count;
    double derating;    /* what rails give, as a fraction of their rates: 1, or measured */
    double reduce_rate; /* bytes/s of one rank; 0: not known */
    bool crowded;       /* ranks wait for processors that others use */
    char (*names)[TOPO_NAME_BYTES]; /* owned; [host]; NULL: hosts have none */
} topo_t;

/**
 * Equal hosts with nothing broken, one rank on each.
 * @param rate bytes/s of one direction of each rail, > 0.
 * @return R2_OK, R2_ERR_PARAM (a number out of range) or R2_ERR_NO_MEMORY.
 */
r2_status_t topo_init(topo_t *topo_p, uint32_t host_count, uint32_t rail_count, double rate);
void topo_fini(topo_t *topo);

/**
 * That many ranks, in blocks on hosts, as equal as can be.
 * @return R2_OK, R2_ERR_PARAM (fewer ranks than hosts, or too many) or R2_ERR_NO_MEMORY.
 */
r2_status_t topo_set_ranks(topo_t *topo, uint32_t rank_count);

/** Is rank r alone on host r? */
bool topo_is_rank_per_host(const topo_t *topo);

/** Everything healthy again: no dead or slow NIC, no cut. */
void topo_heal(topo_t *topo);

/** Breaks the path of one rail between two hosts. @return R2_OK or R2_ERR_NO_MEMORY. */
r2_status_t topo_cut(topo_t *topo, r2_topology_cut_t cut);
bool topo_is_cut(const topo_t *topo, uint32_t host_a, uint32_t host_b, uint32_t rail);

/** Names a host; cut to TOPO_NAME_BYTES. @return R2_OK or R2_ERR_NO_MEMORY. */
r2_status_t topo_name(topo_t *topo, uint32_t host, const char *name);
/** "node17", or "h3" of a host without a name. @param text_p TOPO_NAME_BYTES. */
void topo_name_text(const topo_t *topo, uint32_t host, char *text_p);

/** Bytes/s of one NIC, of all NICs of a host, and between two hosts (both ends, less cuts). */
double topo_rail(const topo_t *topo, uint32_t host, uint32_t rail);
double topo_host(const topo_t *topo, uint32_t host);
double topo_pair(const topo_t *topo, uint32_t host_a, uint32_t host_b);

/** Dead NICs, slow NICs and cuts. */
uint32_t topo_failures(const topo_t *topo);

/**
 * Reads the text form (docs/simulation.md).
 * @param name of the file, for error messages.
 * @param error_p "NAME:LINE: what is wrong" on failure.
 * @return R2_OK, R2_ERR_PARAM (the text is wrong) or R2_ERR_NO_MEMORY.
 */
r2_status_t topo_read(FILE *in, const char *name, topo_t *topo_p, char *error_p,
                      size_t error_bytes);

/** topo_read() of a file, "-" for standard input. */
r2_status_t topo_load(const char *path, topo_t *topo_p, char *error_p, size_t error_bytes);

#endif
