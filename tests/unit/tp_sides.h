/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two ends of a transport in one process, for the tests of the UCX transport.
 */
#ifndef R2_TESTS_TP_SIDES_H
#define R2_TESTS_TP_SIDES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "r2/transport.h"

#define DATA_MAX    131072u
#define SEGMENT_MAX (DATA_MAX + 128u)
/* A worker over RDMA has 8 MiB of buffers. */
#define ROUNDS (NULL == device_tls ? 200 : 40)

/** What a packet of this test says about itself. */
typedef struct header {
    uint32_t number;
    uint32_t bytes;
    char pad[88]; /* as long as the headers of the product */
} header_t;

typedef struct packet {
    r2_tp_send_t op;
    header_t header;
    bool done;
    r2_status_t status;
} packet_t;

/** One end. */
typedef struct side {
    r2_tp_device_t *device;
    r2_tp_worker_t *worker;
    r2_tp_ep_t *ep;
    uint32_t received, wrong, last; /* packets; number of the last one */
    uint32_t failed;                /* calls of failed() */
    void *failed_arg;
    char *landing;             /* where data of odd packets land; NULL: nowhere */
    uint32_t landings, landed; /* packets that began to land there, and that were told so */
    uint32_t aligned;          /* long packets whose data suited every type of a processor */
    bool echo;                 /* answers each packet */
    bool takes_more;           /* more may be handed up in the same call */
    uint32_t owed;             /* answers to send */
} side_t;

extern r2_tp_t tp;
extern const char *device_name; /* NULL: shared memory */
extern const char *device_tls;  /* NULL: TCP, or shared memory */
extern unsigned char *pattern;  /* data of packet n starts at n % 251 */
extern char self_path[4096];
extern const r2_tp_callbacks_t callbacks;

r2_status_t packet_send(packet_t *packet, side_t *side, uint32_t number, uint32_t bytes,
                        const void *data);
/** The same. @param whole what the data are part of; NULL: of nothing. */
r2_status_t packet_send_part(packet_t *packet, side_t *side, uint32_t number, uint32_t bytes,
                             const void *data, const r2_tp_memory_t *whole);
/** Progresses its sender until a packet is ours again, up to 10 s. */
void packet_wait(const packet_t *packet, side_t *side);
uint64_t now_ns(void);

void side_open(side_t *side);
void side_close(side_t *side);
/** Opens an endpoint of its own. */
void side_offer(side_t *side);
/** Connects the endpoint of one end to that of the other. */
void side_join(side_t *from, const side_t *to);
/** New endpoints, connected in both directions. */
void side_connect(side_t *a, side_t *b);
/** Progresses both until `*count` reaches `target`. @return false after 10 s. */
bool progress_until(side_t *a, side_t *b, const uint32_t *count, uint32_t target);
/** Opens two ends and lets an empty packet cross in both directions. */
void pair_open(side_t *a, side_t *b);
void pair_close(side_t *a, side_t *b);

/* ---- test_tp_ucx.c ---- */

void assert_sleeps(side_t *side);

/* ---- tp_closing.c ---- */

void test_close_with_sends_pending(void **state);
void test_close_leaves_other_lanes(void **state);
void test_generations(void **state);
void test_close_while_connecting(void **state);
void test_wiring_gives_back(void **state);
void test_connections_break(void **state);

/* ---- tp_processes.c ---- */

/** The other process: answers each packet with one of its own until it is killed. */
int peer_main(int fd);
void test_two_processes(void **state);
void test_peer_killed_with_sends_pending(void **state);
void test_peer_killed_while_connecting(void **state);
void test_forked_child(void **state);
void test_peer_stopped(void **state);

/* ---- tp_memory.c ---- */

void test_memory_is_registered_once(void **state);
void test_memory_is_unmapped(void **state);
void test_memory_of_neighbours(void **state);
void test_memory_is_refused(void **state);
void test_memory_is_short(void **state);
void test_memory_is_used_up(void **state);
void test_long_packets_are_not_copied(void **state);
void test_worker_locks_little(void **state);
/** This memory is not registered, if it starts a page; 0 bytes: all is again. */
void memory_refuse(const void *data, size_t bytes);
/* No memory is registered; no device is opened; no queue pair gets on. */
extern bool refuses_all, opens_none, connects_none;

/* ---- tp_tcp.c ---- */

/** Says something in portions of so many bytes, and lets the worker look at each. */
void say(int fd, const void *what, size_t bytes, size_t portion, side_t *hearer);
/** A side whose peer is played by this test. @return the peer's socket. */
int play_peer(side_t *side, size_t portion);
/** Packets of the test, one behind the other, as they travel. @return bytes. */
size_t write_packets(char *to, const uint32_t *lengths, uint32_t count);
void test_portions(void **state);
void test_landing(void **state);
void test_landing_behind_short(void **state);
void test_landing_off(void **state);
void test_landing_fails(void **state);
void test_wrong_frames(void **state);
void test_strangers(void **state);
void test_wrong_peer(void **state);
void test_one_endpoint(void **state);
void test_reading_on(void **state);

/* ---- tp_rdma.c ---- */

void test_silent_drop(void **state);
void test_port_down(void **state);
void test_flap(void **state);
void test_device_dies(void **state);
void test_no_put_without_the_other_process(void **state);
void test_gid_moves(void **state);
/** Tells the NIC of soft0, as `softverbs fault soft0 WORDS`. */
void nic_fault(const char *words);

/* ---- tp_put.c ---- */

void test_puts_land_before_their_header(void **state);
void test_puts_need_no_process(void **state);
void test_gets_need_no_process(void **state);
void test_gets_end_with_their_endpoint(void **state);
void test_close_with_puts_pending(void **state);
void test_late_puts_land_until_the_receiver_closes(void **state);
void test_late_puts_end_with_the_device(void **state);
void test_granted_memory_is_unmapped(void **state);
void test_puts_end_with_their_memory(void **state);
void test_memory_is_pinned_beside(void **state);
void test_pinning_joins_neighbours(void **state);
void test_pinning_does_without_neighbours(void **state);
void test_pinning_keeps_nobody_waiting(void **state);
void test_nothing_is_granted(void **state);

/* ---- tp_rail.c ---- */

void test_rail_offers(void **state);
void test_rail_descriptors(void **state);
void test_rail_after_death(void **state);
void test_rail_refused(void **state);
void test_rail_worker_after_death(void **state);
void test_rail_gid_moves(void **state);
void test_rail_tells_refusals(void **state);

#endif
