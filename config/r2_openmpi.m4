dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 The r2 authors
dnl The installed Open MPI: its devel headers, libraries, version and component directory.

# R2_OPENMPI_LOCATE: sets OMPI_INCLUDEDIR, OMPI_LIBDIR, OMPI_INFO, MPIRUN, MPICC from
# --with-openmpi=DIR, else from the mpicc that is first in PATH, else from pkg-config.
AC_DEFUN([R2_OPENMPI_LOCATE], [
    AC_ARG_WITH([openmpi],
        [AS_HELP_STRING([--with-openmpi=DIR],
            [prefix of Open MPI (default: mpicc, then pkg-config)])],
        [], [with_openmpi=yes])
    AS_IF([test "x$with_openmpi" = xno], [AC_MSG_ERROR([r2 cannot be built without Open MPI])])
    r2_ompi_path=$PATH
    OMPI_INCLUDEDIR=
    AS_IF([test "x$with_openmpi" != xyes],
        [AS_IF([test -d "$with_openmpi"], [],
            [AC_MSG_ERROR([--with-openmpi=$with_openmpi: no such directory])])
         r2_ompi_path=$with_openmpi/bin
         PKG_CONFIG_PATH="$with_openmpi/lib64/pkgconfig:$PKG_CONFIG_PATH"
         PKG_CONFIG_PATH="$with_openmpi/lib/pkgconfig:$PKG_CONFIG_PATH"
         export PKG_CONFIG_PATH])
    # Another MPI's mpicc does not know --showme. Debian has names of Open MPI's own beside it.
    MPICC=
    R2_OPENMPI_MPICC([mpicc])
    R2_OPENMPI_MPICC([mpicc.openmpi])
    # The programs of the same Open MPI, which lie beside its mpicc.
    AS_IF([test -n "$MPICC"], [r2_ompi_path=`AS_DIRNAME(["$MPICC"])`$PATH_SEPARATOR$r2_ompi_path])
    R2_OPENMPI_PROG([OMPI_INFO], [ompi_info], [ompi_info])
    R2_OPENMPI_PROG([MPIRUN], [mpirun.openmpi], [mpirun])

    AC_MSG_CHECKING([for Open MPI])
    AS_IF([test -n "$MPICC"], [R2_OPENMPI_BY_MPICC], [R2_OPENMPI_BY_PKG_CONFIG])
    AS_IF([test -n "$OMPI_INCLUDEDIR"],
        [AC_MSG_RESULT([$OMPI_INCLUDEDIR (by $r2_ompi_by)])],
        [AC_MSG_RESULT([no])
         R2_MISSING([Open MPI (found neither by mpicc nor by pkg-config ompi; see also --with-openmpi=DIR)],
             [libopenmpi-dev])])
    AS_IF([test -n "$OMPI_INFO"], [], [R2_MISSING([program ompi_info], [openmpi-bin])])
    AS_IF([test -n "$MPIRUN"], [], [R2_MISSING([program mpirun], [openmpi-bin])])
])

# R2_OPENMPI_MPICC(NAME): sets MPICC to the first such program, if it is Open MPI's and none is set.
AC_DEFUN([R2_OPENMPI_MPICC], [
    AS_IF([test -z "$MPICC"],
        [AS_UNSET([ac_cv_path_r2_mpicc])
         AS_UNSET([r2_mpicc])
         AC_PATH_PROG([r2_mpicc], [$1], [], [$r2_ompi_path])
         AS_IF([test -n "$r2_mpicc" && "$r2_mpicc" --showme:incdirs >/dev/null 2>&1],
            [MPICC=$r2_mpicc])])
])

# R2_OPENMPI_PROG(VARIABLE, NAME, OTHER-NAME): a program of Open MPI's.
AC_DEFUN([R2_OPENMPI_PROG], [
    AC_PATH_PROG([$1], [$2], [], [$r2_ompi_path])
    AS_IF([test -z "$$1"], [AS_UNSET([ac_cv_path_$1])
         AC_PATH_PROG([$1], [$3], [], [$r2_ompi_path])])
])

# The wrapper lists several folders of headers: it is the one with mpi.h.
AC_DEFUN([R2_OPENMPI_BY_MPICC], [
    for r2_dir in `"$MPICC" --showme:incdirs`; do
        AS_IF([test -z "$OMPI_INCLUDEDIR" && test -e "$r2_dir/mpi.h"], [OMPI_INCLUDEDIR=$r2_dir])
    done
    OMPI_LIBDIR=`"$MPICC" --showme:libdirs | sed 's/ .*//'`
    r2_ompi_by=$MPICC
])

# With --with-openmpi=DIR, an Open MPI that pkg-config finds elsewhere is not the one asked for.
AC_DEFUN([R2_OPENMPI_BY_PKG_CONFIG], [
    r2_ompi_pc=no
    r2_ompi_prefix=`$PKG_CONFIG --variable=prefix ompi 2>/dev/null`
    AS_IF([$PKG_CONFIG --exists ompi],
        [AS_IF([test "x$with_openmpi" = xyes ||
                test "`cd "$with_openmpi" && pwd -P`" = "`cd "$r2_ompi_prefix" && pwd -P`"],
            [r2_ompi_pc=yes])])
    AS_IF([test $r2_ompi_pc = yes],
        [OMPI_INCLUDEDIR=`$PKG_CONFIG --variable=includedir ompi`
         OMPI_LIBDIR=`$PKG_CONFIG --variable=libdir ompi`
         r2_ompi_by="pkg-config"])
])

# R2_OPENMPI_INTERFACE: the version of the interface of collective components, where headers tell
# it. Development goes on under the same number of Open MPI.
AC_DEFUN([R2_OPENMPI_INTERFACE], [
    r2_ompi_coll=$OMPI_INCLUDEDIR/openmpi/ompi/mca/coll/coll.h
    AS_IF([test -e "$r2_ompi_coll"],
        [r2_ompi_interface=`sed -n 's/^#define MCA_COLL_BASE_VERSION_\(@<:@0-9_@:>@*\).*/\1/p' \
             "$r2_ompi_coll" | tr _ .`
         AS_CASE([$r2_ompi_interface],
            [2.0.0|2.4.0|3.0.0], [],
            [r2_ompi_verdict="not supported yet: the interface of its collective components is ${r2_ompi_interface:-unknown}"])])
])

# R2_OPENMPI_VERSION: sets OMPI_VERSION, and ends configure where r2 does not know the version.
AC_DEFUN([R2_OPENMPI_VERSION], [
    # Preprocessed only: the version is known even where nothing else of it can be compiled.
    AC_MSG_CHECKING([for the version of Open MPI])
    cat >conftest.h <<R2_EOF
#include "$OMPI_INCLUDEDIR/mpi.h"
r2_version OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION
R2_EOF
    OMPI_VERSION=`$CPP -I"$OMPI_INCLUDEDIR" conftest.h 2>&AS_MESSAGE_LOG_FD \
        | sed -n 's/ *//g; s/^r2_version//p'`
    rm -f conftest.h
    AC_MSG_RESULT([$OMPI_VERSION])
    r2_ompi_verdict=
    AS_CASE([$OMPI_VERSION],
        [4.1.*|5.0.*|6.*], [R2_OPENMPI_INTERFACE],
        [@<:@0-3@:>@.*|4.0.*], [r2_ompi_verdict="too old for r2"],
        [@<:@0-9@:>@*], [r2_ompi_verdict="not supported yet: the interface of its components may be another one"],
        [r2_ompi_verdict="not to be told: $OMPI_INCLUDEDIR/mpi.h is missing, or not Open MPI's"])
    AS_IF([test -n "$r2_ompi_verdict"],
        [AC_MSG_ERROR([this version of Open MPI is $r2_ompi_verdict

  Found:      ${OMPI_VERSION:-no version}, headers in $OMPI_INCLUDEDIR (by $r2_ompi_by)
  Supported:  4.1 and 5.0 (all releases), 6 (development, as of August 2026)

Give the prefix of one of these by --with-openmpi=DIR, or put its bin folder first in PATH. On
Debian 12 and 13 the package libopenmpi-dev is one.])])
    AC_SUBST([OMPI_VERSION])
])

# R2_OPENMPI_HEADERS: checks that components can be compiled and linked; sets the flags for that.
# OMPI_CPPFLAGS is for MPI programs; OMPI_COMPONENT_CPPFLAGS, for components, also finds PMIx's
# headers, which those of 5.0 include, and behind all others stand-ins for headers that Open MPI's
# include, but that packages leave out.
AC_DEFUN([R2_OPENMPI_HEADERS], [
    OMPI_CPPFLAGS="-isystem $OMPI_INCLUDEDIR -isystem $OMPI_INCLUDEDIR/openmpi"
    r2_standin=opal/mca/common/r2/standin
    OMPI_COMPONENT_CPPFLAGS="$OMPI_CPPFLAGS $PMIX_CPPFLAGS -idirafter \$(top_srcdir)/$r2_standin"
    OMPI_MCX16=
    # Open MPI inlines its atomics into components: with the flag it was built with they need no
    # libatomic.
    AS_CASE([$host_cpu], [x86_64], [R2_ADD_CFLAG([OMPI_MCX16], [-mcx16])])
    # Since 6 libmpi has the functions of MPI, and another library all that they use.
    r2_ompi_inner=
    AS_IF([test -e "$OMPI_LIBDIR/libopen_mpi.so"], [r2_ompi_inner=-lopen_mpi])
    OMPI_LIBS="-L$OMPI_LIBDIR -lmpi $r2_ompi_inner"
    OMPI_COMPONENT_LIBS="$OMPI_LIBS -lopen-pal"

    r2_save_CPPFLAGS=$CPPFLAGS
    r2_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS $PMIX_CPPFLAGS -idirafter $srcdir/$r2_standin"
    LIBS="$OMPI_COMPONENT_LIBS $LIBS"
    AC_MSG_CHECKING([whether Open MPI's component headers compile])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([R2_OPENMPI_INCLUDES])],
        [AC_MSG_RESULT([yes])
         R2_OPENMPI_LINKS],
        [# gcc: "fatal error: NAME: No such file"; clang: "fatal error: 'NAME' file not found"
         r2_header=@<:@`sed -n "s/.*fatal error: '*\([^ :']*\).*/\1/p" conftest.err | sed 1q`@:>@
         AC_MSG_RESULT([no])
         AS_CASE([$r2_header],
            [''], [AC_MSG_ERROR([Open MPI $OMPI_VERSION: its component headers in $OMPI_INCLUDEDIR do not compile; see config.log])],
            [ompi/mca/coll/coll.h], [R2_MISSING([Open MPI's component headers (an own Open MPI must be configured with --with-devel-headers)],
                 [libopenmpi-dev])],
            [AC_MSG_ERROR([Open MPI $OMPI_VERSION: its component headers in $OMPI_INCLUDEDIR include $r2_header,
which is not there, and r2 has no stand-in for it. Take it from the sources of this very Open MPI, built with
the same options, or build Open MPI with --with-devel-headers.])])])
    CPPFLAGS=$r2_save_CPPFLAGS
    LIBS=$r2_save_LIBS
    AC_SUBST([OMPI_CPPFLAGS])
    AC_SUBST([OMPI_COMPONENT_CPPFLAGS])
    AC_SUBST([OMPI_MCX16])
    AC_SUBST([OMPI_LIBS])
    AC_SUBST([OMPI_COMPONENT_LIBS])
    AC_SUBST([OMPI_LIBDIR])
])

AC_DEFUN([R2_OPENMPI_LINKS], [
    AC_MSG_CHECKING([whether Open MPI's libraries link])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[
        #include "ompi_config.h"
        #include <mpi.h>
        #include "opal/util/output.h"
        ]], [[opal_output(0, "x"); return MPI_Finalize();]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         R2_MISSING([libmpi and libopen-pal in $OMPI_LIBDIR], [libopenmpi-dev])])
])

# What components include, with all that it includes.
m4_define([R2_OPENMPI_INCLUDES], [
#include "ompi_config.h"
#include <mpi.h>
#include "ompi/mca/coll/coll.h"
#include "ompi/communicator/communicator.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"
#include "opal/mca/btl/btl.h"
])

# R2_OPENMPI_DIRS: where components and their help texts are installed.
AC_DEFUN([R2_OPENMPI_DIRS], [
    AC_ARG_WITH([mca-dir],
        [AS_HELP_STRING([--with-mca-dir=DIR],
            [where the components go (default: Open MPI's pkglibdir; "own": LIBDIR/openmpi)])],
        [], [with_mca_dir=yes])
    OMPI_PKGLIBDIR=
    OMPI_PKGDATADIR=
    AS_IF([test -n "$OMPI_INFO"],
        [OMPI_PKGLIBDIR=`$OMPI_INFO --path pkglibdir --parsable 2>/dev/null \
             | sed -n 's/^path:pkglibdir://p'`
         OMPI_PKGDATADIR=`$OMPI_INFO --path pkgdatadir --parsable 2>/dev/null \
             | sed -n 's/^path:pkgdatadir://p'`])
    AS_CASE([$with_mca_dir],
        [yes|no], [MCA_DIR=$OMPI_PKGLIBDIR; MCA_HELP_DIR=$OMPI_PKGDATADIR],
        [own], [MCA_DIR='${libdir}/openmpi'; MCA_HELP_DIR='${datadir}/openmpi'],
        [MCA_DIR=$with_mca_dir; MCA_HELP_DIR='${datadir}/openmpi'])
    AS_IF([test -n "$MCA_DIR" || test -n "$r2_missing"], [],
        [AC_MSG_ERROR([$OMPI_INFO does not tell pkglibdir: give --with-mca-dir=DIR])])
    AC_SUBST([MCA_DIR])
    AC_SUBST([MCA_HELP_DIR])
    AC_SUBST([OMPI_PKGLIBDIR])
])

# R2_OPENMPI_FIND comes before R2_DEPS: it tells pkg-config of --with-openmpi=DIR, where a PMIx of
# Open MPI's own may lie; R2_OPENMPI comes after it: it needs PMIx's flags.
AC_DEFUN([R2_OPENMPI_FIND], [
    AC_REQUIRE([AC_PROG_CPP])
    OMPI_VERSION=missing
    R2_OPENMPI_LOCATE
    AS_IF([test -n "$OMPI_INCLUDEDIR"], [R2_OPENMPI_VERSION])
])

AC_DEFUN([R2_OPENMPI], [
    AC_REQUIRE([AC_CANONICAL_HOST])
    AS_IF([test -n "$OMPI_INCLUDEDIR"], [R2_OPENMPI_HEADERS])
    R2_OPENMPI_DIRS
])
