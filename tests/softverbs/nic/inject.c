/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Faults that are given to a device, and what a device tells all processes that have opened it.
 */
#include "softverbs/nic/nic.h"

#include <errno.h>
#include <string.h>

/* What the host's files say is as new as the event. */
void sv_port_event(sv_dev_t *dev, enum ibv_event_type type)
{
    sv_files_update(dev);
    for (sv_context_t *context = dev->nic->contexts; NULL != context; context = context->next) {
        if (context->dev == dev) {
            sv_tell_event(context, (uint32_t) type, 0);
        }
    }
}

/* Link, fault: the port's state may have changed. */
static void set_down(sv_dev_t *dev, bool is_down)
{
    bool was_up = sv_is_up(dev);

    dev->is_down = is_down;
    if (was_up != sv_is_up(dev)) {
        sv_port_event(dev, was_up ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
    }
}

static int fail_qp(sv_dev_t *dev, uint32_t number)
{
    sv_qp_t *qp = dev->places[number % SV_QP_PLACES];

    if (NULL == qp || qp->number != number) {
        return ENOENT;
    }
    sv_tell_event(qp->context, IBV_EVENT_QP_FATAL, number);
    sv_rc_error(qp, IBV_WC_FATAL_ERR);
    return 0;
}

/* @param is_taken the old place has the address of a VLAN then. */
static int move_gid(sv_dev_t *dev, uint32_t index, bool is_taken)
{
    if (0 == index || index >= SV_GIDS || dev->about.is_ib) {
        return EINVAL;
    }
    dev->other_index = is_taken && index != dev->gid_index ? dev->gid_index : 0;
    dev->gid_index = index;
    sv_port_event(dev, IBV_EVENT_GID_CHANGE);
    return 0;
}

/* Processes have to open a device anew that was dead: what they had stays without effect. */
static void die(sv_dev_t *dev)
{
    sv_port_event(dev, IBV_EVENT_DEVICE_FATAL);
    dev->is_dead = true;
    for (sv_context_t *context = dev->nic->contexts; NULL != context; context = context->next) {
        context->is_dead = context->is_dead || dev == context->dev;
    }
}

static void heal(sv_dev_t *dev)
{
    for (sv_qp_t *qp = dev->qps; dev->is_dead && NULL != qp; qp = qp->next) {
        qp->attr.qp_state = IBV_QPS_ERR;
        qp->deadline_ns = qp->rnr_until_ns = 0;
        qp->first = qp->fresh = sv_ring_tail(&qp->sends);
    }
    dev->is_dead = false;
    memset(dev->faults, 0, sizeof(dev->faults));
    set_down(dev, false);
}

static int strike(sv_dev_t *dev, const sv_fault_t *fault)
{
    switch ((sv_fault_kind_t) fault->kind) {
    case SV_FAULT_FATAL:
        die(dev);
        return 0;
    case SV_FAULT_QP_FATAL:
        return fail_qp(dev, fault->value);
    case SV_FAULT_PORT_DOWN:
        set_down(dev, true);
        return 0;
    case SV_FAULT_GID:
        return move_gid(dev, fault->value, 0 != fault->per_million);
    case SV_FAULT_HEAL:
        heal(dev);
        return 0;
    case SV_FAULT_DROP:
    case SV_FAULT_DELAY:
    case SV_FAULT_LATE_WRITE:
    case SV_FAULT_KEY:
    case SV_FAULT_NO_COMPLETION:
    case SV_FAULT_ERROR:
    case SV_FAULT_REFUSE:
        dev->faults[fault->kind].per_million = fault->per_million;
        dev->faults[fault->kind].value = fault->value;
        dev->faults[fault->kind].random =
            0 == fault->seed ? UINT64_C(0x9e3779b97f4a7c15) : fault->seed;
        return 0;
    case SV_FAULT_KINDS:
    default:
        return EINVAL;
    }
}

int sv_inject(sv_nic_t *nic, const sv_fault_t *fault)
{
    for (uint32_t i = 0; i < nic->device_count; ++i) {
        sv_dev_t *dev = nic->devices[i];
        if (0 == strncmp(dev->about.name, fault->device, sizeof(fault->device))) {
            return strike(dev, fault);
        }
    }
    return ENODEV;
}
