# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# For tests that are shell scripts; to be sourced.

# A /dev in which files can be made that nobody else sees. Only inside of the namespace.
cover_dev() {
    local part
    mkdir "$1/dev" "$1/memory" && mount --rbind /dev "$1/dev" && mount -t tmpfs none "$1/memory" \
        && mkdir "$1/memory/upper" "$1/memory/work" \
        && mount -t overlay none -o \
            "lowerdir=/dev,upperdir=$1/memory/upper,workdir=$1/memory/work" /dev || return 1
    for part in shm pts; do
        [ ! -d "$1/dev/$part" ] || mount --rbind "$1/dev/$part" "/dev/$part" || return 1
    done
    rm -f /dev/nvidiactl /dev/kfd
}
