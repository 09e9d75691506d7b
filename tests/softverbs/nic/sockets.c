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
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <errno.h>

/* Packets of one length in a row go to the kernel as one, as those of TCP do: the network below
 * carries them as one and cuts them where it has to. Of full ones seven make 64 KiB. */
enum { SOCKET_BYTES = 32 << 20, ROUNDS = 4, MOST_BYTES = 65000, RECEIVES = 8 };

/* Beside a message: the length of each of its packets. */
typedef struct note {
    _Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(int))];
} note_t;

static size_t bytes_of(const sv_packet_t *packet)
{
    return sizeof(sv_head_t) + packet->head.length;
}

/* How many of these packets may go as one: to one place, and none but the last is shorter. */
static int in_one(const sv_packet_t *packets, int count)
{
    size_t first = bytes_of(packets), all = first;
    int n = 1;

    while (n < count && packets[n].ip == packets[0].ip && bytes_of(&packets[n]) <= first &&
           bytes_of(&packets[n - 1]) == first && all + bytes_of(&packets[n]) <= MOST_BYTES) {
        all += bytes_of(&packets[n]);
        ++n;
    }
    return n;
}

/* One message of so many packets. */
static void fill(struct mmsghdr *message, sv_packet_t *packets, int count, struct iovec *pieces,
                 struct sockaddr_in *to, note_t *note)
{
    uint16_t each = (uint16_t) bytes_of(packets);

    *to = (struct sockaddr_in){.sin_family = AF_INET,
                               .sin_port = htons(SV_UDP_PORT),
                               .sin_addr.s_addr = packets[0].ip};
    *message = (struct mmsghdr){.msg_hdr.msg_name = to,
                                .msg_hdr.msg_namelen = sizeof(*to),
                                .msg_hdr.msg_iov = pieces,
                                .msg_hdr.msg_iovlen = (size_t) count};
    for (int i = 0; i < count; ++i) {
        pieces[i].iov_base = &packets[i].head;
        pieces[i].iov_len = bytes_of(&packets[i]);
    }
    if (count > 1) {
        struct cmsghdr *head = (struct cmsghdr *) (void *) note->bytes;
        head->cmsg_level = SOL_UDP;
        head->cmsg_type = UDP_SEGMENT;
        head->cmsg_len = CMSG_LEN(sizeof(each));
        memcpy(CMSG_DATA(head), &each, sizeof(each));
        message->msg_hdr.msg_control = note;
        message->msg_hdr.msg_controllen = CMSG_SPACE(sizeof(each));
    }
}

static void send_packets(sv_dev_t *dev, sv_packet_t *packets, int count)
{
    struct mmsghdr messages[SV_BATCH];
    struct iovec pieces[SV_BATCH];
    struct sockaddr_in to[SV_BATCH];
    note_t notes[SV_BATCH];
    int done = 0, made = 0;

    for (int i = 0, n; i < count; i += n) {
        n = dev->sends_singly ? 1 : in_one(packets + i, count - i);
        fill(&messages[made], packets + i, n, pieces + i, &to[made], &notes[made]);
        ++made;
    }
    while (done < made) {
        int sent = sendmmsg(dev->socket, messages + done, (unsigned) (made - done), MSG_DONTWAIT);
        struct pollfd room = {.fd = dev->socket, .events = POLLOUT};
        if (sent > 0) {
            done += sent;
        } else if (EINTR != errno && (EAGAIN != errno || 0 == poll(&room, 1, 1))) {
            /* A netdev whose packets are shorter than ours takes them cut into pieces only. */
            dev->sends_singly |= messages[done].msg_hdr.msg_iovlen > 1 &&
                                 (EINVAL == errno || EMSGSIZE == errno || EIO == errno);
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
    setsockopt(fd, SOL_UDP, UDP_GRO, &(int){1}, sizeof(int));
    address.sin_addr.s_addr = dev->about.ip;
    if (0 != bind(fd, (struct sockaddr *) &address, sizeof(address))) {
        close(fd);
        return -1;
    }
    dev->socket = fd;
    return sv_wait_for(dev->nic, fd, SV_FROM_DEVICE, dev);
}

typedef struct received {
    struct sockaddr_in from;
    note_t note;
    char bytes[1 << 16];
} received_t;

/* Receives some messages, each of one packet or more; returns how many. */
static int receive(const sv_dev_t *dev, received_t *all, struct mmsghdr *messages)
{
    struct iovec pieces[RECEIVES];

    for (int i = 0; i < RECEIVES; ++i) {
        pieces[i] = (struct iovec){.iov_base = all[i].bytes, .iov_len = sizeof(all[i].bytes)};
        messages[i] = (struct mmsghdr){.msg_hdr.msg_name = &all[i].from,
                                       .msg_hdr.msg_namelen = sizeof(all[i].from),
                                       .msg_hdr.msg_iov = &pieces[i],
                                       .msg_hdr.msg_iovlen = 1,
                                       .msg_hdr.msg_control = &all[i].note,
                                       .msg_hdr.msg_controllen = sizeof(all[i].note)};
    }
    return recvmmsg(dev->socket, messages, RECEIVES, MSG_DONTWAIT, NULL);
}

/* Bytes of each packet of a message. */
static size_t each_of(struct mmsghdr *message)
{
    struct cmsghdr *note = CMSG_FIRSTHDR(&message->msg_hdr);
    int each = 0;

    if (NULL != note && SOL_UDP == note->cmsg_level && UDP_GRO == note->cmsg_type) {
        memcpy(&each, CMSG_DATA(note), sizeof(each));
    }
    return each > 0 ? (size_t) each : message->msg_len;
}

static void arrived(sv_dev_t *dev, const received_t *one, size_t length, size_t each)
{
    static sv_packet_t packet;

    for (size_t at = 0, size; at < length; at += size) {
        size = length - at < each ? length - at : each;
        if (size >= sizeof(sv_head_t) && size <= sizeof(sv_head_t) + SV_SEGMENT) {
            packet.ip = one->from.sin_addr.s_addr;
            memcpy(&packet.head, one->bytes + at, size);
            if (size == bytes_of(&packet)) {
                sv_arrived(dev, &packet);
            }
        }
    }
}

void sv_sockets_receive(sv_dev_t *dev)
{
    static received_t all[RECEIVES];
    struct mmsghdr messages[RECEIVES];
    int count = RECEIVES;

    for (int round = 0; round < ROUNDS && RECEIVES == count && dev->socket >= 0; ++round) {
        count = receive(dev, all, messages);
        for (int i = 0; i < count; ++i) {
            arrived(dev, &all[i], messages[i].msg_len, each_of(&messages[i]));
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
