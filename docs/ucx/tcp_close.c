/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * UCX alone: UCT's tcp uses an endpoint that it has freed when both ends destroy theirs
 * (README.md).
 *
 *     gcc -o tcp_close tcp_close.c -luct -lucs && MALLOC_PERTURB_=165 ./tcp_close [NIC]
 *
 * Two interfaces of one process, a and b, each with an endpoint to the other: one connection.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uct/api/uct.h>

#define TRY(call)                                                       \
    do {                                                                \
        ucs_status_t rc_ = (call);                                      \
        if (rc_ != UCS_OK) {                                            \
            fprintf(stderr, "%s: %s\n", #call, ucs_status_string(rc_)); \
            exit(2);                                                    \
        }                                                               \
    } while (0)

typedef struct end {
    ucs_async_context_t *async;
    uct_worker_h worker;
    uct_iface_h iface;
    uct_ep_h ep;
    char device_addr[64], iface_addr[64];
    unsigned received;
} end_t;

static char data[4000];

static uct_md_h md_open(void)
{
    uct_component_h *list;
    uct_md_config_t *config;
    uct_md_h md = NULL;
    unsigned count;

    TRY(uct_query_components(&list, &count));
    for (unsigned i = 0; i < count; ++i) {
        uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};

        TRY(uct_component_query(list[i], &attr));
        if (strcmp(attr.name, "tcp") == 0) {
            TRY(uct_md_config_read(list[i], NULL, NULL, &config));
            TRY(uct_md_open(list[i], "tcp", config, &md));
            uct_config_release(config);
        }
    }
    uct_release_component_list(list);
    return md;
}

static ucs_status_t on_message(void *arg, void *message, size_t length, unsigned flags)
{
    ((end_t *) arg)->received++;
    return UCS_OK;
}

static void end_open(end_t *end, uct_md_h md, const char *nic)
{
    uct_iface_params_t params = {.field_mask =
                                     UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
                                 .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
                                 .mode.device = {.tl_name = "tcp", .dev_name = nic}};
    uct_iface_config_t *config;

    TRY(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &end->async));
    TRY(uct_worker_create(end->async, UCS_THREAD_MODE_SERIALIZED, &end->worker));
    TRY(uct_md_iface_config_read(md, "tcp", NULL, NULL, &config));
    TRY(uct_iface_open(md, end->worker, &params, config, &end->iface));
    uct_config_release(config);
    TRY(uct_iface_set_am_handler(end->iface, 1, on_message, end, 0));
    uct_iface_progress_enable(end->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    TRY(uct_iface_get_device_address(end->iface, (void *) end->device_addr));
    TRY(uct_iface_get_address(end->iface, (void *) end->iface_addr));
}

static void end_connect(end_t *from, const end_t *to)
{
    uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                                            UCT_EP_PARAM_FIELD_IFACE_ADDR,
                              .iface = from->iface,
                              .dev_addr = (const void *) to->device_addr,
                              .iface_addr = (const void *) to->iface_addr};

    TRY(uct_ep_create(&params, &from->ep));
}

static size_t pack(void *to, void *arg)
{
    memcpy(to, data, sizeof(data));
    return sizeof(data);
}

/** Sends one message from each end and waits for both. */
static void exchange(end_t *a, end_t *b)
{
    while (uct_ep_am_bcopy(a->ep, 1, pack, NULL, 0) < 0 || b->received == 0) {
        uct_worker_progress(a->worker);
        uct_worker_progress(b->worker);
    }
    while (uct_ep_am_bcopy(b->ep, 1, pack, NULL, 0) < 0 || a->received == 0) {
        uct_worker_progress(a->worker);
        uct_worker_progress(b->worker);
    }
}

int main(int argc, char **argv)
{
    const char *nic = argc > 1 ? argv[1] : "lo";
    uct_md_h md = md_open();
    end_t a = {0}, b = {0};
    unsigned sent = 0;

    end_open(&a, md, nic);
    end_open(&b, md, nic);
    end_connect(&a, &b);
    end_connect(&b, &a); /* finds the connection that is there */
    exchange(&a, &b);
    /* b does not read: the last message stays half written */
    for (unsigned refused = 0; refused < 1000;) {
        ssize_t rc = uct_ep_am_bcopy(a.ep, 1, pack, NULL, 0);

        sent += rc >= 0;
        refused += rc == UCS_ERR_NO_RESOURCE;
        uct_worker_progress(a.worker);
    }
    uct_ep_destroy(a.ep); /* keeps the rest, EPOLLOUT, and the right to receive */
    for (int i = 0; i < 100000; ++i) {
        uct_worker_progress(b.worker); /* makes room: a's socket is writable now */
    }
    printf("%u sent, %u received, a's endpoint is destroyed\n", sent, b.received);
    uct_ep_destroy(b.ep); /* b's FIN: a's socket is readable, too */
    fflush(stdout);
    for (int i = 0; i < 1000; ++i) {
        uct_worker_progress(a.worker); /* EPOLLIN: FIN, frees; EPOLLOUT: uses */
    }
    printf("survived\n");
    return 0;
}
