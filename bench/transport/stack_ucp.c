/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * UCP alone, with the settings that r2 used it with (docs/ucx.md).
 */
#include "r2_config.h"

#include <stdio.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "bench/transport/pair.h"
#include "r2/macros.h"

static struct {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    int fd;
} me;

static void try(const char *what, ucs_status_t status)
{
    if (UCS_OK != status) {
        pair_die(what, ucs_status_string(status));
    }
}

static ucs_status_t on_packet(void *arg, const void *header, size_t header_bytes, void *data,
                              size_t data_bytes, const ucp_am_recv_param_t *param)
{
    (void) arg;
    (void) param;
    pair_received(header, header_bytes, data, data_bytes);
    return UCS_OK;
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void) arg;
    (void) ep;
    pair_die("endpoint", ucs_status_string(status));
}

static ucp_config_t *settings(const char *nic)
{
    char segment[16];
    const char *const rows[][2] = {{"TLS", "tcp"},           {"NET_DEVICES", nic},
                                   {"ZCOPY_THRESH", "inf"},  {"RNDV_THRESH", "inf"},
                                   {"PROTO_ENABLE", "n"},    {"KEEPALIVE_INTERVAL", "inf"},
                                   {"TX_SEG_SIZE", segment}, {"RX_SEG_SIZE", segment},
                                   {"CONN_NB", "y"},         {"MAX_CONN_RETRIES", "1"}};
    ucp_config_t *config;

    snprintf(segment, sizeof(segment), "%zu", r2_round_up(PAIR_DATA_MAX + 1024, 4096));
    try("settings", ucp_config_read(NULL, NULL, &config));
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        ucs_status_t status = ucp_config_modify(config, rows[i][0], rows[i][1]);
        char name[32];

        /* From 1.17 on a transport's settings have its prefix. */
        snprintf(name, sizeof(name), "TCP_%s", rows[i][0]);
        try(name, UCS_OK == status ? status : ucp_config_modify(config, name, rows[i][1]));
    }
    return config;
}

static void open_nic(const char *nic)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                         .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                    UCP_AM_HANDLER_PARAM_FIELD_CB,
                                      .id = 1,
                                      .cb = on_packet};
    ucp_config_t *config = settings(nic);

    try("context", ucp_init(&params, config, &me.context));
    ucp_config_release(config);
    try("worker", ucp_worker_create(me.context, &worker_params, &me.worker));
    try("handler", ucp_worker_set_am_recv_handler(me.worker, &handler));
    try("descriptor", ucp_worker_get_efd(me.worker, &me.fd));
}

static void get_address(char address_p[PAIR_ADDRESS_BYTES])
{
    ucp_address_t *address;
    size_t bytes;

    try("address", ucp_worker_get_address(me.worker, &address, &bytes));
    memcpy(address_p, address, bytes);
    ucp_worker_release_address(me.worker, address);
}

static void connect_to(const char address[PAIR_ADDRESS_BYTES])
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = (const ucp_address_t *) (const void *) address,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = on_error}};

    try("endpoint", ucp_ep_create(me.worker, &params, &me.ep));
}

static bool send_message(const void *header, size_t header_bytes, const void *data,
                         size_t data_bytes)
{
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_AM_SEND_FLAG_EAGER};
    void *request = ucp_am_send_nbx(me.ep, 1, header, header_bytes, data, data_bytes, &param);

    if (UCS_ERR_NO_RESOURCE == UCS_PTR_STATUS(request)) {
        return false;
    }
    try("send", UCS_PTR_STATUS(request));
    pair_sent();
    return true;
}

static unsigned progress(void)
{
    return ucp_worker_progress(me.worker);
}

static void sleep_armed(void)
{
    if (UCS_OK == ucp_worker_arm(me.worker)) {
        pair_poll(me.fd);
    }
}

const pair_stack_t pair_ucp = {.name = "ucp",
                               .lengths = {true, true},
                               .open = open_nic,
                               .address = get_address,
                               .connect = connect_to,
                               .send = send_message,
                               .progress = progress,
                               .sleep = sleep_armed};
