/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * NICs of this host: what is known of them, which ones become rails, in which order they fail over.
 */
#ifndef R2_NIC_H
#define R2_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"

#define R2_RAILS_MAX            16 /* NICs per host */
#define R2_NIC_NAME_MAX         32
#define R2_NIC_TLS_MAX          16
#define R2_NIC_DISTANCE_UNKNOWN 255

/** State of an RDMA port, numbered as sysfs and libibverbs do. */
typedef enum r2_port_state {
    R2_PORT_UNKNOWN,
    R2_PORT_DOWN,   /* no cable, or switched off */
    R2_PORT_INIT,   /* InfiniBand: has a link, and waits for the subnet manager */
    R2_PORT_ARMED,  /* the same, a step later */
    R2_PORT_ACTIVE, /* carries traffic */
    R2_PORT_DEFER   /* active, link about to be lost */
} r2_port_state_t;

/** What an RDMA port speaks on its cable. */
typedef enum r2_port_link { R2_LINK_UNKNOWN, R2_LINK_INFINIBAND, R2_LINK_ETHERNET } r2_port_link_t;

/** What a GID is an address of. */
typedef enum r2_gid_kind {
    R2_GID_NONE, /* no GID was found */
    R2_GID_INFINIBAND,
    R2_GID_ROCE_V1, /* its own kind of Ethernet frame: within a subnet */
    R2_GID_ROCE_V2  /* UDP: can be routed */
} r2_gid_kind_t;

/** An RDMA port as found on this host. Plain value. */
typedef struct r2_rdma_port {
    r2_port_state_t state;
    r2_port_link_t link;
    uint64_t speed_bytes_per_s; /* 0 = unknown */
    uint16_t lid;               /* InfiniBand: its address in the subnet; 0 = none */
    r2_gid_kind_t gid_kind;
    uint16_t gid_idx; /* in the port's table; moves when the NIC's addresses do */
    uint8_t gid[16];
    bool openable;   /* its file in /dev/infiniband is there, or it is not known which that is */
    uint64_t losses; /* packets that its NIC has seen out of order, or missed, since it was
                        started; 0 = none, or not known */
} r2_rdma_port_t;

/** What a rail on an RDMA port lacks to go by RDMA, where that is wanted. */
typedef enum r2_rdma_lack {
    R2_RDMA_LACKS_NOTHING,
    R2_RDMA_LACKS_FILE,   /* the device's file in /dev/infiniband */
    R2_RDMA_LACKS_MODULE, /* UCX knows the device */
    R2_RDMA_LACKS_MEMORY, /* that this process may lock */
    R2_RDMA_LACKS_DEVICE  /* that can be opened */
} r2_rdma_lack_t;

/** What keeps a NIC from carrying anything, as far as this host sees. */
typedef enum r2_nic_outage {
    R2_NIC_WORKS,
    R2_NIC_NO_LINK,    /* down, or without carrier */
    R2_NIC_NO_ADDRESS, /* no IPv4 address */
    R2_NIC_PORT_DOWN,  /* its RDMA port is not active, whatever its network device says */
    R2_NIC_DEVICE_DEAD /* its RDMA device had a fatal error, or is gone */
} r2_nic_outage_t;

/** One NIC as found on this host. Plain value. */
typedef struct r2_nic {
    char name[R2_NIC_NAME_MAX]; /* network device, "rail0"; of a port without IP that port */
    char via[R2_NIC_NAME_MAX];  /* InfiniBand without IP: network device that connect requests for
                                   it take, whose index and address are below; "": its own */
    char rdma[R2_NIC_NAME_MAX]; /* RDMA device and port, "mlx5_0:1", or "" */
    char tls[R2_NIC_TLS_MAX];   /* offered to peers: a transport over `rdma`, "rc_verbs"; "": TCP */
    r2_rdma_lack_t lack;        /* why `tls` is "" nevertheless */
    r2_rdma_port_t port;        /* of `rdma` */
    char pci[32];               /* PCI address, "0000:3b:00.0", or "" */
    uint32_t ifindex;           /* kernel's index; of `via`, where that is set, as are */
    uint32_t ipv4;              /* network byte order, 0 = none */
    uint8_t prefix_bits;        /* of ipv4's subnet */
    bool carrier;               /* administratively up with carrier; while it is watched: works */
    r2_nic_outage_t outage;     /* while it is watched: why it has no carrier */
    bool rdma_lost;             /* while it is watched: its device stays dead, lanes go by TCP */
    uint64_t speed_bytes_per_s; /* 0 = unknown */
    int numa_node;              /* -1 = unknown */
    uint32_t distance; /* from this process's cores: 0 = same NUMA node; else what the firmware's
                          table adds to a local access (or 1 same package, 2 other package, without
                          a table); R2_NIC_DISTANCE_UNKNOWN: not known, last in the chain */
} r2_nic_t;

/**
 * Finds the NICs of this host (netlink for the list, sysfs for speed and place, hwloc for
 * distance).
 * @param selection comma separated names or fnmatch patterns, in rail order; the matches of a
 * pattern come in natural order of names (rail2 before rail10), loopback only by its name. A word
 * with a colon names RDMA ports ("mlx5_0:1", "mlx5_*:1"): it stands for the NIC on each of them.
 * What is selected stays selected when it is down or has no address, so that rail indices are the
 * same on all hosts. "" = by itself: NICs with a device behind them, or bonds and VLANs on an RDMA
 * device, with an IPv4 address that is not link-local, those of the fastest speed class (at least
 * half of the fastest; a NIC without carrier may hide its speed and counts as fast); without such
 * any non-loopback, non-bridge, non-container device. One NIC for each RDMA port.
 * @param without_address with "": also NICs with a device behind them that have no address yet.
 * @param nics_p    array of R2_RAILS_MAX.
 * @param text_p    on error: what is wrong, listing the NICs there are.
 * @return R2_OK, R2_ERR_PARAM (unknown name, too many), R2_ERR_NOT_FOUND (no NIC at all),
 *         R2_ERR_SYSTEM, R2_ERR_NO_MEMORY.
 */
R2_EXPORT r2_status_t r2_nics_find(const char *selection, bool without_address, r2_nic_t *nics_p,
                                   size_t *count_p, char *text_p, size_t text_bytes);

typedef struct r2_params r2_params_t; /* r2/params.h */

/**
 * Finds the rails of this host as the parameters say (coll_r2_rails, coll_r2_tls,
 * coll_r2_oob_nics): NICs as above, and InfiniBand ports on which no network device has an IPv4
 * address, if coll_r2_tls lets rails go by RDMA. Such a port is called by its own name only
 * ("mlx5_0:1"); with
 * "" it is a candidate where RDMA is possible on it. Connect requests for it take a network device:
 * the first of coll_r2_oob_nics, else the first with carrier and address that is no bridge. Without
 * any, such ports are not seen.
 */
R2_EXPORT r2_status_t r2_nics_find_rails(const r2_params_t *params, r2_nic_t *nics_p,
                                         size_t *count_p, char *text_p, size_t text_bytes);

/** True for a port without IP. */
static inline bool r2_nic_is_bare(const r2_nic_t *nic)
{
    return '\0' != nic->via[0];
}

/** The network device that sockets for a rail are bound to. */
static inline const char *r2_nic_netdev(const r2_nic_t *nic)
{
    return r2_nic_is_bare(nic) ? nic->via : nic->name;
}

/** An RDMA port of this host, whether a NIC lies on it or not. */
typedef struct r2_rdma_seen {
    char name[R2_NIC_NAME_MAX]; /* device and port */
    r2_rdma_port_t port;
} r2_rdma_seen_t;

#define R2_RDMA_PORTS_MAX 64

/**
 * Lists the RDMA ports of this host, in natural order of names.
 * @param root "" or a folder with copies of /sys and /dev, for tests.
 * @param ports_p R2_RDMA_PORTS_MAX entries. @return their number.
 */
R2_EXPORT size_t r2_rdma_ports(const char *root, r2_rdma_seen_t *ports_p);

/** "ACTIVE"; "-" if it is not known. */
R2_EXPORT const char *r2_port_state_name(r2_port_state_t state);
/** "InfiniBand"; "-" if it is not known. */
R2_EXPORT const char *r2_port_link_name(r2_port_link_t link);
#define R2_NIC_OUTAGE_TEXT_MAX 80
/** "RDMA port mlx5_0:1 is down": what keeps the NIC from carrying anything. */
R2_EXPORT void r2_nic_outage_text(const r2_nic_t *nic, char *text_p, size_t text_bytes);
/** "RoCE v2"; "-" if there is no GID. */
R2_EXPORT const char *r2_gid_kind_name(r2_gid_kind_t kind);

/**
 * Most processes of a job that coll_r2_tls=auto gives queue pairs for each of their lanes: with 128
 * processes on a host, one with lanes to all others has 114,688 on each rail's device, of 131,072
 * that devices take (docs/ucx.md). It must not depend on what hosts do not share.
 */
#define R2_RC_RANKS_MAX 1024u

/**
 * UCX's transport for rails on RDMA devices where coll_r2_tls is `word`; "": TCP.
 * @param ranks of the job; 0: not known.
 */
R2_EXPORT const char *r2_rdma_tls(const char *word, uint32_t ranks);
/** What RDMA depends on beside the NICs. */
typedef struct r2_rdma_setting {
    const char *tls;        /* borrowed: r2_rdma_tls() */
    uint64_t memlock_bytes; /* that this process may lock; UINT64_MAX = all */
    /* borrowed: UCX_TLS and so on of the environment; NULL = not set */
    const char *ucx_tls, *ucx_net_devices, *ucx_gid_index;
} r2_rdma_setting_t;

/** What keeps rails from RDMA or stands against it, and what to do. */
typedef struct r2_rdma_advice {
    char what[320];
    const char *remedy; /* borrowed: static */
} r2_rdma_advice_t;

#define R2_RDMA_ADVICE_MAX 8

/** Reads the setting of this process. @param word, ranks as of r2_rdma_tls(). */
R2_EXPORT void r2_rdma_setting_read(const char *word, uint32_t ranks, r2_rdma_setting_t *setting_p);
/**
 * Sets `tls` of the NICs: what they offer to their peers, or `lack`. A device whose port is active
 * is opened and closed again to see whether it can be.
 */
R2_EXPORT void r2_nics_offer(const r2_rdma_setting_t *setting, r2_nic_t *nics, size_t count);

/**
 * Pure. @param nics after r2_nics_offer(). @param advice_p R2_RDMA_ADVICE_MAX rows. @return number
 * of rows; 0 where RDMA is not wanted.
 */
R2_EXPORT size_t r2_rdma_advise(const r2_rdma_setting_t *setting, const r2_nic_t *nics,
                                size_t count, r2_rdma_advice_t *advice_p);
/**
 * What rails that go by RDMA have seen and could do without: RoCE that loses packets. The first
 * such rail makes the point. Pure, as r2_rdma_advise(). @return number of rows, 0 or 1.
 */
R2_EXPORT size_t r2_rdma_hint(const r2_nic_t *nics, size_t count, r2_rdma_advice_t *advice_p);

/** Failover chain: indices of `nics` ordered by (distance, index). @param order_p `count`
 * entries. */
R2_EXPORT void r2_nics_chain(const r2_nic_t *nics, size_t count, uint32_t *order_p);

/** Most GPUs of a host. */
#define R2_GPUS_MAX      32
#define R2_GPU_DISTANCES 512u

/** What lies between a GPU and a NIC, the nearest first. */
typedef enum r2_gpu_way {
    R2_GPU_WAY_SWITCH,  /* PCIe switches only */
    R2_GPU_WAY_BRIDGE,  /* a host bridge */
    R2_GPU_WAY_NODE,    /* a NUMA node */
    R2_GPU_WAY_PACKAGE, /* a processor */
    R2_GPU_WAY_FAR,     /* several processors */
    R2_GPU_WAY_UNKNOWN
} r2_gpu_way_t;

/** A GPU, and how far its NICs are. */
typedef struct r2_gpu_place {
    char pci[32]; /* "0000:07:00.0" */
    r2_gpu_way_t ways[R2_RAILS_MAX];
    uint32_t distances[R2_RAILS_MAX]; /* by ways, then by bridges; below R2_GPU_DISTANCES */
    uint32_t order[R2_RAILS_MAX];     /* indices of NICs: the nearest first, equal ones by index */
} r2_gpu_place_t;

/** "switch", "host bridge", "NUMA node", "processor", "far" or "unknown"; static. */
R2_EXPORT const char *r2_gpu_way_name(r2_gpu_way_t way);

/** NVIDIA's GPUs of this host, by PCI address, and their distances from NICs.
 * @param gpus_p R2_GPUS_MAX entries. @return how many. */
R2_EXPORT size_t r2_gpus_find(const r2_nic_t *nics, size_t count, r2_gpu_place_t *gpus_p);

#endif
