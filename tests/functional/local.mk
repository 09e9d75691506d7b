# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# MPI programs of our own, run under mpirun by tests/suites.tsv.
EXTRA_DIST += \
    tests/functional/agreeing \
    tests/functional/algorithms \
    tests/functional/beside \
    tests/functional/bench_faults \
    tests/functional/bench_site \
    tests/functional/bench_kinds \
    tests/functional/bench_peers \
    tests/functional/cover_dev.sh \
    tests/functional/declining \
    tests/functional/dynamic_processes \
    tests/functional/enabling \
    tests/functional/gpu \
    tests/functional/cancelled \
    tests/functional/deaths \
    tests/functional/error_classes \
    tests/functional/install \
    tests/functional/installed \
    tests/functional/layers \
    tests/functional/style \
    tests/functional/leaving \
    tests/functional/lent \
    tests/functional/needs \
    tests/functional/r2_info \
    tests/functional/r2_sim \
    tests/functional/mpirun-ends \
    tests/functional/run-mpi \
    tests/functional/ptx \
    tests/functional/same_host \
    tests/functional/selection \
    tests/functional/single_host \
    tests/functional/give_way \
    tests/functional/starting \
    tests/functional/tap.sh \
    tests/functional/test_bench.sh \
    tests/functional/told_once \
    tests/functional/versions

# Modules that are preloaded, or loaded by Open MPI.
tests_functional_module = $(AM_LDFLAGS) -module -avoid-version -rpath /nonexistent

check_PROGRAMS += tests/functional/sessions
tests_functional_sessions_SOURCES = tests/functional/sessions.c
tests_functional_sessions_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_sessions_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/cuda_support
tests_functional_cuda_support_SOURCES = tests/functional/cuda_support.c
tests_functional_cuda_support_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_cuda_support_LDADD = $(OMPI_LIBS)

check_PROGRAMS += examples/horovod_like
examples_horovod_like_SOURCES = examples/horovod_like.c
examples_horovod_like_CPPFLAGS = $(OMPI_CPPFLAGS) -I$(top_srcdir)/ompi/include
examples_horovod_like_CFLAGS = $(AM_CFLAGS) -pthread
examples_horovod_like_LDADD = libr2_mpi.la $(OMPI_LIBS) -ldl

check_PROGRAMS += tests/functional/half
tests_functional_half_SOURCES = tests/functional/half.c tests/functional/pattern.h
tests_functional_half_CPPFLAGS = $(OMPI_CPPFLAGS) -I$(top_srcdir)/ompi/include
tests_functional_half_LDADD = libr2_mpi.la $(OMPI_LIBS)

# The kernels' C form is one of its sources: FAKECUDA_KERNELS is not needed.
check_PROGRAMS += tests/functional/gpu_kernels
tests_functional_gpu_kernels_SOURCES = tests/functional/gpu_kernels.c \
    tests/doubles/kernels_c.c
tests_functional_gpu_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(OMPI_CPPFLAGS) -D_GNU_SOURCE \
    -I$(top_srcdir)/ompi/include
tests_functional_gpu_kernels_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
tests_functional_gpu_kernels_LDADD = $(R2_TEST_LIBS) libr2_mpi.la tests/fakecuda/libcuda.la \
    $(OMPI_LIBS)

check_PROGRAMS += tests/functional/gpu_p2p
tests_functional_gpu_p2p_SOURCES = tests/functional/gpu_alloc.h tests/functional/gpu_p2p.c \
    tests/functional/pattern.h
tests_functional_gpu_p2p_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_gpu_p2p_CFLAGS = $(AM_CFLAGS) -pthread
tests_functional_gpu_p2p_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/gpu_reduce
tests_functional_gpu_reduce_SOURCES = tests/functional/gpu_alloc.h tests/functional/gpu_reduce.c
tests_functional_gpu_reduce_CPPFLAGS = $(OMPI_CPPFLAGS) -I$(top_srcdir)/ompi/include
tests_functional_gpu_reduce_LDADD = libr2_mpi.la $(OMPI_LIBS)

check_PROGRAMS += tests/functional/gpu_cover
tests_functional_gpu_cover_SOURCES = tests/functional/gpu_cover.c \
    tests/functional/gpu_cover.h tests/functional/gpu_cover_forms.c
tests_functional_gpu_cover_CPPFLAGS = $(OMPI_CPPFLAGS) $(FAKECUDA_CPPFLAGS)
tests_functional_gpu_cover_LDADD = tests/fakecuda/libcuda.la $(OMPI_LIBS)

check_PROGRAMS += tests/functional/gpu_errors
tests_functional_gpu_errors_SOURCES = tests/functional/gpu_cover.h \
    tests/functional/gpu_cover_forms.c tests/functional/gpu_errors.c
tests_functional_gpu_errors_CPPFLAGS = $(OMPI_CPPFLAGS) $(FAKECUDA_CPPFLAGS)
tests_functional_gpu_errors_LDADD = tests/fakecuda/libcuda.la $(OMPI_LIBS)

check_PROGRAMS += tests/functional/gpu_requests
tests_functional_gpu_requests_SOURCES = tests/functional/gpu_alloc.h \
    tests/functional/gpu_requests.c tests/functional/pattern.h
tests_functional_gpu_requests_CPPFLAGS = $(OMPI_COMPONENT_CPPFLAGS) -D_GNU_SOURCE
tests_functional_gpu_requests_CFLAGS = $(AM_CFLAGS) $(OMPI_MCX16)
tests_functional_gpu_requests_LDADD = $(OMPI_COMPONENT_LIBS)

check_PROGRAMS += tests/functional/gpu_ulfm
tests_functional_gpu_ulfm_SOURCES = tests/functional/gpu_alloc.h tests/functional/gpu_ulfm.c \
    tests/functional/pattern.h
tests_functional_gpu_ulfm_CPPFLAGS = $(OMPI_CPPFLAGS) -D_GNU_SOURCE
tests_functional_gpu_ulfm_LDADD = $(OMPI_LIBS)

check_LTLIBRARIES += tests/functional/ucx_cuda.la
tests_functional_ucx_cuda_la_SOURCES = tests/functional/ucx_cuda.c
tests_functional_ucx_cuda_la_CPPFLAGS = -D_GNU_SOURCE $(R2_DEP_CPPFLAGS)
tests_functional_ucx_cuda_la_LDFLAGS = $(tests_functional_module)

check_PROGRAMS += tests/functional/gpu_loans
tests_functional_gpu_loans_SOURCES = tests/functional/gpu_loans.c
tests_functional_gpu_loans_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_gpu_loans_LDADD = $(OMPI_LIBS) -ldl
check_PROGRAMS += tests/functional/gpu_pins
tests_functional_gpu_pins_SOURCES = tests/functional/gpu_pins.c
tests_functional_gpu_pins_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_gpu_pins_LDADD = $(OMPI_LIBS) -ldl -lpthread
check_PROGRAMS += tests/functional/gpu_steps
tests_functional_gpu_steps_SOURCES = tests/functional/counted.h tests/functional/gpu_alloc.h \
    tests/functional/gpu_steps.c
tests_functional_gpu_steps_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_gpu_steps_LDADD = $(OMPI_LIBS)

check_LTLIBRARIES += tests/functional/gpu_buffers.la
tests_functional_gpu_buffers_la_SOURCES = tests/functional/gpu_alloc.h \
    tests/functional/gpu_buffers.c tests/functional/gpu_calls.def tests/functional/gpu_p2p.def \
    tests/fakecuda/fakecuda.h
tests_functional_gpu_buffers_la_CPPFLAGS = $(OMPI_CPPFLAGS) $(FAKECUDA_CPPFLAGS)
tests_functional_gpu_buffers_la_LDFLAGS = $(tests_functional_module)
tests_functional_gpu_buffers_la_LIBADD = tests/fakecuda/libcuda.la $(OMPI_LIBS)

check_LTLIBRARIES += tests/functional/other_version.la
tests_functional_other_version_la_SOURCES = tests/functional/other_version.c
tests_functional_other_version_la_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_other_version_la_LDFLAGS = $(tests_functional_module)

check_PROGRAMS += tests/functional/eager_limit
tests_functional_eager_limit_SOURCES = tests/functional/eager_limit.c
tests_functional_eager_limit_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_eager_limit_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/late_root
tests_functional_late_root_SOURCES = tests/functional/late_root.c
tests_functional_late_root_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_late_root_LDADD = $(OMPI_LIBS)
check_PROGRAMS += tests/functional/hello_mpi
tests_functional_hello_mpi_SOURCES = tests/functional/hello_mpi.c
tests_functional_hello_mpi_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_hello_mpi_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/yields
tests_functional_yields_SOURCES = tests/functional/yields.c
tests_functional_yields_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_yields_LDFLAGS = $(AM_LDFLAGS) -Wl,--export-dynamic
tests_functional_yields_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/descriptors
tests_functional_descriptors_SOURCES = tests/functional/descriptors.c
tests_functional_descriptors_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_descriptors_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/footprint
tests_functional_footprint_SOURCES = tests/functional/footprint.c
tests_functional_footprint_CPPFLAGS = $(OMPI_CPPFLAGS) $(PMIX_CPPFLAGS)
tests_functional_footprint_LDADD = $(OMPI_LIBS) $(PMIX_LIBS)

check_LTLIBRARIES += tests/functional/lookup_fails.la
tests_functional_lookup_fails_la_SOURCES = tests/functional/lookup_fails.c
tests_functional_lookup_fails_la_CPPFLAGS = $(PMIX_CPPFLAGS)
tests_functional_lookup_fails_la_LDFLAGS = $(tests_functional_module)
tests_functional_lookup_fails_la_LIBADD = -ldl

check_LTLIBRARIES += tests/functional/late_connect.la
tests_functional_late_connect_la_SOURCES = tests/functional/late_connect.c
tests_functional_late_connect_la_CPPFLAGS = $(PMIX_CPPFLAGS)
tests_functional_late_connect_la_LDFLAGS = $(tests_functional_module)
tests_functional_late_connect_la_LIBADD = -ldl

check_LTLIBRARIES += tests/functional/publishes.la
tests_functional_publishes_la_SOURCES = tests/functional/publishes.c
tests_functional_publishes_la_CPPFLAGS = $(PMIX_CPPFLAGS)
tests_functional_publishes_la_LDFLAGS = $(tests_functional_module)
tests_functional_publishes_la_LIBADD = -ldl $(PMIX_LIBS)

check_LTLIBRARIES += tests/functional/unheard.la
tests_functional_unheard_la_SOURCES = tests/functional/unheard.c
tests_functional_unheard_la_CPPFLAGS = $(PMIX_CPPFLAGS)
tests_functional_unheard_la_LDFLAGS = $(tests_functional_module)
tests_functional_unheard_la_LIBADD = -ldl

check_LTLIBRARIES += tests/functional/params_given.la
tests_functional_params_given_la_SOURCES = tests/functional/params_given.c
tests_functional_params_given_la_LDFLAGS = $(tests_functional_module)
tests_functional_params_given_la_LIBADD = -ldl

check_LTLIBRARIES += tests/functional/ucx_version.la
tests_functional_ucx_version_la_SOURCES = tests/functional/ucx_version.c
tests_functional_ucx_version_la_LDFLAGS = $(tests_functional_module)

# A component of somebody else, and a program for what it owns.
check_LTLIBRARIES += tests/functional/mca_coll_standin.la
tests_functional_mca_coll_standin_la_SOURCES = \
    tests/functional/standin/device_memory.h \
    tests/functional/standin/standin.c
tests_functional_mca_coll_standin_la_CPPFLAGS = $(mca_coll_r2_la_CPPFLAGS) \
    -I$(top_srcdir)/ompi/mca/coll/r2 \
    -I$(top_srcdir)/tests/functional/standin
tests_functional_mca_coll_standin_la_CFLAGS = $(mca_coll_r2_la_CFLAGS)
tests_functional_mca_coll_standin_la_LDFLAGS = $(tests_functional_module) $(R2_NO_UNDEFINED)
tests_functional_mca_coll_standin_la_LIBADD = $(OMPI_COMPONENT_LIBS)
check_PROGRAMS += tests/functional/device_memory
tests_functional_device_memory_SOURCES = \
    tests/functional/standin/device_memory.c \
    tests/functional/standin/device_memory.h
tests_functional_device_memory_CPPFLAGS = $(OMPI_CPPFLAGS) -I$(top_srcdir)/tests/functional/standin
tests_functional_device_memory_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/all_collectives
tests_functional_all_collectives_SOURCES = \
    tests/functional/all_collectives.c \
    tests/functional/cases_neighbor.c \
    tests/functional/cases_rooted.c \
    tests/functional/cases_unrooted.c \
    tests/functional/job.c \
    tests/functional/job.h
tests_functional_all_collectives_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_all_collectives_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/by_host
tests_functional_by_host_SOURCES = \
    tests/functional/by_host.c \
    tests/functional/cases_neighbor.c \
    tests/functional/cases_rooted.c \
    tests/functional/cases_unrooted.c \
    tests/functional/job.c \
    tests/functional/job.h
tests_functional_by_host_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_by_host_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/serves
tests_functional_serves_SOURCES = tests/functional/serves.c
tests_functional_serves_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_serves_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/service_thread
tests_functional_service_thread_SOURCES = \
    tests/functional/job.h \
    tests/functional/pattern.h \
    tests/functional/service_thread.c
tests_functional_service_thread_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_service_thread_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/start_errors
tests_functional_start_errors_SOURCES = tests/functional/start_errors.c
tests_functional_start_errors_LDADD = $(R2_TEST_LIBS) -ldl

check_PROGRAMS += tests/functional/progressing
tests_functional_progressing_SOURCES = tests/functional/progressing.c
tests_functional_progressing_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_progressing_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/idup
tests_functional_idup_SOURCES = tests/functional/idup.c
tests_functional_idup_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_idup_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/same_bits
tests_functional_same_bits_SOURCES = tests/functional/same_bits.c
tests_functional_same_bits_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_same_bits_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/leave
tests_functional_leave_SOURCES = tests/functional/leave.c
tests_functional_leave_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_leave_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/same_host_peers
tests_functional_same_host_peers_SOURCES = tests/functional/counted.h \
    tests/functional/same_host_peers.c tests/functional/strike.h
tests_functional_same_host_peers_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_same_host_peers_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/lent_peers
tests_functional_lent_peers_SOURCES = tests/functional/counted.h tests/functional/lent_peers.c \
    tests/functional/strike.h
tests_functional_lent_peers_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_lent_peers_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/children
tests_functional_children_SOURCES = tests/functional/children.c
tests_functional_children_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_children_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/oob_pmix
tests_functional_oob_pmix_SOURCES = tests/functional/oob_pmix.c
tests_functional_oob_pmix_CPPFLAGS = $(AM_CPPFLAGS)
tests_functional_oob_pmix_LDADD = $(R2_TEST_LIBS) $(PMIX_LIBS)
check_PROGRAMS += tests/functional/oob_events
tests_functional_oob_events_SOURCES = tests/functional/oob_events.c
tests_functional_oob_events_CPPFLAGS = $(AM_CPPFLAGS)
tests_functional_oob_events_LDADD = $(R2_TEST_LIBS) $(PMIX_LIBS)
EXTRA_DIST += tests/lab/test_oob_pmix.py

check_PROGRAMS += tests/functional/datatypes
tests_functional_datatypes_SOURCES = \
    tests/functional/datatypes.c \
    tests/functional/datatypes.h \
    tests/functional/datatypes_call.c \
    tests/functional/datatypes_errors.c \
    tests/functional/datatypes_flight.c \
    tests/functional/datatypes_groups.c \
    tests/functional/datatypes_groups.h \
    tests/functional/datatypes_types.c \
    tests/functional/datatypes_userops.c \
    tests/functional/datatypes_values.c
tests_functional_datatypes_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_datatypes_LDADD = $(OMPI_LIBS)
EXTRA_DIST += tests/lab/test_datatypes.py

check_PROGRAMS += tests/functional/p2p
tests_functional_p2p_SOURCES = tests/functional/gpu_alloc.h tests/functional/p2p.c \
    tests/functional/pattern.h
tests_functional_p2p_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_p2p_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/direct
tests_functional_direct_SOURCES = tests/functional/counted.h tests/functional/direct.c \
    tests/functional/pattern.h
tests_functional_direct_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_direct_LDADD = $(OMPI_LIBS) -ldl

check_PROGRAMS += tests/functional/onesided tests/functional/io tests/functional/threads
tests_functional_onesided_SOURCES = tests/functional/onesided.c tests/functional/pattern.h
tests_functional_onesided_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_onesided_LDADD = $(OMPI_LIBS)
tests_functional_io_SOURCES = tests/functional/io.c tests/functional/pattern.h
tests_functional_io_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_io_LDADD = $(OMPI_LIBS)
tests_functional_threads_SOURCES = tests/functional/pattern.h tests/functional/threads.c
tests_functional_threads_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_threads_LDADD = $(OMPI_LIBS) -lpthread

check_PROGRAMS += tests/functional/dynamic
tests_functional_dynamic_SOURCES = tests/functional/dynamic.c tests/functional/launch_watch.c
tests_functional_dynamic_CPPFLAGS = -D_GNU_SOURCE $(OMPI_CPPFLAGS)
tests_functional_dynamic_LDADD = $(OMPI_LIBS) -ldl

check_PROGRAMS += tests/functional/bottom
tests_functional_bottom_SOURCES = tests/functional/bottom.c tests/functional/pattern.h
tests_functional_bottom_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_bottom_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/requests
tests_functional_requests_SOURCES = \
    tests/functional/job.h \
    tests/functional/pattern.h \
    tests/functional/requests.c
tests_functional_requests_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_requests_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/request_reuse
tests_functional_request_reuse_SOURCES = tests/functional/request_reuse.c
tests_functional_request_reuse_CPPFLAGS = $(OMPI_COMPONENT_CPPFLAGS)
tests_functional_request_reuse_CFLAGS = $(AM_CFLAGS) $(OMPI_MCX16)
tests_functional_request_reuse_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
tests_functional_request_reuse_LDADD = $(OMPI_COMPONENT_LIBS)

check_PROGRAMS += tests/functional/cancel
tests_functional_cancel_SOURCES = tests/functional/cancel.c
tests_functional_cancel_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_cancel_LDADD = $(OMPI_LIBS)

# One call of any collective, for programs with many of them.
tests_functional_mixed_calls = \
    tests/functional/mixed.h \
    tests/functional/mixed_call.c \
    tests/functional/mixed_memory.c

check_PROGRAMS += tests/functional/mixed
tests_functional_mixed_SOURCES = tests/functional/mixed.c $(tests_functional_mixed_calls)
tests_functional_mixed_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_mixed_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/persistent_order
tests_functional_persistent_order_SOURCES = \
    tests/functional/persistent_order.c \
    $(tests_functional_mixed_calls)
tests_functional_persistent_order_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_persistent_order_CFLAGS = $(AM_CFLAGS) -pthread
tests_functional_persistent_order_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/call_memory
tests_functional_call_memory_SOURCES = tests/functional/call_memory.c
tests_functional_call_memory_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_call_memory_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
tests_functional_call_memory_LDADD = $(OMPI_LIBS) -ldl

check_PROGRAMS += tests/functional/dying
tests_functional_dying_SOURCES = tests/functional/dying.c tests/functional/call_kinds.h
tests_functional_dying_CPPFLAGS = $(OMPI_CPPFLAGS) -I$(top_srcdir)/ompi/include
tests_functional_dying_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/ulfm
tests_functional_ulfm_SOURCES = tests/functional/ulfm.c tests/functional/call_kinds.h
tests_functional_ulfm_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_ulfm_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/failed_comm
tests_functional_failed_comm_SOURCES = tests/functional/failed_comm.c
tests_functional_failed_comm_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_failed_comm_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/failing_threads
tests_functional_failing_threads_SOURCES = tests/functional/failing_threads.c
tests_functional_failing_threads_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_failing_threads_CFLAGS = $(AM_CFLAGS) -pthread
tests_functional_failing_threads_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/mismatch
tests_functional_mismatch_SOURCES = tests/functional/mismatch.c
tests_functional_mismatch_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_mismatch_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/wrong_args
tests_functional_wrong_args_SOURCES = \
    tests/functional/job.h \
    tests/functional/wrong_args.c \
    tests/functional/wrong_calls.def \
    tests/functional/wrong_changes.def \
    tests/functional/wrong_types.h
tests_functional_wrong_args_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_wrong_args_LDADD = $(OMPI_LIBS)

check_PROGRAMS += tests/functional/large
tests_functional_large_SOURCES = tests/functional/large.c
tests_functional_large_CPPFLAGS = $(OMPI_CPPFLAGS)
tests_functional_large_LDADD = $(OMPI_LIBS)

# Counts of 2^31 - 1 and messages of more than 4 GiB: two ranks, 9 GiB of memory, minutes.
check-large: check-programs
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/functional/run-mpi -n 2 --mca coll r2 \
	    tests/functional/large

# Programs that spawn, connect and join: not in ./check (docs/tests.md).
check-dynamic: check-programs
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/functional/dynamic_processes all
.PHONY: check-large check-dynamic
