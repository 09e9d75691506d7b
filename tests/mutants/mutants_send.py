# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Defects of what link/ sends when, and by which lane, as in mutants.py."""

from watchers import (LEAST, LINK_PASS, TURN, WHOLE, WINDOW)

MUTANTS_SEND = [
    ("what-is-acknowledged-late-bars-sharing", "link/message.c",
     "    if (NULL == link->tx.queue && 0 ==", "    if (NULL == link->tx.messages && 0 ==", WHOLE),
    ("streams-are-shared-among-lanes", "link/message.c",
     "R2_LITTLE_PART * under_way_bytes <= args->bytes) {", "true) {", WHOLE),
    ("what-waits-for-credit-is-nothing", "link/message.c",
     "0 == link->tx.uncredited.count &&", "true &&", WHOLE),
    ("long-chunks-wait-for-late-acknowledgements", "link/tx.c",
     "R2_LITTLE_PART * under_way_bytes <= window_bytes", "false", WINDOW),
    ("who-waits-for-room-does-not-ask", "link/tx.c",
     "    if (NULL != link->tx.queue) {", "    if (false) {", WINDOW),
    ("who-waits-for-room-asks-at-once", "link/tx.c",
     "lane->tx.in_flight->sent_ns + R2_ROOM_NS", "lane->tx.in_flight->sent_ns", WINDOW),
    ("turns-end-on-calm-lanes", "link/tx.c",
     "    if (!r2_tx_turn_is_calm(link, lanes) ||", "    if (true ||", TURN),
    ("turns-never-end", "link/turn.c",
     "    const bool may = turn->again < R2_TURN_AGAIN;", "    const bool may = true;", TURN),
    ("slow-lanes-keep-the-turn", "link/tx.c",
     "    return 0 != (lanes >> lane->idx & 1u) &&", "    return", TURN),
    ("late-lanes-keep-the-turn", "link/tx.c",
     "            calm_ns = r2_min(calm_ns, other_ns);", "            (void) calm_ns;", TURN),
    ("nobody-asks-for-credit", "link/tx.c",
     "    if (!waiting && r2_credit_request_mute(link)) {",
     "    if (false && !waiting && r2_credit_request_mute(link)) {", LEAST),
    ("acknowledgement-covers-one-too-many", "link/ack.c",
     "    if (r2_seq_lt(lane_seq, header->ack_next)) {\n        return true;",
     "    if (r2_seq_lt(lane_seq, header->ack_next + 1)) {\n        return true;"),
    ("gaps-are-acknowledged", "link/ack_state.c",
     "        lane->rx.bits |= 1u << (ahead - 1);\n",
     "        lane->rx.next = header->lane_seq + 1;\n"),
    ("what-is-not-there-is-sent", "link/tx.c",
     "r2_min(message->granted_chunks, message->ready_chunks);", "message->granted_chunks;",
     LINK_PASS),
    ("who-leads-follows-at-once", "link/turn.c",
     "        return R2_TURN_BYTES / 2;\n", "        return 0;\n", TURN),
    ("what-was-sent-before-a-turn-ends-it", "link/turn.c",
     "    return lane == turn->before ? R2_TURN_BYTES / 4 : 0;\n", "    return 0;\n", TURN),
    ("lanes-without-a-turn-have-one", "link/turn.c",
     "    } while (0 == (lanes >> lane & 1u));", "    } while (false);", TURN),
    ("slow-lanes-have-a-turn", "link/tx.c",
     "r2_tx_is_prompt(lane) && (0 == rate || 4 * rate >= best)", "r2_tx_is_prompt(lane)", TURN),
    # Who takes part; children.
]
