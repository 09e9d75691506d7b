/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Starting a context in a job: NICs, UCX, hello over TCP, PMIx, service thread.
 */
#include "r2_config.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctx/state.h"

/** The real parts of a context, kept together for tear-down. */
typedef struct r2_ctx_real {
    r2_tp_t tp;
    r2_hello_t hello;
    r2_oob_t oob;
    r2_log_t log;
    r2_nic_watch_t *watch; /* owned */
} r2_ctx_real_t;

static void r2_hash_file(crypto_generichash_state *state, const char *path)
{
    char text[256];
    FILE *file = fopen(path, "r");
    size_t bytes = NULL == file ? 0 : fread(text, 1, sizeof(text), file);

    if (NULL != file) {
        fclose(file);
    }
    crypto_generichash_update(state, (const unsigned char *) text, bytes);
}

static void r2_hash_namespace(crypto_generichash_state *state, const char *path)
{
    struct stat info;
    uint64_t id[2] = {0, 0};

    if (0 == stat(path, &info)) {
        id[0] = (uint64_t) info.st_dev;
        id[1] = (uint64_t) info.st_ino;
    }
    crypto_generichash_update(state, (const unsigned char *) id, sizeof(id));
}

/*
 * Equal for processes that can share memory: same boot, host name and IPC namespace. Containers with
 * namespaces of their own are hosts of their own.
 */
static uint64_t r2_host_id(const char *host_name)
{
    crypto_generichash_state state;
    uint64_t id[2];

    crypto_generichash_init(&state, NULL, 0, sizeof(id));
    r2_hash_file(&state, "/proc/sys/kernel/random/boot_id");
    r2_hash_namespace(&state, "/proc/self/ns/ipc");
    r2_hash_namespace(&state, "/proc/self/ns/uts");
    crypto_generichash_update(&state, (const unsigned char *) host_name, strlen(host_name));
    crypto_generichash_final(&state, (unsigned char *) id, sizeof(id));
    return id[0];
}

static void r2_ctx_nic_event(void *arg, size_t idx, bool carrier, uint32_t ipv4)
{
    r2_ctx_t *ctx = arg;
    r2_rail_t *rail = &ctx->net.rails[idx];
    uint8_t address[R2_HELLO_ADDRESS_MAX];
    size_t bytes;

    if (rail->nic.carrier != carrier && !ctx->net.ending) {
        r2_warn(&ctx->log, "rail %u (%s, %s) %s", rail->idx, rail->nic.name, ctx->parts.host_name,
                carrier ? "has carrier again" : "lost carrier or its address");
    }
    if (carrier && NULL != ctx->real && NULL != ctx->real->watch) {
        const r2_nic_t *now = r2_nic_watch_nic(ctx->real->watch, idx);

        rail->nic.ipv4 = ipv4;
        rail->nic.ifindex = now->ifindex; /* the device may have been made anew */
        (void) ctx->net.hello.ops->listen(ctx->net.hello.instance, rail->idx, now, address, &bytes);
    }
    r2_net_rail_event(&ctx->net, idx, carrier);
}

static void r2_ctx_real_free(r2_ctx_real_t *real)
{
    if (NULL != real->watch) {
        r2_nic_watch_destroy(real->watch);
    }
    if (NULL != real->hello.ops) {
        r2_hello_tcp_destroy(&real->hello);
    }
    if (NULL != real->tp.ops) {
        r2_tp_ucx_destroy(&real->tp);
    }
    if (NULL != real->oob.ops) {
        r2_oob_pmix_destroy(&real->oob);
    }
    free(real);
}

static r2_status_t r2_ctx_real_parts(r2_ctx_real_t *real, const r2_ctx_config_t *config,
                                     r2_ctx_parts_t *parts, char *text_p, size_t text_bytes)
{
    r2_status_t status = r2_oob_pmix_create(&real->oob);

    if (R2_OK != status) {
        snprintf(text_p, text_bytes,
                 "no PMIx server answers: start the program with mpirun or srun --mpi=pmix");
        return status;
    }
    status = r2_nics_find(config->params->rails, config->params->address_family_any, parts->nics,
                          &parts->nic_count, text_p, text_bytes);
    if (R2_OK != status) {
        return status;
    }
    status = r2_tp_ucx_create(&real->tp);
    if (R2_OK == status) {
        status = r2_hello_tcp_create(r2_clock_system(), &real->log, &real->hello);
    }
    if (R2_OK != status) {
        snprintf(text_p, text_bytes, "rails could not be opened: %s", r2_status_string(status));
    }
    return status;
}

r2_status_t r2_ctx_create(const r2_ctx_config_t *config, r2_ctx_t **ctx_p, char *text_p,
                          size_t text_bytes)
{
    r2_ctx_parts_t parts = {.clock = r2_clock_system()};
    r2_ctx_real_t *real = calloc(1, sizeof(*real));
    r2_ctx_t *ctx = NULL;
    r2_status_t status;

    if (NULL == real || sodium_init() < 0) {
        free(real);
        return R2_ERR_NO_MEMORY;
    }
    gethostname(parts.host_name, sizeof(parts.host_name) - 1);
    parts.host_id = r2_host_id(parts.host_name);
    real->log.level = (int) config->params->verbose;
    real->log.fn = config->log;
    real->log.arg = config->log_arg;
    snprintf(real->log.prefix, sizeof(real->log.prefix), "%s", parts.host_name);
    status = r2_ctx_real_parts(real, config, &parts, text_p, text_bytes);
    if (R2_OK != status) {
        r2_ctx_real_free(real);
        return status;
    }
    parts.tp = real->tp;
    parts.hello = real->hello;
    parts.oob = real->oob;
    status = r2_ctx_assemble(config, &parts, &ctx, text_p, text_bytes);
    if (R2_OK != status) {
        r2_ctx_real_free(real);
        return status;
    }
    ctx->real = real;
    if (R2_OK != r2_nic_watch_create(parts.nics, parts.nic_count, r2_ctx_nic_event, ctx,
                                     &real->watch)) {
        r2_warn(&ctx->log, "netlink is not available: carrier losses are only noticed by timeout");
    }
    status = r2_service_create(ctx, real->watch, &ctx->service);
    if (R2_OK != status) {
        snprintf(text_p, text_bytes, "the service thread could not be started");
        r2_ctx_destroy(ctx);
        return status;
    }
    *ctx_p = ctx;
    return R2_OK;
}

void r2_ctx_destroy(r2_ctx_t *ctx)
{
    r2_ctx_real_t *real = ctx->real;

    pthread_mutex_lock(&ctx->lock);
    ctx->net.ending = true;
    pthread_mutex_unlock(&ctx->lock);
    if (NULL != ctx->service) {
        r2_service_destroy(ctx->service);
    }
    r2_ctx_dismantle(ctx);
    r2_ctx_real_free(real);
}
