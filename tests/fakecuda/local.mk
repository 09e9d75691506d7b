# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# A stand-in for the CUDA driver (docs/fakecuda.md): libcuda.so.1, driver API only. Knows nothing of
# r2core, and r2core nothing of it.
FAKECUDA_CPPFLAGS = -D_GNU_SOURCE -I$(top_srcdir)/tests
FAKECUDA_API = \
    tests/fakecuda/api.h \
    tests/fakecuda/fakecuda.h \
    tests/fakecuda/functions.def \
    tests/fakecuda/layouts.def \
    tests/fakecuda/values.def
check_LTLIBRARIES += tests/fakecuda/libcuda.la
tests_fakecuda_libcuda_la_SOURCES = $(FAKECUDA_API) \
    tests/fakecuda/lib/alloc.c \
    tests/fakecuda/lib/audit.c \
    tests/fakecuda/lib/context.c \
    tests/fakecuda/lib/copy.c \
    tests/fakecuda/lib/device.c \
    tests/fakecuda/lib/entry.c \
    tests/fakecuda/lib/event.c \
    tests/fakecuda/lib/fc.h \
    tests/fakecuda/lib/kernel.c \
    tests/fakecuda/lib/memory.c \
    tests/fakecuda/lib/order.c \
    tests/fakecuda/lib/pointer.c \
    tests/fakecuda/lib/report.c \
    tests/fakecuda/lib/settings.c \
    tests/fakecuda/lib/stream.c \
    tests/fakecuda/lib/touch.c \
    tests/fakecuda/lib/vmm.c
tests_fakecuda_libcuda_la_CPPFLAGS = $(FAKECUDA_CPPFLAGS)
# -rpath: a shared library although it is not installed. 1:0:0 is the driver's libcuda.so.1.
tests_fakecuda_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -rpath /nonexistent
tests_fakecuda_libcuda_la_LIBADD = -lpthread -ldl

FAKECUDA_LIBS = tests/fakecuda/libcuda.la $(CMOCKA_LIBS)
check_PROGRAMS += tests/fakecuda/test_api tests/fakecuda/test_memory tests/fakecuda/test_order \
    tests/fakecuda/test_pipeline tests/fakecuda/test_processes tests/fakecuda/test_rows
tests_fakecuda_test_api_SOURCES = tests/fakecuda/test_api.c $(FAKECUDA_API)
tests_fakecuda_test_api_CPPFLAGS = -I$(top_builddir) $(FAKECUDA_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_fakecuda_test_memory_SOURCES = tests/fakecuda/test_memory.c tests/fakecuda/parts.h
tests_fakecuda_test_memory_CPPFLAGS = $(FAKECUDA_CPPFLAGS)
tests_fakecuda_test_memory_LDADD = $(FAKECUDA_LIBS)
tests_fakecuda_test_order_SOURCES = tests/fakecuda/test_order.c tests/fakecuda/parts.h
tests_fakecuda_test_order_CPPFLAGS = $(FAKECUDA_CPPFLAGS)
tests_fakecuda_test_order_LDADD = $(FAKECUDA_LIBS)
tests_fakecuda_test_pipeline_SOURCES = tests/fakecuda/test_pipeline.c tests/fakecuda/parts.h
tests_fakecuda_test_pipeline_CPPFLAGS = $(FAKECUDA_CPPFLAGS)
tests_fakecuda_test_pipeline_LDADD = $(FAKECUDA_LIBS)
tests_fakecuda_test_processes_SOURCES = tests/fakecuda/test_processes.c tests/fakecuda/parts.h
tests_fakecuda_test_processes_CPPFLAGS = $(FAKECUDA_CPPFLAGS)
tests_fakecuda_test_processes_LDADD = $(FAKECUDA_LIBS)
tests_fakecuda_test_rows_SOURCES = tests/fakecuda/test_rows.c tests/fakecuda/parts.h
tests_fakecuda_test_rows_CPPFLAGS = $(FAKECUDA_CPPFLAGS)
tests_fakecuda_test_rows_LDADD = $(FAKECUDA_LIBS)
EXTRA_DIST += docs/fakecuda.md
