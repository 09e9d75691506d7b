/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One end of a pair of processes, over r2's transport table or over UCX alone.
 */
#ifndef BENCH_TRANSPORT_PAIR_H
#define BENCH_TRANSPORT_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAIR_HEADER_BYTES  88 /* of long messages: the product's */
#define PAIR_SHORT_BYTES   8  /* of short ones, which have nothing else */
#define PAIR_DATA_MAX      131072u
#define PAIR_WINDOW        64 /* long messages that may be under way */
#define PAIR_ADDRESS_BYTES 1024

/** A way to move messages. One endpoint for each process; errors end the process. */
typedef struct pair_stack {
    const char *name;
    bool lengths[2]; /* it moves short messages, long ones */
    void (*open)(const char *nic);
    void (*address)(char address_p[PAIR_ADDRESS_BYTES]);
    void (*connect)(const char address[PAIR_ADDRESS_BYTES]);
    /** @return false: no room, try again after progress. The bytes stay until pair_sent(). */
    bool (*send)(const void *header, size_t header_bytes, const void *data, size_t data_bytes);
    unsigned (*progress)(void);
    /** Sleeps until there is something to do, at most 100 ms. */
    void (*sleep)(void);
} pair_stack_t;

extern const pair_stack_t pair_r2, pair_ucp, pair_uct_short, pair_uct_bcopy, pair_uct_zcopy;

/** A message has come; header and data may be misaligned. For the stacks to call. */
void pair_received(const void *header, size_t header_bytes, const void *data, size_t data_bytes);
/** One message is not referred to any more. For the stacks to call, also inside send(). */
void pair_sent(void);
/** Says why and ends the process. */
void pair_die(const char *what, const char *why) __attribute__((noreturn));
/** Polls for input. */
void pair_poll(int fd);

#endif
