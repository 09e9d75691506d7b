/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One rail of the probe driver for Ethernet: its sockets, its carrier, beacons.
 */
#include "r2_config.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/util.h"
#include "rail/probe_parts.h"

#define R2_PROBE_HEARD_MAX 64 /* datagrams per poll(), so that others get their turn */

void r2_probe_rail_close(r2_probe_rail_t *rail)
{
    r2_probe_put_close(rail);
    if (rail->udp_fd >= 0) {
        epoll_ctl(rail->probe->epoll_fd, EPOLL_CTL_DEL, rail->udp_fd, NULL);
        r2_fd_close(rail->udp_fd);
        r2_fd_close(rail->quiet_fd);
        rail->udp_fd = rail->quiet_fd = -1;
    }
}

/** A socket bound to the NIC. @param port_p in: wanted, 0: any; out: the one it got. */
static r2_status_t r2_probe_socket(const r2_nic_t *nic, int type, uint16_t *port_p, int *fd_p)
{
    const int fd = r2_fd_keep(socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    struct sockaddr_in in;
    socklen_t in_bytes = sizeof(in);
    const int on = 1;
    r2_status_t status;

    if (fd < 0) {
        return R2_ERR_SYSTEM;
    }
    /* FREEBIND: the address may be away now and come back. */
    setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
    setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
    status = r2_hello_socket_bind(fd, nic, *port_p);
    if (R2_OK == status && 0 != getsockname(fd, (struct sockaddr *) &in, &in_bytes)) {
        status = R2_ERR_SYSTEM;
    }
    if (R2_OK != status) {
        r2_fd_close(fd);
        return R2_ERR_NO_DEVICE == status ? status : R2_ERR_SYSTEM;
    }
    *port_p = ntohs(in.sin_port);
    *fd_p = fd;
    return R2_OK;
}

r2_status_t r2_probe_rail_open(r2_probe_rail_t *rail, const r2_nic_t *nic)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = rail};
    r2_status_t status;

    if (rail->udp_fd >= 0 && nic->ifindex == rail->nic.ifindex && nic->ipv4 == rail->nic.ipv4) {
        return R2_OK;
    }
    r2_probe_rail_close(
        rail); /* the ports are known to others: they must be free to be taken again */
    status = r2_probe_socket(nic, SOCK_DGRAM, &rail->udp_port, &rail->udp_fd);
    if (R2_OK == status) {
        status = r2_probe_socket(nic, SOCK_STREAM, &rail->quiet_port, &rail->quiet_fd);
        if (R2_OK != status) {
            r2_fd_close(rail->udp_fd);
            rail->udp_fd = -1;
        }
    }
    if (R2_OK != status) {
        r2_warn(rail->probe->log, "rail %u %s: cannot be probed: %s", rail->idx, nic->name,
                r2_status_string(status));
        return status;
    }
    rail->nic = *nic;
    epoll_ctl(rail->probe->epoll_fd, EPOLL_CTL_ADD, rail->udp_fd, &event);
    r2_probe_put_open(rail, nic);
    return R2_OK;
}

void r2_probe_rail_follow(r2_probe_rail_t *rail)
{
    r2_nic_t nic = rail->nic;

    nic.ifindex = if_nametoindex(nic.name);
    if (0 != nic.ifindex && nic.ifindex != rail->nic.ifindex) {
        (void) r2_probe_rail_open(rail, &nic);
    }
}

bool r2_probe_rail_carrier(const r2_probe_rail_t *rail)
{
    const short wanted = IFF_UP | IFF_RUNNING;
    struct ifreq request = {0};

    if (rail->udp_fd < 0) {
        return false;
    }
    memcpy(request.ifr_name, rail->nic.name, strnlen(rail->nic.name, IFNAMSIZ - 1));
    return 0 == ioctl(rail->udp_fd, SIOCGIFFLAGS, &request) &&
           wanted == (request.ifr_flags & wanted);
}

void r2_probe_rail_send(const r2_probe_rail_t *rail, const struct sockaddr_in *to,
                        const uint8_t *datagram)
{
    (void) !sendto(rail->udp_fd, datagram, R2_BEACON_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL,
                   (const struct sockaddr *) to, sizeof(*to));
}

/** Address that a datagram was sent to, 0: not told. */
static uint32_t r2_probe_destination(struct msghdr *message)
{
    struct in_pktinfo info = {0};
    struct cmsghdr *control;

    for (control = CMSG_FIRSTHDR(message); NULL != control;
         control = CMSG_NXTHDR(message, control)) {
        if (IPPROTO_IP == control->cmsg_level && IP_PKTINFO == control->cmsg_type) {
            memcpy(&info, CMSG_DATA(control), sizeof(info));
        }
    }
    return info.ipi_addr.s_addr;
}

void r2_probe_rail_hear(r2_probe_rail_t *rail)
{
    r2_probe_tcp_t *probe = rail->probe;

    for (int i = 0; i < R2_PROBE_HEARD_MAX; ++i) {
        uint8_t datagram[R2_BEACON_BYTES + 1];
        _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct in_pktinfo))];
        struct iovec piece = {datagram, sizeof(datagram)};
        struct msghdr message = {.msg_iov = &piece,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        const ssize_t got = recvmsg(rail->udp_fd, &message, MSG_DONTWAIT);
        r2_beacon_place_t place = {.rail_idx = rail->idx, .port = rail->udp_port};
        uint64_t beacon_id;
        uint32_t rank;

        if (got < 0) {
            if (EAGAIN == errno) {
                return;
            }
            continue; /* an error report of an earlier datagram */
        }
        place.ipv4 = r2_probe_destination(&message);
        if (probe->has_key && R2_OK == r2_beacon_open(probe->beacon_key, &place, datagram,
                                                      (size_t) got, &rank, &beacon_id)) {
            probe->upcalls.heard(probe->upcalls.arg, rank, rail->idx, beacon_id);
        }
    }
}
