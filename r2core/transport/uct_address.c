/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Addresses of UCT's interfaces and endpoints, as they travel between processes.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <string.h>
#include <unistd.h>

/* pid u32 little endian | three times: bytes u8, then as many: device, interface, endpoint. */
#define PARTS 3
/* tcp: a device's address begins with flags and address family. */
#define TCP_KIND_BYTES 2

/** Lengths of the parts on this port. */
static bool r2_uct_part_lengths(const r2_uct_port_t *port, bool has_ep, size_t lengths_p[PARTS])
{
    lengths_p[0] = port->attr.device_addr_len;
    lengths_p[1] = port->attr.iface_addr_len;
    lengths_p[2] = has_ep ? port->attr.ep_addr_len : 0;
    for (size_t i = 0; i < PARTS; ++i) {
        if (lengths_p[i] > sizeof(((r2_uct_address_t *) NULL)->device)) {
            return false;
        }
    }
    return true;
}

static bool r2_uct_parts_get(const r2_uct_port_t *port, uct_ep_h ep, const size_t lengths[PARTS],
                             r2_uct_address_t *address)
{
    ucs_status_t rc = UCS_OK;

    if (0 != lengths[0]) {
        rc = uct_iface_get_device_address(port->iface, (void *) address->device);
    }
    if (UCS_OK == rc && 0 != lengths[1]) {
        rc = uct_iface_get_address(port->iface, (void *) address->iface);
    }
    if (UCS_OK == rc && 0 != lengths[2]) {
        rc = uct_ep_get_address(ep, (void *) address->ep);
    }
    return UCS_OK == rc;
}

r2_status_t r2_uct_address_write(const r2_uct_port_t *port, uct_ep_h ep, void *address_p,
                                 size_t room, size_t *bytes_p)
{
    r2_uct_address_t address = {.pid = (uint32_t) getpid()};
    const uint8_t *parts[PARTS] = {address.device, address.iface, address.ep};
    uint8_t *to = address_p;
    size_t lengths[PARTS], total = sizeof(address.pid) + PARTS;
    bool got;

    if (!r2_uct_part_lengths(port, NULL != ep, lengths)) {
        return R2_ERR_UNSUPPORTED;
    }
    for (size_t i = 0; i < PARTS; ++i) {
        total += lengths[i];
    }
    if (total > room) {
        return R2_ERR_UNSUPPORTED;
    }
    r2_ucx_enter();
    got = r2_uct_parts_get(port, ep, lengths, &address);
    r2_ucx_leave();
    if (!got) {
        return R2_ERR_NO_DEVICE;
    }
    memcpy(to, &address.pid, sizeof(address.pid));
    to += sizeof(address.pid);
    for (size_t i = 0; i < PARTS; ++i) {
        *to = (uint8_t) lengths[i];
        memcpy(to + 1, parts[i], lengths[i]);
        to += 1 + lengths[i];
    }
    *bytes_p = total;
    return R2_OK;
}

/**
 * tcp trusts the address family of its peer's address (tcp_ep.c, uct_tcp_ep_set_dest_addr(): more
 * is written than there is room for if it is another than ours), and asks who is reachable of the
 * routing table as it was once, without its rules (1.19 and later). So we look at it ourselves.
 */
static bool r2_uct_is_of_our_kind(const r2_uct_port_t *port, const r2_uct_address_t *address)
{
    r2_uct_address_t own = {.pid = 0};

    return !port->is_tcp ||
           (UCS_OK == uct_iface_get_device_address(port->iface, (void *) own.device) &&
            0 == memcmp(own.device, address->device, TCP_KIND_BYTES));
}

bool r2_uct_address_read(const r2_uct_port_t *port, bool has_ep, const void *address, size_t bytes,
                         r2_uct_address_t *address_p)
{
    uint8_t *parts[PARTS] = {address_p->device, address_p->iface, address_p->ep};
    const uint8_t *from = address, *end = from + bytes;
    size_t lengths[PARTS];

    memset(address_p, 0, sizeof(*address_p));
    if (!r2_uct_part_lengths(port, has_ep, lengths) || bytes < sizeof(address_p->pid)) {
        return false;
    }
    memcpy(&address_p->pid, from, sizeof(address_p->pid));
    from += sizeof(address_p->pid);
    for (size_t i = 0; i < PARTS; ++i) {
        if (from == end || *from != lengths[i] || lengths[i] > (size_t) (end - from) - 1) {
            return false;
        }
        memcpy(parts[i], from + 1, lengths[i]);
        from += 1 + lengths[i];
    }
    return from == end && r2_uct_is_of_our_kind(port, address_p);
}
