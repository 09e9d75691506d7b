/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The UCT transport: one memory domain per device, an interface per worker, endpoint to endpoint.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <uct/api/version.h>

#include "r2/fds.h"

#define SETTINGS_MAX 16
#define SEG_UNIT     4096

/*
 * Shared memory: each worker owns a FIFO of FIFO_SIZE elements of FIFO_ELEM_SIZE bytes, which every
 * sender of the host maps and touches in turn: their product is what one peer costs. An element
 * takes a packet with 32 KiB of data; larger packets travel in pieces. Senders and receivers must
 * agree on both. Neither ELEM_SIZE nor SEG_SIZE may exceed 65535: UCX (1.13 to 1.18 at least) keeps
 * the length in 16 bits and corrupts data silently. The buffers of SEG_SIZE bytes are not used.
 */
#define SHM_FIFO_SIZE       32
#define SHM_FIFO_ELEM_SIZE  33536
#define SHM_ELEM_HEAD_BYTES 128 /* of an element: at least what UCX's own headers take */
#define SHM_SEG_SIZE        2048
#define SHM_RX_BUFS_GROW    (SHM_FIFO_SIZE + 8)

/*
 * RDMA: a work request carries a whole packet, so UCX's buffers take one each, at both ends. They
 * are registered, that is, locked: RC_RX_BYTES of a worker to receive into, and up to RC_TX_MOST
 * for what is copied. With so few, each of them has its completion (TX_CQ_MODERATION): or those of
 * all lanes might wait for one that nobody asked for. UCX's credit is not used: lanes have theirs,
 * and who waits for credit has nothing in flight that would tell of a dead peer.
 */
#define RC_HEAD_BYTES 8 /* UCX's own: at most */
#define RC_RX_BYTES   ((size_t) 8 << 20)
#define RC_RX_LEAST   32
#define RC_RX_MOST    ((size_t) 1024)
#define RC_TX_MOST    64
/* Datagrams: buffers of one MTU to receive into, 4 MiB where that is 4 KiB. */
#define UD_RX_BUFS 1024
/* Most of them on their way to one peer: 512 KiB, which UCX keeps to send again. */
#define UD_WINDOW 128

static_assert(SHM_FIFO_ELEM_SIZE - SHM_ELEM_HEAD_BYTES >=
                  32768 + R2_TP_HEADER_MAX + sizeof(r2_uct_frame_t),
              "an element takes a chunk of 32 KiB");
static_assert(SHM_FIFO_ELEM_SIZE <= 65535 && SHM_SEG_SIZE <= 65535, "UCX has 16 bits");

/* ---- settings ---- */

/** A list of settings. */
typedef struct settings {
    size_t count;
    r2_uct_setting_t rows[SETTINGS_MAX];
} settings_t;

static void r2_uct_add(settings_t *settings, const char *name, const char *value)
{
    r2_uct_setting_t *row = &settings->rows[settings->count];

    r2_assert(settings->count < SETTINGS_MAX);
    snprintf(row->name, sizeof(row->name), "%s", name);
    snprintf(row->value, sizeof(row->value), "%s", value);
    ++settings->count;
}

static void r2_uct_add_size(settings_t *settings, const char *name, size_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%zu", value);
    r2_uct_add(settings, name, text);
}

static void r2_uct_add_shared_memory(settings_t *settings, size_t segment_bytes)
{
    (void) segment_bytes;
    r2_uct_add_size(settings, "MM_FIFO_SIZE", SHM_FIFO_SIZE);
    r2_uct_add_size(settings, "MM_FIFO_ELEM_SIZE", SHM_FIFO_ELEM_SIZE);
    r2_uct_add_size(settings, "MM_SEG_SIZE", SHM_SEG_SIZE);
    r2_uct_add_size(settings, "MM_RX_BUFS_GROW", SHM_RX_BUFS_GROW);
}

/** RDMA, reliable connections. */
static void r2_uct_add_rc(settings_t *settings, size_t segment_bytes)
{
    size_t segment = r2_round_up(segment_bytes + sizeof(r2_uct_frame_t) + RC_HEAD_BYTES, SEG_UNIT);
    size_t receives = r2_min(r2_max(RC_RX_BYTES / segment, (size_t) RC_RX_LEAST), RC_RX_MOST);

    r2_uct_add_size(settings, "RC_SEG_SIZE", segment);
    r2_uct_add_size(settings, "MAX_AM_HDR", sizeof(r2_uct_frame_t) + R2_TP_HEADER_MAX + 8);
    r2_uct_add_size(settings, "RC_RX_QUEUE_LEN", receives);
    r2_uct_add_size(settings, "RC_RX_BUFS_GROW", R2_UCT_RC_GROW);
    r2_uct_add_size(settings, "RC_TX_BUFS_GROW", R2_UCT_RC_GROW);
    r2_uct_add_size(settings, "RC_TX_MAX_BUFS", RC_TX_MOST);
    r2_uct_add(settings, "RC_TX_CQ_MODERATION", "0");
    r2_uct_add(settings, "RC_TIMEOUT", "50ms");
    r2_uct_add(settings, "RC_RETRY_COUNT", "7");
    r2_uct_add(settings, "RC_RNR_RETRY_COUNT", "7"); /* for ever: a process may be stopped */
    r2_uct_add(settings, "RC_FC_ENABLE", "n");
}

/**
 * RDMA, datagrams: one queue pair for all peers. UCX sends again what is lost, and its thread
 * acknowledges what comes, so a stopped process is silent: its peers' patience is long, and the
 * time between two tries grows slowly, or they would find it late when it goes on. r2's own
 * timeouts are earlier. Datagrams have one MTU, so packets go in pieces; UCX copies them.
 */
static void r2_uct_add_ud(settings_t *settings, size_t segment_bytes)
{
    (void) segment_bytes;
    r2_uct_add_size(settings, "UD_RX_QUEUE_LEN", UD_RX_BUFS);
    r2_uct_add_size(settings, "UD_MAX_WINDOW", UD_WINDOW);
    r2_uct_add(settings, "UD_TIMEOUT", "600s");
    r2_uct_add(settings, "UD_TIMER_BACKOFF", "1.2");
    r2_uct_add(settings, "UD_LINGER_TIMEOUT", "5s");
}

/** A transport of UCX's that lanes can use. */
typedef struct lane_kind {
    r2_uct_kind_t kind;
    void (*add_settings)(settings_t *settings, size_t segment_bytes);
} lane_kind_t;

static const lane_kind_t lane_kinds[] = {
    {{.tls = "sysv", .is_local = true}, r2_uct_add_shared_memory},
    {{.tls = "rc_verbs", .tells_room = true, .is_loose = true, .puts = true}, r2_uct_add_rc},
    {{.tls = "ud_verbs", .tells_room = true, .is_loose = true, .copies = true}, r2_uct_add_ud},
};

static const lane_kind_t *r2_uct_kind_find(const r2_tp_device_config_t *config)
{
    const char *tls = NULL == config->name ? "sysv" : config->tls;

    for (size_t i = 0; i < r2_array_count(lane_kinds) && NULL != tls; ++i) {
        if (0 == strcmp(tls, lane_kinds[i].kind.tls)) {
            return &lane_kinds[i];
        }
    }
    return NULL;
}

/* ---- the table ---- */

static r2_status_t r2_uct_device_open(void *tp, const r2_tp_device_config_t *config,
                                      r2_tp_device_t **device_p)
{
    const lane_kind_t *lane = r2_uct_kind_find(config);
    r2_tp_device_t *device;
    settings_t settings = {.count = 0};
    r2_status_t status;

    if (NULL == lane) {
        return R2_ERR_UNSUPPORTED;
    }
    if (!r2_uct_has_room(tp, 1, 0, 0)) {
        return R2_ERR_NO_DESCRIPTORS;
    }
    device = calloc(1, sizeof(*device));
    if (NULL == device) {
        return R2_ERR_NO_MEMORY;
    }
    device->ops = &r2_uct_ops;
    device->uct = tp;
    device->segment_bytes = config->segment_bytes;
    device->kind = &lane->kind;
    lane->add_settings(&settings, config->segment_bytes);
    device->domain.gid_index = NULL == config->tls ? -1 : config->gid_index;
    status = r2_uct_domain_open(lane->kind.tls, NULL == config->name ? "memory" : config->name,
                                settings.rows, settings.count, &device->domain);
    if (R2_OK != status) {
        free(device);
        return status;
    }
    if (device->domain.needs_handles && !lane->kind.copies) {
        device->memory = r2_uct_memory_create(tp, device->domain.md);
    }
    *device_p = device;
    return R2_OK;
}

static void r2_uct_device_close(r2_tp_device_t *device)
{
    if (NULL != device->memory) {
        r2_ucx_enter();
        r2_uct_memory_destroy(device->memory);
        r2_ucx_leave();
    }
    r2_uct_domain_close(&device->domain);
    free(device);
}

static bool r2_uct_device_refused(const r2_tp_device_t *device, r2_tp_refusal_t *refusal_p)
{
    const r2_tp_refusal_t *refusal =
        NULL == device->memory ? NULL : r2_uct_memory_refusal(device->memory);

    if (NULL == refusal || 0 == refusal->bytes) {
        return false;
    }
    *refusal_p = *refusal;
    return true;
}

const r2_tp_ops_t r2_uct_ops = {
    .name = "uct",
    .has_room = r2_uct_has_room,
    .device_open = r2_uct_device_open,
    .device_close = r2_uct_device_close,
    .device_refused = r2_uct_device_refused,
    .worker_create = r2_uct_worker_create,
    .worker_destroy = r2_uct_worker_destroy,
    .worker_progress = r2_uct_worker_progress,
    .worker_fd = r2_uct_worker_fd,
    .worker_arm = r2_uct_worker_arm,
    .worker_signals = r2_uct_worker_signals,
    .worker_is_loose = r2_uct_worker_is_loose,
    .ep_open = r2_uct_ep_open,
    .ep_address = r2_uct_ep_address,
    .ep_connect = r2_uct_ep_connect,
    .ep_close = r2_uct_ep_close,
    .send = r2_uct_send,
    .ep_reads_gpus = r2_uct_ep_reads_gpus,
    .grant = r2_uct_grant,
    .ungrant = r2_uct_ungrant,
    .pin_begin = r2_uct_pin_begin,
    .pin = r2_uct_pin,
    .pin_end = r2_uct_pin_end,
    .put = r2_uct_put,
    .get = r2_uct_get,
};

/**
 * UCT's inline functions are compiled into r2, and know tables, queues and structures of the UCX
 * whose headers they came with. Versions were compared: within these groups of 1.x what r2 uses is
 * the same, but for appended fields. Between the groups the queue of uct_worker_progress() differs.
 */
static const unsigned groups[][2] = {{13, 15}, {16, 22}};

static bool r2_uct_version_fits(unsigned major, unsigned minor)
{
    bool fits = UCT_VERNO_MINOR == minor;

    for (size_t i = 0; i < r2_array_count(groups) && 1 == major; ++i) {
        fits = fits || (UCT_VERNO_MINOR >= groups[i][0] && UCT_VERNO_MINOR <= groups[i][1] &&
                        minor >= groups[i][0] && minor <= groups[i][1]);
    }
    return fits && UCT_VERNO_MAJOR == major;
}

r2_status_t r2_tp_ucx_create(r2_tp_t *tp_p)
{
    unsigned major, minor, release;
    r2_uct_t *uct;

    ucp_get_version(&major, &minor, &release);
    if (!r2_uct_version_fits(major, minor)) {
        return R2_ERR_VERSION;
    }
    uct = calloc(1, sizeof(*uct));
    if (NULL == uct) {
        return R2_ERR_NO_MEMORY;
    }
    uct->filters_log = r2_ucx_log_init();
    tp_p->ops = &r2_uct_ops;
    tp_p->instance = uct;
    return R2_OK;
}

void r2_tp_ucx_destroy(r2_tp_t *tp)
{
    r2_uct_t *uct = tp->instance;

    if (uct->filters_log) {
        r2_ucx_log_fini();
    }
    free(uct);
    tp->instance = NULL;
}

const char *r2_tp_ucx_version(void)
{
    return ucp_get_version_string();
}

const char *r2_tp_ucx_version_built(void)
{
    return UCT_VERNO_STRING;
}
