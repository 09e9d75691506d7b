/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * libibverbs: the only file that opens it. Nothing is sent or received here: UCX does that, with a
 * device that it opens itself, and tells nobody what that device says. A device may be opened
 * several times, and each of them hears everything.
 */
#include "r2_config.h"

#include "rail/port_verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_INFINIBAND_VERBS_H
#    include <infiniband/verbs.h>
#endif

#include "base/fork.h"
#include "base/util.h"
#include "rail/nic_parts.h"

#ifdef HAVE_INFINIBAND_VERBS_H

struct r2_port_verbs {
    struct ibv_context *context; /* owned */
    uint8_t number;              /* of the port */
};

/** The functions that are used. Their signatures are those of the header. */
typedef struct r2_verbs_library {
    struct ibv_device **(*get_device_list)(int *);
    void (*free_device_list)(struct ibv_device **);
    const char *(*get_device_name)(struct ibv_device *);
    struct ibv_context *(*open_device)(struct ibv_device *);
    int (*close_device)(struct ibv_context *);
    int (*get_async_event)(struct ibv_context *, struct ibv_async_event *);
    void (*ack_async_event)(struct ibv_async_event *);
    /* what is exported fills struct ibv_port_attr up to the fields that came later */
    int (*query_port)(struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *);
} r2_verbs_library_t;

#    define R2_VERB(field)                                     \
        {                                                      \
            "ibv_" #field, offsetof(r2_verbs_library_t, field) \
        }

/** Opened once: it stays, as UCX's own use of it does. Engine lock. */
static struct {
    r2_verbs_library_t verbs;
    bool is_tried, is_there;
} r2_verbs;

/*
 * Whatever stands before the library in the process (LD_PRELOAD) counts, as it does for UCX, which
 * is linked with it.
 */
static void *r2_verbs_symbol(void *library, const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);

    return NULL == symbol ? dlsym(library, name) : symbol;
}

static bool r2_verbs_load(void)
{
    static const struct {
        const char *name;
        size_t offset_bytes;
    } symbols[] = {R2_VERB(get_device_list), R2_VERB(free_device_list), R2_VERB(get_device_name),
                   R2_VERB(open_device),     R2_VERB(close_device),     R2_VERB(get_async_event),
                   R2_VERB(ack_async_event), R2_VERB(query_port)};
    void *library;

    if (r2_verbs.is_tried) {
        return r2_verbs.is_there;
    }
    r2_verbs.is_tried = true;
    library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    r2_verbs.is_there = NULL != library;
    for (size_t i = 0; i < r2_array_count(symbols) && r2_verbs.is_there; ++i) {
        void *symbol = r2_verbs_symbol(library, symbols[i].name);

        r2_verbs.is_there = NULL != symbol;
        memcpy((char *) &r2_verbs.verbs + symbols[i].offset_bytes, &symbol, sizeof(symbol));
    }
    return r2_verbs.is_there;
}

/* Opens the device of this name. */
static struct ibv_context *r2_verbs_device_open(const char *rdma)
{
    const size_t bytes = strcspn(rdma, ":");
    struct ibv_device **list = r2_verbs.verbs.get_device_list(NULL);
    struct ibv_context *context = NULL;

    for (size_t i = 0; NULL != list && NULL != list[i] && NULL == context; ++i) {
        const char *name = r2_verbs.verbs.get_device_name(list[i]);

        if (bytes == strlen(name) && 0 == strncmp(name, rdma, bytes)) {
            context = r2_verbs.verbs.open_device(list[i]);
        }
    }
    if (NULL != list) {
        r2_verbs.verbs.free_device_list(list);
    }
    return context;
}

r2_status_t r2_port_verbs_open(const char *rdma, r2_port_verbs_t **port_p)
{
    r2_port_verbs_t *port;
    const char *colon = strchr(rdma, ':');
    int flags;

    if (NULL == colon || !r2_verbs_load()) {
        return NULL == colon ? R2_ERR_NO_DEVICE : R2_ERR_UNSUPPORTED;
    }
    port = calloc(1, sizeof(*port));
    if (NULL == port) {
        return R2_ERR_NO_MEMORY;
    }
    port->number = (uint8_t) strtoul(colon + 1, NULL, 10);
    port->context = r2_verbs_device_open(rdma);
    if (NULL == port->context) {
        free(port);
        return R2_ERR_NO_DEVICE;
    }
    flags = fcntl(port->context->async_fd, F_GETFL);
    if (flags < 0 || 0 != fcntl(port->context->async_fd, F_SETFL, flags | O_NONBLOCK)) {
        r2_verbs.verbs.close_device(port->context);
        free(port);
        return R2_ERR_NO_DEVICE;
    }
    (void) r2_fd_keep(port->context->async_fd);
    *port_p = port;
    return R2_OK;
}

void r2_port_verbs_close(r2_port_verbs_t *port)
{
    r2_fd_closing(port->context->async_fd);
    r2_verbs.verbs.close_device(port->context);
    r2_fd_closed();
    free(port);
}

int r2_port_verbs_fd(const r2_port_verbs_t *port)
{
    return port->context->async_fd;
}

/* Events of a port say of which; ours has no queues that others could be about. */
static r2_port_news_t r2_verbs_news(const r2_port_verbs_t *port,
                                    const struct ibv_async_event *event)
{
    switch ((int) event->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
        return R2_PORT_NEWS_DEAD;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_LID_CHANGE:
        return event->element.port_num == port->number ? R2_PORT_NEWS_STATE : R2_PORT_NEWS_NOTHING;
    case IBV_EVENT_GID_CHANGE:
        return event->element.port_num == port->number ? R2_PORT_NEWS_GIDS : R2_PORT_NEWS_NOTHING;
    default:
        return R2_PORT_NEWS_NOTHING;
    }
}

r2_port_news_t r2_port_verbs_next(r2_port_verbs_t *port)
{
    struct ibv_async_event event;
    r2_port_news_t news;

    errno = 0;
    if (0 != r2_verbs.verbs.get_async_event(port->context, &event)) {
        /* a device that was taken away does not say so in any other way */
        return EAGAIN == errno || EINTR == errno ? R2_PORT_NEWS_NONE : R2_PORT_NEWS_DEAD;
    }
    news = r2_verbs_news(port, &event);
    r2_verbs.verbs.ack_async_event(&event);
    return news;
}

r2_port_state_t r2_port_verbs_state(const r2_port_verbs_t *port)
{
    struct ibv_port_attr attr;

    memset(&attr, 0, sizeof(attr));
    if (0 != r2_verbs.verbs.query_port(port->context, port->number, (void *) &attr) ||
        (unsigned) attr.state > R2_PORT_DEFER) {
        return R2_PORT_UNKNOWN;
    }
    return (r2_port_state_t) attr.state;
}

#else

r2_status_t r2_port_verbs_open(const char *rdma, r2_port_verbs_t **port_p)
{
    (void) rdma;
    (void) port_p;
    return R2_ERR_UNSUPPORTED;
}

void r2_port_verbs_close(r2_port_verbs_t *port)
{
    (void) port;
}

int r2_port_verbs_fd(const r2_port_verbs_t *port)
{
    (void) port;
    return -1;
}

r2_port_news_t r2_port_verbs_next(r2_port_verbs_t *port)
{
    (void) port;
    return R2_PORT_NEWS_NONE;
}

r2_port_state_t r2_port_verbs_state(const r2_port_verbs_t *port)
{
    (void) port;
    return R2_PORT_UNKNOWN;
}

#endif
