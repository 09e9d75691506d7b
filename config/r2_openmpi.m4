dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 The r2 authors
dnl The installed Open MPI: its devel headers, libraries, version and component directory.

# R2_OPENMPI_LOCATE: sets OMPI_INCLUDEDIR, OMPI_LIBDIR, OMPI_INFO, MPIRUN from --with-openmpi=DIR, from
# pkg-config, or from mpicc.
AC_DEFUN([R2_OPENMPI_LOCATE], [
    AC_ARG_WITH([openmpi],
        [AS_HELP_STRING([--with-openmpi=DIR], [prefix of Open MPI (default: pkg-config, then mpicc)])],
        [], [with_openmpi=yes])
    AS_IF([test "x$with_openmpi" = xno], [AC_MSG_ERROR([r2 cannot be built without Open MPI])])
    r2_ompi_path=$PATH
    OMPI_INCLUDEDIR=
    AS_IF([test "x$with_openmpi" != xyes],
        [AS_IF([test -d "$with_openmpi"], [],
            [AC_MSG_ERROR([--with-openmpi=$with_openmpi: no such directory])])
         r2_ompi_path=$with_openmpi/bin
         PKG_CONFIG_PATH="$with_openmpi/lib/pkgconfig:$with_openmpi/lib64/pkgconfig:$PKG_CONFIG_PATH"
         export PKG_CONFIG_PATH])
    AC_PATH_PROG([OMPI_INFO], [ompi_info], [], [$r2_ompi_path])
    AC_PATH_PROG([MPIRUN], [mpirun.openmpi], [], [$r2_ompi_path])
    AS_IF([test -z "$MPIRUN"], [unset ac_cv_path_MPIRUN; AC_PATH_PROG([MPIRUN], [mpirun], [], [$r2_ompi_path])])
    AC_PATH_PROG([MPICC], [mpicc.openmpi], [], [$r2_ompi_path])
    AS_IF([test -z "$MPICC"], [unset ac_cv_path_MPICC; AC_PATH_PROG([MPICC], [mpicc], [], [$r2_ompi_path])])

    AC_MSG_CHECKING([for Open MPI])
    # With --with-openmpi=DIR, an Open MPI that pkg-config finds elsewhere is not the one asked for.
    r2_ompi_pc=no
    AS_IF([$PKG_CONFIG --exists ompi],
        [AS_IF([test "x$with_openmpi" = xyes ||
                test "`cd "$with_openmpi" && pwd -P`" = "`cd "\`$PKG_CONFIG --variable=prefix ompi\`" && pwd -P`"],
            [r2_ompi_pc=yes])])
    AS_IF([test $r2_ompi_pc = yes],
        [OMPI_INCLUDEDIR=`$PKG_CONFIG --variable=includedir ompi`
         OMPI_LIBDIR=`$PKG_CONFIG --variable=libdir ompi`
         r2_ompi_by="pkg-config"],
        [test -n "$MPICC" && $MPICC --showme:incdirs >/dev/null 2>&1],
        [OMPI_INCLUDEDIR=`$MPICC --showme:incdirs | sed 's/ .*//'`
         OMPI_LIBDIR=`$MPICC --showme:libdirs | sed 's/ .*//'`
         r2_ompi_by=$MPICC])
    AS_IF([test -n "$OMPI_INCLUDEDIR"],
        [AC_MSG_RESULT([$OMPI_INCLUDEDIR (by $r2_ompi_by)])],
        [AC_MSG_RESULT([no])
         R2_MISSING([Open MPI (not found by pkg-config ompi nor by mpicc; see also --with-openmpi=DIR)],
             [libopenmpi-dev])])
    AS_IF([test -n "$OMPI_INFO"], [], [R2_MISSING([program ompi_info], [openmpi-bin])])
    AS_IF([test -n "$MPIRUN"], [], [R2_MISSING([program mpirun], [openmpi-bin])])
])

# R2_OPENMPI_HEADERS: checks that components can be compiled; sets OMPI_CPPFLAGS, OMPI_VERSION.
AC_DEFUN([R2_OPENMPI_HEADERS], [
    OMPI_CPPFLAGS="-isystem $OMPI_INCLUDEDIR -isystem $OMPI_INCLUDEDIR/openmpi"
    OMPI_MCX16=
    # Open MPI inlines its atomics into components: with the flag it was built with they need no libatomic.
    AS_CASE([$host_cpu], [x86_64], [R2_ADD_CFLAG([OMPI_MCX16], [-mcx16])])
    OMPI_LIBS="-L$OMPI_LIBDIR -lmpi"
    OMPI_COMPONENT_LIBS="-L$OMPI_LIBDIR -lmpi -lopen-pal"

    r2_save_CPPFLAGS=$CPPFLAGS
    r2_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS"
    LIBS="$OMPI_COMPONENT_LIBS $LIBS"
    r2_ompi_devel=yes
    AC_CHECK_HEADER([mpi.h], [], [r2_ompi_devel=no; R2_MISSING([header mpi.h], [libopenmpi-dev])])
    AS_IF([test $r2_ompi_devel = yes],
        [AC_CHECK_HEADER([ompi/mca/coll/coll.h], [],
            [r2_ompi_devel=no
             R2_MISSING([Open MPI's component headers (an own Open MPI must be configured with --with-devel-headers)],
                 [libopenmpi-dev])],
            [#include "ompi_config.h"
             #include <mpi.h>])])
    AS_IF([test $r2_ompi_devel = yes],
        [AC_COMPUTE_INT([r2_ompi_major], [OMPI_MAJOR_VERSION], [#include <mpi.h>])
         AC_COMPUTE_INT([r2_ompi_minor], [OMPI_MINOR_VERSION], [#include <mpi.h>])
         AC_COMPUTE_INT([r2_ompi_release], [OMPI_RELEASE_VERSION], [#include <mpi.h>])
         OMPI_VERSION=$r2_ompi_major.$r2_ompi_minor.$r2_ompi_release
         AS_IF([test $r2_ompi_major -lt 4 || test $OMPI_VERSION != ${OMPI_VERSION#4.0.}],
            [AC_MSG_ERROR([Open MPI $OMPI_VERSION is too old: r2 needs 4.1 or newer (Debian package libopenmpi-dev)])])
         AC_MSG_CHECKING([whether Open MPI's libraries link])
         AC_LINK_IFELSE([AC_LANG_PROGRAM([[
             #include "ompi_config.h"
             #include <mpi.h>
             #include "opal/util/output.h"
             ]], [[opal_output(0, "x"); return MPI_Finalize();]])],
             [AC_MSG_RESULT([yes])],
             [AC_MSG_RESULT([no])
              R2_MISSING([libmpi and libopen-pal in $OMPI_LIBDIR], [libopenmpi-dev])])])
    CPPFLAGS=$r2_save_CPPFLAGS
    LIBS=$r2_save_LIBS
    AC_SUBST([OMPI_CPPFLAGS])
    AC_SUBST([OMPI_MCX16])
    AC_SUBST([OMPI_LIBS])
    AC_SUBST([OMPI_COMPONENT_LIBS])
    AC_SUBST([OMPI_LIBDIR])
    AC_SUBST([OMPI_VERSION])
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
        [OMPI_PKGLIBDIR=`$OMPI_INFO --path pkglibdir --parsable 2>/dev/null | sed -n 's/^path:pkglibdir://p'`
         OMPI_PKGDATADIR=`$OMPI_INFO --path pkgdatadir --parsable 2>/dev/null | sed -n 's/^path:pkgdatadir://p'`])
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

AC_DEFUN([R2_OPENMPI], [
    AC_REQUIRE([AC_CANONICAL_HOST])
    OMPI_VERSION=missing
    R2_OPENMPI_LOCATE
    AS_IF([test -n "$OMPI_INCLUDEDIR"], [R2_OPENMPI_HEADERS])
    R2_OPENMPI_DIRS
])
