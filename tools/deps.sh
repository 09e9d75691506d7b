#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# Installs the Debian packages that r2 needs and that are missing. Asks nothing.
set -eu

build="gcc make autoconf automake libtool pkg-config libopenmpi-dev openmpi-bin libucx-dev
    libpmix-dev libhwloc-dev libnl-3-dev libnl-route-3-dev libsodium-dev libjansson-dev uthash-dev
    libcmocka-dev libibverbs-dev universal-ctags"
lab="iproute2 nftables util-linux procps python3 ethtool librsvg2-bin gdb"
plot="gnuplot-nox"
examples="python3-mpi4py python3-numpy"
peers="mpich libmpich-dev libgloo-dev g++"
apps="hpcc lammps netpipe-openmpi quantum-espresso quantum-espresso-data"
root="mmdebstrap debian-archive-keyring util-linux"
slurm="slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge"
style="clang-format clang-tidy cppcheck"
gpu="clang"
analysis="clang libclang-rt-14-dev valgrind graphviz $style"

usage() {
    cat <<EOF
usage: tools/deps.sh [-n | -l] [GROUP...]

Installs what is missing of the groups (default: build lab plot), as root or through sudo.
  build     compilers, libraries, test framework, ctags
  lab       network namespaces, shaping, packet filters, stacks of jobs that stand still
  plot      plots of the benchmarks
  examples  Python with MPI, for examples/
  peers     MPICH and Gloo, which make bench-peers compares r2 with
  apps      MPI applications, for make check-apps (450 MB)
  root      what makes a root of another Debian release, for tests/debian13
  slurm     Slurm and munge, for r2lab slurm; their services are not started
  style     clang-format, clang-tidy, cppcheck: suites of ./check
  gpu       clang, which compiles kernels for GPUs
  analysis  those of style, clang, sanitizer run times, static analysis, valgrind, graphviz
  -n        only print what is missing
  -l        only print the packages of the groups
EOF
}

dry_run=no
list=no
groups=
for arg; do
    case $arg in
    -n) dry_run=yes ;;
    -l) list=yes ;;
    build | lab | plot | examples | peers | apps | root | slurm | style | gpu | analysis)
        groups="$groups $arg"
        ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
done

wanted=
for group in ${groups:-build lab plot}; do
    eval "wanted=\"\$wanted \$$group\""
done
if [ $list = yes ]; then
    # shellcheck disable=SC2086 # a list of package names
    echo $wanted
    exit 0
fi

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "tools/deps.sh: this is no Debian system: nothing installed," \
        "configure will tell what is missing" >&2
    exit 0
fi

missing=
for package in $wanted; do
    # A name that others only mention is "not-installed"; a line for each architecture.
    case " $(dpkg-query -W -f='${db:Status-Status} ' "$package" 2>/dev/null)" in
    *" installed "*) ;;
    *) missing="$missing $package" ;;
    esac
done
if [ -z "$missing" ]; then
    exit 0
fi
if [ $dry_run = yes ]; then
    echo "missing:$missing"
    exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    as_root="sudo -n"
    if ! $as_root true 2>/dev/null; then
        echo "tools/deps.sh: error: neither root nor able to use sudo without a password." \
            "Run as root:" >&2
        echo "  apt-get install$missing" >&2
        exit 1
    fi
fi

echo "installing$missing"
# With SYSTEMD_OFFLINE packages that bring services (munge, Slurm) do not start them.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a SYSTEMD_OFFLINE=1 \
        apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold "$@" \
        </dev/null >>"$log" 2>&1
}
# Package lists may be there already: a failing update is an error only if installing fails too.
apt update || true
# shellcheck disable=SC2086 # a list of package names
if ! apt install --no-install-recommends $missing; then
    tail -n 30 "$log" >&2
    echo "tools/deps.sh: error: apt-get install$missing failed" >&2
    exit 1
fi
