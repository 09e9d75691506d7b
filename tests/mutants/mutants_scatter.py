# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Defects of reduce_scatters through one rank of each host."""

FILE = "plan/reduce_scatter_hosts.c"
SCATTER = ["test_reduce_scatter_hosts"]

MUTANTS_SCATTER = [
    ("result-over-the-first-ranks-contribution", FILE,
     "        if (!all->is_staged) {\n"
     "            t->readers[t->reader_count++] =",
     "        if (false) {\n"
     "            t->readers[t->reader_count++] =", SCATTER),
    ("result-over-what-is-given-to-the-first-rank", FILE,
     "R2_AFTER(t->input->in_place ? sent : R2_OP_NONE)", "R2_AT_ONCE", SCATTER),
    ("blocks-are-sent-before-they-are-together", FILE,
     "msg, part.place, R2_AFTER(part.op));", "msg, part.place, R2_AFTER(all->op));", SCATTER),
    ("only-blocks-that-are-neighbours-are-brought-along", FILE,
     "        if (0 < run && run == bytes) {", "        if (0 < run) {", SCATTER),
    ("empty-blocks-end-what-is-brought-together", FILE,
     "        if (0 < run) {\n            part.op =", "        {\n            part.op =", SCATTER),
    ("hosts-are-folded-backwards", FILE,
     "    for (uint32_t h = hosts; h-- > 0;) {\n        held_t other;",
     "    for (uint32_t i = 0; i < hosts; ++i) {\n"
     "        const uint32_t h = 0 == i ? hosts - 1 : i - 1;\n        held_t other;", SCATTER),
    ("staging-memory-for-one-host-is-forgotten", FILE,
     "           (hosts.count - 1) * r2_round_up(of_host, R2_SLOT_ALIGN) + total +",
     "           (hosts.count - 2) * r2_round_up(of_host, R2_SLOT_ALIGN) + total +", SCATTER),
    ("own-contribution-takes-in-the-others", FILE,
     "            if (hosts - 1 == h && !own.is_staged) {", "            if (false) {", SCATTER),
]
