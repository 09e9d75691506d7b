/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Addresses and sockets of the TCP hello driver: each socket is bound to one NIC.
 */
#include "r2_config.h"

#include "rail/hello_tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/util.h"

/*
 * Address, 26 bytes for inet, 61 for unix:
 *   version u8 = 1 | family u8 | rail u8 | 0 u8 | ipv4[4] | port u16 (big endian) | id[16] |
 * name[35]
 */
#define R2_HELLO_ADDRESS_VERSION 1
#define R2_HELLO_INET_BYTES      26
#define R2_HELLO_UNIX_BYTES      (R2_HELLO_INET_BYTES + R2_HELLO_NAME_BYTES)
#define R2_HELLO_BACKLOG         1024
/* A connection on which nothing comes is asked for after so long, once a second, so many times. */
#define R2_HELLO_KEEP_IDLE_S 2
#define R2_HELLO_KEEP_PROBES 3

_Static_assert(R2_HELLO_UNIX_BYTES <= R2_HELLO_ADDRESS_MAX, "an address fits its buffer");

size_t r2_hello_address_encode(const r2_hello_address_t *address, void *bytes_p)
{
    uint8_t *to = bytes_p;

    to[0] = R2_HELLO_ADDRESS_VERSION;
    to[1] = (uint8_t) address->family;
    to[2] = address->rail_idx;
    to[3] = 0;
    memcpy(to + 4, &address->ipv4, 4);
    to[8] = (uint8_t) (address->port >> 8);
    to[9] = (uint8_t) address->port;
    memcpy(to + 10, address->id, R2_HELLO_ID_BYTES);
    if (R2_HELLO_INET == address->family) {
        return R2_HELLO_INET_BYTES;
    }
    memcpy(to + R2_HELLO_INET_BYTES, address->name, R2_HELLO_NAME_BYTES);
    return R2_HELLO_UNIX_BYTES;
}

/** True for 0.0.0.0 (not known yet) and for addresses that a NIC can have. */
static bool r2_hello_ipv4_plausible(uint32_t ipv4)
{
    const uint32_t first = ntohl(ipv4) >> 24;

    return 0 == ipv4 || (0 != first && first < 224);
}

r2_status_t r2_hello_address_decode(const void *bytes_from, size_t bytes,
                                    r2_hello_address_t *address_p)
{
    const uint8_t *from = bytes_from;
    r2_hello_address_t address = {0};

    if (bytes < R2_HELLO_INET_BYTES || R2_HELLO_ADDRESS_VERSION != from[0] || 0 != from[3]) {
        return R2_ERR_WIRE;
    }
    address.rail_idx = from[2];
    memcpy(&address.ipv4, from + 4, 4);
    address.port = (uint16_t) (from[8] << 8 | from[9]);
    memcpy(address.id, from + 10, R2_HELLO_ID_BYTES);
    if (R2_HELLO_INET == from[1]) {
        if (R2_HELLO_INET_BYTES != bytes || address.rail_idx >= R2_RAILS_MAX || 0 == address.port ||
            !r2_hello_ipv4_plausible(address.ipv4)) {
            return R2_ERR_WIRE;
        }
        address.family = R2_HELLO_INET;
    } else {
        if (R2_HELLO_UNIX != from[1] || R2_HELLO_UNIX_BYTES != bytes ||
            R2_RAILS_MAX != address.rail_idx || 0 != address.ipv4 || 0 != address.port) {
            return R2_ERR_WIRE;
        }
        address.family = R2_HELLO_UNIX;
        memcpy(address.name, from + R2_HELLO_INET_BYTES, R2_HELLO_NAME_BYTES);
    }
    *address_p = address;
    return R2_OK;
}

r2_status_t r2_hello_tcp_address_fill(void *bytes_at, size_t bytes, uint32_t ipv4)
{
    r2_hello_address_t address;

    if (R2_OK != r2_hello_address_decode(bytes_at, bytes, &address) ||
        R2_HELLO_INET != address.family || 0 == ipv4 || !r2_hello_ipv4_plausible(ipv4)) {
        return R2_ERR_WIRE;
    }
    address.ipv4 = ipv4;
    r2_hello_address_encode(&address, bytes_at);
    return R2_OK;
}

r2_status_t r2_hello_socket_status(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return R2_ERR_REFUSED;
    case ENODEV:
    case ENETDOWN:
    case ENETUNREACH:
    case EADDRNOTAVAIL:
        return R2_ERR_NO_DEVICE;
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
        return R2_ERR_AGAIN;
    case ENOMEM:
        return R2_ERR_NO_MEMORY;
    default:
        return R2_ERR_LANE_DOWN;
    }
}

r2_status_t r2_hello_socket_bind(int fd, const r2_nic_t *nic, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    const char *name = r2_nic_netdev(nic);

    if (0 != setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t) strlen(name))) {
        /* Kernels before 5.7 want CAP_NET_RAW: the address alone has to do. */
        if (EPERM != errno || 0 == nic->ipv4) {
            return r2_hello_socket_status(errno);
        }
    }
    in.sin_addr.s_addr = nic->ipv4;
    if (0 != bind(fd, (const struct sockaddr *) &in, sizeof(in))) {
        return r2_hello_socket_status(errno);
    }
    return R2_OK;
}

static socklen_t r2_hello_socket_name(const r2_hello_address_t *address, struct sockaddr_un *un_p)
{
    memset(un_p, 0, sizeof(*un_p));
    un_p->sun_family = AF_UNIX;
    memcpy(un_p->sun_path + 1, address->name, R2_HELLO_NAME_BYTES); /* [0] = 0: abstract */
    return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + R2_HELLO_NAME_BYTES);
}

static r2_status_t r2_hello_socket_listen_inet(int fd, const r2_nic_t *nic,
                                               r2_hello_address_t *address)
{
    struct sockaddr_in in;
    socklen_t in_bytes = sizeof(in);
    const int on = 1;
    r2_status_t status;

    /* FREEBIND: the address may be away now and come back. REUSEADDR: the port is taken again. */
    if (0 != setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on)) ||
        0 != setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on))) {
        return R2_ERR_SYSTEM;
    }
    status = r2_hello_socket_bind(fd, nic, address->port);
    if (R2_OK != status) {
        return status;
    }
    if (0 != listen(fd, R2_HELLO_BACKLOG) ||
        0 != getsockname(fd, (struct sockaddr *) &in, &in_bytes)) {
        return R2_ERR_SYSTEM;
    }
    address->port = ntohs(in.sin_port);
    return R2_OK;
}

static int r2_hello_socket_new(bool local)
{
    const int family = local ? AF_UNIX : AF_INET;

    return r2_fd_keep(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

r2_status_t r2_hello_socket_listen(const r2_nic_t *nic, r2_hello_address_t *address, int *fd_p)
{
    const bool local = R2_HELLO_UNIX == address->family;
    const int fd = r2_hello_socket_new(local);
    r2_status_t status = R2_OK;

    if (fd < 0) {
        return R2_ERR_SYSTEM;
    }
    if (local) {
        struct sockaddr_un un;
        const socklen_t un_bytes = r2_hello_socket_name(address, &un);

        if (0 != bind(fd, (const struct sockaddr *) &un, un_bytes) ||
            0 != listen(fd, R2_HELLO_BACKLOG)) {
            status = R2_ERR_SYSTEM;
        }
    } else {
        status = r2_hello_socket_listen_inet(fd, nic, address);
    }
    if (R2_OK != status) {
        r2_fd_close(fd);
        return R2_ERR_NO_DEVICE == status ? status : R2_ERR_SYSTEM;
    }
    *fd_p = fd;
    return R2_OK;
}

/** Ends a connection that waits for a stopped process with its path: kernels ask each other. */
static void r2_hello_socket_watch_path(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, R2_HELLO_KEEP_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, 1},
        {IPPROTO_TCP, TCP_KEEPCNT, R2_HELLO_KEEP_PROBES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * (R2_HELLO_KEEP_IDLE_S + R2_HELLO_KEEP_PROBES)},
    };

    for (size_t i = 0; i < r2_array_count(options); ++i) {
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof(options[i].value));
    }
}

static r2_status_t r2_hello_socket_connect_inet(int fd, const r2_nic_t *nic,
                                                const r2_hello_address_t *address)
{
    const struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(address->port), .sin_addr.s_addr = address->ipv4};
    const int on = 1;
    r2_status_t status;

    if (0 == nic->ipv4 || 0 == address->ipv4) {
        return R2_ERR_NO_DEVICE;
    }
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    r2_hello_socket_watch_path(fd);
    status = r2_hello_socket_bind(fd, nic, 0);
    if (R2_OK != status) {
        return status;
    }
    if (0 != connect(fd, (const struct sockaddr *) &in, sizeof(in))) {
        return EINPROGRESS == errno ? R2_IN_PROGRESS : r2_hello_socket_status(errno);
    }
    return R2_OK;
}

r2_status_t r2_hello_socket_connect(const r2_nic_t *nic, const r2_hello_address_t *address,
                                    int *fd_p)
{
    const bool local = R2_HELLO_UNIX == address->family;
    const int fd = r2_hello_socket_new(local);
    r2_status_t status = R2_OK;

    if (fd < 0) {
        return r2_hello_socket_status(errno);
    }
    if (local) {
        struct sockaddr_un un;
        const socklen_t un_bytes = r2_hello_socket_name(address, &un);

        if (0 != connect(fd, (const struct sockaddr *) &un, un_bytes)) {
            status = r2_hello_socket_status(errno);
        }
    } else {
        status = r2_hello_socket_connect_inet(fd, nic, address);
    }
    if (status < 0) {
        r2_fd_close(fd);
        return status;
    }
    *fd_p = fd;
    return status;
}
