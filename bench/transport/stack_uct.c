/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * UCT alone: an endpoint connected to an endpoint; messages short, copied or not.
 */
#include "r2_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uct/api/uct.h>

#include "bench/transport/pair.h"
#include "r2/macros.h"

/** A message that is not copied, until it is written. */
typedef struct flight {
    uct_completion_t completion;
    bool busy;
} flight_t;

static struct {
    uct_md_h md;
    ucs_async_context_t *async;
    uct_worker_h worker;
    uct_iface_h iface;
    uct_iface_attr_t attr;
    uct_ep_h ep;
    int fd;
    flight_t flights[PAIR_WINDOW + 1];
} me;

static void try(const char *what, ucs_status_t status)
{
    if (UCS_OK != status) {
        pair_die(what, ucs_status_string(status));
    }
}

static ucs_status_t on_message(void *arg, void *message, size_t bytes, unsigned flags)
{
    const size_t header_bytes = PAIR_SHORT_BYTES == bytes ? PAIR_SHORT_BYTES : PAIR_HEADER_BYTES;

    (void) arg;
    (void) flags;
    pair_received(message, header_bytes, (const char *) message + header_bytes,
                  bytes - header_bytes);
    return UCS_OK;
}

static ucs_status_t on_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    (void) arg;
    (void) ep;
    pair_die("endpoint", ucs_status_string(status));
}

static void open_domain(void)
{
    uct_component_h *list;
    uct_md_config_t *config;
    unsigned count;

    try("components", uct_query_components(&list, &count));
    for (unsigned i = 0; i < count; ++i) {
        uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};

        try("component", uct_component_query(list[i], &attr));
        if (0 == strcmp(attr.name, "tcp")) {
            try("settings", uct_md_config_read(list[i], NULL, NULL, &config));
            try("domain", uct_md_open(list[i], "tcp", config, &me.md));
            uct_config_release(config);
        }
    }
    uct_release_component_list(list);
}

static uct_iface_config_t *settings(void)
{
    static const char *const names[] = {"TX_SEG_SIZE", "RX_SEG_SIZE", "CONN_NB"};
    uct_iface_config_t *config;
    char segment[16], name[32];

    snprintf(segment, sizeof(segment), "%zu", r2_round_up(PAIR_DATA_MAX + 1024, 4096));
    try("settings", uct_md_iface_config_read(me.md, "tcp", NULL, NULL, &config));
    for (size_t i = 0; i < r2_array_count(names); ++i) {
        const char *value = i < 2 ? segment : "y";
        ucs_status_t status = uct_config_modify(config, names[i], value);

        snprintf(name, sizeof(name), "TCP_%s", names[i]);
        try(name, UCS_OK == status ? status : uct_config_modify(config, name, value));
    }
    return config;
}

static void open_nic(const char *nic)
{
    uct_iface_params_t params = {
        .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER | UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS,
        .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device = {.tl_name = "tcp", .dev_name = nic},
        .err_handler = on_error};
    uct_iface_config_t *config;
    uct_ep_params_t ep_params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE};

    open_domain();
    config = settings();
    try("async", ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &me.async));
    try("worker", uct_worker_create(me.async, UCS_THREAD_MODE_SERIALIZED, &me.worker));
    try(nic, uct_iface_open(me.md, me.worker, &params, config, &me.iface));
    uct_config_release(config);
    try("interface", uct_iface_query(me.iface, &me.attr));
    try("handler", uct_iface_set_am_handler(me.iface, 1, on_message, NULL, 0));
    uct_iface_progress_enable(me.iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    try("descriptor", uct_iface_event_fd_get(me.iface, &me.fd));
    ep_params.iface = me.iface;
    try("endpoint", uct_ep_create(&ep_params, &me.ep));
}

static void get_address(char address_p[PAIR_ADDRESS_BYTES])
{
    try("address", uct_iface_get_device_address(me.iface, (void *) address_p));
    try("address", uct_ep_get_address(me.ep, (void *) (address_p + PAIR_ADDRESS_BYTES / 2)));
}

static void connect_to(const char address[PAIR_ADDRESS_BYTES])
{
    try("connect", uct_ep_connect_to_ep(me.ep, (const void *) address,
                                        (const void *) (address + PAIR_ADDRESS_BYTES / 2)));
}

/** @return false: no room. Anything else that is not good ends the process. */
static bool taken(ucs_status_t status)
{
    if (UCS_ERR_NO_RESOURCE == status) {
        return false;
    }
    try("send", status);
    pair_sent();
    return true;
}

static bool send_short(const void *header, size_t header_bytes, const void *data, size_t data_bytes)
{
    uint64_t word;

    (void) header_bytes;
    memcpy(&word, header, sizeof(word));
    return taken(uct_ep_am_short(me.ep, 1, word, data, (unsigned) data_bytes));
}

typedef struct parts {
    const void *header, *data;
    size_t header_bytes, data_bytes;
} parts_t;

static size_t pack(void *to, void *arg)
{
    const parts_t *parts = arg;

    memcpy(to, parts->header, parts->header_bytes);
    memcpy((char *) to + parts->header_bytes, parts->data, parts->data_bytes);
    return parts->header_bytes + parts->data_bytes;
}

static bool send_bcopy(const void *header, size_t header_bytes, const void *data, size_t data_bytes)
{
    parts_t parts = {header, data, header_bytes, data_bytes};
    ssize_t rc = uct_ep_am_bcopy(me.ep, 1, pack, &parts, 0);

    return taken(rc < 0 ? (ucs_status_t) rc : UCS_OK);
}

static void on_written(uct_completion_t *completion)
{
    flight_t *flight = r2_container_of(completion, flight_t, completion);

    try("write", completion->status);
    flight->busy = false;
    pair_sent();
}

static bool send_zcopy(const void *header, size_t header_bytes, const void *data, size_t data_bytes)
{
    uct_iov_t iov = {.buffer = (void *) (uintptr_t) data, .length = data_bytes, .count = 1};
    flight_t *flight = me.flights;
    ucs_status_t status;

    while (flight->busy) {
        ++flight; /* the window is smaller */
    }
    flight->completion = (uct_completion_t){.func = on_written, .count = 1, .status = UCS_OK};
    status =
        uct_ep_am_zcopy(me.ep, 1, header, (unsigned) header_bytes, &iov, 1, 0, &flight->completion);
    flight->busy = UCS_INPROGRESS == status;
    return flight->busy || taken(status);
}

static unsigned progress(void)
{
    return uct_worker_progress(me.worker);
}

static void sleep_armed(void)
{
    if (UCS_OK == uct_iface_event_arm(me.iface, UCT_EVENT_SEND_COMP | UCT_EVENT_RECV)) {
        pair_poll(me.fd);
    }
}

#define UCT_STACK(word, is_short, is_long)                                                        \
    {                                                                                             \
        .name = "uct-" #word, .lengths = {is_short, is_long}, .open = open_nic,                   \
        .address = get_address, .connect = connect_to, .send = send_##word, .progress = progress, \
        .sleep = sleep_armed                                                                      \
    }
const pair_stack_t pair_uct_short = UCT_STACK(short, true, false);
const pair_stack_t pair_uct_bcopy = UCT_STACK(bcopy, true, true);
const pair_stack_t pair_uct_zcopy = UCT_STACK(zcopy, false, true);
