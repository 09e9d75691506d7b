/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * PMIx events: handlers that copy and return, and one notification at a time.
 */
#include "r2_config.h"

#include "oob/pmix_port.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "base/fork.h"
#include "base/util.h"

#define R2_PMIX_EVENT_CODE (PMIX_EXTERNAL_ERR_BASE - 0x7232) /* a code of r2's own */
#define R2_PMIX_EVENT_KEY  "r2.bundle"
#define R2_PORT_DEATHS     4u

/* How the launcher tells of a process that ended as it should not. Each has a handler of its own:
 * PMIx calls those of one code first, and after Open MPI's, which has several, nobody hears of it.
 */
static pmix_status_t r2_port_deaths[R2_PORT_DEATHS] = {
    PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_ABORTED_BY_SIG, PMIX_ERR_PROC_TERM_WO_SYNC,
    PMIX_ERR_EXIT_NONZERO_TERM};
static pmix_status_t r2_port_code = R2_PMIX_EVENT_CODE;
static pmix_status_t r2_port_end = PMIX_EVENT_JOB_END;

/** A handler. PMIx has `info` and what holds it until it has answered. */
typedef struct r2_port_handler {
    struct r2_pmix_port *port; /* refcounted */
    pmix_info_t info[1];
    size_t id;
    bool registered;
} r2_port_handler_t;

/** An event under way, with all that PMIx may read until it has answered. */
typedef struct r2_port_notice {
    struct r2_pmix_port *port; /* refcounted */
    pmix_info_t info[4];
    pmix_data_array_t range;
    pmix_proc_t self;
    pmix_byte_object_t payload;
    r2_bundle_t bundle;
    pmix_proc_t procs[]; /* that it is for */
} r2_port_notice_t;

/* `mutex` protects what is below it. */
struct r2_pmix_port {
    pmix_nspace_t nspace; /* what is heard of others is not taken in */
    int fd;               /* owned: eventfd, up to close */
    r2_port_handler_t handlers[1 + R2_PORT_DEATHS];
    pthread_mutex_t mutex;
    uint32_t refs;
    bool closed;
    bool sending;
    r2_pmix_parcel_t *parcels; /* owned list, oldest first */
    uint32_t count;
};

static void r2_port_free(r2_pmix_port_t *port)
{
    r2_pmix_parcel_t *parcel, *next;

    DL_FOREACH_SAFE(port->parcels, parcel, next) {
        DL_DELETE(port->parcels, parcel);
        free(parcel);
    }
    pthread_mutex_destroy(&port->mutex);
    free(port);
}

/** Drops one reference; the last frees. The mutex is held, and released here. */
static void r2_port_put(r2_pmix_port_t *port)
{
    const bool last = 0 == --port->refs;

    pthread_mutex_unlock(&port->mutex);
    if (last) {
        r2_port_free(port);
    }
}

static void r2_port_wake(const r2_pmix_port_t *port)
{
    const uint64_t one = 1;
    ssize_t written;

    do {
        written = write(port->fd, &one, sizeof(one));
    } while (written < 0 && EINTR == errno);
}

/* ---- PMIx's thread: copies and returns ---- */

static void r2_port_take(r2_pmix_port_t *port, bool is_death, uint32_t rank, const void *data,
                         size_t bytes)
{
    r2_pmix_parcel_t *parcel = calloc(1, sizeof(*parcel) + bytes);

    if (NULL == parcel) {
        return;
    }
    parcel->is_death = is_death;
    parcel->rank = rank;
    parcel->bytes = bytes;
    if (bytes > 0) {
        memcpy(parcel->data, data, bytes);
    }
    pthread_mutex_lock(&port->mutex);
    if (port->closed || port->count >= R2_PMIX_PARCELS_MAX) {
        free(parcel);
    } else {
        DL_APPEND(port->parcels, parcel);
        ++port->count;
        r2_port_wake(port);
    }
    pthread_mutex_unlock(&port->mutex);
}

static const pmix_value_t *r2_port_value(const pmix_info_t *info, size_t count, const char *name,
                                         pmix_data_type_t type)
{
    for (size_t i = 0; i < count; ++i) {
        if (PMIX_CHECK_KEY(&info[i], name) && type == info[i].value.type) {
            return &info[i].value;
        }
    }
    return NULL;
}

static const r2_port_handler_t *r2_port_of(const pmix_info_t *info, size_t count)
{
    const pmix_value_t *value = r2_port_value(info, count, PMIX_EVENT_RETURN_OBJECT, PMIX_POINTER);

    return NULL == value ? NULL : value->data.ptr;
}

static void r2_port_noticed(size_t id, pmix_status_t code, const pmix_proc_t *source,
                            pmix_info_t info[], size_t count, pmix_info_t *results,
                            size_t result_count, pmix_event_notification_cbfunc_fn_t done,
                            void *done_arg)
{
    const r2_port_handler_t *handler = r2_port_of(info, count);
    const pmix_value_t *value = r2_port_value(info, count, R2_PMIX_EVENT_KEY, PMIX_BYTE_OBJECT);

    (void) id, (void) code, (void) results, (void) result_count;
    if (NULL != handler && NULL != value && NULL != value->data.bo.bytes && NULL != source &&
        PMIX_CHECK_NSPACE(source->nspace, handler->port->nspace) &&
        value->data.bo.size <= R2_BUNDLE_BYTES_MAX) {
        r2_port_take(handler->port, false, source->rank, value->data.bo.bytes, value->data.bo.size);
    }
    if (NULL != done) {
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
    }
}

/* Others want to know of it, too. */
static void r2_port_died(size_t id, pmix_status_t code, const pmix_proc_t *source,
                         pmix_info_t info[], size_t count, pmix_info_t *results,
                         size_t result_count, pmix_event_notification_cbfunc_fn_t done,
                         void *done_arg)
{
    const r2_port_handler_t *handler = r2_port_of(info, count);
    const pmix_value_t *value = r2_port_value(info, count, PMIX_EVENT_AFFECTED_PROC, PMIX_PROC);

    (void) id, (void) code, (void) source, (void) results, (void) result_count;
    if (NULL != handler && NULL != value && NULL != value->data.proc &&
        PMIX_CHECK_NSPACE(value->data.proc->nspace, handler->port->nspace)) {
        r2_port_take(handler->port, true, value->data.proc->rank, NULL, 0);
    }
    if (NULL != done) {
        done(PMIX_EVENT_NO_ACTION_TAKEN, NULL, 0, NULL, NULL, done_arg);
    }
}

/* A reference that PMIx had is back; taken over for the other call if one begins. */
static void r2_port_deregistered(pmix_status_t rc, void *arg)
{
    r2_pmix_port_t *port = arg;

    (void) rc;
    pthread_mutex_lock(&port->mutex);
    r2_port_put(port);
}

/** Asks PMIx to forget a handler, with the reference that the handler has. */
static void r2_port_deregister(r2_pmix_port_t *port, size_t id)
{
    if (PMIX_SUCCESS != PMIx_Deregister_event_handler(id, r2_port_deregistered, port)) {
        r2_port_deregistered(PMIX_SUCCESS, port);
    }
}

static void r2_port_registered(pmix_status_t rc, size_t id, void *arg)
{
    r2_port_handler_t *handler = arg;
    r2_pmix_port_t *port = handler->port;
    bool closed;

    pthread_mutex_lock(&port->mutex);
    if (PMIX_SUCCESS != rc) {
        r2_port_put(port);
        return;
    }
    closed = port->closed;
    handler->id = id;
    handler->registered = !closed;
    pthread_mutex_unlock(&port->mutex);
    if (closed) {
        r2_port_deregister(port, id);
    }
}

static void r2_port_sent(pmix_status_t rc, void *arg)
{
    r2_port_notice_t *notice = arg;
    r2_pmix_port_t *port = notice->port;

    (void) rc; /* who did not get it is told by another path */
    free(notice);
    pthread_mutex_lock(&port->mutex);
    port->sending = false;
    if (!port->closed) {
        r2_port_wake(port);
    }
    r2_port_put(port);
}

/* ---- threads of r2 ---- */

/** Begins to register a handler of one code; PMIx answers later. */
static r2_status_t r2_port_register(r2_pmix_port_t *port, size_t at, pmix_status_t *code,
                                    pmix_notification_fn_t fn)
{
    r2_port_handler_t *handler = &port->handlers[at];
    pmix_status_t rc;

    handler->port = port;
    PMIX_INFO_LOAD(&handler->info[0], PMIX_EVENT_RETURN_OBJECT, handler, PMIX_POINTER);
    pthread_mutex_lock(&port->mutex);
    ++port->refs;
    pthread_mutex_unlock(&port->mutex);
    rc = PMIx_Register_event_handler(code, 1, handler->info, 1, fn, r2_port_registered, handler);
    if (PMIX_SUCCESS != rc) {
        pthread_mutex_lock(&port->mutex);
        r2_port_put(port);
        return R2_ERR_SYSTEM;
    }
    return R2_OK;
}

static r2_pmix_port_t *r2_port_new(void)
{
    r2_pmix_port_t *port = calloc(1, sizeof(*port));

    if (NULL == port) {
        return NULL;
    }
    pthread_mutex_init(&port->mutex, NULL);
    port->refs = 1;
    port->fd = r2_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return port;
}

/** The name space of this process: PMIx was begun before. */
static r2_status_t r2_port_self(pmix_nspace_t nspace_p)
{
    pmix_proc_t self;

    if (PMIX_SUCCESS != PMIx_Init(&self, NULL, 0)) {
        return R2_ERR_SYSTEM;
    }
    PMIX_LOAD_NSPACE(nspace_p, self.nspace);
    PMIx_Finalize(NULL, 0); /* counts references */
    return R2_OK;
}

r2_status_t r2_pmix_port_open(r2_pmix_port_t **port_p)
{
    r2_pmix_port_t *port = r2_port_new();
    r2_status_t status;

    if (NULL == port) {
        return R2_ERR_NO_MEMORY;
    }
    status = port->fd < 0 ? R2_ERR_NO_DESCRIPTORS : r2_port_self(port->nspace);
    if (R2_OK == status) {
        status = r2_port_register(port, 0, &r2_port_code, r2_port_noticed);
    }
    for (size_t i = 0; R2_OK == status && i < R2_PORT_DEATHS; ++i) {
        status = r2_port_register(port, 1 + i, &r2_port_deaths[i], r2_port_died);
    }
    if (R2_OK != status) {
        r2_pmix_port_close(port);
        return status;
    }
    *port_p = port;
    return R2_OK;
}

r2_status_t r2_pmix_port_open_end(const char *nspace, r2_pmix_port_t **port_p)
{
    r2_pmix_port_t *port = r2_port_new();
    r2_status_t status;

    if (NULL == port) {
        return R2_ERR_NO_MEMORY;
    }
    PMIX_LOAD_NSPACE(port->nspace, nspace);
    status = port->fd < 0 ? R2_ERR_NO_DESCRIPTORS
                          : r2_port_register(port, 0, &r2_port_end, r2_port_died);
    if (R2_OK != status) {
        r2_pmix_port_close(port);
        return status;
    }
    *port_p = port;
    return R2_OK;
}

void r2_pmix_port_close(r2_pmix_port_t *port)
{
    bool registered[r2_array_count(port->handlers)];

    pthread_mutex_lock(&port->mutex);
    port->closed = true; /* nobody wakes any more */
    if (port->fd >= 0) {
        r2_fd_close(port->fd);
    }
    for (size_t i = 0; i < r2_array_count(port->handlers); ++i) {
        registered[i] = port->handlers[i].registered;
        port->handlers[i].registered = false;
    }
    pthread_mutex_unlock(&port->mutex);
    for (size_t i = 0; i < r2_array_count(port->handlers); ++i) {
        if (registered[i]) {
            r2_port_deregister(port, port->handlers[i].id);
        }
    }
    pthread_mutex_lock(&port->mutex);
    r2_port_put(port);
}

int r2_pmix_port_fd(const r2_pmix_port_t *port)
{
    return port->fd;
}

bool r2_pmix_port_is_sending(r2_pmix_port_t *port)
{
    bool sending;

    pthread_mutex_lock(&port->mutex);
    sending = port->sending;
    pthread_mutex_unlock(&port->mutex);
    return sending;
}

/** Fills in what PMIx is given: pointers into the notice itself. */
static void r2_port_fill(r2_port_notice_t *notice, uint32_t count)
{
    static bool yes = true;

    notice->range = (pmix_data_array_t){.type = PMIX_PROC, .size = count, .array = notice->procs};
    notice->payload = (pmix_byte_object_t){.bytes = (char *) notice->bundle.data,
                                           .size = notice->bundle.bytes};
    memset(notice->info, 0, sizeof(notice->info));
    PMIX_LOAD_KEY(notice->info[0].key, PMIX_EVENT_CUSTOM_RANGE);
    notice->info[0].value.type = PMIX_DATA_ARRAY;
    notice->info[0].value.data.darray = &notice->range;
    PMIX_LOAD_KEY(notice->info[1].key, R2_PMIX_EVENT_KEY);
    notice->info[1].value.type = PMIX_BYTE_OBJECT;
    notice->info[1].value.data.bo = notice->payload;
    PMIX_INFO_LOAD(&notice->info[2], PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&notice->info[3], PMIX_EVENT_DO_NOT_CACHE, &yes, PMIX_BOOL);
}

r2_status_t r2_pmix_port_send(r2_pmix_port_t *port, uint32_t rank, const uint32_t *ranks,
                              uint32_t count, const r2_bundle_t *bundle)
{
    r2_port_notice_t *notice = malloc(sizeof(*notice) + count * sizeof(notice->procs[0]));
    pmix_status_t rc;

    if (NULL == notice) {
        return R2_ERR_NO_MEMORY;
    }
    notice->port = port;
    notice->bundle.bytes = bundle->bytes;
    memcpy(notice->bundle.data, bundle->data, bundle->bytes);
    PMIX_LOAD_PROCID(&notice->self, port->nspace, rank);
    for (uint32_t i = 0; i < count; ++i) {
        PMIX_LOAD_PROCID(&notice->procs[i], port->nspace, ranks[i]);
    }
    r2_port_fill(notice, count);
    pthread_mutex_lock(&port->mutex);
    port->sending = true;
    ++port->refs;
    pthread_mutex_unlock(&port->mutex);
    rc = PMIx_Notify_event(R2_PMIX_EVENT_CODE, &notice->self, PMIX_RANGE_CUSTOM, notice->info,
                           r2_array_count(notice->info), r2_port_sent, notice);
    if (PMIX_SUCCESS != rc) {
        r2_port_sent(rc, notice);
        return PMIX_OPERATION_SUCCEEDED == rc ? R2_OK : R2_ERR_SYSTEM;
    }
    return R2_OK;
}

r2_pmix_parcel_t *r2_pmix_port_empty(r2_pmix_port_t *port)
{
    r2_pmix_parcel_t *parcels;
    uint64_t count;

    while (read(port->fd, &count, sizeof(count)) < 0 && EINTR == errno) {
        /* once more */
    }
    pthread_mutex_lock(&port->mutex);
    parcels = port->parcels;
    port->parcels = NULL;
    port->count = 0;
    pthread_mutex_unlock(&port->mutex);
    return parcels;
}
