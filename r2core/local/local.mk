# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Sources of r2core/local: part of libr2core.
libr2core_la_SOURCES += \
    r2core/local/inbox.c \
    r2core/local/inbox.h \
    r2core/local/mailbox.c \
    r2core/local/mailbox.h \
    r2core/local/process.c \
    r2core/local/process.h \
    r2core/local/segment.c \
    r2core/local/segment.h \
    r2core/local/shared.c \
    r2core/local/shared.h \
    r2core/local/team.c \
    r2core/local/team.h \
    r2core/local/team_data.c \
    r2core/local/team_exchange.c \
    r2core/local/team_long.c \
    r2core/local/team_long.h \
    r2core/local/team_parts.h \
    r2core/local/team_pieces.c \
    r2core/local/team_shares.c \
    r2core/local/team_short.c \
    r2core/local/team_wait.c \
    r2core/local/team_wait.h
EXTRA_DIST += docs/local.md
