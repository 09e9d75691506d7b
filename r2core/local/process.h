/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Processes of this host, told apart by number and start: numbers are used again.
 */
#ifndef R2_LOCAL_PROCESS_H
#define R2_LOCAL_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A process, as others of its host find it. */
typedef struct r2_process {
    uint64_t start; /* ticks since the host's start; 0: not known */
    uint64_t pid;
} r2_process_t;

/** This process. @return its start is 0 where that cannot be found out. */
r2_process_t r2_process_self(void);
/** True if that process is there, and this one can see it. */
bool r2_process_is_seen(const r2_process_t *process);
/**
 * True if a process that was seen has ended, whether or not its parent has taken note of it. False
 * also where that cannot be found out now.
 */
bool r2_process_has_ended(const r2_process_t *process);
/**
 * Lets processes of the same user read this one's memory where the kernel lets only those do that
 * have started it (Yama's scope 1, Ubuntu's default). So do Open MPI's shared memory and UCX's.
 * @param scope_path R2_PROCESS_SCOPE
 */
void r2_process_admit(const char *scope_path);
#define R2_PROCESS_SCOPE "/proc/sys/kernel/yama/ptrace_scope"
/** Copies memory of a process. @return false: it has ended, it cannot be read, or there is none. */
bool r2_process_fetch(const r2_process_t *process, uint64_t address, void *to, size_t bytes);

#endif
