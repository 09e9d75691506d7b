/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Commands to the NIC of this network namespace: listing, counters, faults.
 */
#include "softverbs/nic/nic.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Asks; says what is wrong. Returns an exit status. */
static int ask(const sv_request_t *request, sv_reply_t *reply_p)
{
    int socket = sv_dial();
    int error;

    if (socket < 0) {
        fputs("softverbs: there is no NIC here: `softverbs nic` is one\n", stderr);
        return 1;
    }
    error = sv_ask(socket, request, NULL, 0, reply_p, NULL);
    if (0 != error) {
        fprintf(stderr, "softverbs: %s\n", strerror(error));
    }
    return 0 != error;
}

/* Calls fn for each device; returns an exit status. */
static int each_device(int (*fn)(uint32_t index, const sv_device_t *about))
{
    static sv_reply_t list;
    sv_request_t request = {.verb = SV_LIST};
    int status = ask(&request, &list);

    for (uint32_t i = 0; 0 == status && i < list.u.devices.count; ++i) {
        status = fn(i, &list.u.devices.of[i]);
    }
    return status;
}

static int print_device(uint32_t index, const sv_device_t *about)
{
    static sv_reply_t reply;
    sv_request_t request = {.verb = SV_PORT, .object = index};
    struct in_addr ip = {.s_addr = about->ip};
    int status = ask(&request, &reply);

    if (0 == status) {
        const sv_port_t *port = &reply.u.port;
        printf("%s port 1 %s %s gid %u %s lid %u speed %u width %u\n", about->name, about->netdev,
               port->is_dead                    ? "DEAD"
               : IBV_PORT_ACTIVE == port->state ? "ACTIVE"
                                                : "DOWN",
               port->gid_index, inet_ntoa(ip), port->lid, port->speed, port->width);
    }
    return status;
}

static int print_counters(uint32_t index, const sv_device_t *about)
{
    static sv_reply_t reply;
    sv_request_t request = {.verb = SV_COUNTERS, .object = index};
    int status = ask(&request, &reply);
    char *at = reply.u.text, *line;

    while (0 == status && NULL != (line = strsep(&at, "\n")) && '\0' != *line) {
        printf("%s %s\n", about->name, line);
    }
    return status;
}

int sv_command_devices(void)
{
    return each_device(print_device);
}

int sv_command_counters(void)
{
    return each_device(print_counters);
}

/* Asks for a fault; says since when it may have had its effect, by CLOCK_MONOTONIC. */
static int strike_at(const sv_request_t *request, sv_reply_t *reply_p)
{
    struct timespec at;
    int status;

    clock_gettime(CLOCK_MONOTONIC, &at);
    status = ask(request, reply_p);
    if (0 == status) {
        printf("took effect at %lld.%09ld\n", (long long) at.tv_sec, at.tv_nsec);
    }
    return status;
}

int sv_command_fault(int argc, char **argv)
{
    static const char *const names[SV_FAULT_KINDS] = {
        [SV_FAULT_DROP] = "drop",
        [SV_FAULT_DELAY] = "delay",
        [SV_FAULT_LATE_WRITE] = "late-write",
        [SV_FAULT_KEY] = "key",
        [SV_FAULT_NO_COMPLETION] = "no-completion",
        [SV_FAULT_ERROR] = "error",
        [SV_FAULT_REFUSE] = "refuse",
        [SV_FAULT_FATAL] = "fatal",
        [SV_FAULT_QP_FATAL] = "qp-fatal",
        [SV_FAULT_PORT_DOWN] = "port-down",
        [SV_FAULT_GID] = "gid",
        [SV_FAULT_HEAL] = "heal",
    };
    static sv_reply_t reply;
    sv_request_t request = {.verb = SV_FAULT};
    sv_fault_t *fault = &request.u.fault;

    snprintf(fault->device, sizeof(fault->device), "%s", argv[0]);
    while (fault->kind < SV_FAULT_KINDS && 0 != strcmp(names[fault->kind], argv[1])) {
        ++fault->kind;
    }
    if (SV_FAULT_KINDS == fault->kind) {
        fprintf(stderr, "softverbs: no fault '%s'\n", argv[1]);
        return 2;
    }
    fault->per_million = argc > 2 ? (uint32_t) (atof(argv[2]) * 1e6 + 0.5) : 0;
    fault->value = argc > 3 ? (uint32_t) strtoul(argv[3], NULL, 0) : 0;
    fault->seed = argc > 4 ? strtoull(argv[4], NULL, 0) : 0;
    return strike_at(&request, &reply);
}
