/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Runs a fuzz target on files, and on every beginning and some changes of each: a main() for
 * compilers without libFuzzer.
 */
#include "r2_config.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "r2/prng.h"

#define REPLAY_BYTES_MAX (1u << 16)
#define REPLAY_CHANGES   60

static unsigned long runs, files;

static void run(const uint8_t *data, size_t bytes)
{
    uint8_t *exact = malloc(bytes > 0 ? bytes : 1); /* reading past the end is found */

    if (NULL == exact) {
        exit(2);
    }
    if (bytes > 0) {
        memcpy(exact, data, bytes);
    }
    LLVMFuzzerTestOneInput(exact, bytes);
    free(exact);
    ++runs;
}

/* Changes a few bytes, the same way every time. */
static void run_changed(const uint8_t *data, size_t bytes, uint64_t seed)
{
    uint8_t *copy = malloc(bytes);
    r2_prng_t prng;

    if (NULL == copy) {
        exit(2);
    }
    memcpy(copy, data, bytes);
    r2_prng_seed(&prng, seed);
    for (uint64_t i = r2_prng_between(&prng, 1, 8); i > 0; --i) {
        uint8_t *byte = &copy[r2_prng_below(&prng, bytes)];

        *byte = r2_prng_chance(&prng, 500000) ? (uint8_t) r2_prng_u64(&prng)
                                              : (uint8_t) (*byte ^ 1u << r2_prng_below(&prng, 8));
    }
    run(copy, bytes);
    free(copy);
}

static void run_file(const char *path)
{
    static uint8_t data[REPLAY_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    size_t bytes;

    if (NULL == file) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    bytes = fread(data, 1, sizeof(data), file);
    fclose(file);
    ++files;
    run(data, bytes);
    for (size_t i = 1; i <= 16 && bytes > 0; ++i) {
        run(data, bytes * i / 17);
    }
    for (uint64_t i = 0; i < REPLAY_CHANGES && bytes > 0; ++i) {
        run_changed(data, bytes, i + bytes);
    }
}

static void run_path(const char *path)
{
    struct stat info;
    struct dirent **entries;
    int count;

    if (0 != stat(path, &info) || !S_ISDIR(info.st_mode)) {
        run_file(path);
        return;
    }
    count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; ++i) {
        char name[4096];

        if ('.' != entries[i]->d_name[0]) {
            snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
            run_path(name);
        }
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; ++i) {
        run_path(argv[i]);
    }
    printf("%lu files, %lu inputs\n", files, runs);
    return 0 == files ? 1 : 0;
}
