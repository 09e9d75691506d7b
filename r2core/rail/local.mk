# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/rail: part of libr2core.
libr2core_la_SOURCES += \
    r2core/rail/hello.h \
    r2core/rail/nic_watch.h \
    r2core/rail/rail.c \
    r2core/rail/rail.h

libr2core_la_SOURCES += \
    r2core/rail/hello_auth.c \
    r2core/rail/hello_auth.h \
    r2core/rail/hello_conn.c \
    r2core/rail/hello_socket.c \
    r2core/rail/hello_tcp.c \
    r2core/rail/hello_tcp.h

libr2core_la_SOURCES += \
    r2core/rail/nic_advice.c \
    r2core/rail/nic_bare.c \
    r2core/rail/nic_find.c \
    r2core/rail/nic_gpu.c \
    r2core/rail/nic_list.c \
    r2core/rail/nic_measure.c \
    r2core/rail/nic_offer.c \
    r2core/rail/nic_parts.h \
    r2core/rail/nic_place.c \
    r2core/rail/nic_rdma.c \
    r2core/rail/nic_select.c \
    r2core/rail/nic_tls.c \
    r2core/rail/nic_watch.c \
    r2core/rail/port_verbs.c \
    r2core/rail/port_verbs.h \
    r2core/rail/port_watch.c \
    r2core/rail/port_watch.h

libr2core_la_SOURCES += \
    r2core/rail/probe.h \
    r2core/rail/probe_beacon.c \
    r2core/rail/probe_beacon.h \
    r2core/rail/probe_limit.h \
    r2core/rail/probe_parts.h \
    r2core/rail/probe_put.c \
    r2core/rail/probe_rail.c \
    r2core/rail/probe_tcp.c \
    r2core/rail/probe_tcp.h
