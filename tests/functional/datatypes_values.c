/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predefined datatypes with the predefined operations that are valid for them, and their values.
 *
 * Values are such that every result is exact in every order of evaluation.
 */
#include "datatypes.h"

#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum op_id { SUM, PROD, MIN, MAX, BAND, BOR, BXOR, LAND, LOR, LXOR, MINLOC, MAXLOC, OP_COUNT };

static const struct {
    MPI_Op op;
    const char *name;
} operations[OP_COUNT] = {
    {MPI_SUM, "MPI_SUM"},   {MPI_PROD, "MPI_PROD"},     {MPI_MIN, "MPI_MIN"},
    {MPI_MAX, "MPI_MAX"},   {MPI_BAND, "MPI_BAND"},     {MPI_BOR, "MPI_BOR"},
    {MPI_BXOR, "MPI_BXOR"}, {MPI_LAND, "MPI_LAND"},     {MPI_LOR, "MPI_LOR"},
    {MPI_LXOR, "MPI_LXOR"}, {MPI_MINLOC, "MPI_MINLOC"}, {MPI_MAXLOC, "MPI_MAXLOC"},
};

#define BITWISE    (1u << BAND | 1u << BOR | 1u << BXOR)
#define LOGICAL    (1u << LAND | 1u << LOR | 1u << LXOR)
#define ARITHMETIC (1u << SUM | 1u << PROD)
#define ORDERED    (1u << MIN | 1u << MAX)
#define INTEGER    (ARITHMETIC | ORDERED | BITWISE | LOGICAL)
#define PAIR       (1u << MINLOC | 1u << MAXLOC)

/* Bytes of a long double that hold its value. */
#define LONG_DOUBLE_EXACT (sizeof(long double) > 10 ? (size_t) 10 : sizeof(long double))

uint64_t dt_hash(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + c + 0x94d049bb133111ebu;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A small number that suits the operation; up to 20 ranks stay within 8 bits. */
static int64_t small_value(int op, int rank, uint64_t idx)
{
    uint64_t hash = dt_hash((uint64_t) op, (uint64_t) rank, idx);

    switch (op) {
    case PROD:
        return 3 > rank && 0 != (hash & 1) ? 2 : 1;
    case LAND:
    case LOR:
    case LXOR:
        return (int64_t) (hash % 4);
    case SUM:
    case MIN:
    case MAX:
        return (int64_t) (hash % 7);
    default:
        return (int64_t) hash;
    }
}

/* Sums of integers wrap, of short ones as well. */
static int64_t integer_value(int op, int rank, uint64_t idx)
{
    return SUM == op ? (int64_t) dt_hash(SUM, (uint64_t) rank, idx) : small_value(op, rank, idx);
}

/* Definitions of value and fold for one C type. */
#define INTEGER_TYPE(T, tag)                                                                  \
    static void value_##tag(const dt_reduction_t *self, int rank, uint64_t idx, void *packed) \
    {                                                                                         \
        T value = (T) integer_value(self->op_id, rank, idx);                                  \
        memcpy(packed, &value, sizeof(value));                                                \
    }                                                                                         \
    static void fold_##tag(const dt_reduction_t *self, void *acc, const void *x)              \
    {                                                                                         \
        T a, b, result[OP_COUNT];                                                             \
        memcpy(&a, acc, sizeof(a));                                                           \
        memcpy(&b, x, sizeof(b));                                                             \
        result[SUM] = (T) ((uint64_t) a + (uint64_t) b);                                      \
        result[PROD] = (T) ((uint64_t) a * (uint64_t) b);                                     \
        result[MIN] = a < b ? a : b;                                                          \
        result[MAX] = a > b ? a : b;                                                          \
        result[BAND] = (T) (a & b);                                                           \
        result[BOR] = (T) (a | b);                                                            \
        result[BXOR] = (T) (a ^ b);                                                           \
        result[LAND] = (T) (0 != a && 0 != b);                                                \
        result[LOR] = (T) (0 != a || 0 != b);                                                 \
        result[LXOR] = (T) ((0 != a) != (0 != b));                                            \
        memcpy(acc, &result[self->op_id], sizeof(a));                                         \
    }

#define FLOAT_TYPE(T, tag, exact)                                                             \
    static void value_##tag(const dt_reduction_t *self, int rank, uint64_t idx, void *packed) \
    {                                                                                         \
        T value = (T) small_value(self->op_id, rank, idx) / 2;                                \
        memset(packed, 0, sizeof(value));                                                     \
        memcpy(packed, &value, exact);                                                        \
    }                                                                                         \
    static void fold_##tag(const dt_reduction_t *self, void *acc, const void *x)              \
    {                                                                                         \
        T a = 0, b = 0, result[OP_COUNT];                                                     \
        memcpy(&a, acc, exact);                                                               \
        memcpy(&b, x, exact);                                                                 \
        result[SUM] = a + b;                                                                  \
        result[PROD] = a * b;                                                                 \
        result[MIN] = a < b ? a : b;                                                          \
        result[MAX] = a > b ? a : b;                                                          \
        memcpy(acc, &result[self->op_id], exact);                                             \
    }

#define COMPLEX_TYPE(T, tag, exact)                                                           \
    static void value_##tag(const dt_reduction_t *self, int rank, uint64_t idx, void *packed) \
    {                                                                                         \
        T value[2] = {(T) small_value(self->op_id, rank, idx),                                \
                      (T) small_value(self->op_id, rank, idx + 1000003)};                     \
        if (PROD == self->op_id) { /* no part of a product is 0, whose sign is anybody's */   \
            value[1] = 6 > rank ? 3 * value[0] : 0;                                           \
        }                                                                                     \
        memset(packed, 0, sizeof(value));                                                     \
        memcpy(packed, &value[0], exact);                                                     \
        memcpy((char *) packed + sizeof(T), &value[1], exact);                                \
    }                                                                                         \
    static void fold_##tag(const dt_reduction_t *self, void *acc, const void *x)              \
    {                                                                                         \
        T a[2], b[2], sum[2], product[2];                                                     \
        memcpy(a, acc, sizeof(a));                                                            \
        memcpy(b, x, sizeof(b));                                                              \
        for (int i = 0; i < 2; ++i) {                                                         \
            sum[i] = a[i] + b[i];                                                             \
        }                                                                                     \
        product[0] = a[0] * b[0] - a[1] * b[1];                                               \
        product[1] = a[0] * b[1] + a[1] * b[0];                                               \
        memcpy(acc, SUM == self->op_id ? sum : product, sizeof(a));                           \
    }

#define PAIR_TYPE(T, tag)                                                                     \
    static void value_##tag(const dt_reduction_t *self, int rank, uint64_t idx, void *packed) \
    {                                                                                         \
        T value = (T) (dt_hash((uint64_t) self->op_id, (uint64_t) rank, idx) % 4);            \
        int where = (int) (dt_hash(idx, (uint64_t) rank, 5) % 8);                             \
        memset(packed, 0, sizeof(value));                                                     \
        memcpy(packed, &value, sizeof(value));                                                \
        memcpy((char *) packed + sizeof(T), &where, sizeof(where));                           \
    }                                                                                         \
    static void fold_##tag(const dt_reduction_t *self, void *acc, const void *x)              \
    {                                                                                         \
        T a, b;                                                                               \
        int at, bt;                                                                           \
        memcpy(&a, acc, sizeof(a));                                                           \
        memcpy(&b, x, sizeof(b));                                                             \
        memcpy(&at, (char *) acc + sizeof(T), sizeof(at));                                    \
        memcpy(&bt, (const char *) x + sizeof(T), sizeof(bt));                                \
        if ((MINLOC == self->op_id ? b < a : b > a) || (!(a < b) && !(b < a) && bt < at)) {   \
            memcpy(acc, x, sizeof(T) + sizeof(int));                                          \
        }                                                                                     \
    }

INTEGER_TYPE(int8_t, int8)
INTEGER_TYPE(int16_t, int16)
INTEGER_TYPE(int32_t, int32)
INTEGER_TYPE(int64_t, int64)
INTEGER_TYPE(uint8_t, uint8)
INTEGER_TYPE(uint16_t, uint16)
INTEGER_TYPE(uint32_t, uint32)
INTEGER_TYPE(uint64_t, uint64)
FLOAT_TYPE(float, float, sizeof(float))
FLOAT_TYPE(double, double, sizeof(double))
FLOAT_TYPE(long double, long_double, LONG_DOUBLE_EXACT)
COMPLEX_TYPE(float, float_complex, sizeof(float))
COMPLEX_TYPE(double, double_complex, sizeof(double))
COMPLEX_TYPE(long double, long_double_complex, LONG_DOUBLE_EXACT)
PAIR_TYPE(float, float_int)
PAIR_TYPE(double, double_int)
PAIR_TYPE(long, long_int)
PAIR_TYPE(short, short_int)
PAIR_TYPE(int, int_int)
PAIR_TYPE(long double, long_double_int)

static void value_bool(const dt_reduction_t *self, int rank, uint64_t idx, void *packed)
{
    bool value = 0 != small_value(self->op_id, rank, idx);

    memcpy(packed, &value, sizeof(value));
}

typedef void (*value_fn_t)(const dt_reduction_t *, int, uint64_t, void *);
typedef void (*fold_fn_t)(const dt_reduction_t *, void *, const void *);

/* All pairs of type and operation; filled at first use. */
static struct {
    dt_reduction_t *all;
    size_t count, room;
} table;

static void table_add(const dt_type_t *type, unsigned ops, bool gaps, value_fn_t value,
                      fold_fn_t fold)
{
    for (int id = 0; id < OP_COUNT; ++id) {
        dt_reduction_t *entry;
        char name[96];

        if (0 == (ops & 1u << id)) {
            continue;
        }
        if (table.count == table.room) {
            table.room = table.room * 2 + 64;
            table.all = realloc(table.all, table.room * sizeof(*table.all));
        }
        entry = &table.all[table.count++];
        snprintf(name, sizeof(name), "%s %s", type->name, operations[id].name);
        *entry = (dt_reduction_t){
            .op = operations[id].op, .op_id = id, .gaps = gaps, .value = value, .fold = fold};
        entry->name = strdup(name);
        entry->type = malloc(sizeof(*entry->type));
        *entry->type = *type;
        entry->type->runs = malloc(type->run_count * sizeof(*type->runs));
        memcpy(entry->type->runs, type->runs, type->run_count * sizeof(*type->runs));
    }
}

/* A type that this Open MPI lacks has the size 0. */
static void add_basic(MPI_Datatype handle, const char *name, size_t bytes, size_t exact_bytes,
                      unsigned ops, value_fn_t value, fold_fn_t fold)
{
    dt_type_t type;
    int size = 0;

    if (MPI_DATATYPE_NULL == handle || MPI_SUCCESS != MPI_Type_size(handle, &size) ||
        (size_t) size != bytes) {
        return;
    }
    dt_type_basic(&type, handle, name, bytes, exact_bytes);
    table_add(&type, ops, false, value, fold);
    dt_type_free(&type);
}

static void add_pair(MPI_Datatype handle, const char *name, size_t first, size_t exact,
                     ptrdiff_t disp, size_t second, unsigned ops, value_fn_t value, fold_fn_t fold)
{
    dt_type_t type;

    dt_type_pair(&type, handle, name, first, exact, disp, second);
    table_add(&type, ops, true, value, fold);
    dt_type_free(&type);
}

#define ADD(handle, ctype, tag, ops) \
    add_basic(handle, #handle, sizeof(ctype), sizeof(ctype), ops, value_##tag, fold_##tag)
/* Integers of a width that the platform decides. */
#define ADD_WIDE(handle, ctype, ops)          \
    do {                                      \
        if (4 == sizeof(ctype)) {             \
            ADD(handle, int32_t, int32, ops); \
        } else {                              \
            ADD(handle, int64_t, int64, ops); \
        }                                     \
    } while (0)
#define ADD_PAIR(handle, ctype, exact, tag)                                                    \
    do {                                                                                       \
        struct {                                                                               \
            ctype first;                                                                       \
            int second;                                                                        \
        } pair;                                                                                \
        add_pair(handle, #handle, sizeof(ctype), exact,                                        \
                 (char *) &pair.second - (char *) &pair.first, sizeof(int), PAIR, value_##tag, \
                 fold_##tag);                                                                  \
    } while (0)

static void table_integers(void)
{
    ADD(MPI_SIGNED_CHAR, int8_t, int8, INTEGER);
    ADD(MPI_UNSIGNED_CHAR, uint8_t, uint8, INTEGER);
    ADD(MPI_SHORT, int16_t, int16, INTEGER);
    ADD(MPI_UNSIGNED_SHORT, uint16_t, uint16, INTEGER);
    ADD(MPI_INT, int32_t, int32, INTEGER);
    ADD(MPI_UNSIGNED, uint32_t, uint32, INTEGER);
    ADD_WIDE(MPI_LONG, long, INTEGER);
    ADD_WIDE(MPI_UNSIGNED_LONG, long, INTEGER);
    ADD(MPI_LONG_LONG, int64_t, int64, INTEGER);
    ADD(MPI_UNSIGNED_LONG_LONG, uint64_t, uint64, INTEGER);
    ADD(MPI_INT8_T, int8_t, int8, INTEGER);
    ADD(MPI_INT16_T, int16_t, int16, INTEGER);
    ADD(MPI_INT32_T, int32_t, int32, INTEGER);
    ADD(MPI_INT64_T, int64_t, int64, INTEGER);
    ADD(MPI_UINT8_T, uint8_t, uint8, INTEGER);
    ADD(MPI_UINT16_T, uint16_t, uint16, INTEGER);
    ADD(MPI_UINT32_T, uint32_t, uint32, INTEGER);
    ADD(MPI_UINT64_T, uint64_t, uint64, INTEGER);
    ADD_WIDE(MPI_AINT, MPI_Aint, INTEGER & ~LOGICAL);
    ADD_WIDE(MPI_OFFSET, MPI_Offset, INTEGER & ~LOGICAL);
    ADD_WIDE(MPI_COUNT, MPI_Count, INTEGER & ~LOGICAL);
    ADD(MPI_BYTE, uint8_t, uint8, BITWISE);
    add_basic(MPI_C_BOOL, "MPI_C_BOOL", 1, 1, LOGICAL, value_bool, fold_uint8);
    add_basic(MPI_CXX_BOOL, "MPI_CXX_BOOL", 1, 1, LOGICAL, value_bool, fold_uint8);
}

static void table_reals(void)
{
    ADD(MPI_FLOAT, float, float, ARITHMETIC | ORDERED);
    ADD(MPI_DOUBLE, double, double, ARITHMETIC | ORDERED);
    add_basic(MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", sizeof(long double), LONG_DOUBLE_EXACT,
              ARITHMETIC | ORDERED, value_long_double, fold_long_double);
    ADD(MPI_C_FLOAT_COMPLEX, float _Complex, float_complex, ARITHMETIC);
    ADD(MPI_C_DOUBLE_COMPLEX, double _Complex, double_complex, ARITHMETIC);
    add_pair(MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX", sizeof(long double),
             LONG_DOUBLE_EXACT, sizeof(long double), sizeof(long double), ARITHMETIC,
             value_long_double_complex, fold_long_double_complex);
    table.all[table.count - 1].type->runs[1].exact_bytes = LONG_DOUBLE_EXACT;
    table.all[table.count - 2].type->runs[1].exact_bytes = LONG_DOUBLE_EXACT;
}

static void table_pairs(void)
{
    ADD_PAIR(MPI_FLOAT_INT, float, sizeof(float), float_int);
    ADD_PAIR(MPI_DOUBLE_INT, double, sizeof(double), double_int);
    ADD_PAIR(MPI_LONG_INT, long, sizeof(long), long_int);
    ADD_PAIR(MPI_SHORT_INT, short, sizeof(short), short_int);
    ADD_PAIR(MPI_2INT, int, sizeof(int), int_int);
    ADD_PAIR(MPI_LONG_DOUBLE_INT, long double, LONG_DOUBLE_EXACT, long_double_int);
}

/* Where Open MPI was built without Fortran, these have the size 0. */
static void table_fortran(void)
{
    ADD(MPI_INTEGER, int32_t, int32, INTEGER & ~LOGICAL);
    ADD(MPI_INTEGER1, int8_t, int8, INTEGER & ~LOGICAL);
    ADD(MPI_INTEGER2, int16_t, int16, INTEGER & ~LOGICAL);
    ADD(MPI_INTEGER4, int32_t, int32, INTEGER & ~LOGICAL);
    ADD(MPI_INTEGER8, int64_t, int64, INTEGER & ~LOGICAL);
    ADD(MPI_REAL, float, float, ARITHMETIC | ORDERED);
    ADD(MPI_REAL4, float, float, ARITHMETIC | ORDERED);
    ADD(MPI_REAL8, double, double, ARITHMETIC | ORDERED);
    ADD(MPI_DOUBLE_PRECISION, double, double, ARITHMETIC | ORDERED);
    ADD(MPI_COMPLEX, float _Complex, float_complex, ARITHMETIC);
    ADD(MPI_DOUBLE_COMPLEX, double _Complex, double_complex, ARITHMETIC);
    ADD(MPI_LOGICAL, int32_t, int32, LOGICAL);
}

const dt_reduction_t *dt_predefined(size_t *count_p)
{
    if (0 == table.count) {
        table_integers();
        table_reals();
        table_pairs();
        table_fortran();
    }
    *count_p = table.count;
    return table.all;
}

const dt_reduction_t *dt_predefined_find(const char *name)
{
    size_t count;
    const dt_reduction_t *all = dt_predefined(&count);

    for (size_t i = 0; i < count; ++i) {
        if (0 == strcmp(name, all[i].name)) {
            return &all[i];
        }
    }
    fprintf(stderr, "no reduction %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return NULL;
}

void dt_predefined_free(void)
{
    for (size_t i = 0; i < table.count; ++i) {
        free((char *) (uintptr_t) table.all[i].name);
        dt_type_free(table.all[i].type);
        free(table.all[i].type);
    }
    free(table.all);
    memset(&table, 0, sizeof(table));
}
