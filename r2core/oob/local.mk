# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/oob: part of libr2core.

libr2core_la_SOURCES += \
    r2core/oob/both.c \
    r2core/oob/both.h \
    r2core/oob/bundle.c \
    r2core/oob/bundle.h \
    r2core/oob/mesh.c \
    r2core/oob/mesh.h \
    r2core/oob/mesh_address.c \
    r2core/oob/mesh_address.h \
    r2core/oob/mesh_slot.c \
    r2core/oob/mesh_slot.h \
    r2core/oob/oob.h \
    r2core/oob/pmix.c \
    r2core/oob/pmix_event.c \
    r2core/oob/pmix_event.h \
    r2core/oob/pmix_pair.c \
    r2core/oob/pmix_port.c \
    r2core/oob/pmix_port.h \
    r2core/oob/pmix_request.c \
    r2core/oob/pmix_request.h \
    r2core/oob/pmix_server.c \
    r2core/oob/pmix_value.c \
    r2core/oob/pmix_value.h \
    r2core/oob/post.h
