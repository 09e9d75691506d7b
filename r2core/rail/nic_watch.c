/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Watches links and addresses of NICs through netlink, and RDMA ports, without blocking.
 */
#include "r2_config.h"

#include "rail/nic_watch.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/util.h"
#include "rail/nic_parts.h"
#include "rail/port_watch.h"

#define R2_IFF_LOWER_UP     0x10000 /* <net/if.h> lacks it */
#define R2_WATCH_ERRORS_MAX 4
#define R2_WATCH_READS_MAX  256 /* per poll: a storm of news does not stop the engine */

/*
 * Two sources feed the same handlers: the kernel's notifications, and a dump of everything, first
 * of links, then of addresses. The dump runs at the start and after notifications were lost (too
 * many at once); what is not in it is gone. It is requested on the same socket, so nothing ever
 * waits.
 */
typedef enum r2_watch_sync {
    R2_WATCH_FOLLOWING, /* notifications only */
    R2_WATCH_LINKS,     /* a dump of links is coming */
    R2_WATCH_ADDRESSES  /* a dump of addresses is coming */
} r2_watch_sync_t;

/** One watched NIC. */
typedef struct r2_watched {
    r2_nic_t nic;         /* carrier and address are set when it is reported */
    bool link;            /* up, running, with carrier */
    uint32_t ipv4;        /* its address now, 0 = none */
    bool listed;          /* in the dump that is coming: the link, then the address */
    uint32_t other_ipv4;  /* another address in that dump */
    r2_port_watch_t port; /* its RDMA port, where that is followed */
} r2_watched_t;

/** The watch. Its owner serializes all calls. */
typedef struct r2_watch {
    struct nl_sock *sock;    /* owned */
    int epoll_fd;            /* owned: netlink and ports; -1: netlink alone */
    const r2_clock_t *clock; /* of ports. borrowed: outlives it */
    r2_nic_upcalls_t upcalls;
    r2_watch_sync_t sync;
    bool sync_wanted; /* a dump has to be started (again) */
    bool known;       /* a first dump is complete: states can be compared */
    size_t count;
    r2_watched_t nics[R2_RAILS_MAX];
} r2_watch_t;

/** A port without IP that is not followed is as it was when it was found. */
static r2_nic_outage_t r2_watch_bare_outage(const r2_watched_t *at)
{
    const bool was_up = R2_PORT_ACTIVE == at->nic.port.state || R2_PORT_DEFER == at->nic.port.state;

    if ('\0' != at->port.rdma[0]) {
        return r2_port_watch_outage(&at->port);
    }
    return was_up ? R2_NIC_WORKS : R2_NIC_PORT_DOWN;
}

/** Tells how a NIC is. */
static void r2_watch_report(r2_watch_t *watch, r2_watched_t *at)
{
    if (watch->known) {
        r2_port_watch_ask(&at->port);
        if (r2_nic_is_bare(&at->nic)) { /* the device that stands in says nothing of it */
            at->nic.outage = r2_watch_bare_outage(at);
        } else {
            at->nic.rdma_lost = r2_port_watch_is_lost(&at->port);
            at->nic.outage = !at->link           ? R2_NIC_NO_LINK
                             : 0 == at->ipv4     ? R2_NIC_NO_ADDRESS
                             : at->nic.rdma_lost ? R2_NIC_WORKS
                                                 : r2_port_watch_outage(&at->port);
            at->nic.ipv4 = at->ipv4;
        }
        at->nic.carrier = R2_NIC_WORKS == at->nic.outage;
        watch->upcalls.changed(watch->upcalls.arg, (size_t) (at - watch->nics), &at->nic);
    }
}

static r2_watched_t *r2_watch_find(r2_watch_t *watch, uint32_t ifindex, const char *name)
{
    for (size_t i = 0; i < watch->count; ++i) {
        if (r2_nic_is_bare(&watch->nics[i].nic)) {
            continue;
        }
        if (watch->nics[i].nic.ifindex == ifindex ||
            (NULL != name && 0 == strcmp(watch->nics[i].nic.name, name))) {
            return &watch->nics[i];
        }
    }
    return NULL;
}

/** The device is away: so are its addresses. */
static void r2_watch_gone(r2_watched_t *at)
{
    at->link = false;
    at->ipv4 = 0;
}

static void r2_watch_link(r2_watch_t *watch, struct nlmsghdr *header)
{
    const unsigned wanted = IFF_UP | IFF_RUNNING | R2_IFF_LOWER_UP;
    const struct ifinfomsg *info = nlmsg_data(header);
    struct nlattr *name;
    r2_watched_t *at;

    if (!nlmsg_valid_hdr(header, sizeof(*info)) || AF_UNSPEC != info->ifi_family) {
        return; /* AF_BRIDGE: about a bridge's port */
    }
    name = nlmsg_find_attr(header, sizeof(*info), IFLA_IFNAME);
    at = r2_watch_find(watch, (uint32_t) info->ifi_index, NULL != name ? nla_data(name) : NULL);
    if (NULL == at) {
        return;
    }
    if (RTM_DELLINK == header->nlmsg_type) {
        if (at->nic.ifindex == (uint32_t) info->ifi_index) {
            r2_watch_gone(at);
        }
    } else {
        if (at->nic.ifindex != (uint32_t) info->ifi_index) {
            r2_watch_gone(at); /* made anew */
            at->nic.ifindex = (uint32_t) info->ifi_index;
        }
        at->link = wanted == (info->ifi_flags & wanted);
        at->listed = at->listed || R2_WATCH_LINKS == watch->sync;
    }
    r2_watch_report(watch, at);
}

static void r2_watch_address(r2_watch_t *watch, struct nlmsghdr *header)
{
    const struct ifaddrmsg *info = nlmsg_data(header);
    struct nlattr *local;
    r2_watched_t *at;
    uint32_t ipv4;

    if (!nlmsg_valid_hdr(header, sizeof(*info)) || AF_INET != info->ifa_family) {
        return;
    }
    at = r2_watch_find(watch, info->ifa_index, NULL);
    local = nlmsg_find_attr(header, sizeof(*info), IFA_LOCAL);
    if (NULL == at || NULL == local || nla_len(local) != (int) sizeof(ipv4)) {
        return;
    }
    memcpy(&ipv4, nla_data(local), sizeof(ipv4));
    if (RTM_DELADDR == header->nlmsg_type) {
        if (ipv4 == at->ipv4) {
            at->ipv4 = 0;
            watch->sync_wanted = true; /* it may have another one */
        }
    } else if (0 == (info->ifa_flags & IFA_F_SECONDARY)) {
        at->nic.prefix_bits =
            0 == at->ipv4 || ipv4 == at->ipv4 ? info->ifa_prefixlen : at->nic.prefix_bits;
        at->ipv4 = 0 == at->ipv4 ? ipv4 : at->ipv4;
        if (ipv4 == at->ipv4) {
            at->listed = at->listed || R2_WATCH_ADDRESSES == watch->sync;
        } else {
            at->other_ipv4 = ipv4;
        }
    }
    r2_watch_report(watch, at);
}

static int r2_watch_message(struct nl_msg *message, void *arg)
{
    r2_watch_t *watch = arg;
    struct nlmsghdr *header = nlmsg_hdr(message);

    switch (header->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
        r2_watch_link(watch, header);
        break;
    case RTM_NEWADDR:
    case RTM_DELADDR:
        r2_watch_address(watch, header);
        break;
    default:
        break;
    }
    return NL_OK;
}

/** Asks for a dump; if that is not possible now, the next poll does. */
static void r2_watch_dump(r2_watch_t *watch, r2_watch_sync_t what)
{
    const int family = R2_WATCH_LINKS == what ? AF_UNSPEC : AF_INET;
    const int type = R2_WATCH_LINKS == what ? RTM_GETLINK : RTM_GETADDR;
    struct rtgenmsg request = {.rtgen_family = (unsigned char) family};

    for (size_t i = 0; i < watch->count; ++i) {
        watch->nics[i].listed = false;
        watch->nics[i].other_ipv4 = 0;
    }
    if (nl_send_simple(watch->sock, type, NLM_F_DUMP, &request, sizeof(request)) < 0) {
        watch->sync = R2_WATCH_FOLLOWING;
        watch->sync_wanted = true;
        return;
    }
    watch->sync = what;
    if (R2_WATCH_LINKS == what) {
        watch->sync_wanted = false;
    }
}

/** A dump is complete: what was not in it is gone. */
static int r2_watch_dumped(struct nl_msg *message, void *arg)
{
    r2_watch_t *watch = arg;
    const r2_watch_sync_t what = watch->sync;

    (void) message;
    watch->sync = R2_WATCH_FOLLOWING;
    for (size_t i = 0; i < watch->count; ++i) {
        r2_watched_t *at = &watch->nics[i];

        if (R2_WATCH_LINKS == what && !at->listed) {
            r2_watch_gone(at);
        } else if (R2_WATCH_ADDRESSES == what && !at->listed) {
            at->ipv4 = at->other_ipv4;
        }
    }
    if (R2_WATCH_LINKS == what) {
        r2_watch_dump(watch, R2_WATCH_ADDRESSES);
        return NL_STOP;
    }
    watch->known = watch->known || R2_WATCH_ADDRESSES == what;
    for (size_t i = 0; i < watch->count; ++i) {
        r2_watch_report(watch, &watch->nics[i]);
    }
    return NL_STOP;
}

static void r2_watch_bind(void *instance, const r2_nic_upcalls_t *upcalls)
{
    r2_watch_t *watch = instance;

    watch->upcalls = *upcalls;
}

static int r2_watch_fd(void *instance)
{
    const r2_watch_t *watch = instance;

    return watch->epoll_fd >= 0 ? watch->epoll_fd : nl_socket_get_fd(watch->sock);
}

static uint64_t r2_watch_deadline_ns(void *instance)
{
    const r2_watch_t *watch = instance;
    uint64_t deadline_ns = R2_NEVER_NS;

    for (size_t i = 0; i < watch->count; ++i) {
        deadline_ns = r2_min(deadline_ns, r2_port_watch_deadline_ns(&watch->nics[i].port));
    }
    return deadline_ns;
}

/* A port says that something is another: where it has the NIC's address is read anew, too. */
static void r2_watch_poll_ports(r2_watch_t *watch)
{
    const uint64_t now_ns = r2_now_ns(watch->clock);

    for (size_t i = 0; i < watch->count; ++i) {
        r2_watched_t *at = &watch->nics[i];

        if (r2_port_watch_poll(&at->port, now_ns)) {
            r2_rdma_port_read("", at->nic.rdma, &at->nic, &at->nic.port);
            r2_watch_report(watch, at);
        }
    }
}

static void r2_watch_poll(void *instance)
{
    r2_watch_t *watch = instance;
    unsigned errors = 0;

    for (unsigned reads = 0; reads < R2_WATCH_READS_MAX && errors < R2_WATCH_ERRORS_MAX; ++reads) {
        const int rc = nl_recvmsgs_default(watch->sock);

        if (-NLE_AGAIN == rc) {
            break;
        }
        if (rc < 0) {
            ++errors;
            watch->sync_wanted = true;
            /* Notifications were lost, or a dump was disturbed (it goes on), or it was refused. */
            if (-NLE_NOMEM != rc && -NLE_DUMP_INTR != rc) {
                watch->sync = R2_WATCH_FOLLOWING;
            }
        }
    }
    if (watch->sync_wanted && R2_WATCH_FOLLOWING == watch->sync) {
        r2_watch_dump(watch, R2_WATCH_LINKS);
    }
    if (watch->epoll_fd >= 0) {
        r2_watch_poll_ports(watch);
    }
}

static void r2_watch_close(struct nl_sock *sock)
{
    r2_fd_closing(nl_socket_get_fd(sock));
    nl_socket_free(sock);
    r2_fd_closed();
}

static const r2_nic_watch_ops_t r2_watch_ops = {
    .name = "netlink",
    .bind = r2_watch_bind,
    .fd = r2_watch_fd,
    .poll = r2_watch_poll,
    .deadline_ns = r2_watch_deadline_ns,
};

r2_status_t r2_nic_watch_create(const r2_nic_t *nics, size_t count, r2_nic_watch_t *watch_p)
{
    r2_watch_t *watch;
    int error;

    if (count > R2_RAILS_MAX) {
        return R2_ERR_PARAM;
    }
    watch = calloc(1, sizeof(*watch));
    if (NULL == watch) {
        return R2_ERR_NO_MEMORY;
    }
    watch->epoll_fd = -1;
    watch->count = count;
    for (size_t i = 0; i < count; ++i) {
        watch->nics[i].nic = nics[i];
        watch->nics[i].ipv4 = nics[i].ipv4;
    }
    watch->sock = nl_socket_alloc();
    if (NULL == watch->sock) {
        goto err_free;
    }
    nl_socket_disable_seq_check(watch->sock);
    nl_socket_modify_cb(watch->sock, NL_CB_VALID, NL_CB_CUSTOM, r2_watch_message, watch);
    nl_socket_modify_cb(watch->sock, NL_CB_FINISH, NL_CB_CUSTOM, r2_watch_dumped, watch);
    r2_fd_opening();
    error = nl_connect(watch->sock, NETLINK_ROUTE);
    r2_fd_opened(0 == error ? nl_socket_get_fd(watch->sock) : -1);
    if (0 != error || 0 != nl_socket_set_nonblocking(watch->sock) ||
        0 != nl_socket_add_memberships(watch->sock, RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, 0)) {
        goto err_socket;
    }
    r2_watch_dump(watch, R2_WATCH_LINKS);
    *watch_p = (r2_nic_watch_t){&r2_watch_ops, watch};
    return R2_OK;

err_socket:
    r2_watch_close(watch->sock);
err_free:
    free(watch);
    return R2_ERR_SYSTEM;
}

/* One descriptor for all. @return false: there is none. */
static bool r2_watch_gather(r2_watch_t *watch)
{
    struct epoll_event event = {.events = EPOLLIN};

    watch->epoll_fd = r2_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    if (watch->epoll_fd >= 0 &&
        0 != epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, nl_socket_get_fd(watch->sock), &event)) {
        r2_fd_close(watch->epoll_fd);
        watch->epoll_fd = -1;
    }
    return watch->epoll_fd >= 0;
}

void r2_nic_watch_ports(r2_nic_watch_t *instance, const r2_clock_t *clock, const r2_log_t *log)
{
    r2_watch_t *watch = instance->instance;

    watch->clock = clock;
    for (size_t i = 0; i < watch->count; ++i) {
        r2_watched_t *at = &watch->nics[i];
        r2_status_t status = R2_ERR_NO_DESCRIPTORS;

        if ('\0' == at->nic.tls[0]) {
            continue;
        }
        if (watch->epoll_fd >= 0 || r2_watch_gather(watch)) {
            status = r2_port_watch_start(&at->port, at->nic.rdma, watch->epoll_fd);
        }
        if (R2_OK != status) {
            r2_info(log,
                    "rail %zu: RDMA port %s is not followed, its failure is found by timeout: %s",
                    i, at->nic.rdma, r2_status_string(status));
        }
    }
}

void r2_nic_watch_destroy(r2_nic_watch_t *watch)
{
    r2_watch_t *netlink = watch->instance;

    if (NULL == watch->ops) {
        return;
    }
    for (size_t i = 0; i < netlink->count; ++i) {
        r2_port_watch_stop(&netlink->nics[i].port);
    }
    if (netlink->epoll_fd >= 0) {
        r2_fd_close(netlink->epoll_fd);
    }
    r2_watch_close(netlink->sock);
    free(netlink);
    watch->ops = NULL;
}
