dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 The r2 authors
dnl Libraries that r2 needs, and the report of all that are missing.

# R2_MISSING(WHAT, DEBIAN-PACKAGE): notes a missing piece; R2_REPORT_MISSING ends configure.
AC_DEFUN([R2_MISSING], [
    r2_missing="$r2_missing
    $1: install the Debian package $2"
    AS_CASE(["$r2_missing_packages "], [*" $2 "*], [],
        [r2_missing_packages="$r2_missing_packages $2"])
])

# R2_SYSTEM_FLAGS(VARIABLE): turns -I into -isystem, so that foreign headers do not warn.
AC_DEFUN([R2_SYSTEM_FLAGS], [
    $1=`AS_ECHO(["$$1"]) | sed -e 's/^-I/-isystem /' -e 's/ -I/ -isystem /g'`
])

# R2_CHECK_PKG(VARIABLE, MODULE, MINIMUM, HEADER, DEBIAN-PACKAGE)
# Sets VARIABLE_CPPFLAGS, VARIABLE_LIBS and VARIABLE_SUMMARY.
AC_DEFUN([R2_CHECK_PKG], [
    $1_SUMMARY=missing
    PKG_CHECK_MODULES([$1], [$2 >= $3], [
        $1_CPPFLAGS=$$1_CFLAGS
        R2_SYSTEM_FLAGS([$1_CPPFLAGS])
        $1_SUMMARY=`$PKG_CONFIG --modversion $2`
        r2_save_CPPFLAGS=$CPPFLAGS
        CPPFLAGS="$CPPFLAGS $$1_CPPFLAGS"
        AC_CHECK_HEADER([$4], [], [R2_MISSING([header $4], [$5])])
        CPPFLAGS=$r2_save_CPPFLAGS
    ], [R2_MISSING([$2 >= $3], [$5])])
    AC_SUBST([$1_CPPFLAGS])
    AC_SUBST([$1_LIBS])
])

# R2_DEPS: every library but Open MPI and CUDA.
AC_DEFUN([R2_DEPS], [
    R2_CHECK_PKG([UCX], [ucx], [1.13], [ucp/api/ucp.h], [libucx-dev])
    R2_CHECK_PKG([PMIX], [pmix], [4.0], [pmix.h], [libpmix-dev])
    R2_CHECK_PKG([HWLOC], [hwloc], [2.0], [hwloc.h], [libhwloc-dev])
    R2_CHECK_PKG([NL], [libnl-route-3.0], [3.5], [netlink/route/link.h], [libnl-route-3-dev])
    R2_CHECK_PKG([SODIUM], [libsodium], [1.0.18], [sodium.h], [libsodium-dev])

    UTHASH_SUMMARY=yes
    AC_CHECK_HEADERS([uthash.h utlist.h], [],
        [UTHASH_SUMMARY=missing
         R2_MISSING([header $ac_header], [uthash-dev])
         break])

    dnl How the library, which is opened at run time, lays out what it tells of RDMA ports.
    AC_CHECK_HEADERS([infiniband/verbs.h], [VERBS_SUMMARY=yes],
        [VERBS_SUMMARY="no (RDMA ports that go down are found by timeout)"])

    AC_ARG_ENABLE([tests],
        [AS_HELP_STRING([--disable-tests],
            [do not look for cmocka, jansson and verbs, do not build tests])],
        [], [enable_tests=yes])
    CMOCKA_SUMMARY="not wanted"
    JANSSON_SUMMARY="not wanted"
    AS_IF([test "x$enable_tests" != xno],
        [PKG_CHECK_MODULES([CMOCKA], [cmocka >= 1.1.5],
            [CMOCKA_SUMMARY=`$PKG_CONFIG --modversion cmocka`],
            [CMOCKA_SUMMARY=missing
             R2_MISSING([cmocka >= 1.1.5], [libcmocka-dev])])
         R2_CHECK_PKG([JANSSON], [jansson], [2.13], [jansson.h], [libjansson-dev])
         dnl tests/softverbs stands in for the library.
         AS_IF([test "x$VERBS_SUMMARY" != xyes],
            [R2_MISSING([header infiniband/verbs.h], [libibverbs-dev])])])
    AC_SUBST([CMOCKA_LIBS])
    AM_CONDITIONAL([R2_TESTS], [test "x$enable_tests" != xno])

    R2_DEP_CPPFLAGS="$UCX_CPPFLAGS $PMIX_CPPFLAGS $HWLOC_CPPFLAGS $NL_CPPFLAGS"
    R2_DEP_CPPFLAGS="$R2_DEP_CPPFLAGS $SODIUM_CPPFLAGS $JANSSON_CPPFLAGS"
    AC_SUBST([R2_DEP_CPPFLAGS])
])

# R2_REPORT_MISSING: ends configure when something is missing, naming everything at once.
AC_DEFUN([R2_REPORT_MISSING], [
    AS_IF([test -n "$r2_missing"],
        [AC_MSG_ERROR([these pieces are missing:$r2_missing

All at once: apt-get install$r2_missing_packages])])
])
