# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Tests, with arguments, that have to notice what the tables of defects name them for."""

FLAPS = ["test_sim_catalogue", "F5_*"]
SLOW = ["test_sim_catalogue", "F4_rail*"]
LATE = ["test_sim_slow", "finds_a_dead_rail"]
LINK = ["test_link"]
LINK_PEER = ["test_link_peer"]
LINK_SHORT = ["test_link_short"]
LOCAL = ["test_local"]
LOCAL_EDGES = ["test_local_edges"]
RELAY_LANE = ["test_relay_lane"]
KEEP = ["test_keep"]
PROGRAMS = ["test_programs"]
PLANS = ["test_sim_health", "repeated_calls_*"]
WAITS = ["test_mismatch"]
CREDIT = ["test_sim_credit", "*_is_bounded"]
LEAST = ["test_sim_credit", "least_credit"]
UNIT_CREDIT = ["test_credit"]
P2P = ["test_sim_p2p"]
REPAIRS = ["test_sim_health"]
CONTROL = ["test_control"]
EXCUSES = ["test_excuses"]
CONSENT = ["test_consent"]
GRADE = ["test_lane_grade"]
UNREAD = ["test_sim_unhelpful", "data_lies_unread"]
DOUBT = ["test_sim_unhelpful", "stopped_in_mid_doubt"]
HOUR = ["test_sim_unhelpful", "stopped_for_an_hour"]
LIMIT = ["test_sim_descriptors", "limit_holds_without_any"]
PRESENCE_RELAY = ["test_sim_presence", "stopped_behind_a_relay"]
PRESENCE_VIA = ["test_sim_presence", "stopped_who_relays"]
PRESENCE_LIMIT = ["test_sim_presence", "limit_holds_*"]
FIREWALL = ["test_sim_presence", "lanes_outlive_a_firewall"]
FORK = ["test_fork"]
DRIVE = ["test_drive"]
SOURCES = ["test_sources"]
PRESENCE_FREED = ["test_sim_presence", "failed_where_others_have_freed"]
OVER_RDMA = ["test_sim_rdma"]


def over_nic(test):
    """A test of the transport over RDMA."""
    return ["test_tp_ucx", "--rc", "rc/" + test]
