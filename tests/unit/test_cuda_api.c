/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2's own declarations of the CUDA driver API against cuda.h, where that is installed, else
 * against those of tests/fakecuda: values, sizes, prototypes, by the compiler.
 */
#include "r2_config.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>

#if R2_HAVE_CUDA
#    include <cuda.h>
#    define COMPARED_WITH "cuda.h"
#else
#    include "fakecuda/api.h"
#    define COMPARED_WITH "tests/fakecuda"
#endif

/* Their types by our names: then our prototypes have to be theirs. */
#define R2_CUDA_TYPE(ours, as, theirs)                    \
    static_assert(sizeof(as) == sizeof(theirs), #theirs); \
    typedef theirs ours;
#define R2_CUDA_VALUE(ours, value, theirs) static_assert((value) == (int) (theirs), #theirs);
#define R2_CUDA_FN(field, symbol, params)  r2_cu_result_t symbol params;
#pragma GCC diagnostic ignored "-Wredundant-decls"
#include "mem/cuda_api.def"

int main(void)
{
    printf("1..1\nok 1 - what is declared is as in %s\n", COMPARED_WITH);
    return 0;
}
