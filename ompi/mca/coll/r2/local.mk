# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# The Open MPI collective component.
mca_LTLIBRARIES += mca_coll_r2.la
mca_coll_r2_la_SOURCES = \
    ompi/mca/coll/r2/allgather.c \
    ompi/mca/coll/r2/allreduce.c \
    ompi/mca/coll/r2/alltoall.c \
    ompi/mca/coll/r2/arguments.c \
    ompi/mca/coll/r2/barrier.c \
    ompi/mca/coll/r2/bcast.c \
    ompi/mca/coll/r2/buffer.c \
    ompi/mca/coll/r2/call.c \
    ompi/mca/coll/r2/call.h \
    ompi/mca/coll/r2/coll_r2.h \
    ompi/mca/coll/r2/collectives.def \
    ompi/mca/coll/r2/compat.h \
    ompi/mca/coll/r2/component.c \
    ompi/mca/coll/r2/edges.c \
    ompi/mca/coll/r2/entries.c \
    ompi/mca/coll/r2/entries.def \
    ompi/mca/coll/r2/errors.c \
    ompi/mca/coll/r2/ids.c \
    ompi/mca/coll/r2/memory.c \
    ompi/mca/coll/r2/module.c \
    ompi/mca/coll/r2/neighbor.c \
    ompi/mca/coll/r2/p2p.c \
    ompi/mca/coll/r2/p2p.h \
    ompi/mca/coll/r2/p2p_request.c \
    ompi/mca/coll/r2/params.c \
    ompi/mca/coll/r2/pieces.c \
    ompi/mca/coll/r2/pvars.c \
    ompi/mca/coll/r2/reducer.c \
    ompi/mca/coll/r2/reducer_kernel.c \
    ompi/mca/coll/r2/reduce_scatter.c \
    ompi/mca/coll/r2/rooted.c \
    ompi/mca/coll/r2/runs.c \
    ompi/mca/coll/r2/staged.c \
    ompi/mca/coll/r2/ulfm.c \
    ompi/mca/coll/r2/ulfm.h \
    ompi/mca/coll/r2/windows.c \
    opal/mca/common/r2/finalize.c \
    opal/mca/common/r2/finalize.h \
    opal/mca/common/r2/help.c \
    opal/mca/common/r2/help.h \
    opal/mca/common/r2/params.h \
    opal/mca/common/r2/standin/ompi/mpi/fortran/base/fint_2_int.h \
    opal/mca/common/r2/standin/opal/mca/threads/pthreads/threads_pthreads_mutex.h \
    opal/mca/common/r2/standin/opal/mca/threads/pthreads/threads_pthreads_threads.h \
    opal/mca/common/r2/standin/opal/mca/threads/pthreads/threads_pthreads_tsd.h \
    opal/mca/common/r2/version.c \
    opal/mca/common/r2/version.h \
    opal/mca/common/r2/widen.c \
    opal/mca/common/r2/widen.h
# Only the public headers of r2core: the component knows nothing of its inside.
mca_coll_r2_la_CPPFLAGS = $(OMPI_COMPONENT_CPPFLAGS) -I$(top_srcdir)/r2core/include \
    -I$(top_srcdir)/r2core -I$(top_srcdir) -I$(top_builddir) \
    -DR2_MCA_HELP_DIR='"$(mcahelpdir)"'
mca_coll_r2_la_CFLAGS = $(AM_CFLAGS) $(OMPI_MCX16)
mca_coll_r2_la_LDFLAGS = $(R2_LDFLAGS) -module -avoid-version $(R2_NO_UNDEFINED) \
    $(R2_RUNPATH)
mca_coll_r2_la_LIBADD = libr2core.la $(OMPI_COMPONENT_LIBS) -ldl
# For MPI programs, in $(includedir) itself.
include_HEADERS += ompi/include/r2_mpi.h
dist_mcahelp_DATA += ompi/mca/coll/r2/help-coll-r2.txt

# A component directory of the build tree: the component and its help text, as when installed.
R2_BUILD_MCA_DIR = mca
all-local: $(R2_BUILD_MCA_DIR)/mca_coll_r2.so
$(R2_BUILD_MCA_DIR)/mca_coll_r2.so: mca_coll_r2.la $(top_srcdir)/ompi/mca/coll/r2/help-coll-r2.txt
	$(AM_V_at)$(MKDIR_P) $(R2_BUILD_MCA_DIR)
	$(AM_V_at)ln -sf ../.libs/mca_coll_r2.so $@
	$(AM_V_at)cp $(top_srcdir)/ompi/mca/coll/r2/help-coll-r2.txt $(R2_BUILD_MCA_DIR)/
	$(AM_V_at)touch -h $@
clean-local:
	rm -rf $(R2_BUILD_MCA_DIR)
