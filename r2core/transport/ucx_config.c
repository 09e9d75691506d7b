/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Settings of UCX for one device. They override the environment.
 */
#include "r2_config.h"

#include "transport/ucx.h"

#include <stdio.h>
#include <string.h>

#define SETTINGS_MAX 24
#define SEG_SLACK    512 /* room for UCX's own headers in one segment, bytes */
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
/* Shared memory reports nothing by itself: UCX looks whether the peer's process is alive. */
#define SHM_KEEPALIVE "1s"

static_assert(SHM_FIFO_ELEM_SIZE - SHM_ELEM_HEAD_BYTES >= 32768 + R2_TP_HEADER_MAX,
              "an element takes a chunk of 32 KiB");
static_assert(SHM_FIFO_ELEM_SIZE <= 65535 && SHM_SEG_SIZE <= 65535, "UCX has 16 bits");

/** Does the comma separated list `tls` contain `word`? */
static bool tls_has(const char *tls, const char *word)
{
    size_t length = strlen(word);

    for (const char *p = tls; NULL != p; p = strchr(p, ',')) {
        p += (',' == *p);
        if (0 == strncmp(p, word, length) && (',' == p[length] || '\0' == p[length])) {
            return true;
        }
    }
    return false;
}

/** A list of settings. */
typedef struct settings {
    size_t count;
    struct {
        char name[32];
        char value[64];
    } rows[SETTINGS_MAX];
} settings_t;

static void add(settings_t *settings, const char *prefix, const char *name, const char *value)
{
    size_t i = settings->count;

    r2_assert(i < SETTINGS_MAX);
    snprintf(settings->rows[i].name, sizeof(settings->rows[i].name), "%s%s", prefix, name);
    snprintf(settings->rows[i].value, sizeof(settings->rows[i].value), "%s", value);
    settings->count++;
}

static void add_size(settings_t *settings, const char *prefix, const char *name, size_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%zu", value);
    add(settings, prefix, name, text);
}

static void add_tcp(settings_t *settings, const r2_ucx_t *ucx, size_t segment_bytes)
{
    /* Before 1.17 UCX compares the names of a transport's settings without its prefix. */
    const char *prefix = ucx->major > 1 || ucx->minor >= 17 ? "TCP_" : "";
    size_t segment = r2_round_up(segment_bytes + SEG_SLACK, SEG_UNIT);

    add_size(settings, prefix, "TX_SEG_SIZE", segment);
    add_size(settings, prefix, "RX_SEG_SIZE", segment);
    add(settings, prefix, "CONN_NB", "y");
    /* A connection that breaks while it is set up is tried again by the owner, not by UCX, which
     * aborts when both ends connect and one does so twice (tcp_cm.c:519). */
    add(settings, prefix, "MAX_CONN_RETRIES", "1");
    /* Dead peers are found by the socket itself; this would wake the process for nothing. */
    add(settings, "", "KEEPALIVE_INTERVAL", "inf");
}

static void add_shared_memory(settings_t *settings)
{
    add(settings, "MM_", "ERROR_HANDLING", "y");
    add_size(settings, "MM_", "FIFO_SIZE", SHM_FIFO_SIZE);
    add_size(settings, "MM_", "FIFO_ELEM_SIZE", SHM_FIFO_ELEM_SIZE);
    add_size(settings, "MM_", "SEG_SIZE", SHM_SEG_SIZE);
    add_size(settings, "MM_", "RX_BUFS_GROW", SHM_RX_BUFS_GROW);
    add(settings, "", "KEEPALIVE_INTERVAL", SHM_KEEPALIVE);
}

/** The transports: the site's choice, or one that suits the device. */
static const char *tls_of(const r2_tp_device_config_t *device)
{
    if (NULL != device->tls) {
        return device->tls;
    }
    /* Of the transports within a host only posix tells a dead peer, and only this one can be
     * closed by force. */
    return NULL == device->name ? "posix" : "tcp";
}

bool r2_ucx_config_signals(const r2_tp_device_config_t *device)
{
    return 0 == strcmp(tls_of(device), "tcp");
}

/** What UCX takes at once with these transports. */
static size_t immediate_bytes(const char *tls)
{
    if (0 == strcmp(tls, "tcp")) {
        return SIZE_MAX;
    }
    return 0 == strcmp(tls, "posix") ? SHM_FIFO_ELEM_SIZE - SHM_ELEM_HEAD_BYTES : 0;
}

ucs_status_t r2_ucx_config_create(const r2_ucx_t *ucx, const r2_tp_device_config_t *device,
                                  ucp_config_t **config_p, size_t *immediate_bytes_p)
{
    const char *tls = tls_of(device);
    settings_t settings = {.count = 0};
    ucp_config_t *config;
    ucs_status_t rc = ucp_config_read(NULL, NULL, &config);

    if (UCS_OK != rc) {
        return rc;
    }
    add(&settings, "", "TLS", tls);
    if (NULL != device->name) {
        add(&settings, "", "NET_DEVICES", device->name);
    }
    add(&settings, "", "ZCOPY_THRESH", "inf");
    add(&settings, "", "RNDV_THRESH", "inf");
    add(&settings, "", "PROTO_ENABLE", "n");
    if (tls_has(tls, "tcp")) {
        add_tcp(&settings, ucx, device->segment_bytes);
    }
    if (tls_has(tls, "posix")) {
        add_shared_memory(&settings);
    }
    for (size_t i = 0; i < settings.count && UCS_OK == rc; i++) {
        rc = ucp_config_modify(config, settings.rows[i].name, settings.rows[i].value);
    }
    if (UCS_OK != rc) {
        ucp_config_release(config);
        return rc;
    }
    *config_p = config;
    *immediate_bytes_p = immediate_bytes(tls);
    return UCS_OK;
}
