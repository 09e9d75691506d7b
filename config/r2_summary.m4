dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 The r2 authors
dnl What configure found, printed last.

AC_DEFUN([R2_SUMMARY], [
    AS_ECHO(["
r2 $PACKAGE_VERSION
  Open MPI        $OMPI_VERSION, headers in $OMPI_INCLUDEDIR
  UCX             $UCX_SUMMARY
  PMIx            $PMIX_SUMMARY
  hwloc           $HWLOC_SUMMARY
  libnl-route     $NL_SUMMARY
  libsodium       $SODIUM_SUMMARY
  jansson         $JANSSON_SUMMARY
  uthash          $UTHASH_SUMMARY
  RDMA events     $VERBS_SUMMARY
  cmocka          $CMOCKA_SUMMARY
  CUDA            $CUDA_SUMMARY
  GPU kernels     $KERNELS_SUMMARY
  debug           $enable_debug
  sanitizers      ${r2_sanitize:-no}
  LTO             $enable_lto
  -Werror         $enable_werror
  prefix          $prefix
  components      $MCA_DIR"])
    AS_IF([test "x$MCA_DIR" = "x$OMPI_PKGLIBDIR"], [],
        [AS_ECHO(["
The components go outside Open MPI's own directory. Tell Open MPI where they are:
  mpirun --mca mca_base_component_path SYSTEM_DEFAULT:DIR ..."])])
    AS_ECHO([""])
])
