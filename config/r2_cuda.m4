dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 The r2 authors
dnl Optional CUDA support. Only the header is needed: the driver library is opened at run time.

AC_DEFUN([R2_CUDA], [
    AC_ARG_WITH([cuda],
        [AS_HELP_STRING([--with-cuda=DIR],
            [CUDA toolkit (default: use it if found; "no": do not look)])],
        [], [with_cuda=auto])
    CUDA_CPPFLAGS=
    CUDA_SUMMARY=no
    r2_have_cuda=0
    AS_IF([test "x$with_cuda" != xno],
        [AS_CASE([$with_cuda],
            [auto|yes], [r2_cuda_dirs="$CUDA_HOME /usr/local/cuda /usr"],
            [r2_cuda_dirs=$with_cuda])
         r2_save_CPPFLAGS=$CPPFLAGS
         for r2_dir in $r2_cuda_dirs; do
             test $r2_have_cuda = 0 && test -e "$r2_dir/include/cuda.h" || continue
             AS_IF([test "x$r2_dir" = x/usr], [CUDA_CPPFLAGS=],
                 [CUDA_CPPFLAGS="-isystem $r2_dir/include"])
             CPPFLAGS="$r2_save_CPPFLAGS $CUDA_CPPFLAGS"
             AS_UNSET([ac_cv_header_cuda_h])
             AC_CHECK_HEADER([cuda.h], [r2_have_cuda=1; CUDA_SUMMARY="yes ($r2_dir)"],
                 [CUDA_CPPFLAGS=])
         done
         CPPFLAGS=$r2_save_CPPFLAGS
         AS_IF([test $r2_have_cuda = 0 && test "x$with_cuda" != xauto],
            [R2_MISSING([cuda.h in $r2_cuda_dirs (asked for by --with-cuda)],
                [nvidia-cuda-toolkit])])])
    AC_DEFINE_UNQUOTED([R2_HAVE_CUDA], [$r2_have_cuda], [1 if built with CUDA support.])
    AC_SUBST([CUDA_CPPFLAGS])
    AM_CONDITIONAL([R2_CUDA], [test $r2_have_cuda = 1])
])
