# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# TAP output for tests that are shell scripts; to be sourced.

tap_number=0
tap_failed=0
tap_log=$(mktemp)
trap 'rm -f "$tap_log"' EXIT

# tap NAME COMMAND...: passes if COMMAND succeeds. Its output is shown if it fails.
tap() {
    tap_name=$1
    shift
    tap_number=$((tap_number + 1))
    if "$@" >"$tap_log" 2>&1; then
        echo "ok $tap_number - $tap_name"
    else
        echo "not ok $tap_number - $tap_name"
        sed 's/^/# /' "$tap_log"
        tap_failed=1
    fi
}

# tap_skip NAME REASON
tap_skip() {
    tap_number=$((tap_number + 1))
    echo "ok $tap_number - $1 # SKIP $2"
}

# Ends the script: 1 if a test failed.
tap_end() {
    echo "1..$tap_number"
    exit $tap_failed
}
