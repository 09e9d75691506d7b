# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Defects of teams in local/, as in mutants.py."""

from watchers import SHARED, TEAM, TEAM_ODD

MUTANTS_LOCAL = [
    ("teams-write-slots-that-are-read", "local/team_short.c",
     "    if (team->done >= wanted) {\n        return R2_OK;\n",
     "    if (true || team->done >= wanted) {\n        return R2_OK;\n", TEAM),
    ("teams-use-one-slot-for-two-calls", "local/segment.h",
     "slots + call % R2_SEGMENT_SLOTS * segment->slot_stride",
     "slots + call / 2 % R2_SEGMENT_SLOTS * segment->slot_stride", TEAM),
    ("teams-say-so-before-it-is-there", "local/team_pieces.c",
     "        r2_team_put(call, r2_long_part(pieces, k),\n",
     "        r2_team_say(pieces->own, at, number);\n"
     "        r2_team_put(call, r2_long_part(pieces, k),\n", TEAM),
    ("teams-write-pieces-that-are-read", "local/team_pieces.c",
     "r2_min(number, (uint64_t) R2_SEGMENT_LONG_SLOTS)",
     "r2_min(number, (uint64_t) 2 * R2_SEGMENT_LONG_SLOTS)", TEAM),
    ("teams-leave-before-they-were-read", "local/team_exchange.c",
     "    return R2_OK == status && pieces->direct\n",
     "    return false && pieces->direct\n", TEAM),
    ("teams-fold-from-the-left", "local/team_data.c",
     "    for (int32_t i = fold->last; i >= 0 && bytes > 0; --i) {\n",
     "    for (int32_t j = 0; j <= fold->last && bytes > 0; ++j) {\n"
     "        const int32_t i = 0 == j ? fold->last : j - 1;\n", TEAM),
    ("teams-take-shares-before-they-are-folded", "local/team_shares.c",
     "->segment, i)->folded,",
     "->segment, i)->given,", TEAM),
    ("teams-forget-that-numbers-grow", "local/segment.h",
     "    return atomic_load_explicit(at, memory_order_acquire) >= number;",
     "    return (int32_t) (uint32_t) (atomic_load_explicit(at, memory_order_acquire) - number) "
     ">= 0;", TEAM),
    ("teams-compare-the-newest-call-only", "local/team.c",
     "r2_team_mix((uint64_t) place << 32 | team->digest, r2_team_digest(args));",
     "r2_team_mix((uint64_t) place << 32, r2_team_digest(args));", TEAM_ODD),
    ("teams-know-one-place-of-theirs", "local/team.c",
     "        const uint32_t ahead = place - r2_team_place_of(team, calls + 1);\n",
     "        const uint32_t ahead = place - team->place;\n", TEAM_ODD),
    ("teams-do-not-look-at-what-they-read", "local/team_short.c",
     "         team->digest != slot->digest)) {\n", "         false)) {\n", TEAM_ODD),
    ("teams-take-what-may-have-changed", "local/team_exchange.c",
     "    return source == atomic_load(r2_long_source(pieces, i));\n", "    return true;\n",
     TEAM_ODD),
    ("teams-read-slots-of-what-was-offered", "local/team_pieces.c",
     "again ? &member->given_again : &member->given,", "again ? &member->given : &member->given,",
     TEAM),
    ("teams-forget-what-they-keep", "local/team_exchange.c",
     "        r2_team_keep(call);\n    }\n    pieces->kept", "    }\n    pieces->kept", TEAM),
    ("teams-lose-what-lies-where-the-result-goes", "local/team_exchange.c",
     "                memcpy(to, saved, part.bytes);\n", "", TEAM),
    ("members-that-make-no-call-have-no-place", "local/team.c",
     "    team->place = place;\n    r2_team_tell(team);\n",
     "    team->place = 0 == team->calls ? 0 : place;\n    r2_team_tell(team);\n", TEAM_ODD),
    ("signals-interrupt-allocations", "local/shared.c",
     "        } else if (EINTR == error) {\n", "        } else if (false) {\n", SHARED),
    ("zombies-live-without-pidfd", "local/process.c",
     "(ENOENT == error || r2_process_is_zombie(&stat))", "ENOENT == error", SHARED),
    ("processes-end-with-their-first-thread", "local/process.c",
     "('Z' == stat->state && stat->threads <= 1)", "('Z' == stat->state)", SHARED),
    ("stopped-processes-have-ended", "local/process.c",
     "    struct pollfd ends = {.fd = pidfd, .events = POLLIN};\n\n"
     "    return 1 == poll(&ends, 1, 0);",
     "    struct pollfd ends = {.fd = pidfd, .events = POLLIN};\n\n"
     "    return 1 == poll(&ends, 1, 0) || pidfd > 0;", TEAM_ODD),
    ("processes-are-told-apart-by-number", "local/process.c",
     "(0 != stat.start && stat.start != process->start)", "(0 != stat.start && false)", TEAM_ODD),
]
