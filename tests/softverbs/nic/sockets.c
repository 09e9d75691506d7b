/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The real world: UDP over the NIC's own netdev, memory of processes, state of links.
 */
#include "softverbs/nic/nic.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <errno.h>

enum { SOCKET_BYTES = 32 << 20, ROUNDS = 4 };

static void send_packets(sv_dev_t *dev, sv_packet_t *packets, int count)
{
    struct mmsghdr messages[SV_BATCH];
    struct iovec pieces[SV_BATCH];
    struct sockaddr_in to[SV_BATCH];
    int done = 0;

    memset(messages, 0, sizeof(messages));
    memset(to, 0, sizeof(to));
    for (int i = 0; i < count; ++i) {
        to[i].sin_family = AF_INET;
        to[i].sin_port = htons(SV_UDP_PORT);
        to[i].sin_addr.s_addr = packets[i].ip;
        pieces[i].iov_base = &packets[i].head;
        pieces[i].iov_len = sizeof(sv_head_t) + packets[i].head.length;
        messages[i].msg_hdr.msg_name = &to[i];
        messages[i].msg_hdr.msg_namelen = sizeof(to[i]);
        messages[i].msg_hdr.msg_iov = &pieces[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    while (done < count) {
        int sent = sendmmsg(dev->socket, messages + done, (unsigned) (count - done), MSG_DONTWAIT);
        struct pollfd room = {.fd = dev->socket, .events = POLLOUT};
        if (sent > 0) {
            done += sent;
        } else if (EINTR != errno && (EAGAIN != errno || 0 == poll(&room, 1, 1))) {
            ++done; /* lost: no address, no way, or the NIC's queue stays full */
        }
    }
}

static bool read_memory(sv_context_t *context, void *to, const struct iovec *from, int count)
{
    struct iovec local = {.iov_base = to};

    for (int i = 0; i < count; ++i) {
        local.iov_len += from[i].iov_len;
    }
    return process_vm_readv(context->pid, &local, 1, from, (unsigned long) count, 0) ==
           (ssize_t) local.iov_len;
}

static bool write_memory(sv_context_t *context, uint64_t to, const void *from, size_t size)
{
    struct iovec local = {.iov_base = (void *) (uintptr_t) from, .iov_len = size};
    struct iovec remote = {.iov_base = (void *) (uintptr_t) to, .iov_len = size};

    return process_vm_writev(context->pid, &local, 1, &remote, 1, 0) == (ssize_t) size;
}

static void tell(int fd, const void *what, size_t size)
{
    if (write(fd, what, size) < 0) {
        return; /* nobody listens any more */
    }
}

const sv_world_t sv_real_world = {
    .send = send_packets,
    .read = read_memory,
    .write = write_memory,
    .tell = tell,
};

int sv_sockets_open(sv_dev_t *dev)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(SV_UDP_PORT)};
    int size = SOCKET_BYTES, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }
    /* Never by another NIC. Without the right to it (not root) routing decides. */
    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, dev->about.netdev,
               (socklen_t) strlen(dev->about.netdev) + 1);
    if (0 != setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size))) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    }
    if (0 != setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size))) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    }
    address.sin_addr.s_addr = dev->about.ip;
    if (0 != bind(fd, (struct sockaddr *) &address, sizeof(address))) {
        close(fd);
        return -1;
    }
    dev->socket = fd;
    return sv_wait_for(dev->nic, fd, SV_FROM_DEVICE, dev);
}

/* Receives a batch; returns the packets. */
static int receive(sv_dev_t *dev, sv_packet_t *packets, struct mmsghdr *messages)
{
    struct iovec pieces[SV_BATCH];
    struct sockaddr_in from[SV_BATCH];
    int count;

    for (int i = 0; i < SV_BATCH; ++i) {
        pieces[i].iov_base = &packets[i].head;
        pieces[i].iov_len = sizeof(sv_head_t) + SV_SEGMENT;
        messages[i] = (struct mmsghdr){.msg_hdr.msg_name = &from[i],
                                       .msg_hdr.msg_namelen = sizeof(from[i]),
                                       .msg_hdr.msg_iov = &pieces[i],
                                       .msg_hdr.msg_iovlen = 1};
    }
    count = recvmmsg(dev->socket, messages, SV_BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; ++i) {
        packets[i].ip = from[i].sin_addr.s_addr;
    }
    return count;
}

void sv_sockets_receive(sv_dev_t *dev)
{
    static sv_packet_t packets[SV_BATCH];
    struct mmsghdr messages[SV_BATCH];
    int count = SV_BATCH;

    for (int round = 0; round < ROUNDS && SV_BATCH == count && dev->socket >= 0; ++round) {
        count = receive(dev, packets, messages);
        for (int i = 0; i < count; ++i) {
            if (messages[i].msg_len >= sizeof(sv_head_t) &&
                messages[i].msg_len == sizeof(sv_head_t) + packets[i].head.length) {
                sv_arrived(dev, &packets[i]);
            }
        }
        sv_round_end(dev);
    }
}

/* ---- links */

int sv_links_open(void)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK,
                                  .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    if (fd >= 0 && 0 != bind(fd, (struct sockaddr *) &address, sizeof(address))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A request about a netdev: true if it has an answer. */
static bool ask_link(const sv_dev_t *dev, unsigned long what, struct ifreq *answer_p)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_there;

    memset(answer_p, 0, sizeof(*answer_p));
    memcpy(answer_p->ifr_name, dev->about.netdev, sizeof(answer_p->ifr_name));
    is_there = fd >= 0 && 0 == ioctl(fd, what, answer_p);
    if (fd >= 0) {
        close(fd);
    }
    return is_there;
}

static void new_address(sv_dev_t *dev, uint32_t ip)
{
    dev->about.ip = ip;
    if (dev->socket >= 0) {
        close(dev->socket);
        dev->socket = -1;
    }
    if (0 != ip) {
        sv_sockets_open(dev);
    }
    sv_port_event(dev, IBV_EVENT_GID_CHANGE);
}

void sv_link_look(sv_dev_t *dev)
{
    struct ifreq answer;
    bool was_up = sv_is_up(dev);
    struct sockaddr_in address;

    dev->has_carrier = ask_link(dev, SIOCGIFFLAGS, &answer) &&
                       (IFF_UP | IFF_RUNNING) == (answer.ifr_flags & (IFF_UP | IFF_RUNNING));
    if (ask_link(dev, SIOCGIFHWADDR, &answer)) {
        memcpy(dev->about.mac, answer.ifr_hwaddr.sa_data, sizeof(dev->about.mac));
    }
    if (!dev->has_own_ip) {
        address.sin_addr.s_addr = 0;
        if (ask_link(dev, SIOCGIFADDR, &answer)) {
            memcpy(&address, &answer.ifr_addr, sizeof(address));
        }
        if (address.sin_addr.s_addr != dev->about.ip) {
            new_address(dev, address.sin_addr.s_addr);
        } else if (0 != dev->about.ip && dev->socket < 0) {
            sv_sockets_open(dev); /* the address was not ready when it came */
        }
    }
    if (was_up != sv_is_up(dev)) {
        if (!was_up && dev->nic->moves_gids && !dev->about.is_ib) {
            dev->gid_index = 1 + dev->gid_index % (SV_GIDS - 1);
            sv_port_event(dev, IBV_EVENT_GID_CHANGE);
        }
        sv_port_event(dev, was_up ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
    }
    sv_files_update(dev);
}

void sv_links_changed(sv_nic_t *nic)
{
    char news[8192];

    while (recv(nic->links, news, sizeof(news), MSG_DONTWAIT) > 0) {
        continue;
    }
    for (uint32_t i = 0; i < nic->device_count; ++i) {
        sv_link_look(nic->devices[i]);
    }
}
