/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The list of network devices with their IPv4 addresses, from netlink.
 */
#include "r2_config.h"

#include "rail/nic_parts.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <stdlib.h>
#include <string.h>

/* <net/if.h> lacks it; the kernel's own header cannot be included beside it. */
#define R2_IFF_LOWER_UP 0x10000

static void r2_nic_from_link(struct rtnl_link *link, r2_nic_seen_t *seen_p)
{
    const unsigned flags = rtnl_link_get_flags(link);
    const char *kind = rtnl_link_get_type(link);
    const unsigned wanted = IFF_UP | IFF_RUNNING | R2_IFF_LOWER_UP;

    memset(seen_p, 0, sizeof(*seen_p));
    strncpy(seen_p->nic.name, rtnl_link_get_name(link), sizeof(seen_p->nic.name) - 1);
    seen_p->nic.ifindex = (uint32_t) rtnl_link_get_ifindex(link);
    seen_p->nic.carrier = wanted == (flags & wanted);
    seen_p->nic.numa_node = -1;
    seen_p->loopback = 0 != (flags & IFF_LOOPBACK);
    if (NULL != kind) {
        strncpy(seen_p->kind, kind, sizeof(seen_p->kind) - 1);
    }
}

/** The primary address of a device: the first one, global scope before link scope. */
static void r2_nic_address(struct nl_cache *addresses, r2_nic_t *nic)
{
    int best_scope = RT_SCOPE_NOWHERE;

    for (struct nl_object *at = nl_cache_get_first(addresses); NULL != at;
         at = nl_cache_get_next(at)) {
        struct rtnl_addr *address = (struct rtnl_addr *) at;
        struct nl_addr *local = rtnl_addr_get_local(address);
        const int scope = rtnl_addr_get_scope(address);

        if ((uint32_t) rtnl_addr_get_ifindex(address) != nic->ifindex || NULL == local ||
            AF_INET != rtnl_addr_get_family(address) || 4 != nl_addr_get_len(local) ||
            0 != (rtnl_addr_get_flags(address) & IFA_F_SECONDARY) || scope >= best_scope) {
            continue;
        }
        best_scope = scope;
        memcpy(&nic->ipv4, nl_addr_get_binary_addr(local), sizeof(nic->ipv4));
        nic->prefix_bits = (uint8_t) rtnl_addr_get_prefixlen(address);
    }
}

/** Turns the two caches into an array. */
static r2_status_t r2_nics_from_caches(struct nl_cache *links, struct nl_cache *addresses,
                                       r2_nic_seen_t **seen_p, size_t *count_p)
{
    const size_t space = (size_t) nl_cache_nitems(links);
    r2_nic_seen_t *seen = calloc(space + 1, sizeof(*seen));
    size_t count = 0;

    if (NULL == seen) {
        return R2_ERR_NO_MEMORY;
    }
    for (struct nl_object *at = nl_cache_get_first(links); NULL != at && count < space;
         at = nl_cache_get_next(at)) {
        struct rtnl_link *link = (struct rtnl_link *) at;

        if (NULL != rtnl_link_get_name(link)) {
            r2_nic_from_link(link, &seen[count]);
            r2_nic_address(addresses, &seen[count].nic);
            ++count;
        }
    }
    *seen_p = seen;
    *count_p = count;
    return R2_OK;
}

r2_status_t r2_nics_list(r2_nic_seen_t **seen_p, size_t *count_p)
{
    struct nl_sock *sock = nl_socket_alloc();
    struct nl_cache *links = NULL, *addresses = NULL;
    r2_status_t status = R2_ERR_SYSTEM;

    if (NULL == sock) {
        return R2_ERR_NO_MEMORY;
    }
    if (0 != nl_connect(sock, NETLINK_ROUTE) ||
        0 != rtnl_link_alloc_cache(sock, AF_UNSPEC, &links)) {
        goto err_socket;
    }
    if (0 != rtnl_addr_alloc_cache(sock, &addresses)) {
        goto err_links;
    }
    status = r2_nics_from_caches(links, addresses, seen_p, count_p);
    nl_cache_free(addresses);
err_links:
    nl_cache_free(links);
err_socket:
    nl_socket_free(sock);
    return status;
}
