/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Derived datatypes together with the map of their bytes.
 */
#include "datatypes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INT_STEP 12

static void type_append(dt_type_t *type, ptrdiff_t disp, size_t bytes, size_t exact_bytes)
{
    dt_run_t *last = type->run_count > 0 ? &type->runs[type->run_count - 1] : NULL;

    type->bytes += bytes;
    if (NULL != last && last->disp + (ptrdiff_t) last->bytes == disp &&
        last->bytes == last->exact_bytes && bytes == exact_bytes) {
        last->bytes += bytes;
        last->exact_bytes += bytes;
        return;
    }
    type->runs = realloc(type->runs, (type->run_count + 1) * sizeof(*type->runs));
    type->runs[type->run_count++] = (dt_run_t){disp, bytes, exact_bytes};
}

/* Appends `length` elements of `old` at a byte displacement. */
static void type_block(dt_type_t *type, int length, ptrdiff_t disp, const dt_type_t *old)
{
    for (int j = 0; j < length; ++j) {
        for (size_t r = 0; r < old->run_count; ++r) {
            type_append(type, disp + j * old->extent + old->runs[r].disp, old->runs[r].bytes,
                        old->runs[r].exact_bytes);
        }
    }
    type->units += length * old->units;
}

static void type_commit(dt_type_t *type, MPI_Datatype handle, const char *name)
{
    MPI_Aint lb, extent;

    MPI_Type_commit(&handle);
    MPI_Type_get_extent(handle, &lb, &extent);
    type->handle = handle;
    type->derived = true;
    type->extent = extent;
    snprintf(type->name, sizeof(type->name), "%s", name);
}

void dt_type_basic(dt_type_t *type, MPI_Datatype handle, const char *name, size_t bytes,
                   size_t exact_bytes)
{
    memset(type, 0, sizeof(*type));
    type->handle = handle;
    type->extent = (ptrdiff_t) bytes;
    type->units = 1;
    snprintf(type->name, sizeof(type->name), "%s", name);
    type_append(type, 0, bytes, exact_bytes);
}

void dt_type_pair(dt_type_t *type, MPI_Datatype handle, const char *name, size_t first_bytes,
                  size_t first_exact_bytes, ptrdiff_t second_disp, size_t second_bytes)
{
    MPI_Aint lb, extent;

    dt_type_basic(type, handle, name, first_bytes, first_exact_bytes);
    type_append(type, second_disp, second_bytes, second_bytes);
    MPI_Type_get_extent(handle, &lb, &extent);
    type->extent = extent;
}

void dt_type_free(dt_type_t *type)
{
    if (type->derived) {
        MPI_Type_free(&type->handle);
    }
    free(type->runs);
    memset(type, 0, sizeof(*type));
}

static void type_contiguous(dt_type_t *type, int count, const dt_type_t *old)
{
    MPI_Datatype handle;

    type_block(type, count, 0, old);
    MPI_Type_contiguous(count, old->handle, &handle);
    type_commit(type, handle, "contiguous");
}

static void type_hvector(dt_type_t *type, int count, int length, ptrdiff_t stride,
                         const dt_type_t *old)
{
    MPI_Datatype handle;

    for (int i = 0; i < count; ++i) {
        type_block(type, length, i * stride, old);
    }
    if (0 == stride % old->extent) {
        MPI_Type_vector(count, length, (int) (stride / old->extent), old->handle, &handle);
    } else {
        MPI_Type_create_hvector(count, length, stride, old->handle, &handle);
    }
    type_commit(type, handle, "vector");
}

static void type_hindexed(dt_type_t *type, int count, const int *lengths, const MPI_Aint *disps,
                          const dt_type_t *old)
{
    MPI_Datatype handle;

    for (int i = 0; i < count; ++i) {
        type_block(type, lengths[i], disps[i], old);
    }
    MPI_Type_create_hindexed(count, lengths, disps, old->handle, &handle);
    type_commit(type, handle, "indexed");
}

/* Takes over the runs of `old` and frees its handle. */
static void type_resized(dt_type_t *type, ptrdiff_t lb, ptrdiff_t extent, dt_type_t *old,
                         const char *name)
{
    MPI_Datatype handle;

    type_block(type, 1, 0, old);
    MPI_Type_create_resized(old->handle, lb, extent, &handle);
    type_commit(type, handle, name);
    dt_type_free(old);
}

/* INT_STEP rows of a matrix with `columns` columns: elements interleave. */
static void type_columns(dt_type_t *type, uint64_t columns, const dt_type_t *basic)
{
    dt_type_t column = {.handle = MPI_DATATYPE_NULL};

    type_hvector(&column, INT_STEP, 1, (ptrdiff_t) columns * basic->extent, basic);
    type_resized(type, 0, basic->extent, &column, "column");
}

static void type_nested(dt_type_t *type, const dt_type_t *basic)
{
    dt_type_t inner = {.handle = MPI_DATATYPE_NULL}, middle = {.handle = MPI_DATATYPE_NULL};

    type_hvector(&inner, 2, 1, 3 * basic->extent, basic);
    type_contiguous(&middle, 3, &inner);
    type_contiguous(type, 2, &middle);
    snprintf(type->name, sizeof(type->name), "contiguous of contiguous of vector");
    dt_type_free(&inner);
    dt_type_free(&middle);
}

/* A struct with an empty member, holes, and members out of order. */
static void type_struct(dt_type_t *type, const dt_type_t *basic)
{
    static const int lengths[4] = {5, 0, 1, 6};
    static const MPI_Aint disps[4] = {40, 0, 4, 88};
    MPI_Datatype olds[4], handle;

    for (int i = 0; i < 4; ++i) {
        type_block(type, lengths[i], disps[i], basic);
        olds[i] = basic->handle;
    }
    MPI_Type_create_struct(4, lengths, disps, olds, &handle);
    type_commit(type, handle, "struct with holes");
}

#define INT_VARIANTS 12

static void type_make_int(dt_type_t *type, unsigned variant, uint64_t columns,
                          const dt_type_t *basic)
{
    dt_type_t old = {.handle = MPI_DATATYPE_NULL};

    switch (variant) {
    case 0:
        type_contiguous(type, 12, basic);
        break;
    case 1:
        type_hvector(type, 3, 4, 28, basic);
        break;
    case 2:
        type_hvector(type, 4, 3, 17, basic); /* misaligned */
        break;
    case 3:
        type_hindexed(type, 3, (int[]){3, 1, 8}, (MPI_Aint[]){20, 80, 120}, basic);
        break;
    case 4:
        type_hindexed(type, 3, (int[]){3, 1, 8}, (MPI_Aint[]){120, 0, 36}, basic);
        break;
    case 5:
        type_struct(type, basic);
        break;
    case 6:
        type_contiguous(&old, 4, basic);
        type_resized(type, -8, 40, &old, "resized, longer, lb -8");
        break;
    case 7:
        type_columns(type, columns, basic);
        break;
    case 8:
        type_hindexed(type, 2, (int[]){5, 7}, (MPI_Aint[]){-40, 12}, basic);
        break;
    case 9:
        type_contiguous(&old, 6, basic);
        type_resized(type, 0, -32, &old, "negative extent");
        break;
    case 10:
        type_nested(type, basic);
        break;
    default:
        type_hvector(&old, 3, 1, 8, basic);
        type_resized(type, -4, 24, &old, "resized vector");
        break;
    }
}

/* The same members in three layouts: as a C compiler would, without gaps, in reverse order. */
static void type_make_mixed(dt_type_t *type, unsigned variant)
{
    static const MPI_Aint layouts[3][4] = {{0, 4, 16, 24}, {0, 1, 9, 17}, {60, 40, 16, 2}};
    static const int lengths[4] = {1, 2, 1, 3};
    MPI_Datatype olds[4] = {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_SHORT}, handle;
    static const size_t bytes[4] = {1, 8, 8, 6};
    const MPI_Aint *disps = layouts[variant % 3];

    for (int i = 0; i < 4; ++i) {
        type_append(type, disps[i], bytes[i], bytes[i]);
    }
    type->units = 1;
    MPI_Type_create_struct(4, lengths, disps, olds, &handle);
    type_commit(type, handle, "struct of char, int, double, short");
}

static void type_make_other(dt_type_t *type, unsigned variant, const dt_type_t *basic)
{
    dt_type_t old = {.handle = MPI_DATATYPE_NULL};

    switch (variant) {
    case 0:
        type_hvector(type, 1, 1, basic->extent, basic);
        break;
    case 1:
        type_contiguous(&old, 1, basic);
        type_resized(type, 0, 2 * basic->extent + 1, &old, "resized, odd extent");
        break;
    default:
        type_hindexed(type, 1, (int[]){1}, (MPI_Aint[]){-3 * basic->extent}, basic);
        break;
    }
}

static void type_class_basic(dt_type_t *type, dt_class_t class)
{
    switch (class) {
    case DT_CLASS_INT:
        dt_type_basic(type, MPI_INT, "MPI_INT", 4, 4);
        break;
    case DT_CLASS_CHAR:
        dt_type_basic(type, MPI_CHAR, "MPI_CHAR", 1, 1);
        break;
    case DT_CLASS_DOUBLE:
        dt_type_basic(type, MPI_DOUBLE, "MPI_DOUBLE", 8, 8);
        break;
    case DT_CLASS_LONG_DOUBLE_COMPLEX:
        dt_type_basic(type, MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX", 32, 32);
        break;
    case DT_CLASS_PAIR:
    case DT_CLASS_MIXED:
    case DT_CLASS_COUNT:
        dt_type_pair(type, MPI_SHORT_INT, "MPI_SHORT_INT", 2, 2, 4, 4);
        break;
    }
}

unsigned dt_variants(dt_class_t class)
{
    return DT_CLASS_INT == class ? INT_VARIANTS : 3;
}

int dt_unit_step(dt_class_t class)
{
    return DT_CLASS_INT == class ? INT_STEP : 1;
}

void dt_type_make(dt_type_t *type, dt_class_t class, unsigned variant, uint64_t columns)
{
    dt_type_t basic;

    memset(type, 0, sizeof(*type));
    if (UINT32_MAX == variant && DT_CLASS_MIXED != class) {
        type_class_basic(type, class);
        return;
    }
    variant %= dt_variants(class);
    if (DT_CLASS_MIXED == class) {
        type_make_mixed(type, variant);
        return;
    }
    type_class_basic(&basic, class);
    if (DT_CLASS_INT == class) {
        type_make_int(type, variant, columns, &basic);
    } else {
        type_make_other(type, variant, &basic);
    }
    dt_type_free(&basic);
}
