/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sockets of the TCP transport, tied to one NIC.
 */
#include "r2_config.h"

#include "transport/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fork.h"

r2_status_t r2_tcp_status(int error)
{
    switch (error) {
    case 0:
        return R2_OK;
    case ENOMEM:
    case ENOBUFS:
        return R2_ERR_NO_MEMORY;
    case EMFILE:
    case ENFILE:
        return R2_ERR_NO_DESCRIPTORS;
    case EADDRNOTAVAIL:
    case ENODEV:
    case ENETDOWN:
        return R2_ERR_NO_DEVICE;
    case ENETUNREACH:
    case EHOSTUNREACH:
        return R2_ERR_NO_PATH;
    case ETIMEDOUT:
        return R2_ERR_TIMEOUT;
    default:
        return R2_ERR_LANE_DOWN;
    }
}

static int r2_tcp_socket(void)
{
    return r2_fd_keep(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/** Closes a socket that did not become what it should. @return why. */
static r2_status_t r2_tcp_socket_failed(int fd)
{
    const int error = errno;

    if (fd >= 0) {
        r2_fd_close(fd);
    }
    return r2_tcp_status(error);
}

r2_status_t r2_tcp_nic_ipv4(const char *name, uint32_t *ipv4_p)
{
    struct ifreq request = {.ifr_flags = 0};
    struct sockaddr_in in;
    const int fd = r2_tcp_socket();
    r2_status_t status = R2_ERR_NO_DEVICE;

    if (fd < 0) {
        return r2_tcp_socket_failed(fd);
    }
    if (strlen(name) < sizeof(request.ifr_name)) {
        strcpy(request.ifr_name, name);
        if (0 == ioctl(fd, SIOCGIFFLAGS, &request) && 0 != (request.ifr_flags & IFF_UP) &&
            0 != (request.ifr_flags & IFF_RUNNING) && 0 == ioctl(fd, SIOCGIFADDR, &request)) {
            memcpy(&in, &request.ifr_addr, sizeof(in));
            *ipv4_p = in.sin_addr.s_addr;
            status = R2_OK;
        }
    }
    r2_fd_close(fd);
    return status;
}

/** Ties a socket to a NIC; < 0: there is none, errno stays. Kernels before 5.7 want CAP_NET_RAW:
 * the address alone has to do. */
static bool r2_tcp_bind(int fd, const char *nic, uint32_t ipv4)
{
    const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {ipv4}};

    return fd >= 0 &&
           (0 == setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, nic, (socklen_t) strlen(nic)) ||
            EPERM == errno) &&
           0 == bind(fd, (const struct sockaddr *) &in, sizeof(in));
}

r2_status_t r2_tcp_listen(const char *nic, uint32_t ipv4, int *fd_p, uint16_t *port_p)
{
    const int fd = r2_tcp_socket();
    struct sockaddr_in in;
    socklen_t bytes = sizeof(in);

    if (!r2_tcp_bind(fd, nic, ipv4) || 0 != listen(fd, SOMAXCONN) ||
        0 != getsockname(fd, (struct sockaddr *) &in, &bytes)) {
        return r2_tcp_socket_failed(fd);
    }
    *fd_p = fd;
    *port_p = in.sin_port;
    return R2_OK;
}

r2_status_t r2_tcp_dial(const char *nic, uint32_t ipv4, const r2_tcp_address_t *to, int *fd_p)
{
    const struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = to->port, .sin_addr = {to->ipv4}};
    const int fd = r2_tcp_socket();
    const int on = 1;

    if (fd >= 0) {
        /* Else each dialed socket of the host would hold a port of its own, whoever it goes to. */
        (void) setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    }
    if (!r2_tcp_bind(fd, nic, ipv4) ||
        (0 != connect(fd, (const struct sockaddr *) &in, sizeof(in)) && EINPROGRESS != errno)) {
        return r2_tcp_socket_failed(fd);
    }
    r2_tcp_tune(fd);
    *fd_p = fd;
    return R2_OK;
}

void r2_tcp_tune(int fd)
{
    const int on = 1;

    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}
