dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 The r2 authors
dnl Compiler flags: warnings, -Werror, debug and sanitizer builds.

# R2_ADD_CFLAG(VARIABLE, FLAG): appends FLAG to VARIABLE if the compiler takes it.
AC_DEFUN([R2_ADD_CFLAG], [
    AS_VAR_PUSHDEF([r2_flag], [r2_cv_cflag_$2])
    AC_CACHE_CHECK([whether $CC takes $2], [r2_flag], [
        r2_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS -Werror $2"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
            [AS_VAR_SET([r2_flag], [yes])], [AS_VAR_SET([r2_flag], [no])])
        CFLAGS=$r2_save_CFLAGS
    ])
    AS_VAR_IF([r2_flag], [yes], [$1="$$1 $2"])
    AS_VAR_POPDEF([r2_flag])
])

# R2_LTO: link-time optimization of libr2core and the two components. Objects are of both kinds: the
# many test programs are linked as ever, by R2_PLAIN_LINK. Sanitizers and debug builds do without.
AC_DEFUN([R2_LTO], [
    AC_ARG_ENABLE([lto],
        [AS_HELP_STRING([--disable-lto], [no link-time optimization of the libraries (GCC only)])],
        [], [enable_lto=auto])
    R2_LTO_CFLAGS=
    R2_PLAIN_LINK=
    AS_IF([test "x$enable_lto" != xno && test -z "$r2_sanitize" && test "x$enable_debug" != xyes], [
        AC_CACHE_CHECK([whether $CC optimizes when it links], [r2_cv_lto], [
            r2_save_CFLAGS=$CFLAGS
            CFLAGS="$CFLAGS -Werror -O2 -flto=auto -ffat-lto-objects"
            AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#if defined __clang__ || !defined __GNUC__
#error "GCC only: no other compiler was tried"
#endif
]], [])], [r2_cv_lto=yes], [r2_cv_lto=no])
            CFLAGS=$r2_save_CFLAGS
        ])
        AS_IF([test $r2_cv_lto = yes],
            [R2_LTO_CFLAGS="-flto=auto -ffat-lto-objects"
             R2_PLAIN_LINK="-Wc,-fno-lto"])
    ])
    AS_IF([test "x$enable_lto" = xyes && test -z "$R2_LTO_CFLAGS"],
        [AC_MSG_ERROR([--enable-lto wants GCC 10 or later, and no sanitizer or debug build])])
    AS_IF([test -n "$R2_LTO_CFLAGS"], [enable_lto=yes], [enable_lto=no])
    R2_CFLAGS="$R2_CFLAGS $R2_LTO_CFLAGS"
    AC_SUBST([R2_PLAIN_LINK])
])

# R2_FLAGS: sets R2_CFLAGS and R2_LDFLAGS.
AC_DEFUN([R2_FLAGS], [
    R2_CFLAGS="-std=gnu11"
    R2_LDFLAGS=
    m4_foreach_w([r2_w], [-Wall -Wextra -Wshadow -Wundef -Wvla -Wstrict-prototypes
        -Wmissing-prototypes -Wswitch-enum -Wcast-qual -Wformat=2],
        [R2_ADD_CFLAG([R2_CFLAGS], r2_w)
])
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [turn warnings into errors (used by CI)])],
        [], [enable_werror=no])
    AS_IF([test "x$enable_werror" = xyes], [R2_CFLAGS="$R2_CFLAGS -Werror"])

    AC_ARG_ENABLE([debug],
        [AS_HELP_STRING([--enable-debug], [internal assertions, no optimization])],
        [], [enable_debug=no])
    AS_IF([test "x$enable_debug" = xyes],
        [AC_DEFINE([R2_ENABLE_DEBUG], [1], [Defined with internal assertions.])
         R2_CFLAGS="$R2_CFLAGS -O0 -g3 -fno-omit-frame-pointer"])

    AC_ARG_ENABLE([asan],
        [AS_HELP_STRING([--enable-asan], [AddressSanitizer and UndefinedBehaviorSanitizer])],
        [], [enable_asan=no])
    AC_ARG_ENABLE([tsan],
        [AS_HELP_STRING([--enable-tsan], [ThreadSanitizer])],
        [], [enable_tsan=no])
    AS_IF([test "x$enable_asan$enable_tsan" = xyesyes],
        [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
    r2_sanitize=
    AS_IF([test "x$enable_asan" = xyes], [r2_sanitize="-fsanitize=address,undefined"])
    AS_IF([test "x$enable_tsan" = xyes], [r2_sanitize="-fsanitize=thread"])
    # A sanitizer's runtime may live in the program: its symbols are then undefined in libraries.
    R2_NO_UNDEFINED="-Wl,-z,defs"
    AS_IF([test -n "$r2_sanitize"],
        [R2_CFLAGS="$R2_CFLAGS $r2_sanitize -fno-sanitize-recover=undefined -g"
         R2_CFLAGS="$R2_CFLAGS -fno-omit-frame-pointer"
         R2_LDFLAGS="$R2_LDFLAGS $r2_sanitize"
         R2_NO_UNDEFINED=
         AC_MSG_CHECKING([whether $r2_sanitize links])
         r2_save_CFLAGS=$CFLAGS
         CFLAGS="$CFLAGS $r2_sanitize"
         AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
             [AC_MSG_RESULT([no])
              AC_MSG_ERROR([the sanitizer's runtime is missing: install the Debian package libgcc-12-dev (gcc) or libclang-rt-14-dev (clang)])])
         CFLAGS=$r2_save_CFLAGS])
    R2_LTO
    AC_SUBST([R2_CFLAGS])
    AC_SUBST([R2_LDFLAGS])
    AC_SUBST([R2_NO_UNDEFINED])
])
