/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * NICs of the mesh and their listeners.
 */
#ifndef R2_OOB_MESH_SLOT_H
#define R2_OOB_MESH_SLOT_H

#include "oob/mesh_address.h"

/** A NIC with a listener of ours; its index is the slot, the "rail" of the hello driver. */
typedef struct r2_mesh_slot {
    uint8_t kind; /* as published */
    r2_nic_t nic;
} r2_mesh_slot_t;

typedef struct r2_mesh_slots {
    size_t count;
    r2_mesh_slot_t slots[R2_MESH_PLACES_MAX];
    r2_mesh_places_t own; /* to be published */
} r2_mesh_slots_t;

/**
 * Chooses NICs and opens the listeners, also within the host.
 * @param slots zeros. @return R2_OK, R2_ERR_PARAM (text in the log: no such NIC).
 */
r2_status_t r2_mesh_slots_open(r2_mesh_slots_t *slots, r2_hello_t *hello,
                               const r2_mesh_config_t *config);
/**
 * Our slot for a place of a peer: the same rail; a management NIC of the same subnet, or any.
 * @return slots->count: none.
 */
size_t r2_mesh_slot_for(const r2_mesh_slots_t *slots, const r2_mesh_place_t *place);
/** A NIC has another address or was made anew. */
void r2_mesh_slots_nic(r2_mesh_slots_t *slots, r2_hello_t *hello, const r2_nic_t *nic);
/**
 * Looks whether a management NIC has another address, which nobody tells: rails are watched, these
 * are not.
 * @return true: it has, and calls leave from there now.
 */
bool r2_mesh_slot_follow(r2_mesh_slots_t *slots, r2_hello_t *hello, size_t slot);

#endif
