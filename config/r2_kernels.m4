dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 The r2 authors
dnl Kernels for GPUs: clang compiles them, without any part of CUDA. Without clang r2 is built all
dnl the same, and GPUs reduce nothing.

AC_DEFUN([R2_GPU_KERNELS], [
    AC_ARG_WITH([gpu-kernels],
        [AS_HELP_STRING([--without-gpu-kernels],
            [reductions on GPUs (default: if there is a clang that compiles them)])],
        [], [with_gpu_kernels=auto])
    AC_ARG_VAR([CLANG], [clang, for kernels of GPUs])
    R2_KERNEL_FLAGS="-x cuda --cuda-device-only --cuda-gpu-arch=sm_70 --cuda-path=/nonexistent \
-nocudainc -nocudalib -ffp-contract=off -O2"
    r2_have_kernels=0
    KERNELS_SUMMARY="no (--without-gpu-kernels)"
    AS_IF([test "x$with_gpu_kernels" != xno],
        [AC_CHECK_PROGS([CLANG], [clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14])
         KERNELS_SUMMARY="no (no clang)"
         AS_IF([test -n "$CLANG"],
            [AC_MSG_CHECKING([whether $CLANG compiles kernels for GPUs])
             AS_ECHO(['extern "C" __attribute__((global)) void k(float *x, float y)
{ x[[0]] = x[[0]] * y + __nvvm_read_ptx_sreg_tid_x(); }']) >conftest.cu
             $CLANG $R2_KERNEL_FLAGS -S -o conftest.ptx conftest.cu >&AS_MESSAGE_LOG_FD 2>&1
             AS_IF([grep '\.entry k' conftest.ptx >/dev/null 2>&1],
                [r2_have_kernels=1; KERNELS_SUMMARY="yes ($CLANG)"],
                [KERNELS_SUMMARY="no ($CLANG compiles none)"])
             rm -f conftest.cu conftest.ptx
             AS_IF([test $r2_have_kernels = 1], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])])])
         AS_IF([test $r2_have_kernels = 0 && test "x$with_gpu_kernels" != xauto],
            [R2_MISSING([clang that compiles kernels for GPUs (asked for by --with-gpu-kernels)],
                [clang])])])
    AC_DEFINE_UNQUOTED([R2_KERNELS], [$r2_have_kernels], [1 if GPUs can reduce.])
    AC_DEFINE_UNQUOTED([R2_KERNELS_MISSING], ["built without kernels: $KERNELS_SUMMARY"],
        [Why not.])
    AC_SUBST([R2_KERNEL_FLAGS])
    AM_CONDITIONAL([R2_KERNELS], [test $r2_have_kernels = 1])
])
