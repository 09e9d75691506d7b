/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the path of a connection carries, by the kernel's own count.
 */
/*
 * Acknowledgements of r2's packets come when both processes have had their turns: where processes
 * share cores they tell how often these look, and not what the path carries. The kernels' come
 * without, as long as the peer's socket has room. Their estimate is what was delivered between the
 * times when a segment was sent and when it was acknowledged, newest or, where the process had
 * nothing more to send, best. Source: draft-cheng-iccrg-delivery-rate-estimation;
 * tcpi_delivery_rate of Linux 4.9.
 */
#include "r2_config.h"

#include <linux/tcp.h> /* netinet/tcp.h of glibc 2.36 has less of it, and goes with it in no file */
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "transport/tcp.h"

uint64_t r2_tcp_ep_path_rate(const r2_tp_ep_t *tp_ep, uint64_t *window_bytes_p)
{
    const r2_tcp_ep_t *ep = (const r2_tcp_ep_t *) (const void *) tp_ep;
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t bytes = sizeof(info);
    const socklen_t need =
        offsetof(struct tcp_info, tcpi_delivery_rate) + sizeof(info.tcpi_delivery_rate);

    if (ep->fd < 0 || 0 != getsockopt(ep->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) ||
        bytes < need) {
        return 0;
    }
    *window_bytes_p = (uint64_t) info.tcpi_snd_cwnd * info.tcpi_snd_mss;
    return info.tcpi_delivery_rate;
}
