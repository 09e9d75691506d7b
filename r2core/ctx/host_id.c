/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which processes are on one host.
 */
#include "r2_config.h"

#include "ctx/host_id.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void r2_hash_file(crypto_generichash_state *state, const char *path)
{
    char text[256];
    FILE *file = fopen(path, "re");
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

/* Of what was taken so far; more may follow. */
static uint64_t r2_hash_so_far(const crypto_generichash_state *state)
{
    crypto_generichash_state copy = *state;
    uint64_t id[2];

    crypto_generichash_final(&copy, (unsigned char *) id, sizeof(id));
    return id[0];
}

uint64_t r2_host_id(const char *host_name)
{
    crypto_generichash_state state;
    uint32_t machine;

    crypto_generichash_init(&state, NULL, 0, 2 * sizeof(uint64_t));
    r2_hash_file(&state, "/proc/sys/kernel/random/boot_id");
    r2_hash_namespace(&state, "/proc/self/ns/ipc");
    r2_hash_namespace(&state, "/proc/self/ns/uts");
    r2_hash_namespace(&state, "/proc/self/ns/pid"); /* memory is found by process ids */
    crypto_generichash_update(&state, (const unsigned char *) host_name, strlen(host_name));
    machine = (uint32_t) r2_hash_so_far(&state);
    r2_hash_namespace(&state, "/proc/self/ns/user");
    return r2_hash_so_far(&state) << 32 | machine;
}
