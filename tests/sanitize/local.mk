# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Tests under sanitizers, and fuzzing: builds of their own below this one.
EXTRA_DIST += \
    tests/sanitize/build.mk \
    tests/sanitize/lint \
    tests/sanitize/run \
    tests/fuzz/corpus \
    tests/fuzz/fuzz.h \
    tests/fuzz/fuzz_hello.c \
    tests/fuzz/fuzz_link.c \
    tests/fuzz/fuzz_mesh.c \
    tests/fuzz/fuzz_notice.c \
    tests/fuzz/fuzz_params.c \
    tests/fuzz/fuzz_peer.c \
    tests/fuzz/fuzz_wire.c \
    tests/fuzz/replay.c \
    tests/fuzz/stub_net.c \
    tests/fuzz/stub_net.h \
    tests/fuzz/stub_tp.c

# All of what the suites "asan" and "tsan" run a part of.
check-sanitizers:
	$(top_srcdir)/tests/sanitize/run asan $(abs_top_builddir)/sanitize/asan full
	$(top_srcdir)/tests/sanitize/run tsan $(abs_top_builddir)/sanitize/tsan full

# make fuzz SECONDS=600: each target for so long (needs clang). Inputs found are kept.
SECONDS = 60
fuzz:
	$(top_srcdir)/tests/sanitize/run fuzz $(abs_top_builddir)/sanitize/fuzz $(SECONDS)

# Lanes that close under valgrind, which sees into UCX, too: make check-valgrind [VALGRIND_ROUNDS=5]
VALGRIND_ROUNDS = 5
check-valgrind: check-programs
	valgrind -q --error-exitcode=9 tests/closing/closing --rounds $(VALGRIND_ROUNDS)

# Static analysis that takes minutes: gcc -fanalyzer. The suites cppcheck and clang-tidy are the
# fast part; make lint runs all of it, and clang's analyzer, whose findings are to be judged.
check-static:
	$(top_srcdir)/tests/sanitize/lint $(abs_top_builddir)/sanitize/lint gcc
lint:
	R2_BUILDDIR=$(abs_top_builddir) $(top_srcdir)/tests/sanitize/lint \
	    $(abs_top_builddir)/sanitize/lint
mostlyclean-local:
	rm -rf sanitize mutants
.PHONY: check-sanitizers check-static check-valgrind fuzz lint
