/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The stand-in's own declarations against cuda.h: values, layouts, prototypes, by the compiler.
 */
#include "r2_config.h"

#include <stdio.h>

#if R2_HAVE_CUDA
#    include <assert.h>
#    include <cuda.h>
#    include <stddef.h>

#    define CU_VALUE(name, value) static_assert((long long) (name) == (value), #    name);
#    include "fakecuda/values.def"
#    undef CU_VALUE

#    define CU_SIZE(type, bytes)      static_assert(sizeof(type) == (bytes), #    type);
#    define CU_FIELD(type, field, at) static_assert(offsetof(type, field) == (at), #    field);
#    include "fakecuda/layouts.def"
#    undef CU_SIZE
#    undef CU_FIELD

/* A declaration beside that of cuda.h has to have its type. */
#    undef cuEventElapsedTime
#    pragma GCC diagnostic ignored "-Wredundant-decls"
#    define CU_FUNCTION(name, needs, params) CUresult CUDAAPI name params;
#    include "fakecuda/functions.def"
#    undef CU_FUNCTION

int main(void)
{
    printf("1..1\nok 1 - what is declared is as in cuda.h of CUDA %d.%d\n", CUDA_VERSION / 1000,
           CUDA_VERSION % 1000 / 10);
    return 0;
}
#else
int main(void)
{
    printf("there is no cuda.h to compare with (configure --with-cuda)\n");
    return 77;
}
#endif
