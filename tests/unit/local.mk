# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Unit tests (cmocka). A test is three lines:
#   check_PROGRAMS += tests/unit/test_NAME
#   tests_unit_test_NAME_SOURCES = tests/unit/test_NAME.c
#   tests_unit_test_NAME_LDADD = $(R2_TEST_LIBS)
# and one line in tests/suites.tsv. R2_TEST_LIBS gives all of r2core, hidden functions too;
# R2_PLAN_TEST_LIBS gives base, model and plan only.

# TCP hello driver
check_PROGRAMS += tests/unit/test_hello tests/unit/test_hello_abuse
tests_unit_test_hello_SOURCES = tests/unit/test_hello.c tests/unit/hello_ends.h \
    tests/unit/moved_clock.h
tests_unit_test_hello_LDADD = $(R2_TEST_LIBS)
tests_unit_test_hello_abuse_SOURCES = tests/unit/test_hello_abuse.c tests/unit/hello_ends.h \
    tests/unit/moved_clock.h
tests_unit_test_hello_abuse_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_mailbox
tests_unit_test_mailbox_SOURCES = tests/unit/test_mailbox.c
tests_unit_test_mailbox_LDADD = $(R2_TEST_LIBS)

# UCX transport
check_PROGRAMS += tests/unit/test_tp_ucx
tests_unit_test_tp_ucx_SOURCES = \
    tests/open_files.h \
    tests/unit/test_tp_ucx.c \
    tests/unit/tp_closing.c \
    tests/unit/tp_land.c \
    tests/unit/tp_memory.c \
    tests/unit/tp_memory.h \
    tests/unit/tp_pin.c \
    tests/unit/tp_processes.c \
    tests/unit/tp_put.c \
    tests/unit/tp_rail.c \
    tests/unit/tp_rdma.c \
    tests/unit/tp_sides.c \
    tests/unit/tp_tcp.c \
    tests/unit/tp_sides.h
tests_unit_test_tp_ucx_LDADD = $(R2_TEST_LIBS) -ldl
tests_unit_test_tp_ucx_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
check_PROGRAMS += tests/unit/test_fds
tests_unit_test_fds_SOURCES = tests/unit/test_fds.c
tests_unit_test_fds_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/lab/ucx_flaps
tests_lab_ucx_flaps_SOURCES = \
    tests/lab/ucx_flaps.c \
    tests/lab/ucx_flaps.h \
    tests/lab/ucx_flaps_lanes.c \
    tests/open_files.h
tests_lab_ucx_flaps_LDADD = $(R2_TEST_LIBS)
EXTRA_DIST += tests/lab/test_ucx_flaps.py

# Schedules: the checker over every builder, broken schedules that it must catch, choices by length
CHECKER_SOURCES = \
    tests/unit/checker.c \
    tests/unit/checker.h \
    tests/unit/checker_parts.h \
    tests/unit/checker_moves.c \
    tests/unit/checker_race.c \
    tests/unit/checker_run.c \
    tests/unit/checker_values.c \
    tests/unit/schedule_cases.c \
    tests/unit/schedule_cases.h
check_PROGRAMS += tests/unit/test_schedule tests/unit/test_schedule_hosts \
    tests/unit/test_schedule_crowded \
    tests/unit/test_reduce_scatter_hosts \
    tests/unit/test_schedule_first tests/unit/test_schedule_mutants tests/unit/test_plan_golden
tests_unit_test_schedule_SOURCES = tests/unit/test_schedule.c $(CHECKER_SOURCES)
tests_unit_test_schedule_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_schedule_hosts_SOURCES = tests/unit/test_schedule_hosts.c $(CHECKER_SOURCES)
tests_unit_test_schedule_hosts_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_schedule_crowded_SOURCES = tests/unit/test_schedule_crowded.c $(CHECKER_SOURCES)
tests_unit_test_schedule_crowded_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_reduce_scatter_hosts_SOURCES = tests/unit/test_reduce_scatter_hosts.c \
    $(CHECKER_SOURCES)
tests_unit_test_reduce_scatter_hosts_LDADD = $(R2_PLAN_TEST_LIBS)

tests_unit_test_schedule_first_SOURCES = tests/unit/test_schedule_first.c $(CHECKER_SOURCES)
tests_unit_test_schedule_first_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_schedule_mutants_SOURCES = tests/unit/test_schedule_mutants.c $(CHECKER_SOURCES)
tests_unit_test_schedule_mutants_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_plan_golden_SOURCES = tests/unit/test_plan_golden.c
tests_unit_test_plan_golden_LDADD = $(R2_PLAN_TEST_LIBS)
EXTRA_DIST += tests/golden/plans.txt tests/golden/sim.txt

# Remembered plans
check_PROGRAMS += tests/unit/test_plan_memo tests/unit/test_programs
tests_unit_test_plan_memo_SOURCES = tests/unit/test_plan_memo.c
tests_unit_test_plan_memo_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_programs_SOURCES = tests/unit/test_programs.c
tests_unit_test_programs_LDADD = $(R2_TEST_LIBS)

# Cost parameters from a file
check_PROGRAMS += tests/unit/test_layout
tests_unit_test_layout_SOURCES = tests/unit/test_layout.c
tests_unit_test_layout_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_cost
tests_unit_test_cost_SOURCES = tests/unit/test_cost.c
tests_unit_test_cost_LDADD = $(R2_TEST_LIBS)

# Choices on machines described in text
check_PROGRAMS += tests/unit/test_plan_topology
tests_unit_test_plan_topology_SOURCES = tests/unit/test_plan_topology.c
tests_unit_test_plan_topology_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools
tests_unit_test_plan_topology_LDADD = libr2flow.la $(R2_PLAN_TEST_LIBS)
EXTRA_DIST += tests/golden/topologies tests/golden/topologies.txt

# Topology, shares, predicted times; weighted allreduce under the checker
check_PROGRAMS += tests/unit/test_shares tests/unit/test_shares_random tests/unit/test_weighted
check_PROGRAMS += tests/unit/test_recursive
tests_unit_test_recursive_SOURCES = tests/unit/test_recursive.c $(CHECKER_SOURCES)
tests_unit_test_recursive_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_weighted_SOURCES = tests/unit/test_weighted.c $(CHECKER_SOURCES)
tests_unit_test_weighted_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_shares_SOURCES = tests/unit/shares_fixture.h tests/unit/test_shares.c
tests_unit_test_shares_random_SOURCES = tests/unit/shares_fixture.h tests/unit/test_shares_random.c
tests_unit_test_shares_random_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_shares_LDADD = $(R2_PLAN_TEST_LIBS)

# Data and arithmetic of the benchmarks
check_PROGRAMS += tests/unit/test_bench
tests_unit_test_bench_SOURCES = tests/unit/test_bench.c
tests_unit_test_bench_CPPFLAGS = -I$(top_srcdir) -I$(top_builddir) $(OMPI_CPPFLAGS)
tests_unit_test_bench_LDADD = libr2bench.la $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/test_kinds
tests_unit_test_kinds_SOURCES = tests/unit/test_kinds.c
tests_unit_test_kinds_CPPFLAGS = $(tests_unit_test_bench_CPPFLAGS)
tests_unit_test_kinds_LDADD = libr2bench.la $(CMOCKA_LIBS)

# NICs
check_PROGRAMS += tests/unit/test_nic tests/unit/test_rail_netns
tests_unit_test_nic_SOURCES = tests/unit/test_nic.c tests/unit/fake_sysfs.h
tests_unit_test_nic_LDADD = $(R2_TEST_LIBS) $(HWLOC_LIBS)
tests_unit_test_rail_netns_SOURCES = tests/unit/test_rail_netns.c tests/unit/hello_ends.h \
    tests/unit/moved_clock.h tests/unit/two_hosts.h
tests_unit_test_rail_netns_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_nic_gpu
tests_unit_test_nic_gpu_SOURCES = tests/unit/test_nic_gpu.c $(INFO_SHOWS)
tests_unit_test_nic_gpu_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools -I$(top_srcdir)/tools/info
tests_unit_test_nic_gpu_LDADD = $(R2_TEST_LIBS) $(HWLOC_LIBS)
EXTRA_DIST += \
    tests/golden/nic/chains.txt \
    tests/golden/nic/dgx-a100.xml \
    tests/golden/nic/dgx-h100.xml \
    tests/golden/nic/dual-4nic.xml \
    tests/golden/nic/dual-8nic.xml \
    tests/golden/nic/gpus.txt tests/golden/nic/nearest.txt \
    tests/golden/nic/plain-2gpu.xml \
    tests/golden/nic/single-2nic.xml

check_PROGRAMS += tests/unit/test_rail
tests_unit_test_rail_SOURCES = tests/unit/test_rail.c
tests_unit_test_rail_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_rdma
check_PROGRAMS += tests/unit/test_port_watch
tests_unit_test_port_watch_SOURCES = tests/unit/test_port_watch.c
tests_unit_test_port_watch_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_rdma_losses
tests_unit_test_rdma_losses_SOURCES = tests/unit/test_rdma_losses.c tests/unit/fake_sysfs.h
tests_unit_test_rdma_losses_LDADD = $(R2_TEST_LIBS)
tests_unit_test_rdma_SOURCES = tests/unit/test_rdma.c tests/unit/fake_sysfs.h \
    tests/unit/rdma_hosts.h $(INFO_SHOWS)
tests_unit_test_rdma_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools/info
tests_unit_test_rdma_LDADD = $(R2_TEST_LIBS)
EXTRA_DIST += \
    tests/golden/rdma/bond.txt \
    tests/golden/rdma/no-such-port.txt \
    tests/golden/rdma/port-down.txt \
    tests/golden/rdma/two-ports.txt \
    tests/golden/rdma/virtual-functions.txt \
    tests/golden/rdma/without-ip.txt

# r2_info
INFO_SHOWS = tools/info/info.h tools/info/json.c tools/info/problems.c tools/info/text.c
check_PROGRAMS += tests/unit/test_info
tests_unit_test_info_SOURCES = tests/unit/test_info.c tools/info/pmix_file.c \
    tools/info/problems.c tools/info/info.h
tests_unit_test_info_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools/info
tests_unit_test_info_LDADD = $(R2_TEST_LIBS)

# Parameters, wire format, engine, ranks as threads
check_PROGRAMS += tests/unit/test_log
tests_unit_test_log_SOURCES = tests/unit/test_log.c
tests_unit_test_log_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_fork
tests_unit_test_fork_SOURCES = tests/unit/test_fork.c
tests_unit_test_fork_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_params tests/unit/test_units tests/unit/test_json \
    tests/unit/test_wire tests/unit/test_wire_short \
    tests/unit/test_exec tests/unit/test_exec_data tests/unit/test_threads \
    tests/unit/test_threads_p2p
tests_unit_test_json_SOURCES = tests/unit/test_json.c
tests_unit_test_json_LDADD = $(R2_PLAN_TEST_LIBS) $(JANSSON_LIBS)
tests_unit_test_units_SOURCES = tests/unit/test_units.c
tests_unit_test_units_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_params_SOURCES = tests/unit/test_params.c
tests_unit_test_params_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_wire_SOURCES = tests/unit/test_wire.c
tests_unit_test_wire_LDADD = $(R2_TEST_LIBS)
tests_unit_test_wire_short_SOURCES = tests/unit/test_wire_short.c
tests_unit_test_wire_short_LDADD = $(R2_TEST_LIBS)
tests_unit_test_exec_SOURCES = tests/unit/exec_links.h tests/unit/test_exec.c
tests_unit_test_exec_data_SOURCES = tests/unit/exec_links.h tests/unit/test_exec_data.c
tests_unit_test_exec_data_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_exec_LDADD = $(R2_PLAN_TEST_LIBS)
check_PROGRAMS += tests/unit/test_fuse
tests_unit_test_fuse_SOURCES = tests/unit/exec_links.h tests/unit/test_fuse.c
tests_unit_test_fuse_LDADD = $(R2_PLAN_TEST_LIBS)
check_PROGRAMS += tests/unit/test_exec_staged
tests_unit_test_exec_staged_SOURCES = tests/unit/exec_gpu.h tests/unit/exec_links.h \
    tests/unit/test_exec_staged.c \
    tests/fakecuda/parts.h
tests_unit_test_exec_staged_LDADD = $(R2_PLAN_TEST_LIBS) tests/fakecuda/libcuda.la
check_PROGRAMS += tests/unit/test_device_cost
tests_unit_test_device_cost_SOURCES = tests/unit/test_device_cost.c
tests_unit_test_device_cost_LDADD = $(R2_PLAN_TEST_LIBS)
check_PROGRAMS += tests/unit/test_exec_rates
tests_unit_test_exec_rates_SOURCES = tests/unit/exec_gpu.h tests/unit/exec_links.h \
    tests/unit/exec_sums.h \
    tests/unit/test_exec_rates.c \
    tests/doubles/kernels_c.c \
    tests/fakecuda/parts.h
tests_unit_test_exec_rates_LDADD = $(R2_PLAN_TEST_LIBS) tests/fakecuda/libcuda.la
check_PROGRAMS += tests/unit/test_exec_device
tests_unit_test_exec_device_SOURCES = tests/unit/exec_gpu.h tests/unit/exec_links.h \
    tests/unit/exec_sums.h \
    tests/unit/test_exec_device.c \
    tests/doubles/kernels_c.c \
    tests/fakecuda/parts.h
tests_unit_test_exec_device_LDADD = $(R2_PLAN_TEST_LIBS) tests/fakecuda/libcuda.la
if R2_KERNELS
# They include mem/kernels.c.
tests/unit/test_exec.o tests/unit/test_exec_data.o tests/unit/test_exec_device.o \
    tests/unit/test_exec_borrow.o tests/unit/test_exec_lend.o tests/unit/test_exec_lend_odd.o \
    tests/unit/test_exec_loan.o tests/unit/test_exec_nic.o \
    tests/unit/test_exec_landing.o tests/unit/test_exec_stream.o \
    tests/unit/test_exec_rates.o tests/unit/test_exec_rows.o tests/unit/test_exec_staged.o: \
    r2core/mem/kernels_ptx.h
endif
check_PROGRAMS += tests/unit/test_exec_loan tests/unit/test_exec_borrow
tests_unit_test_exec_loan_SOURCES = tests/unit/exec_gpu.h tests/unit/exec_links.h \
    tests/unit/exec_loans.h \
    tests/unit/test_exec_loan.c \
    tests/fakecuda/parts.h
tests_unit_test_exec_loan_LDADD = $(R2_PLAN_TEST_LIBS) tests/fakecuda/libcuda.la
tests_unit_test_exec_borrow_SOURCES = tests/unit/exec_gpu.h tests/unit/exec_links.h \
    tests/unit/exec_loans.h \
    tests/unit/test_exec_borrow.c \
    tests/fakecuda/parts.h
tests_unit_test_exec_borrow_LDADD = $(R2_PLAN_TEST_LIBS) tests/fakecuda/libcuda.la
check_PROGRAMS += tests/unit/test_exec_lend tests/unit/test_exec_lend_odd
tests_unit_test_exec_lend_SOURCES = tests/unit/exec_lend.h tests/unit/exec_links.h \
    tests/unit/test_exec_lend.c
tests_unit_test_exec_lend_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_exec_lend_odd_SOURCES = tests/unit/exec_lend.h tests/unit/exec_links.h \
    tests/unit/test_exec_lend_odd.c
tests_unit_test_exec_lend_odd_LDADD = $(R2_PLAN_TEST_LIBS)
check_PROGRAMS += tests/unit/test_exec_nic
tests_unit_test_exec_nic_SOURCES = tests/unit/exec_gpu.h tests/unit/exec_links.h \
    tests/unit/exec_loans.h \
    tests/unit/test_exec_nic.c \
    tests/fakecuda/parts.h
tests_unit_test_exec_nic_LDADD = $(R2_PLAN_TEST_LIBS) tests/fakecuda/libcuda.la
check_PROGRAMS += tests/unit/test_exec_landing
tests_unit_test_exec_landing_SOURCES = tests/unit/exec_gpu.h tests/unit/exec_links.h \
    tests/unit/exec_loans.h \
    tests/unit/test_exec_landing.c \
    tests/fakecuda/parts.h
tests_unit_test_exec_landing_LDADD = $(R2_PLAN_TEST_LIBS) tests/fakecuda/libcuda.la
check_PROGRAMS += tests/unit/test_exec_stream
tests_unit_test_exec_stream_SOURCES = tests/unit/exec_gpu.h tests/unit/exec_links.h \
    tests/unit/exec_loans.h \
    tests/unit/test_exec_stream.c \
    tests/fakecuda/parts.h
tests_unit_test_exec_stream_LDADD = $(R2_PLAN_TEST_LIBS) tests/fakecuda/libcuda.la
check_PROGRAMS += tests/unit/test_exec_rows
tests_unit_test_exec_rows_SOURCES = tests/unit/exec_gpu.h tests/unit/exec_links.h \
    tests/unit/test_exec_rows.c \
    tests/doubles/kernels_c.c \
    tests/fakecuda/parts.h
tests_unit_test_exec_rows_LDADD = $(R2_PLAN_TEST_LIBS) tests/fakecuda/libcuda.la
thread_job_sources = tests/unit/thread_job.c tests/unit/thread_job.h tests/unit/thread_net.c \
    tests/unit/thread_net.h
# One way to drive, one door for NICs
check_PROGRAMS += tests/unit/test_sources
tests_unit_test_sources_SOURCES = tests/unit/test_sources.c
tests_unit_test_sources_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_drive
tests_unit_test_drive_SOURCES = tests/unit/test_drive.c tests/unit/drive_process.h \
    tests/unit/thread_net.c \
    tests/unit/thread_net.h
tests_unit_test_drive_LDADD = $(R2_TEST_LIBS)
tests_unit_test_threads_SOURCES = tests/unit/test_threads.c $(thread_job_sources)
tests_unit_test_threads_LDADD = $(R2_TEST_LIBS)
tests_unit_test_threads_p2p_SOURCES = tests/unit/test_threads_p2p.c $(thread_job_sources)
tests_unit_test_threads_p2p_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_root_reads
tests_unit_test_root_reads_SOURCES = tests/unit/test_root_reads.c $(thread_job_sources)
tests_unit_test_root_reads_LDADD = $(R2_TEST_LIBS)
# A net with a peer that the test plays.
stub_net_sources = tests/fuzz/fuzz.h tests/fuzz/stub_net.c tests/fuzz/stub_net.h \
    tests/fuzz/stub_tp.c
check_PROGRAMS += tests/unit/test_link tests/unit/test_link_peer tests/unit/test_link_short
tests_unit_test_link_short_SOURCES = tests/unit/test_link_short.c $(stub_net_sources)
tests_unit_test_link_short_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_link_short_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_link_pass
tests_unit_test_link_pass_SOURCES = tests/unit/test_link_pass.c $(stub_net_sources)
tests_unit_test_link_pass_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_link_pass_LDADD = $(R2_TEST_LIBS)
tests_unit_test_link_peer_SOURCES = tests/unit/test_link_peer.c $(stub_net_sources)
tests_unit_test_link_peer_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_link_peer_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_relay_lane
tests_unit_test_relay_lane_SOURCES = tests/unit/test_relay_lane.c $(stub_net_sources)
tests_unit_test_relay_lane_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_relay_lane_LDADD = $(R2_TEST_LIBS)
tests_unit_test_link_SOURCES = tests/unit/test_link.c $(stub_net_sources)
tests_unit_test_link_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_link_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_path
tests_unit_test_path_SOURCES = tests/unit/test_path.c $(stub_net_sources)
tests_unit_test_path_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_path_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_whole
tests_unit_test_whole_SOURCES = tests/unit/test_whole.c $(stub_net_sources)
tests_unit_test_whole_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_whole_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_keep
tests_unit_test_keep_SOURCES = tests/unit/test_keep.c $(stub_net_sources)
tests_unit_test_keep_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_keep_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_asking
tests_unit_test_asking_SOURCES = tests/unit/test_asking.c $(stub_net_sources)
tests_unit_test_asking_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_asking_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_window
tests_unit_test_window_SOURCES = tests/unit/test_window.c $(stub_net_sources)
tests_unit_test_window_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_window_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_inbox
tests_unit_test_inbox_SOURCES = tests/unit/test_inbox.c
tests_unit_test_inbox_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_team
tests_unit_test_team_SOURCES = tests/unit/test_team.c
tests_unit_test_team_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_readv
tests_unit_test_team_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_team_odd
tests_unit_test_team_odd_SOURCES = tests/unit/test_team_odd.c
tests_unit_test_team_odd_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_readv
tests_unit_test_team_odd_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_shared
tests_unit_test_shared_SOURCES = tests/unit/test_shared.c
tests_unit_test_shared_LDFLAGS = $(AM_LDFLAGS) \
    -Wl,--wrap=syscall,--wrap=posix_fallocate,--wrap=prctl
tests_unit_test_shared_LDADD = $(R2_TEST_LIBS)

mail_peer_sources = tests/unit/mail_peer.c tests/unit/mail_peer.h $(stub_net_sources)
check_PROGRAMS += tests/unit/test_local
tests_unit_test_local_SOURCES = tests/unit/test_local.c $(mail_peer_sources)
tests_unit_test_local_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_local_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_local_edges
tests_unit_test_local_edges_SOURCES = tests/unit/test_local_edges.c $(mail_peer_sources)
tests_unit_test_local_edges_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_local_edges_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_direct
tests_unit_test_direct_SOURCES = tests/unit/test_direct.c $(stub_net_sources)
tests_unit_test_direct_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_direct_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_place
tests_unit_test_place_SOURCES = \
    tests/unit/place_receive.c \
    tests/unit/place_receive.h \
    tests/unit/test_place.c \
    $(stub_net_sources)
tests_unit_test_place_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_place_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_link_end
tests_unit_test_link_end_SOURCES = tests/unit/test_link_end.c $(stub_net_sources)
tests_unit_test_link_end_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_link_end_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_rates
tests_unit_test_rates_SOURCES = tests/unit/test_rates.c $(stub_net_sources)
tests_unit_test_rates_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_rates_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_turn
tests_unit_test_turn_SOURCES = tests/unit/test_turn.c $(stub_net_sources)
tests_unit_test_turn_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_turn_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_near
tests_unit_test_near_SOURCES = tests/unit/test_near.c $(stub_net_sources)
tests_unit_test_near_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_near_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_glance
tests_unit_test_glance_SOURCES = tests/unit/test_glance.c $(stub_net_sources)
tests_unit_test_glance_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_glance_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_credit
tests_unit_test_credit_SOURCES = tests/unit/test_credit.c $(stub_net_sources)
tests_unit_test_credit_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_credit_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_plan_ahead
tests_unit_test_plan_ahead_SOURCES = tests/unit/test_plan_ahead.c
tests_unit_test_plan_ahead_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_pins
tests_unit_test_pins_SOURCES = tests/unit/test_pins.c tests/fakecuda/parts.h
tests_unit_test_pins_LDADD = $(R2_TEST_LIBS) tests/fakecuda/libcuda.la

check_PROGRAMS += tests/unit/test_land
tests_unit_test_land_SOURCES = tests/unit/test_land.c $(stub_net_sources)
tests_unit_test_land_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_land_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_sink
tests_unit_test_sink_SOURCES = tests/unit/test_sink.c $(stub_net_sources)
tests_unit_test_sink_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_sink_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_mismatch
tests_unit_test_mismatch_SOURCES = tests/unit/test_mismatch.c $(stub_net_sources)
tests_unit_test_mismatch_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_mismatch_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_control
tests_unit_test_control_SOURCES = tests/unit/test_control.c $(stub_net_sources)
tests_unit_test_control_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_control_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc
tests_unit_test_control_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_lane_grade
tests_unit_test_lane_grade_SOURCES = tests/unit/test_lane_grade.c
tests_unit_test_lane_grade_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_silence
tests_unit_test_silence_SOURCES = tests/unit/test_silence.c $(stub_net_sources)
tests_unit_test_silence_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_silence_LDADD = $(R2_TEST_LIBS)

check_PROGRAMS += tests/unit/test_excuses
tests_unit_test_excuses_SOURCES = tests/unit/test_excuses.c $(stub_net_sources)
tests_unit_test_excuses_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
tests_unit_test_excuses_LDADD = $(R2_TEST_LIBS)

# Health: map, verdict table
check_PROGRAMS += tests/unit/test_health_map tests/unit/test_verdict
tests_unit_test_health_map_SOURCES = tests/unit/test_health_map.c
tests_unit_test_health_map_LDADD = $(R2_PLAN_TEST_LIBS)
tests_unit_test_verdict_SOURCES = tests/unit/test_verdict.c
tests_unit_test_verdict_LDADD = $(R2_TEST_LIBS)

# Agreement on plans
check_PROGRAMS += tests/unit/test_agreement
tests_unit_test_agreement_SOURCES = tests/unit/test_agreement.c
tests_unit_test_agreement_LDADD = $(R2_TEST_LIBS)
# Log lines about rails
check_PROGRAMS += tests/unit/test_rail_log
tests_unit_test_rail_log_SOURCES = tests/unit/test_rail_log.c
tests_unit_test_rail_log_LDADD = $(R2_TEST_LIBS)
# What processes publish
check_PROGRAMS += tests/unit/test_peer_info
tests_unit_test_peer_info_SOURCES = tests/unit/test_peer_info.c
tests_unit_test_peer_info_LDADD = $(R2_TEST_LIBS)
# Agreed maps: shared, merged
check_PROGRAMS += tests/unit/test_map_sync
tests_unit_test_map_sync_SOURCES = tests/unit/test_map_sync.c
tests_unit_test_map_sync_LDADD = $(R2_TEST_LIBS)
# Crowded ranks: rails that carry, trials of plans
check_PROGRAMS += tests/unit/test_crowded
tests_unit_test_crowded_SOURCES = tests/unit/test_crowded.c
tests_unit_test_crowded_LDADD = $(R2_TEST_LIBS)
# Agreement by its table, observers
check_PROGRAMS += tests/unit/test_agree
tests_unit_test_agree_SOURCES = tests/unit/test_agree.c
tests_unit_test_agree_LDADD = $(R2_TEST_LIBS)
# Consent of all processes
check_PROGRAMS += tests/unit/test_consent
tests_unit_test_consent_SOURCES = tests/unit/test_consent.c
tests_unit_test_consent_LDADD = $(R2_TEST_LIBS)
# Event file and gaps
check_PROGRAMS += tests/unit/test_telemetry tests/unit/test_event_writer tests/unit/test_gap
tests_unit_test_event_writer_SOURCES = tests/unit/events_world.h tests/unit/test_event_writer.c
tests_unit_test_event_writer_LDADD = $(R2_TEST_LIBS) $(JANSSON_LIBS)
tests_unit_test_event_writer_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=close
tests_unit_test_gap_SOURCES = tests/unit/test_gap.c
tests_unit_test_gap_LDADD = $(R2_TEST_LIBS)
tests_unit_test_telemetry_SOURCES = tests/unit/events_world.h tests/unit/test_telemetry.c
tests_unit_test_telemetry_LDADD = $(R2_TEST_LIBS) $(JANSSON_LIBS)
# Probes and beacons between network namespaces
check_PROGRAMS += tests/unit/test_probe_netns tests/unit/test_probe_put
tests_unit_test_probe_netns_SOURCES = tests/unit/test_probe_netns.c tests/unit/probe_ends.h \
    tests/unit/moved_clock.h tests/unit/two_hosts.h
tests_unit_test_probe_netns_LDADD = $(R2_TEST_LIBS)
tests_unit_test_probe_put_SOURCES = tests/unit/test_probe_put.c tests/unit/probe_ends.h \
    tests/unit/moved_clock.h tests/unit/two_hosts.h tests/open_files.h
tests_unit_test_probe_put_LDADD = $(R2_TEST_LIBS)

# Flow simulation
check_PROGRAMS += tests/unit/test_flow tests/unit/test_topology_text
tests_unit_test_flow_SOURCES = tests/unit/test_flow.c
tests_unit_test_flow_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools
tests_unit_test_flow_LDADD = libr2flow.la $(R2_PLAN_TEST_LIBS) -lm
tests_unit_test_topology_text_SOURCES = tests/unit/test_topology_text.c
tests_unit_test_topology_text_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools
tests_unit_test_topology_text_LDADD = libr2flow.la $(R2_PLAN_TEST_LIBS) -lm
check_PROGRAMS += tests/unit/test_health tests/unit/test_notices tests/unit/test_probers
tests_unit_test_notices_SOURCES = tests/unit/test_notices.c tests/unit/health_world.c \
    tests/unit/health_judge.c tests/unit/health_world.h
tests_unit_test_notices_LDADD = $(R2_TEST_LIBS)
tests_unit_test_probers_SOURCES = tests/unit/test_probers.c tests/unit/health_world.c \
    tests/unit/health_judge.c tests/unit/health_world.h
tests_unit_test_probers_LDADD = $(R2_TEST_LIBS)
tests_unit_test_health_SOURCES = tests/unit/test_health.c tests/unit/health_world.c \
    tests/unit/health_judge.c tests/unit/health_world.h
tests_unit_test_health_LDADD = $(R2_TEST_LIBS)
check_PROGRAMS += tests/unit/test_mesh_netns
tests_unit_test_mesh_netns_SOURCES = tests/unit/test_mesh_netns.c tests/unit/moved_clock.h \
    tests/unit/two_hosts.h
tests_unit_test_mesh_netns_LDADD = $(R2_TEST_LIBS) $(SODIUM_LIBS)
check_PROGRAMS += tests/unit/test_posts
tests_unit_test_posts_SOURCES = tests/unit/test_posts.c
tests_unit_test_posts_LDADD = $(R2_TEST_LIBS)

# What the PMIx server is asked
pmix_stub_wraps = -Wl,--wrap=PMIx_Get_nb,--wrap=PMIx_Query_info_nb,--wrap=PMIx_Get \
    -Wl,--wrap=PMIx_Put,--wrap=PMIx_Commit \
    -Wl,--wrap=PMIx_Init,--wrap=PMIx_Finalize,--wrap=PMIx_Register_event_handler \
    -Wl,--wrap=PMIx_Deregister_event_handler,--wrap=pthread_cond_timedwait \
    -Wl,--wrap=sodium_memzero
check_PROGRAMS += tests/unit/test_pmix_value tests/unit/test_pmix_pair
tests_unit_test_pmix_value_SOURCES = tests/unit/test_pmix_value.c tests/unit/pmix_stub.c \
    tests/unit/pmix_stub.h
tests_unit_test_pmix_value_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CPPFLAGS)
tests_unit_test_pmix_value_LDFLAGS = $(AM_LDFLAGS) $(pmix_stub_wraps)
tests_unit_test_pmix_value_LDADD = $(R2_TEST_LIBS) $(PMIX_LIBS)
tests_unit_test_pmix_pair_SOURCES = tests/unit/test_pmix_pair.c tests/unit/pmix_stub.c \
    tests/unit/pmix_stub.h
tests_unit_test_pmix_pair_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CPPFLAGS)
tests_unit_test_pmix_pair_LDFLAGS = $(AM_LDFLAGS) $(pmix_stub_wraps)
tests_unit_test_pmix_pair_LDADD = $(R2_TEST_LIBS) $(PMIX_LIBS)
check_PROGRAMS += tests/unit/test_threads_pmix
tests_unit_test_threads_pmix_SOURCES = tests/unit/test_threads_pmix.c
tests_unit_test_threads_pmix_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CPPFLAGS)
tests_unit_test_threads_pmix_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_cond_timedwait
tests_unit_test_threads_pmix_LDADD = $(R2_TEST_LIBS) $(PMIX_LIBS)

# What help texts say about health
check_PROGRAMS += tests/unit/test_describe
tests_unit_test_describe_SOURCES = tests/unit/test_describe.c tests/unit/health_world.c \
    tests/unit/health_judge.c tests/unit/health_world.h
tests_unit_test_describe_LDADD = $(R2_TEST_LIBS)

# Whom one process tells what
check_PROGRAMS += tests/unit/test_disseminate
tests_unit_test_disseminate_SOURCES = tests/unit/test_disseminate.c
tests_unit_test_disseminate_LDADD = $(R2_TEST_LIBS)

# What repeated collectives take
check_PROGRAMS += tests/unit/test_allocations
tests_unit_test_allocations_SOURCES = tests/unit/test_allocations.c
tests_unit_test_allocations_LDFLAGS = $(AM_LDFLAGS) \
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=r2_hash,--wrap=getenv
tests_unit_test_allocations_LDADD = $(R2_TEST_LIBS)

# Kinds of memory, on the stand-in for the CUDA driver
check_PROGRAMS += tests/unit/test_half
tests_unit_test_half_SOURCES = tests/unit/test_half.c $(r2_half_sources)
tests_unit_test_half_CPPFLAGS = -I$(top_srcdir) -I$(top_builddir)
tests_unit_test_half_LDADD = $(CMOCKA_LIBS) -lm
check_PROGRAMS += tests/unit/test_mem tests/unit/test_mem_queue tests/unit/test_cuda_api
tests_unit_test_mem_SOURCES = tests/unit/test_mem.c tests/fakecuda/parts.h
tests_unit_test_mem_LDADD = $(R2_TEST_LIBS) tests/fakecuda/libcuda.la
tests_unit_test_mem_queue_SOURCES = tests/unit/test_mem_queue.c tests/fakecuda/parts.h
tests_unit_test_mem_queue_LDADD = $(R2_TEST_LIBS) tests/fakecuda/libcuda.la
check_PROGRAMS += tests/unit/test_mem_share
tests_unit_test_mem_share_SOURCES = tests/unit/test_mem_share.c
tests_unit_test_mem_share_LDADD = $(R2_TEST_LIBS)
tests_unit_test_cuda_api_SOURCES = tests/unit/test_cuda_api.c
tests_unit_test_cuda_api_CPPFLAGS = -I$(top_srcdir) $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
