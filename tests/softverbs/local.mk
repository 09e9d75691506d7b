# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# A stand-in for libibverbs and RDMA NICs (docs/softverbs.md): the NIC of a host is a program, the
# verbs are a library for LD_PRELOAD. Knows nothing of r2core, and r2core nothing of it.
SOFTVERBS_CPPFLAGS = -D_GNU_SOURCE -I$(top_srcdir)/tests
# What the two say to each other.
SOFTVERBS_TALK = \
    tests/softverbs/abi.h \
    tests/softverbs/dial.c \
    tests/softverbs/ring.c \
    tests/softverbs/ring.h

# The NIC, for the program and for tests of its queue pairs.
check_LTLIBRARIES += tests/softverbs/libnic.la
tests_softverbs_libnic_la_SOURCES = $(SOFTVERBS_TALK) \
    tests/softverbs/nic/answer.c \
    tests/softverbs/nic/arrive.c \
    tests/softverbs/nic/datagram.c \
    tests/softverbs/nic/fault.c \
    tests/softverbs/nic/files.c \
    tests/softverbs/nic/inject.c \
    tests/softverbs/nic/memory.c \
    tests/softverbs/nic/nic.h \
    tests/softverbs/nic/object.c \
    tests/softverbs/nic/packet.c \
    tests/softverbs/nic/queue.c \
    tests/softverbs/nic/request.c \
    tests/softverbs/nic/table.c \
    tests/softverbs/nic/wire.h
tests_softverbs_libnic_la_CPPFLAGS = $(SOFTVERBS_CPPFLAGS)
check_PROGRAMS += tests/softverbs/softverbs
tests_softverbs_softverbs_SOURCES = \
    tests/softverbs/nic/commands.c \
    tests/softverbs/nic/control.c \
    tests/softverbs/nic/main.c \
    tests/softverbs/nic/sockets.c
tests_softverbs_softverbs_CPPFLAGS = $(SOFTVERBS_CPPFLAGS)
tests_softverbs_softverbs_LDADD = tests/softverbs/libnic.la

check_LTLIBRARIES += tests/softverbs/libsoftverbs.la
tests_softverbs_libsoftverbs_la_SOURCES = $(SOFTVERBS_TALK) \
    tests/softverbs/lib/cq.c \
    tests/softverbs/lib/device.c \
    tests/softverbs/lib/event.c \
    tests/softverbs/lib/files.c \
    tests/softverbs/lib/given.c \
    tests/softverbs/lib/gpu.c \
    tests/softverbs/lib/lib.h \
    tests/softverbs/lib/qp.c \
    tests/softverbs/lib/srq.c
tests_softverbs_libsoftverbs_la_CPPFLAGS = $(SOFTVERBS_CPPFLAGS)
# -rpath: a shared library although it is not installed.
tests_softverbs_libsoftverbs_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nonexistent
tests_softverbs_libsoftverbs_la_LIBADD = -lpthread -ldl

# What a process copies.
check_LTLIBRARIES += tests/softverbs/copies.la
tests_softverbs_copies_la_SOURCES = tests/softverbs/copies.c
tests_softverbs_copies_la_CFLAGS = $(AM_CFLAGS) -fno-builtin
tests_softverbs_copies_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nonexistent

# The NIC's queue pairs, between two NICs in one process.
SOFTVERBS_PAIR = tests/softverbs/pair.c tests/softverbs/pair.h
SOFTVERBS_PAIR_LIBS = tests/softverbs/libnic.la $(CMOCKA_LIBS)
check_PROGRAMS += tests/softverbs/test_nic tests/softverbs/test_nic_fails
tests_softverbs_test_nic_SOURCES = $(SOFTVERBS_PAIR) tests/softverbs/test_nic.c
tests_softverbs_test_nic_CPPFLAGS = $(SOFTVERBS_CPPFLAGS)
tests_softverbs_test_nic_LDADD = $(SOFTVERBS_PAIR_LIBS)
tests_softverbs_test_nic_fails_SOURCES = $(SOFTVERBS_PAIR) tests/softverbs/test_nic_fails.c
tests_softverbs_test_nic_fails_CPPFLAGS = $(SOFTVERBS_CPPFLAGS)
tests_softverbs_test_nic_fails_LDADD = $(SOFTVERBS_PAIR_LIBS)

# The verbs, in processes.
check_PROGRAMS += tests/softverbs/test_verbs
tests_softverbs_test_verbs_SOURCES = tests/softverbs/test_verbs.c
tests_softverbs_test_verbs_CPPFLAGS = $(SOFTVERBS_CPPFLAGS)
tests_softverbs_test_verbs_LDADD = -libverbs $(CMOCKA_LIBS)
EXTRA_DIST += docs/softverbs.md tests/softverbs/perftest.py tests/softverbs/scale.py \
    tests/softverbs/test_softverbs.py tests/softverbs/with-nic
