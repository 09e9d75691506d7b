# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Defects of messages that are put where they belong, as in mutants.py."""

from watchers import GIVEN_UP, PLACE, PLACED_DROP, over_nic

MUTANTS_PUT = [
    ("memory-is-given-back-without-a-fence", "link/net.c",
     "            r2_idle_renew(lane); /* what",
     "            r2_place_closed(lane, lane->conn->worker->worker); /* what", PLACED_DROP),
    ("copies-are-taken-before-the-fence", "link/rx_data.c",
     "r2_rx_may_write(link, match) && !doubtful) {", "r2_rx_may_write(link, match)) {",
     PLACED_DROP),
    ("grants-are-not-quarantined", "link/rx_match.c",
     "NULL != message && !r2_place_is_sure(message->match)", "false", PLACE),
    ("places-wait-as-long-as-the-process-reads", "link/place.c",
     "    return place->since_ns +\n"
     "           (may_lie ? r2_scaled_timeout_ns(net, R2_PLACE_TIMES) :",
     "    return may_lie ? R2_NEVER_NS : place->since_ns +\n           (may_lie ? 0 :", PLACE),
    ("headers-that-come-do-not-spare-the-lane", "link/place.c",
     "        --place->lanes[lane->idx].unsure;\n", "", PLACE),
    ("sound-lanes-fail-with-a-call", "link/place_end.c",
     "            r2_idle_renew(lane);\n",
     "            r2_lane_fence(lane, R2_ERR_CANCELED, true);\n", PLACE),
    ("calls-put-off-that-a-device-is-dead", "link/idle.c",
     "        lane->connect.unproved = R2_UNPROVED_MAX;\n", "        (void) lane;\n", PLACE),
    ("what-was-put-before-is-not-said", "link/tx_packet.c",
     "        header->flags |= R2_WIRE_UNSURE;\n", "", PLACED_DROP),
    ("the-first-lane-that-ends-is-enough", "link/place.c",
     "            r2_place_ungrant(lane, worker, place);\n",
     "            r2_place_ungrant(lane, worker, place);\n"
     "            for (uint32_t i = 0; i < R2_RAILS_MAX; ++i) {\n"
     "                place->lanes[i].unsure = 0;\n            }\n", PLACE),
    ("memory-that-is-given-up-is-not-fenced", "link/place_end.c",
     "            r2_idle_renew(lane);\n",
     "            r2_place_closed(lane, lane->conn->worker->worker);\n",
     GIVEN_UP),
    ("completion-of-a-put-is-delivery", "link/put.c",
     "        item->puts |= (uint16_t) (1u << lane->remote_idx);\n",
     "        item->acked = true;\n        ++item->message->acked_chunks;\n", PLACED_DROP),
    ("puts-are-hedged-in-the-tail", "link/hedge.c",
     " && 0 == item->puts;", ";", ["test_sim_place", "slow_rail"]),
    ("puts-are-put-again", "link/put.c",
     "item->refs > 0 || item->queued || lane", "lane", PLACED_DROP),
    ("keys-are-used-on-other-connections", "link/put.c",
     "        if (target->keys[i].connection == lane->connect.tx_connection) {",
     "        if (target->keys[i].connection > 0) {", PLACED_DROP),
    ("granted-memory-outlives-its-unmapping", "transport/uct_memory.c",
     "    r2_uct_memory_reap(memory);\n    r2_uct_pages(memory, data, bytes, part);\n",
     "    r2_uct_pages(memory, data, bytes, part);\n", over_nic("test_granted_memory_is_unmapped")),
    ("headers-overtake-what-is-put", "transport/uct_grant.c",
     "    if (!record->posted) {\n",
     "    if (!record->posted && NULL != record->prev) {\n",
     over_nic("test_puts_land_before_their_header")),
    ("flush-of-a-put-is-ignored", "transport/uct_send.c",
     "    if (record->waits) {\n        return; /* the",
     "    if (false && record->waits) {\n        return; /* the",
     over_nic("test_close_with_puts_pending")),
]
