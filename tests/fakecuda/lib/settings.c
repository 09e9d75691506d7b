/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Settings, from the environment or by fakecuda_set(), and the faults that they plant.
 */
#include "fakecuda/lib/fc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_pci(const char *text);
static int set_faults(const char *text);
static int set_stats(const char *text);
static int set_audit(const char *text);
static int set_kernels(const char *text);

static const struct {
    const char *name, *usual;
    uint64_t *number;
    int (*set)(const char *text);
} settings[] = {
    {"devices", "1", &fc.devices, NULL},
    {"pci", "", NULL, set_pci},
    {"sm", "80", &fc.sm, NULL},
    {"driver", "12000", &fc.driver, NULL},
    {"memory", "8589934592", &fc.memory, NULL},
    {"seed", "1", &fc.seed, NULL},
    {"delay_us", "0", &fc.delay_us, NULL},
    {"copy_mbytes_per_s", "0", &fc.copy_mbytes_per_s, NULL},
    {"launch_us", "0", &fc.launch_us, NULL},
    {"kernel_mbytes_per_s", "0", &fc.kernel_mbytes_per_s, NULL},
    {"load_waits", "0", &fc.load_waits, NULL},
    {"nic_order", "0", &fc.nic_order, NULL},
    {"pin_waits", "0", &fc.pin_waits, NULL},
    {"strict", "1", &fc.strict, NULL},
    {"abort", "0", &fc.abort, NULL},
    {"faults", "", NULL, set_faults},
    {"stats", "", NULL, set_stats},
    {"audit", "", NULL, set_audit},
    {"kernels", "", NULL, set_kernels},
};

/* Copies the part before the next `end`. @return what follows that, or NULL. */
static const char *part(const char *text, char end, char *to, size_t room)
{
    const char *at = strchr(text, end);
    size_t length = NULL == at ? strlen(text) : (size_t) (at - text);

    snprintf(to, room, "%.*s", (int) length, text);
    return NULL == at ? NULL : at + 1;
}

/* 0000:3b:00.0,0000:5e:00.0; those that are not named lie at 10, 20 .. */
static int set_pci(const char *text)
{
    for (unsigned i = 0; i < FC_DEVICES; ++i) {
        snprintf(fc.pci[i], sizeof(fc.pci[i]), "0000:%02x:00.0", 0x10 + i * 0x10);
        if (NULL != text && '\0' != *text) {
            text = part(text, ',', fc.pci[i], sizeof(fc.pci[i]));
        }
    }
    return 0;
}

/* NAME@N=ERROR or NAME%PERMILLE=ERROR */
static int parse_rule(const char *text, fc_rule_t *rule)
{
    size_t length = strcspn(text, "@%");
    unsigned long long number;
    int error;

    memset(rule, 0, sizeof(*rule));
    if (length >= sizeof(rule->name) || '\0' == text[length] ||
        2 != sscanf(text + length + 1, "%llu=%d", &number, &error)) {
        return -1;
    }
    memcpy(rule->name, text, length);
    *('@' == text[length] ? &rule->nth : &rule->permille) = number;
    rule->error = error;
    return 0;
}

static int set_faults(const char *text)
{
    memset(fc.rules, 0, sizeof(fc.rules));
    for (int i = 0; NULL != text && '\0' != *text; ++i) {
        char one[96];
        text = part(text, ',', one, sizeof(one));
        if (FC_RULES == i || 0 != parse_rule(one, &fc.rules[i])) {
            return -1;
        }
    }
    return 0;
}

static int set_file(const char *text, const char **file_p)
{
    *file_p = '\0' == *text ? NULL : strdup(text);
    return 0;
}

static int set_stats(const char *text)
{
    return set_file(text, &fc.stats);
}

static int set_audit(const char *text)
{
    return set_file(text, &fc.audit);
}

static int set_kernels(const char *text)
{
    char one[1024];
    int rc = 0;

    while (NULL != text && '\0' != *text) {
        text = part(text, ':', one, sizeof(one));
        rc |= fc_open_kernels(one);
    }
    return rc;
}

static int set(const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); ++i) {
        char *end;
        if (0 != strcmp(name, settings[i].name)) {
            continue;
        }
        if (NULL != settings[i].set) {
            return settings[i].set(value);
        }
        *settings[i].number = strtoull(value, &end, 0);
        return '\0' == *end && end != value ? 0 : -1;
    }
    return -1;
}

int fakecuda_set(const char *name, const char *value)
{
    int rc;

    fc_lock();
    fc_read_settings();
    rc = set(name, value);
    fc_unlock();
    return rc;
}

void fc_read_settings(void)
{
    static bool is_read;

    if (is_read) {
        return;
    }
    is_read = true;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); ++i) {
        char name[64] = "FAKECUDA_";
        const char *value;
        for (size_t k = 0; k <= strlen(settings[i].name); ++k) {
            char c = settings[i].name[k];
            name[k + strlen("FAKECUDA_")] = (char) (c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
        }
        value = getenv(name);
        if (0 != set(settings[i].name, NULL == value ? settings[i].usual : value)) {
            fc_say("%s=%s is not understood", name, value);
            abort();
        }
    }
    fc.devices = fc.devices > FC_DEVICES ? FC_DEVICES : fc.devices;
}

uint64_t fc_hash(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = a * UINT64_C(0x9E3779B97F4A7C15) ^ b * UINT64_C(0xBF58476D1CE4E5B9) ^
                 (c + 1) * UINT64_C(0x94D049BB133111EB);

    x ^= x >> 31;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    return x ^ x >> 29;
}

CUresult fc_fault(const char *name)
{
    CUresult error = CUDA_SUCCESS;

    for (uint64_t i = 0; i < FC_RULES && '\0' != fc.rules[i].name[0]; ++i) {
        fc_rule_t *rule = &fc.rules[i];
        bool is_meant = 0 == strcmp(rule->name, name) ||
                        (0 == strcmp(rule->name, "*") && 0 != strcmp(name, "exec"));
        if (!is_meant) {
            continue;
        }
        ++rule->calls;
        if (CUDA_SUCCESS == error && (rule->calls == rule->nth ||
                                      fc_hash(fc.seed, i, rule->calls) % 1000 < rule->permille)) {
            error = rule->error;
            ++fc.counters[FC_faults];
        }
    }
    return error;
}
