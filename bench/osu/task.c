/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Finds tasks by name.
 */
#include "r2_config.h"

#include "task.h"

#include <string.h>

/* Names around that of the collective. */
static const struct {
    const char *prefix;
    const char *suffix;
    const char *title;
} forms[] = {
    [R2_BENCH_BLOCKING] = {"", "", ""},
    [R2_BENCH_NONBLOCKING] = {"i", "", "Non-blocking "},
    [R2_BENCH_PERSISTENT] = {"", "_persistent", "Persistent "},
};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

/* Point-to-point has one form. */
static bool has_form(const r2_bench_kind_t *kind, unsigned form)
{
    return R2_BENCH_NO_PAIRS == kind->way || R2_BENCH_BLOCKING == form;
}

static void make_name(const r2_bench_kind_t *kind, unsigned form, char *name_p)
{
    snprintf(name_p, R2_BENCH_NAME_BYTES, "%s%s%s", forms[form].prefix, kind->name,
             forms[form].suffix);
}

bool r2_bench_task_init(r2_bench_task_t *task, const char *program, const char *name)
{
    char called[R2_BENCH_NAME_BYTES];

    for (unsigned form = 0; form < FORMS; ++form) {
        for (unsigned i = 0; i < R2_BENCH_KIND_COUNT; ++i) {
            make_name(r2_bench_kind_at(i), form, called);
            if (has_form(r2_bench_kind_at(i), form) && 0 == strcmp(called, name)) {
                task->kind = r2_bench_kind_at(i);
                task->form = (r2_bench_form_t) form;
                snprintf(task->program, sizeof(task->program), "%s%s%s",
                         NULL == program ? "r2" : program, NULL == program ? "_" : " ", name);
                return true;
            }
        }
    }
    return false;
}

void r2_bench_task_list(FILE *out)
{
    char name[R2_BENCH_NAME_BYTES];

    for (unsigned form = 0; form < FORMS; ++form) {
        for (unsigned i = 0; i < R2_BENCH_KIND_COUNT; ++i) {
            make_name(r2_bench_kind_at(i), form, name);
            if (has_form(r2_bench_kind_at(i), form)) {
                fprintf(out, "%s\n", name);
            }
        }
    }
}

const char *r2_bench_form_title(r2_bench_form_t form)
{
    return forms[form].title;
}
