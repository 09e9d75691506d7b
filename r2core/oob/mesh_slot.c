/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * NICs of the mesh: which ones, and which one leads to a peer's address.
 */
#include "r2_config.h"

#include "oob/mesh_slot.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "rail/hello_tcp.h"

#define R2_MESH_MANAGERS_MAX 2 /* management NICs in use */

static bool r2_mesh_is_rail(const r2_mesh_config_t *config, const r2_nic_t *nic)
{
    for (size_t i = 0; i < config->rail_count; ++i) {
        if (0 == strcmp(nic->name, config->rails[i].name)) {
            return true;
        }
    }
    return false;
}

/** Bridges of containers have the same address on every host: nobody else is reached there. */
static bool r2_mesh_is_bridge(const r2_nic_t *nic)
{
    char path[64];

    snprintf(path, sizeof(path), "/sys/class/net/%.32s/bridge", nic->name);
    return 0 == access(path, F_OK);
}

/** Opens the listener of one NIC. */
static void r2_mesh_slot_add(r2_mesh_slots_t *slots, r2_hello_t *hello, uint8_t kind,
                             const r2_nic_t *nic)
{
    r2_mesh_place_t *place = &slots->own.places[slots->own.count];
    uint8_t address[R2_HELLO_ADDRESS_MAX];
    size_t bytes;

    if (slots->count == R2_MESH_PLACES_MAX ||
        R2_OK !=
            hello->ops->listen(hello->instance, (uint32_t) slots->count, nic, address, &bytes) ||
        bytes > sizeof(place->address)) {
        return;
    }
    slots->slots[slots->count++] = (r2_mesh_slot_t){kind, *nic};
    place->kind = kind;
    place->bytes = (uint8_t) bytes;
    memcpy(place->address, address, bytes);
    ++slots->own.count;
}

/** The listener within the host comes first in the address, with or without a name. */
static void r2_mesh_listen_local(r2_mesh_slots_t *slots, r2_hello_t *hello)
{
    r2_mesh_place_t *place = &slots->own.places[slots->own.count++];
    uint8_t address[R2_HELLO_ADDRESS_MAX];
    size_t bytes;

    if (R2_OK == hello->ops->listen(hello->instance, R2_RAILS_MAX, NULL, address, &bytes) &&
        bytes <= sizeof(place->address)) {
        place->bytes = (uint8_t) bytes;
        memcpy(place->address, address, bytes);
    }
}

r2_status_t r2_mesh_slots_open(r2_mesh_slots_t *slots, r2_hello_t *hello,
                               const r2_mesh_config_t *config)
{
    const bool asked = NULL != config->nics && '\0' != config->nics[0];
    r2_nic_t nics[R2_RAILS_MAX];
    char text[512] = "";
    size_t count = 0, managers = 0;

    r2_mesh_listen_local(slots, hello);
    if (R2_OK !=
        r2_nics_find(asked ? config->nics : "*", false, nics, &count, text, sizeof(text))) {
        count = 0;
        if (asked) {
            r2_error(config->log, "oob_nics: %s", text);
            return R2_ERR_PARAM;
        }
    }
    for (size_t i = 0; i < count && managers < R2_MESH_MANAGERS_MAX; ++i) {
        if (asked || (0 != nics[i].ipv4 && nics[i].carrier && !r2_mesh_is_rail(config, &nics[i]) &&
                      !r2_mesh_is_bridge(&nics[i]))) {
            r2_mesh_slot_add(slots, hello, (uint8_t) managers++, &nics[i]);
        }
    }
    for (size_t i = 0; i < config->rail_count; ++i) {
        if (!r2_nic_is_bare(&config->rails[i])) {
            r2_mesh_slot_add(slots, hello, (uint8_t) (R2_MESH_RAIL | i), &config->rails[i]);
        }
    }
    return R2_OK;
}

static bool r2_mesh_same_subnet(const r2_nic_t *nic, uint32_t ipv4)
{
    const uint32_t mask =
        0 == nic->prefix_bits ? 0 : htonl(UINT32_MAX << (32 - r2_min(nic->prefix_bits, 32)));

    return 0 != nic->ipv4 && 0 != mask && (nic->ipv4 & mask) == (ipv4 & mask);
}

size_t r2_mesh_slot_for(const r2_mesh_slots_t *slots, const r2_mesh_place_t *place)
{
    r2_hello_address_t address;
    size_t best = slots->count;

    if (R2_OK != r2_hello_address_decode(place->address, place->bytes, &address)) {
        return best;
    }
    for (size_t i = slots->count; i-- > 0;) {
        const r2_mesh_slot_t *slot = &slots->slots[i];

        if (0 != (place->kind & R2_MESH_RAIL)) {
            best = slot->kind == place->kind ? i : best;
        } else if (0 == (slot->kind & R2_MESH_RAIL) &&
                   (best == slots->count || r2_mesh_same_subnet(&slot->nic, address.ipv4))) {
            best = i;
        }
    }
    return best;
}

void r2_mesh_slots_nic(r2_mesh_slots_t *slots, r2_hello_t *hello, const r2_nic_t *nic)
{
    uint8_t address[R2_HELLO_ADDRESS_MAX];
    size_t bytes;

    for (size_t i = 0; i < slots->count; ++i) {
        if (0 == strcmp(nic->name, slots->slots[i].nic.name) &&
            R2_OK == hello->ops->listen(hello->instance, (uint32_t) i, nic, address, &bytes)) {
            slots->slots[i].nic = *nic;
        }
    }
}

/** Address of a NIC now, 0: none. */
static uint32_t r2_mesh_address_now(const r2_nic_t *nic)
{
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {0};
    struct sockaddr_in in = {0};

    if (fd < 0) {
        return 0;
    }
    memcpy(request.ifr_name, nic->name, strnlen(nic->name, IFNAMSIZ - 1));
    if (0 == ioctl(fd, SIOCGIFADDR, &request)) {
        memcpy(&in, &request.ifr_addr, sizeof(in));
    }
    close(fd);
    return in.sin_addr.s_addr;
}

bool r2_mesh_slot_follow(r2_mesh_slots_t *slots, r2_hello_t *hello, size_t slot)
{
    r2_nic_t nic;

    if (slot >= slots->count || 0 != (slots->slots[slot].kind & R2_MESH_RAIL)) {
        return false;
    }
    nic = slots->slots[slot].nic;
    nic.ipv4 = r2_mesh_address_now(&nic);
    nic.ifindex = if_nametoindex(nic.name);
    if (0 == nic.ipv4 || 0 == nic.ifindex || nic.ipv4 == slots->slots[slot].nic.ipv4) {
        return false;
    }
    r2_mesh_slots_nic(slots, hello, &nic);
    return nic.ipv4 == slots->slots[slot].nic.ipv4;
}
