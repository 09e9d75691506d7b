/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What is said, counted, and written to files.
 */
#include "fakecuda/lib/fc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAID = 20 }; /* of each kind of mistake */

static const char *const counter_names[] = {
#define X(name) #name,
    FC_COUNTERS(X)
#undef X
};

static const char *const call_names[] = {
#define CU_FUNCTION(name, needs, params) #name,
#include "fakecuda/functions.def"
#undef CU_FUNCTION
};

const char *fc_call_name(fc_call_t call)
{
    return call_names[call];
}

/* No stdio: signal handlers come here, too. */
static void write_line(const char *text)
{
    char line[512];
    int length = snprintf(line, sizeof(line) - 1, "fakecuda[%d]: %s", (int) getpid(), text);

    length = length > (int) sizeof(line) - 2 ? (int) sizeof(line) - 2 : length;
    line[length++] = '\n';
    (void) !write(STDERR_FILENO, line, (size_t) length);
}

void fc_say(const char *format, ...)
{
    char text[400];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    write_line(text);
}

void fc_mistake(fc_count_t count, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(fc.mistake, sizeof(fc.mistake), format, list);
    va_end(list);
    ++fc.counters[FC_mistakes];
    if (++fc.counters[count] <= SAID) {
        fc_say("MISTAKE: %s", fc.mistake);
    }
    if (0 != fc.abort) {
        fc_write_stats();
        abort();
    }
}

const char *fakecuda_mistake(void)
{
    return fc.mistake;
}

uint64_t fakecuda_counter(const char *name)
{
    uint64_t value = UINT64_MAX;

    fc_lock();
    for (size_t i = 0; i < FC_COUNTS; ++i) {
        value = 0 == strcmp(name, counter_names[i]) ? fc.counters[i] : value;
    }
    for (size_t i = 0; i < FC_CALLS; ++i) {
        value = 0 == strcmp(name, call_names[i]) ? fc.calls[i] : value;
    }
    fc_unlock();
    return value;
}

/* At the end of the process, or at the touch that ends it: STATS.PID, a line for each counter. */
void fc_write_stats(void)
{
    char name[1024];
    FILE *file;

    if (fc.pid != getpid()) {
        return;
    }
    if (NULL != fc.audit) {
        fc_audit_write(fc.audit);
    }
    snprintf(name, sizeof(name), "%s.%d", NULL == fc.stats ? "" : fc.stats, fc.pid);
    file = NULL == fc.stats ? NULL : fopen(name, "w");
    if (NULL == file) {
        return;
    }
    for (size_t i = 0; i < FC_COUNTS; ++i) {
        fprintf(file, "%s %llu\n", counter_names[i], (unsigned long long) fc.counters[i]);
    }
    for (size_t i = 0; i < FC_CALLS; ++i) {
        if (0 != fc.calls[i]) {
            fprintf(file, "%s %llu\n", call_names[i], (unsigned long long) fc.calls[i]);
        }
    }
    fclose(file);
}
