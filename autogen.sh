#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Generates configure and the Makefile.in files from a checkout.
set -eu
cd "$(dirname "$0")"

need() {
    command -v "$1" >/dev/null 2>&1 && return 0
    echo "autogen.sh: error: $1 not found: install the Debian package $2" >&2
    exit 1
}
need autoconf autoconf
need automake automake
need libtoolize libtool
if ! [ -e "$(aclocal --print-ac-dir)/pkg.m4" ] && ! [ -e /usr/share/aclocal/pkg.m4 ]; then
    echo "autogen.sh: error: pkg.m4 not found: install the Debian package pkg-config" >&2
    exit 1
fi

mkdir -p config
exec autoreconf --force --install --warnings=all,no-obsolete "$@"
