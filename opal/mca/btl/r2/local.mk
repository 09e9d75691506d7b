# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# The Open MPI byte transport component.
mca_LTLIBRARIES += mca_btl_r2.la
mca_btl_r2_la_SOURCES = \
    opal/mca/btl/r2/btl_r2.h \
    opal/mca/btl/r2/compat.h \
    opal/mca/btl/r2/abort.c \
    opal/mca/btl/r2/component.c \
    opal/mca/btl/r2/endpoint.c \
    opal/mca/btl/r2/frag.c \
    opal/mca/btl/r2/jobs.c \
    opal/mca/btl/r2/module.c \
    opal/mca/btl/r2/osc.c \
    opal/mca/btl/r2/params.c \
    opal/mca/btl/r2/rdma.c \
    opal/mca/common/r2/finalize.c \
    opal/mca/common/r2/finalize.h \
    opal/mca/common/r2/help.c \
    opal/mca/common/r2/help.h \
    opal/mca/common/r2/params.h \
    opal/mca/common/r2/version.c \
    opal/mca/common/r2/version.h \
    opal/mca/common/r2/widen.c \
    opal/mca/common/r2/widen.h
mca_btl_r2_la_CPPFLAGS = $(OMPI_COMPONENT_CPPFLAGS) -I$(top_srcdir)/r2core/include \
    -I$(top_srcdir)/r2core -I$(top_srcdir) -I$(top_builddir) \
    -DR2_MCA_HELP_DIR='"$(mcahelpdir)"'
mca_btl_r2_la_CFLAGS = $(AM_CFLAGS) $(OMPI_MCX16)
mca_btl_r2_la_LDFLAGS = $(R2_LDFLAGS) -module -avoid-version $(R2_NO_UNDEFINED) \
    $(R2_RUNPATH)
mca_btl_r2_la_LIBADD = libr2core.la $(OMPI_COMPONENT_LIBS) -ldl
dist_mcahelp_DATA += opal/mca/btl/r2/help-btl-r2.txt

# In the component directory of the build tree, beside coll/r2.
all-local: $(R2_BUILD_MCA_DIR)/mca_btl_r2.so
$(R2_BUILD_MCA_DIR)/mca_btl_r2.so: mca_btl_r2.la $(top_srcdir)/opal/mca/btl/r2/help-btl-r2.txt
	$(AM_V_at)$(MKDIR_P) $(R2_BUILD_MCA_DIR)
	$(AM_V_at)ln -sf ../.libs/mca_btl_r2.so $@
	$(AM_V_at)cp $(top_srcdir)/opal/mca/btl/r2/help-btl-r2.txt $(R2_BUILD_MCA_DIR)/
	$(AM_V_at)touch -h $@
