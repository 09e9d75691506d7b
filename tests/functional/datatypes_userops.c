/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * User-defined operations, commutative and not, on contiguous types and on types with holes.
 *
 * An operation learns the layout of its type from an attribute of the type, so the handle that it
 * is given must be the one that the collective was called with.
 */
#include "datatypes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULUS           10007
#define MAX_ELEMENT_BYTES 4096

static int layout_key = MPI_KEYVAL_INVALID;

enum user_id { ADD_MODULO, AFFINE, MATRIX, USER_COUNT };

static struct {
    dt_reduction_t *all;
    size_t count;
    MPI_Op ops[USER_COUNT];
} users;

/* The three operations on packed integers: first = first OP second. All are associative. */
static void combine(int id, uint32_t *first, const uint32_t *second, size_t ints)
{
    uint32_t product[4];

    for (size_t i = 0; i < ints; i += MATRIX == id ? 4 : 2) {
        uint32_t *a = &first[i];
        const uint32_t *b = &second[i];

        switch (id) {
        case ADD_MODULO:
            a[0] = (a[0] + b[0]) % MODULUS;
            a[1] = (a[1] + b[1]) % MODULUS;
            break;
        case AFFINE: /* the map x -> a0 x + a1 after x -> b0 x + b1 */
            a[1] = a[0] * b[1] + a[1];
            a[0] = a[0] * b[0];
            break;
        default:
            product[0] = (a[0] * b[0] + a[1] * b[2]) % MODULUS;
            product[1] = (a[0] * b[1] + a[1] * b[3]) % MODULUS;
            product[2] = (a[2] * b[0] + a[3] * b[2]) % MODULUS;
            product[3] = (a[2] * b[1] + a[3] * b[3]) % MODULUS;
            memcpy(a, product, sizeof(product));
            break;
        }
    }
}

static void gather(const dt_type_t *type, const char *element, char *packed)
{
    for (size_t r = 0; r < type->run_count; ++r) {
        memcpy(packed, element + type->runs[r].disp, type->runs[r].bytes);
        packed += type->runs[r].bytes;
    }
}

static void scatter(const dt_type_t *type, char *element, const char *packed)
{
    for (size_t r = 0; r < type->run_count; ++r) {
        memcpy(element + type->runs[r].disp, packed, type->runs[r].bytes);
        packed += type->runs[r].bytes;
    }
}

/* inout = in OP inout, element by element. */
static void apply(int id, void *in, void *inout, const int *count, MPI_Datatype *handle)
{
    uint32_t first[MAX_ELEMENT_BYTES / 4], second[MAX_ELEMENT_BYTES / 4];
    dt_type_t *type;
    int found;

    MPI_Type_get_attr(*handle, layout_key, (void *) &type, &found);
    if (!found || 0 != (uintptr_t) in % 4 || 0 != (uintptr_t) inout % 4) {
        fprintf(stderr, "# user operation: %s\n",
                found ? "misaligned" : "not the caller's datatype");
        MPI_Abort(MPI_COMM_WORLD, 3);
        return;
    }
    for (int k = 0; k < *count; ++k) {
        char *b = (char *) inout + k * type->extent;

        gather(type, (char *) in + k * type->extent, (char *) first);
        gather(type, b, (char *) second);
        combine(id, first, second, type->bytes / 4);
        scatter(type, b, (char *) first);
    }
}

static void apply_add(void *in, void *inout, int *count, MPI_Datatype *handle)
{
    apply(ADD_MODULO, in, inout, count, handle);
}

static void apply_affine(void *in, void *inout, int *count, MPI_Datatype *handle)
{
    apply(AFFINE, in, inout, count, handle);
}

static void apply_matrix(void *in, void *inout, int *count, MPI_Datatype *handle)
{
    apply(MATRIX, in, inout, count, handle);
}

static void user_value(const dt_reduction_t *self, int rank, uint64_t idx, void *packed)
{
    uint32_t ints[MAX_ELEMENT_BYTES / 4];

    for (size_t i = 0; i < self->type->bytes / 4; ++i) {
        ints[i] = (uint32_t) (dt_hash(idx, (uint64_t) rank, i) % MODULUS);
    }
    memcpy(packed, ints, self->type->bytes);
}

static void user_fold(const dt_reduction_t *self, void *acc, const void *x)
{
    uint32_t first[MAX_ELEMENT_BYTES / 4], second[MAX_ELEMENT_BYTES / 4];

    memcpy(first, acc, self->type->bytes);
    memcpy(second, x, self->type->bytes);
    combine(self->op_id, first, second, self->type->bytes / 4);
    memcpy(acc, first, self->type->bytes);
}

static void user_add(int id, const char *op_name, dt_type_t *type)
{
    dt_reduction_t *entry = &users.all[users.count++];
    char name[128];

    snprintf(name, sizeof(name), "%s on %s", op_name, type->name);
    *entry = (dt_reduction_t){.name = strdup(name),
                              .op = users.ops[id],
                              .type = type,
                              .op_id = id,
                              .value = user_value,
                              .fold = user_fold};
}

/* Variants of DT_CLASS_INT that a reduction can take: aligned, elements that do not interleave. */
static const unsigned user_variants[] = {0, 1, 3, 4, 5, 6, 8, 10};
#define USER_VARIANTS (sizeof(user_variants) / sizeof(user_variants[0]))

const dt_reduction_t *dt_user(size_t *count_p)
{
    static const char *const names[USER_COUNT] = {"sum modulo", "affine maps", "2x2 matrices"};
    MPI_User_function *const functions[USER_COUNT] = {apply_add, apply_affine, apply_matrix};

    if (0 == users.count) {
        MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &layout_key, NULL);
        users.all = calloc(USER_VARIANTS * USER_COUNT, sizeof(*users.all));
        for (int id = 0; id < USER_COUNT; ++id) {
            MPI_Op_create(functions[id], ADD_MODULO == id, &users.ops[id]);
        }
        for (size_t v = 0; v < USER_VARIANTS; ++v) {
            dt_type_t *type = malloc(sizeof(*type));

            dt_type_make(type, DT_CLASS_INT, user_variants[v], 1);
            MPI_Type_set_attr(type->handle, layout_key, type);
            for (int id = 0; id < USER_COUNT; ++id) {
                if (MATRIX != id || 0 == type->units % 4) {
                    user_add(id, names[id], type);
                }
            }
        }
    }
    *count_p = users.count;
    return users.all;
}

void dt_user_free(void)
{
    for (size_t i = 0; i < users.count; ++i) {
        free((char *) (uintptr_t) users.all[i].name);
        if (ADD_MODULO == users.all[i].op_id) {
            dt_type_free(users.all[i].type);
            free(users.all[i].type);
        }
    }
    for (int id = 0; users.count > 0 && id < USER_COUNT; ++id) {
        MPI_Op_free(&users.ops[id]);
    }
    if (users.count > 0) {
        MPI_Type_free_keyval(&layout_key);
    }
    free(users.all);
    memset(&users, 0, sizeof(users));
}
