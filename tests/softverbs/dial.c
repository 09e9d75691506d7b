/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The socket between a process and its NIC: packets that carry descriptors.
 */
#include "softverbs/abi.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

unsigned sv_socket_name(struct sockaddr_un *address_p)
{
    const char *name = getenv(SV_NAME_VARIABLE);
    int length;

    memset(address_p, 0, sizeof(*address_p));
    address_p->sun_family = AF_UNIX;
    length = snprintf(address_p->sun_path + 1, sizeof(address_p->sun_path) - 1, SV_SOCKET "%.40s",
                      NULL == name ? "" : name);
    return (unsigned) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) length);
}

int sv_dial(void)
{
    struct sockaddr_un address;
    unsigned length = sv_socket_name(&address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd >= 0 && 0 != connect(fd, (struct sockaddr *) &address, length)) {
        close(fd);
        return -1;
    }
    return fd;
}

typedef union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(2 * sizeof(int))];
} control_t;

int sv_packet_send(int socket, const void *bytes, size_t size, const int *fds, int count)
{
    char *content = (char *) (uintptr_t) bytes; /* sendmsg does not write */
    struct iovec piece = {.iov_base = content, .iov_len = size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    control_t control;
    struct cmsghdr *head;
    ssize_t sent;

    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE((size_t) count * sizeof(int));
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN((size_t) count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, (size_t) count * sizeof(int));
    }
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && EINTR == errno);
    return sent < 0 ? -1 : 0;
}

int sv_packet_receive(int socket, void *bytes, size_t size, int fds_p[2])
{
    struct iovec piece = {.iov_base = bytes, .iov_len = size};
    control_t control;
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control)};
    const struct cmsghdr *head;
    ssize_t got;

    fds_p[0] = fds_p[1] = -1;
    do {
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && EINTR == errno);
    if (got < 0) {
        return -1;
    }
    head = CMSG_FIRSTHDR(&message);
    if (NULL != head && SCM_RIGHTS == head->cmsg_type) {
        size_t length = head->cmsg_len - CMSG_LEN(0);
        memcpy(fds_p, CMSG_DATA(head), length < 2 * sizeof(int) ? length : 2 * sizeof(int));
    }
    return (int) got;
}

int sv_ask(int socket, const sv_request_t *request, const int *fds, int count, sv_reply_t *reply_p,
           int fds_p[2])
{
    int got[2];
    int size;

    if (0 != sv_packet_send(socket, request, sizeof(*request), fds, count)) {
        return ENODEV;
    }
    size = sv_packet_receive(socket, reply_p, sizeof(*reply_p), got);
    if (NULL != fds_p) {
        fds_p[0] = got[0];
        fds_p[1] = got[1];
    }
    return (int) sizeof(*reply_p) == size ? reply_p->error : ENODEV;
}
