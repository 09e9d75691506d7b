/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * State of the health machine, shared by its files.
 *
 * Bottom to top: no file calls one that stands further on (./check layers).
 *
 *   members notice verdict_rules     who is who; the wire format; evidence -> conclusion
 *   describe agreement               what users are told; when ranks plan on the same map
 *   outbox suspicion outage          notices until acknowledged; what is suspected, what is dead
 *   disseminate probes               the map and who is told of it; probes and beacons
 *   owner query                      claims on a host's own entries; queries and their answers
 *   capacity heal investigation      degraded, dead and suspected rails
 *   health                           the door: evidence, notices and time come in
 */
#ifndef R2_HEALTH_MACHINE_H
#define R2_HEALTH_MACHINE_H

#include "base/hash.h"
#include "base/util.h"
#include "health/health.h"
#include "health/notice.h"
#include "health/verdict_rules.h"
#include "r2/prng.h"

#define R2_NOBODY             UINT32_MAX
#define R2_INVESTIGATIONS_MAX 16
#define R2_PROBES_MAX         256   /* under way */
#define R2_BEACONS_MAX        64    /* heard and remembered */
#define R2_OUTBOX_MAX         65536 /* notices that wait for an acknowledgement */
#define R2_OUTBOX_OWN_MAX     16    /* notices that come round to us, handled per tick */
#define R2_ATTEMPTS           3     /* of each query, so that lost packets do not count as faults */
#define R2_SUCCESSION         3     /* sendings without acknowledgement until the next rank acts */

/* ---- reliable notices (outbox.c) ---- */

/** What makes a newer notice take the place of an older one. No padding: hash key. */
typedef struct r2_outbox_key {
    uint32_t to_host; /* R2_NOBODY: to one rank */
    uint32_t to_rank; /* R2_NOBODY: to the owner of to_host */
    uint32_t kind, host_a, host_b, rail;
} r2_outbox_key_t;

typedef struct r2_outbox_item {
    r2_outbox_key_t key;
    r2_notice_t notice;
    uint64_t next_ns, pause_ns;
    uint32_t attempts;
    UT_hash_handle hh;
} r2_outbox_item_t;

/* ---- investigations (suspicion.c, investigation.c) ---- */

typedef enum r2_query {
    R2_QUERY_PEER, /* own probes */
    R2_QUERY_WITNESS,
    R2_QUERY_SECOND,
    R2_QUERY_OTHERS,
    R2_QUERY_WITNESS_PEER, /* asked by notice */
    R2_QUERY_SECOND_PEER,
    R2_QUERY_WITNESS_SECOND,
    R2_QUERY_BEACON,
    R2_QUERY_COUNT
} r2_query_t;

#define R2_IDS_PER_INVESTIGATION 32 /* R2_ATTEMPTS * R2_QUERY_COUNT, rounded up */

/** How often a query was put and what came back. */
typedef struct r2_tally {
    bool open;     /* it makes sense to ask */
    uint16_t sent; /* probes started */
    uint16_t yes, no, unable;
    uint8_t no_attempts; /* asked by notice: bit per attempt that was answered with no */
} r2_tally_t;

/** Why does (host, rail) not answer us. */
typedef struct r2_investigation {
    bool active;
    uint32_t host, rail, rank; /* suspected; rank: the process whose lane it was */
    uint32_t witness, second;  /* hosts; R2_NOBODY: there is none */
    uint64_t id;               /* first of its R2_IDS_PER_INVESTIGATION ids */
    uint64_t since_ns, begun_ns, next_ns, deadline_ns; /* since: suspicion; begun: first query */
    uint64_t half_ns;                                  /* from one attempt to the next */
    uint64_t unread_ns; /* deadline passed: so long answers may lie unread; 0: not looked yet */
    uint32_t attempts, peer_version, own_version;
    r2_tally_t tally[R2_QUERY_COUNT];
    bool beacon_in;
} r2_investigation_t;

/* ---- probes under way ---- */

typedef enum r2_purpose {
    R2_PURPOSE_NONE,
    R2_PURPOSE_QUERY,
    R2_PURPOSE_SERVE,
    R2_PURPOSE_HEAL
} r2_purpose_t;

typedef struct r2_pending {
    r2_purpose_t purpose;
    uint64_t id;
    uint64_t query_id;   /* SERVE: id of the asker's notice; QUERY: of the investigation */
    uint32_t rank, rail; /* SERVE: the asker */
    uint32_t host;       /* SERVE: who is asked about */
    uint64_t since_ns;   /* SERVE: when it was asked */
    uint32_t what;       /* QUERY: r2_query_t; HEAL: index in heals */
} r2_pending_t;

typedef struct r2_beacon {
    uint64_t id;
    uint32_t rank, rail;
} r2_beacon_t;

/* ---- healing (outage.c, heal.c) ---- */

/** One dead rail of our host, or one broken path that begins here. */
typedef struct r2_heal {
    bool active, probing, proving, unopened;
    uint32_t host; /* path: the other end; rail: own host */
    uint32_t rail;
    uint32_t good;  /* probes answered in a row */
    uint32_t flaps; /* failures soon after a heal, in a row */
    uint32_t rotation;
    uint64_t since_ns, next_ns, pause_ns;
    uint64_t quarantine_ns; /* not before */
    uint64_t prove_ns;      /* lanes have been tried for long enough */
    uint64_t healed_ns;     /* last time; 0: never */
    uint64_t outage_ns;     /* length of outages: moving average */
} r2_heal_t;

#define R2_HEALS_MAX (R2_RAILS_MAX + R2_HEALTH_EXCEPTIONS_MAX) /* rails first, then paths */

/* ---- degraded rails (capacity.c) ---- */

#define R2_SLOW_PEERS                                                           \
    8 /* hosts whose lanes are looked at in one window; more would say the same \
       */

/** What the lanes of some hosts over one rail gave, in thousandths of the usual lane of their
 * link. */
typedef struct r2_slow_sum {
    uint32_t host;
    uint32_t sum, count;
} r2_slow_sum_t;

typedef struct r2_slow {
    uint64_t window_ns; /* start; 0: none */
    r2_slow_sum_t peers[R2_SLOW_PEERS];
    uint32_t peer_count;
    uint32_t best; /* lane of this window, thousandths */
    /* of the healthy rail, thousandths: by its speed, or the most so far; 0: unknown */
    uint32_t baseline;
    uint32_t low, high;            /* windows in a row below or above what the map says */
    uint32_t low_best, high_least; /* least sure value of those windows */
} r2_slow_t;

/** Lanes of one link, one direction, as they are reported in a row. */
typedef struct r2_batch {
    uint32_t rank;
    bool outbound;
    uint64_t now_ns;
    uint64_t bytes[R2_RAILS_MAX];
    uint32_t seen; /* bit per rail */
} r2_batch_t;

/* ---- the machine ---- */

struct r2_health {
    const r2_hosts_t *hosts; /* borrowed: outlives the machine */
    r2_health_self_t self;
    r2_health_ports_t ports;
    r2_params_t params;
    uint32_t own_host, rail_count; /* of the host with most rails */
    uint32_t *lowest;              /* owned: [host] lowest rank, the host's name on the wire */
    uint32_t *next_member;         /* owned: [rank] next rank of the same host, R2_NOBODY: last */
    uint8_t *gone;                 /* owned: [rank] */
    uint64_t *quiet_ns;            /* owned: [host * rail_count + rail] no investigation before */
    uint64_t *pause_ns;            /* owned: the same; last pause */
    uint64_t *accused_ns; /* owned: the same; first evidence of what was concluded here and the map
                             does not know yet; 0: nothing */
    uint64_t *since_ns;   /* owned: the same; first evidence of what the map says */
    /* owned: the same; soon after a repair: lanes may open late until then */
    uint64_t *settled_ns;
    r2_health_map_t map;
    r2_prng_t prng;
    uint64_t next_id;
    uint32_t rotation; /* of witnesses */

    r2_outbox_item_t *outbox; /* owned: hash */
    uint64_t outbox_ns;       /* not later than the first sending due */
    uint64_t retell_ns;  /* when all that is known is told again, as not all had room; else never */
    uint32_t retell_at;  /* number of the fact that it begins with (disseminate.c) */
    uint32_t outbox_max; /* R2_OUTBOX_MAX; tests take less */
    r2_investigation_t investigations[R2_INVESTIGATIONS_MAX];
    r2_pending_t pending[R2_PROBES_MAX];
    r2_beacon_t beacons[R2_BEACONS_MAX];
    uint32_t beacon_next;
    /* active ones: where there are none, nobody looks for deadlines */
    uint32_t investigation_count;
    r2_heal_t heals[R2_HEALS_MAX];
    uint32_t heal_count; /* active ones */
    r2_slow_t windows[R2_RAILS_MAX];
    r2_batch_t batch;
};

static inline uint64_t r2_health_ms(uint64_t ms)
{
    return ms * R2_NS_PER_MS;
}

static inline uint32_t r2_rails_of(const r2_health_t *health, uint32_t host)
{
    return health->hosts->hosts[host].rail_count;
}

static inline size_t r2_health_at(const r2_health_t *health, uint32_t host, uint32_t rail)
{
    return (size_t) host * health->rail_count + rail;
}

/* members.c */
uint32_t r2_members_nth(const r2_health_t *health, uint32_t host, uint32_t nth);
uint32_t r2_members_position(const r2_health_t *health);
bool r2_members_is_owner(const r2_health_t *health);
bool r2_members_host(const r2_health_t *health, uint32_t rank, uint32_t *host_p);

/* outbox.c */
void r2_health_send(r2_health_t *health, uint32_t rank, const r2_notice_t *notice);
void r2_outbox_rank(r2_health_t *health, uint32_t rank, const r2_notice_t *notice, uint64_t now_ns);
void r2_outbox_host(r2_health_t *health, uint32_t host, const r2_notice_t *notice, uint64_t now_ns);
void r2_outbox_acknowledged(r2_health_t *health, uint32_t rank, uint64_t id);
void r2_outbox_gone(r2_health_t *health, uint32_t rank);
/** True if something did not fit and half of the places are free: it is to be told again. */
bool r2_outbox_has_room(r2_health_t *health, uint64_t now_ns);
/**
 * Sends what is due.
 * @param own_p notices for which nobody before us answers: we act on them.
 * @return how many.
 */
uint32_t r2_outbox_tick(r2_health_t *health, r2_notice_t own_p[R2_OUTBOX_OWN_MAX], uint64_t now_ns);
void r2_outbox_fini(r2_health_t *health);

/* disseminate.c */
void r2_disseminate_notice(r2_health_t *health, uint32_t from, const r2_notice_t *notice,
                           uint64_t now_ns);
void r2_disseminate_entry(r2_health_t *health, uint32_t rail, const r2_health_entry_t *entry,
                          const r2_verdict_event_t *event, uint64_t since_ns, uint64_t now_ns);
void r2_disseminate_path(r2_health_t *health, uint32_t host, uint32_t rail, bool broken,
                         uint32_t tell, const r2_verdict_event_t *event, uint64_t now_ns);
void r2_disseminate_gone(r2_health_t *health, uint32_t rank, uint64_t now_ns);
/** Tells all that is known, and claims all that is accused, as if it was new. */
void r2_disseminate_rest(r2_health_t *health, uint64_t now_ns);
r2_notice_t r2_disseminate_change(const r2_health_t *health, uint32_t host, uint32_t rail);

/* owner.c */
void r2_owner_claim(r2_health_t *health, uint32_t host, uint32_t rail,
                    const r2_health_entry_t *entry, const r2_verdict_event_t *event,
                    uint64_t now_ns);
void r2_owner_claimed(r2_health_t *health, uint32_t from, const r2_notice_t *notice,
                      uint64_t now_ns);

/* suspicion.c */
void r2_investigate(r2_health_t *health, uint32_t rank, uint32_t rail, uint64_t now_ns);
bool r2_suspicion_explained(const r2_health_t *health, uint32_t host, uint32_t rail);
void r2_suspicion_close(r2_health_t *health, r2_investigation_t *at);
void r2_suspicion_drop(r2_health_t *health, uint32_t host, uint32_t rail);

/* investigation.c */
void r2_investigation_answered(r2_health_t *health, uint64_t id, r2_answer_t answer,
                               uint64_t now_ns);
void r2_investigation_probed(r2_health_t *health, const r2_pending_t *probe, r2_answer_t answer,
                             uint64_t now_ns);
void r2_investigation_heard(r2_health_t *health, uint64_t id);
void r2_investigation_tick(r2_health_t *health, uint64_t now_ns);
uint64_t r2_investigation_deadline_ns(const r2_health_t *health);

/** Our NIC has carrier: whoever owns the NIC's state knows. */
static inline bool r2_health_has_carrier(const r2_health_t *health, uint32_t rail)
{
    return health->ports.carrier(health->ports.arg, rail);
}

/* query.c */
void r2_queries_put(r2_health_t *health, r2_investigation_t *investigation);
void r2_queries_evidence(const r2_health_t *health, const r2_investigation_t *investigation,
                         bool final, r2_evidence_t *evidence_p);
bool r2_queries_settled(const r2_investigation_t *investigation);

/* probes.c */
bool r2_probes_start(r2_health_t *health, uint32_t host, uint32_t rail, uint64_t timeout_ns,
                     const r2_pending_t *what);
/** A probe ended. @return what it was for; R2_PURPOSE_NONE: nothing that is known. */
r2_pending_t r2_probes_take(r2_health_t *health, uint64_t id);
void r2_probes_served(r2_health_t *health, const r2_pending_t *probe, r2_answer_t answer);
void r2_probes_serve(r2_health_t *health, uint32_t from, const r2_notice_t *notice,
                     uint64_t now_ns);
bool r2_probes_delivers(const r2_health_t *health, uint32_t host, uint32_t rail, uint64_t since_ns);
void r2_probes_beacon(r2_health_t *health, uint32_t from, const r2_notice_t *notice);

/* outage.c */
r2_heal_t *r2_outage_find(r2_health_t *health, uint32_t host, uint32_t rail, bool path, bool make);
bool r2_outage_is_path(const r2_health_t *health, const r2_heal_t *heal);
uint64_t r2_outage_jittered(r2_health_t *health, uint64_t pause_ns);
uint64_t r2_outage_longest_ns(const r2_health_t *health);
uint64_t r2_outage_start(r2_health_t *health, uint32_t host, uint32_t rail, bool path,
                         uint64_t now_ns);
void r2_outage_end(r2_health_t *health, uint32_t host, uint32_t rail, bool path, uint64_t now_ns);
void r2_outage_carrier(r2_health_t *health, uint32_t rail, bool carrier, uint64_t now_ns);

/* heal.c */
void r2_heal_lane(r2_health_t *health, uint32_t host, uint32_t rail, bool up, uint64_t now_ns);
void r2_heal_refused(r2_health_t *health, uint32_t host, uint32_t rail, uint64_t now_ns);
void r2_heal_probed(r2_health_t *health, const r2_pending_t *probe, r2_answer_t answer,
                    uint64_t now_ns);
void r2_heal_tick(r2_health_t *health, uint64_t now_ns);
uint64_t r2_heal_deadline_ns(const r2_health_t *health);

/* capacity.c */
void r2_capacity_init(r2_health_t *health);
void r2_capacity_rate(r2_health_t *health, uint32_t rank, uint32_t rail, bool outbound,
                      uint64_t bytes, uint64_t now_ns);

#endif
