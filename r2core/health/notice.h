/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Notices: what processes tell and ask each other about health. Wire format (docs/faults.md).
 */
#ifndef R2_HEALTH_NOTICE_H
#define R2_HEALTH_NOTICE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "model/health_map.h"

#define R2_NOTICE_VERSION 1

/** Kinds of notices. Those from R2_NOTICE_CHANGE on are acknowledged and re-sent until they are. */
typedef enum r2_notice_kind {
    R2_NOTICE_ACK = 1,       /* `id` of the notice that is acknowledged */
    R2_NOTICE_WANT_PROBE,    /* please probe host_b's NIC on this rail */
    R2_NOTICE_ANSWER_PROBE,  /* `answer` */
    R2_NOTICE_WANT_BEACON,   /* did you hear beacon `id` on this rail; send me one */
    R2_NOTICE_ANSWER_BEACON, /* `answer` */
    R2_NOTICE_CHANGE,        /* map entry of (host_a, rail) */
    R2_NOTICE_PATH,          /* exception (host_a, host_b, rail) */
    R2_NOTICE_GONE,          /* process host_a (a rank) is gone */
    R2_NOTICE_CLAIM, /* to an owner: (host_a, rail) should have this entry; its version is the
                        one that the evidence is newer than */
    R2_NOTICE_KIND_END
} r2_notice_kind_t;

enum {
    R2_NOTICE_FANOUT = 1 << 0, /* from the owner of the own host: not to be passed on */
    R2_NOTICE_ACT = 1 << 1,    /* the receiver acts as its host's owner, whoever else there is */
    R2_NOTICE_FLAGS_ALL = (1 << 2) - 1
};

/** A notice. Little endian. Hosts are named by their lowest rank. */
typedef struct __attribute__((packed)) r2_notice {
    uint8_t version;
    uint8_t kind; /* r2_notice_kind_t */
    uint8_t flags;
    uint8_t answer;         /* r2_answer_t; ANSWER_* only */
    uint32_t rail;          /* 0 for ACK and GONE */
    uint64_t id;            /* chosen by the sender; echoed by ACK and ANSWER_* */
    uint32_t host_a;        /* lowest rank of the host; GONE: the rank; else 0 */
    uint32_t host_b;        /* PATH, ASK_PROBE; else 0 */
    uint32_t entry_version; /* CHANGE, PATH, CLAIM; else 0 */
    uint8_t capacity;       /* CHANGE, CLAIM; else 0 */
    uint8_t verdict;        /* CHANGE, CLAIM; else 0 */
    uint8_t direction;      /* CHANGE, CLAIM; else 0 */
    uint8_t age;            /* CHANGE, CLAIM: r2_notice_age() of the first evidence; else 0 */
} r2_notice_t;

static_assert(32 == sizeof(r2_notice_t), "wire layout is frozen per version");

/**
 * A length of time in one byte: four bits that are shifted left by the upper five, in ms; at most
 * an eighth too short.
 */
uint8_t r2_notice_age(uint64_t age_ns);
/** Back to nanoseconds. */
uint64_t r2_notice_age_ns(uint8_t age);

/**
 * Copies a notice out of received bytes and checks every field against its kind; indices are
 * checked by the receiver, who knows the job.
 * @return R2_OK or R2_ERR_WIRE.
 */
r2_status_t r2_notice_parse(const void *data, size_t bytes, r2_notice_t *notice_p);

#endif
