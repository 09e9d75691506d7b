/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Consent: whatever processes publish, all that take part come to the same conclusion, and the user
 * is told once; who cannot read it comes to none.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctx/state.h"
#include "link/peer_info.h"
#include "r2/prng.h"

#define T_RANKS 8
#define T_APART (1ull << 40) /* of a host: the same machine, and no memory to share */
#define T_DRAWS 20000

typedef enum t_kind {
    T_COLL, /* takes part: collectives */
    T_P2P,
    T_BOTH,
    T_ALL,      /* both, and communicators on one host, too */
    T_BLOCKING, /* of these what memory makes */
    T_PRIVATE,  /* the same, but shares none */
    T_REFUSES,  /* something is wrong with its host */
    T_EXPECTED, /* nothing is */
    T_ABSENT,
    T_VERSION,
    T_SHORT,
    T_KINDS
} t_kind_t;

/** A job; blobs are made anew for each answer. */
typedef struct t_job {
    uint32_t size;
    t_kind_t kind[T_RANKS];
    uint64_t host[T_RANKS];
    uint32_t failing[T_RANKS][T_RANKS]; /* [asker][asked]: times that it does not work */
    r2_status_t failure;
    uint32_t lines, loud; /* what was logged, and how much of it at the default level */
    char line[1024];
} t_job_t;

/** A process. */
typedef struct t_rank {
    t_job_t *job;  /* borrowed */
    r2_ctx_t *ctx; /* owned */
    uint32_t rank;
} t_rank_t;

static uint32_t t_users(t_kind_t kind)
{
    static const uint32_t users[T_KINDS] = {[T_COLL] = R2_USER_COLL,
                                            [T_P2P] = R2_USER_P2P,
                                            [T_BOTH] = R2_USER_COLL | R2_USER_P2P,
                                            [T_ALL] = R2_USER_COLL | R2_USER_P2P |
                                                      R2_USER_ONE_HOST | R2_USER_ONE_HOST_ALL,
                                            [T_PRIVATE] =
                                                R2_USER_COLL | R2_USER_P2P | R2_USER_ONE_HOST};

    return users[T_BLOCKING == kind ? T_PRIVATE : kind];
}

/* What it publishes. */
static uint32_t t_told(t_kind_t kind)
{
    return t_users(kind) | (T_BLOCKING == kind || T_ALL == kind ? (uint32_t) R2_USER_SHARES : 0u);
}

static r2_status_t t_lookup(void *instance, uint32_t rank, void *blob_p, size_t *bytes_p)
{
    const t_rank_t *self = instance;
    const t_kind_t kind = self->job->kind[rank];
    const r2_peer_refusal_t refusal = {
        .expected = T_EXPECTED == kind, .host_name = "h", .why = "the reason"};
    const r2_peer_info_t info = {.users = T_VERSION == kind || T_SHORT == kind ? 3 : t_told(kind),
                                 .host_id = self->job->host[rank],
                                 .host_name = "h"};
    uint8_t *blob = blob_p;

    if (self->job->failing[self->rank][rank] > 0) {
        --self->job->failing[self->rank][rank];
        return self->job->failure;
    }
    if (T_ABSENT == kind) {
        return R2_ERR_NOT_FOUND;
    }
    *bytes_p = T_REFUSES == kind || T_EXPECTED == kind ? r2_peer_refusal_encode(&refusal, blob)
                                                       : r2_peer_info_encode(&info, blob);
    blob[4] = (uint8_t) (blob[4] + (T_VERSION == kind ? 1 : 0));
    *bytes_p = T_SHORT == kind ? 7 : *bytes_p;
    return R2_OK;
}

static void t_log(void *arg, int level, const char *line)
{
    t_job_t *job = arg;

    ++job->lines;
    job->loud += R2_LOG_WARN >= level;
    snprintf(job->line, sizeof(job->line), "%s", line);
}

static void t_rank_make(t_job_t *job, uint32_t rank, t_rank_t *self)
{
    static const r2_oob_ops_t ops = {.name = "scripted", .lookup = t_lookup};

    self->job = job;
    self->rank = rank;
    self->ctx = calloc(1, sizeof(*self->ctx));
    assert_non_null(self->ctx);
    self->ctx->core.net.rank = rank;
    self->ctx->core.net.size = job->size;
    self->ctx->core.net.info.users = t_told(job->kind[rank]);
    self->ctx->core.net.info.host_id = job->host[rank];
    self->ctx->core.net.oob = (r2_oob_t){&ops, self};
    self->ctx->core.log = (r2_log_t){.level = R2_LOG_INFO, .fn = t_log, .arg = job};
}

/* What all have. */
static uint32_t t_common(const t_job_t *job)
{
    uint32_t told = UINT32_MAX, users = UINT32_MAX;

    for (uint32_t rank = 0; rank < job->size; ++rank) {
        users &= t_users(job->kind[rank]);
        told &= t_told(job->kind[rank]);
    }
    return users &
           ~(0 == (told & (R2_USER_ONE_HOST_ALL | R2_USER_SHARES)) ? (uint32_t) R2_USER_ONE_HOST
                                                                   : 0u);
}

/* Collectives that would never leave a host are left to others, unless all want r2 there. */
static bool t_left(const t_job_t *job)
{
    for (uint32_t rank = 1; rank < job->size; ++rank) {
        if ((uint32_t) job->host[rank] != (uint32_t) job->host[0]) {
            return false;
        }
    }
    return R2_USER_COLL == (t_common(job) & (R2_USER_COLL | R2_USER_ONE_HOST));
}

static uint32_t t_agreed(const t_job_t *job)
{
    return t_common(job) & ~(t_left(job) ? (uint32_t) R2_USER_COLL : 0u);
}

/* Each user that some have and some lack, once; all of it in one line where nobody has anything.
 * And that the job is on one host. */
static uint32_t t_lines(const t_job_t *job)
{
    const uint32_t agreed = t_common(job);
    uint32_t some = 0;

    for (uint32_t rank = 0; rank < job->size; ++rank) {
        some |= t_users(job->kind[rank]);
    }
    if (0 == agreed) {
        return 0 != some && T_REFUSES != job->kind[0] &&
               T_EXPECTED != job->kind[0]; /* else rank 0 told at its start */
    }
    return (uint32_t) __builtin_popcount(some & ~agreed & 3u) + (t_left(job) ? 1 : 0);
}

static void t_run(t_job_t *job)
{
    const uint32_t agreed = t_agreed(job);

    for (uint32_t rank = 0; rank < job->size; ++rank) {
        t_rank_t self;
        r2_status_t status;

        if (0 == t_users(job->kind[rank])) {
            continue;
        }
        t_rank_make(job, rank, &self);
        status = r2_consent_find(self.ctx);
        assert_int_equal(status, R2_OK);
        assert_int_equal(self.ctx->consent.users, agreed);
        assert_int_equal(r2_consent_of(self.ctx, R2_USER_COLL),
                         0 != (agreed & R2_USER_COLL) ? R2_OK : R2_ERR_UNSUPPORTED);
        assert_int_equal(r2_consent_of(self.ctx, R2_USER_P2P),
                         0 != (agreed & R2_USER_P2P) ? R2_OK : R2_ERR_UNSUPPORTED);
        assert_int_equal(r2_consent_of(self.ctx, R2_USER_ONE_HOST),
                         0 != (agreed & R2_USER_ONE_HOST) ? R2_OK : R2_ERR_UNSUPPORTED);
        assert_int_equal(r2_consent_of(self.ctx, R2_USER_ONE_HOST_ALL),
                         0 != (agreed & R2_USER_ONE_HOST_ALL) ? R2_OK : R2_ERR_UNSUPPORTED);
        free(self.ctx);
    }
}

static void t_draw(t_job_t *job, r2_prng_t *prng)
{
    const t_kind_t usual = (t_kind_t) r2_prng_below(prng, T_REFUSES);
    const uint32_t hosts = 1 + (uint32_t) r2_prng_below(prng, 3);

    memset(job, 0, sizeof(*job));
    job->failure = R2_ERR_TIMEOUT;
    job->size = 2 + (uint32_t) r2_prng_below(prng, T_RANKS - 1);
    for (uint32_t rank = 0; rank < job->size; ++rank) {
        job->kind[rank] =
            0 == r2_prng_below(prng, 3) ? (t_kind_t) r2_prng_below(prng, T_KINDS) : usual;
        job->host[rank] = 1 + r2_prng_below(prng, hosts);
        for (uint32_t peer = 0; peer < job->size; ++peer) {
            job->failing[rank][peer] =
                0 == r2_prng_below(prng, 4) ? (uint32_t) r2_prng_below(prng, 3) : 0;
        }
    }
}

static void all_agree_and_one_tells(void **state)
{
    uint32_t agreed = 0, told = 0, left = 0;
    r2_prng_t prng;
    t_job_t job;

    (void) state;
    r2_prng_seed(&prng, 1);
    for (uint32_t i = 0; i < T_DRAWS; ++i) {
        t_draw(&job, &prng);
        t_run(&job);
        assert_int_equal(job.lines, t_lines(&job));
        agreed += 0 != t_agreed(&job);
        told += job.lines;
        left += t_left(&job);
    }
    assert_in_range(agreed, T_DRAWS / 20, T_DRAWS); /* both happen */
    assert_in_range(told, T_DRAWS / 20, T_DRAWS);
    assert_in_range(left, T_DRAWS / 100, T_DRAWS / 2);
}

/* It must not go on as if the other had said no: nobody else heard that. */
static void who_cannot_read_does_not_decide(void **state)
{
    static const r2_status_t failures[] = {R2_ERR_TIMEOUT, R2_ERR_NO_MEMORY, R2_ERR_SYSTEM,
                                           R2_ERR_WIRE};
    t_rank_t self;

    (void) state;
    for (uint32_t i = 0; i < r2_array_count(failures); ++i) {
        t_job_t job = {.size = 3, .kind = {T_COLL, T_COLL, T_COLL}, .failure = failures[i]};

        job.failing[1][2] = UINT32_MAX;
        t_rank_make(&job, 1, &self);
        assert_int_equal(r2_consent_of(self.ctx, R2_USER_COLL), failures[i]);
        assert_false(self.ctx->consent.known);
        assert_non_null(strstr(self.ctx->core.net.error_text, "process 2"));
        assert_int_equal(job.lines, 0);
        free(self.ctx);
    }
}

static void t_tells(const t_job_t *wanted, bool named, bool loud, const char *text)
{
    t_job_t job = *wanted;
    t_rank_t self;

    t_rank_make(&job, 0, &self);
    self.ctx->config.named = named;
    assert_int_equal(r2_consent_of(self.ctx, R2_USER_COLL), R2_ERR_UNSUPPORTED);
    assert_int_equal(job.lines, 1);
    assert_int_equal(job.loud, loud);
    assert_non_null(strstr(job.line, text));
    free(self.ctx);
}

/* What is to be expected on a host is told at the default level only to who named r2. */
static void levels_and_words(void **state)
{
    const t_job_t expected = {.size = 2, .kind = {T_COLL, T_EXPECTED}};
    const t_job_t refused = {.size = 2, .kind = {T_COLL, T_REFUSES}};
    const t_job_t absent = {.size = 3, .kind = {T_BOTH, T_BOTH, T_ABSENT}};
    const t_job_t other = {.size = 2, .kind = {T_COLL, T_VERSION}};
    const t_job_t lacking = {.size = 3, .kind = {T_BOTH, T_BOTH, T_P2P}};
    const t_job_t one_host = {.size = 2, .kind = {T_COLL, T_COLL}, .host = {9, 9}};
    const t_job_t apart = {.size = 2, .kind = {T_COLL, T_COLL}, .host = {9, 9 | T_APART}};
    const t_job_t beside = {.size = 2, .kind = {T_ALL, T_BOTH}, .host = {9, 9}};

    (void) state;
    t_tells(&expected, true, true, "does without r2: h: the reason");
    t_tells(&expected, false, false, "does without r2: h: the reason");
    t_tells(&refused, false, true, "does without r2: h: the reason");
    t_tells(&absent, false, true, "process 2 on another host did not ask for r2");
    t_tells(&other, false, true, "process 1 on another host has another version of r2");
    t_tells(&lacking, false, true,
            "does without coll/r2: process 2 on another host did not ask for coll/r2");
    t_tells(&one_host, true, false, "does without r2: all 2 processes are on one host");
    t_tells(&apart, true, false, "does without r2: all 2 processes are on one host");
    t_tells(&beside, true, false, "does without coll/r2: all 2 processes are on one host");
}

/* Ranks 0 and 2 are on one host, 1 and 3 on another, where they share no memory. */
static r2_status_t t_open(t_rank_t *self, const uint32_t *ranks, int32_t size)
{
    r2_comm_t *comm = NULL;

    return r2_comm_create(self->ctx, (r2_comm_id_t){3, 0}, ranks, size, 0, &comm);
}

/* All members hear it, whoever is asked, before anything of the communicator is there. */
static void members_on_one_host_are_left(void **state)
{
    static const uint32_t even[] = {0, 2}, all[] = {0, 1, 2, 3}, reverse[] = {3, 1, 0};

    (void) state;
    for (uint32_t rank = 0; rank < 4; ++rank) {
        t_job_t job = {.size = 4,
                       .kind = {T_COLL, T_COLL, T_COLL, T_COLL},
                       .host = {7, 8, 7, 8 | T_APART},
                       .failure = R2_ERR_TIMEOUT};
        uint8_t blob[R2_PEER_INFO_BYTES_MAX];
        t_rank_t self;
        size_t bytes;

        t_rank_make(&job, rank, &self);
        self.ctx->core.net.info.host_name = "h";
        self.ctx->core.net.links = calloc(job.size, sizeof(*self.ctx->core.net.links));
        self.ctx->core.net.known = calloc(1, sizeof(*self.ctx->core.net.known));
        self.ctx->core.net.known_count = 1;
        self.ctx->have_key = true;
        bytes = r2_peer_info_encode(&self.ctx->core.net.info, blob);
        assert_int_equal(r2_peer_info_decode(blob, bytes, &self.ctx->core.net.info), R2_OK);
        pthread_mutex_init(&self.ctx->core.lock, NULL);
        assert_int_equal(r2_consent_find(self.ctx), R2_OK);
        job.failing[rank][3 == rank ? 2 : 3] = 1;
        assert_int_equal(t_open(&self, even, 2), R2_ERR_TIMEOUT); /* it would be alone with that */
        assert_null(self.ctx->hosts);
        assert_int_equal(t_open(&self, even, 2), R2_ERR_UNSUPPORTED);
        assert_int_equal(t_open(&self, &all[3], 1), R2_ERR_UNSUPPORTED);
        assert_int_equal(t_open(&self, reverse, 2), R2_ERR_UNSUPPORTED);
        assert_false(r2_hosts_together(self.ctx->hosts, all, 4));
        assert_false(r2_hosts_together(self.ctx->hosts, reverse, 3));
        assert_true(r2_hosts_together(self.ctx->hosts, even, 2));
        assert_int_equal(job.lines, 0);
        r2_hosts_destroy(self.ctx->hosts);
        r2_peer_info_put(&self.ctx->core.net.info);
        pthread_mutex_destroy(&self.ctx->core.lock);
        r2_peer_info_put(&self.ctx->core.net.known[0].info);
        free(self.ctx->core.net.known);
        free(self.ctx->core.net.links);
        free(self.ctx);
    }
}

/** Who publishes, and how often that does not work. */
typedef struct t_speaker {
    uint32_t failing, tries;
    bool leaks;                    /* what did not work is seen all the same */
    uint8_t blob[R2_OOB_BLOB_MAX]; /* what was published last */
    size_t bytes;
} t_speaker_t;

static r2_status_t t_publish(void *instance, const void *blob, size_t bytes)
{
    t_speaker_t *speaker = instance;
    const bool fails = speaker->failing > 0;

    ++speaker->tries;
    speaker->failing -= fails ? 1 : 0;
    if (!fails || speaker->leaks) {
        memcpy(speaker->blob, blob, bytes);
        speaker->bytes = bytes;
    }
    return fails ? R2_ERR_SYSTEM : R2_OK;
}

/* The only process of a job, and what it publishes by. */
static t_speaker_t *t_speaker_make(t_job_t *job, t_rank_t *self)
{
    static const r2_oob_ops_t ops = {.name = "speaker", .publish = t_publish};
    t_speaker_t *speaker = calloc(1, sizeof(*speaker));

    assert_non_null(speaker);
    t_rank_make(job, 0, self);
    self->ctx->core.net.oob = (r2_oob_t){&ops, speaker};
    return speaker;
}

/* A process that withdraws is believed to take part until it could say so: it tries, and says when
 * not. */
static void who_withdraws_tells_or_ends(void **state)
{
    (void) state;
    for (uint32_t failing = 0; failing < 5; ++failing) {
        t_speaker_t *speaker;
        t_job_t job = {.size = 1, .kind = {T_BOTH}};
        r2_peer_refusal_t refusal;
        uint32_t users = 0;
        uint64_t host_id;
        t_rank_t self;

        speaker = t_speaker_make(&job, &self);
        speaker->failing = failing;
        assert_int_equal(r2_consent_withdraw(self.ctx, R2_USER_P2P),
                         failing < 3 ? R2_OK : R2_ERR_UNTOLD);
        if (failing < 3) {
            assert_int_equal(r2_peer_users(speaker->blob, speaker->bytes, &users, &host_id), R2_OK);
            assert_int_equal(users, R2_USER_COLL);
        }
        speaker->failing = failing;
        assert_int_equal(r2_consent_withdraw(self.ctx, R2_USER_COLL),
                         failing < 3 ? R2_OK : R2_ERR_UNTOLD);
        if (failing < 3) {
            assert_int_equal(r2_peer_refusal_decode(speaker->blob, speaker->bytes, &refusal),
                             R2_OK);
        }
        assert_int_equal(speaker->tries, failing < 3 ? 2 * (failing + 1) : 6);
        free(self.ctx);
        free(speaker);
    }
}

/* A component that joins and cannot say so stays out, and nobody sees it; or the job ends. */
static void who_cannot_join_is_not_seen(void **state)
{
    (void) state;
    for (uint32_t failing = 0; failing < 8; ++failing) {
        t_speaker_t *speaker;
        t_job_t job = {.size = 1, .kind = {T_COLL}};
        uint32_t users = 0;
        uint64_t host_id;
        t_rank_t self;

        speaker = t_speaker_make(&job, &self);
        *speaker = (t_speaker_t){.failing = failing, .leaks = true};
        assert_int_equal(r2_consent_join(self.ctx, R2_USER_P2P), failing < 3   ? R2_OK
                                                                 : failing < 6 ? R2_ERR_SYSTEM
                                                                               : R2_ERR_UNTOLD);
        assert_int_equal(speaker->tries, r2_min(failing + 1, 6));
        assert_int_equal(r2_peer_users(speaker->blob, speaker->bytes, &users, &host_id), R2_OK);
        assert_int_equal(users, failing < 3 ? R2_USER_COLL | R2_USER_P2P : R2_USER_COLL);
        assert_int_equal(self.ctx->core.net.info.users, users);
        free(self.ctx);
        free(speaker);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_agree_and_one_tells),
        cmocka_unit_test(who_cannot_read_does_not_decide),
        cmocka_unit_test(levels_and_words),
        cmocka_unit_test(members_on_one_host_are_left),
        cmocka_unit_test(who_withdraws_tells_or_ends),
        cmocka_unit_test(who_cannot_join_is_not_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
