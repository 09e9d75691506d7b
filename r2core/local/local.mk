# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/local: part of libr2core.
libr2core_la_SOURCES += \
    r2core/local/inbox.c \
    r2core/local/inbox.h \
    r2core/local/mailbox.c \
    r2core/local/mailbox.h \
    r2core/local/shared.c \
    r2core/local/shared.h
EXTRA_DIST += docs/local.md
