/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Lanes: their state, their connections, their life. For link/ only; under the engine lock.
 */
#ifndef R2_LINK_LANE_H
#define R2_LINK_LANE_H

#include "link/packet.h"

struct r2_hello_offer;

#define R2_ACK_WINDOW 32u /* an acknowledgement names so many packets behind a gap (ack_bits) */

/** In this order: connected from WIRING on, wired from UP on, silent from DOUBT on. */
typedef enum r2_lane_state {
    R2_LANE_DOWN,       /* not connected; tried again at retry_ns */
    R2_LANE_RESTING,    /* the same, for want of descriptors: until it is needed (idle.c) */
    R2_LANE_CONNECTING, /* our connect request is under way */
    R2_LANE_WIRING,     /* endpoint exists, HELLO packets cross */
    R2_LANE_UP,         /* carries data */
    R2_LANE_DOUBT,      /* nothing answers; gets new data only where no lane is sound */
    R2_LANE_SUSPECT     /* acknowledgements stopped while others are alive: no new data */
} r2_lane_state_t;

/**
 * How well a lane leads to the peer, worst first: what it counts as is asked as `grade >= X`.
 * Whether it takes packets is asked by r2_lane_may_send(): a lane that is UP and UNREACHABLE does.
 */
typedef enum r2_lane_grade {
    R2_GRADE_NONE,        /* no connection, and none under way */
    R2_GRADE_UNREACHABLE, /* silent, and the peer's host does not answer either */
    R2_GRADE_FAILED, /* the transport or the peer said so: fenced at the end of the progress pass */
    R2_GRADE_OPENING, /* and better: a way. Others of this link need not be opened */
    R2_GRADE_SUSPECT, /* its acknowledgements stopped while others are alive */
    R2_GRADE_DOUBT,   /* and better: serves third processes, which have no other way */
    R2_GRADE_SOUND    /* a path: gets packets before all others, and ends a relay */
} r2_lane_grade_t;

/** Acknowledgement of what came on a lane. */
typedef enum r2_lane_ack {
    R2_ACK_NONE,
    R2_ACK_LATER, /* at ack_due_ns, or with data */
    R2_ACK_NOW    /* at the end of this progress pass */
} r2_lane_ack_t;

/** Our answer to HELLO. */
typedef enum r2_lane_hello_ack {
    R2_HELLO_ACK_NONE,
    R2_HELLO_ACK_DUE, /* to be sent by the progress pass */
    R2_HELLO_ACK_SENT
} r2_lane_hello_ack_t;

/** Who has said that a lane is over (idle.c). From HEARD on it is. */
typedef enum r2_lane_closing {
    R2_CLOSING_NO,        /* nobody, though this side may have asked (closing_ns) */
    R2_CLOSING_REQUESTED, /* CLOSE came: to be answered by the progress pass */
    R2_CLOSING_AGREED,    /* we said CLOSED */
    R2_CLOSING_HEARD,     /* the peer did */
    R2_CLOSING_BOTH       /* both did, or we did and the peer has said nothing for too long */
} r2_lane_closing_t;

/** What became of the connection before. */
typedef enum r2_lane_past {
    R2_PAST_NONE,  /* there was none, or it was closed */
    R2_PAST_UP,    /* it was up, and is or failed */
    R2_PAST_RESTED /* closed here for what it held: no fault, though the peer may not know */
} r2_lane_past_t;

/** What the path of a connection carries from kernel to kernel (delivery.c). */
typedef struct r2_path_rate {
    uint64_t bytes_per_s;       /* least of late; 0: not known */
    uint64_t since_bytes_per_s; /* least since at_ns; 0: none */
    uint64_t at_ns;             /* when bytes_per_s was seen */
    uint64_t acked_bytes;       /* since the transport was asked */
    uint32_t asked;             /* times since at_ns */
} r2_path_rate_t;

/** One connection of a lane. */
typedef struct r2_lane_conn {
    struct r2_lane *lane;        /* borrowed; NULL: only offered, or being closed */
    r2_tp_ep_t *ep;              /* owned by the worker's transport */
    r2_rail_worker_t *worker;    /* borrowed: counted as a user */
    struct r2_rx_match *landing; /* borrowed: whose memory a packet is read into; or NULL */
    uint32_t unsequenced;        /* unsequenced packets that the transport holds */
    uint64_t domain;             /* the peer's: of its keys those that are for this connection */
    r2_path_rate_t path;         /* of this connection: a new one has to be seen anew */
    uint32_t quick;              /* 0 to 32, as of its rail: of the looks at this path */
    uint64_t direct_bytes;       /* being read and written by NICs (direct.h) */
} r2_lane_conn_t;

/** What a lane delivered while it was loaded (rates.c). */
typedef struct r2_lane_load {
    uint64_t mark_ns;     /* counted up to here; 0 = it is not loaded */
    uint64_t ns, bytes;   /* loaded time and acknowledged bytes of this interval */
    uint64_t bytes_per_s; /* newest rate; 0 = none yet */
    uint32_t packets;     /* acknowledgements of this interval */
    uint32_t kept;        /* looks of this interval that left something in flight */
} r2_lane_load_t;

/** What a lane delivered while anything was in flight on it (delivery.c). */
typedef struct r2_delivery {
    uint64_t mark_ns;     /* counted up to here */
    uint64_t ns, bytes;   /* of this interval */
    uint64_t bytes_per_s; /* 0 = none yet */
} r2_delivery_t;

/** One rail of this process towards one peer. What packets touch comes first. */
typedef struct r2_lane {
    r2_link_t *link; /* borrowed */
    r2_lane_state_t state;
    uint32_t idx;         /* in link->lanes */
    r2_lane_conn_t *conn; /* owned; WIRING and later */
    bool failed;      /* the transport or the peer said so: fence at the end of the progress pass */
    bool unreachable; /* silent, and no connect request gets through to the peer's host either */
    bool is_rdma;     /* by the rail's RDMA port: its connection, or the last one; else by TCP */
    bool excused_here;            /* rx.excused_seq was held when the peer was told to wait */
    r2_status_t why;              /* last failure */
    r2_rail_t *rail;              /* borrowed */
    const r2_peer_rail_t *remote; /* borrowed: in link->info */
    uint32_t remote_idx;          /* rail index at the peer */
    uint32_t told;                /* the peer's clock when the state was entered (unread.c) */
    uint64_t state_ns;            /* when the state was entered */
    uint64_t heard_ns;            /* the link's then */
    struct {                      /* what is sent */
        r2_packet_t *in_flight;   /* owned list */
        uint64_t in_flight_bytes;
        uint64_t window_bytes;
        uint32_t seq;               /* next lane sequence number */
        uint32_t peak_kbytes_per_s; /* of the quickest packet of late; 0: none yet */
        uint64_t shrunk_ns;         /* when the window was last made smaller */
        r2_lane_load_t load;
        r2_delivery_t delivery;
        bool limited;           /* the window was full since the last look */
        uint16_t pings;         /* in flight: questions */
        uint32_t unasked_bytes; /* behind the newest packet that asks (R2_WIRE_ACK_NOW) */
        uint64_t gap_ns;  /* since when later packets than the first in flight are acknowledged */
        uint32_t gap_seq; /* that first one, if gap_ns is not 0 */
        uint64_t sent_ns; /* when the transport last finished a packet that had waited */
    } tx;
    struct {           /* what came, and its acknowledgement */
        uint32_t next; /* everything before is held */
        uint32_t bits; /* next + 1 + i is held */
        r2_lane_ack_t ack;
        uint32_t ack_count;   /* packets not acknowledged yet */
        uint64_t ack_due_ns;  /* unless R2_ACK_NONE */
        uint64_t newest_ns;   /* arrival of the newest sequenced packet */
        uint64_t last_ns;     /* arrival of anything */
        uint64_t awake_ns;    /* arrival of the first after the last long silence */
        uint64_t excused_ns;  /* when the peer doubted it and was told to wait; 0 = never */
        uint32_t excused_seq; /* what it waited for then */
        uint32_t told;        /* its newest word, by the link's `told` */
    } rx;
    struct {                   /* how long things take, and doubt */
        uint64_t delivered_ns; /* newest acknowledgement, of this and earlier connections */
        uint64_t base_ns;      /* silence counts from here at the earliest */
        uint64_t srtt_ns, rttvar_ns;
        uint64_t min_rtt_ns, min_rtt_at_ns; /* least sample of a time, and when it began */
        uint64_t calm_rtt_ns; /* least smoothed round trip; 0 = too few samples so far */
        uint32_t rtt_samples;
        uint32_t min_rtt_since_us; /* least sample since min_rtt_at_ns, rounded up; 0 = none */
        uint64_t doubt_ns;         /* when it last came in doubt */
        uint64_t barred_ns;        /* a verdict was against it: in doubt until then; 0 = none */
        bool grace_used;           /* silent: the peer was heard again, it got half a timeout */
        uint8_t absences;  /* ours that have moved base_ns, since the last acknowledgement */
        uint32_t cut_told; /* the peer's clock when it was asked what showed it unreachable */
    } timing;
    struct {                    /* opening and closing */
        uint64_t tx_connection; /* id the peer wants to see; of the last one where it is down */
        uint64_t rx_connection; /* id we want to see; 0 = not registered */
        r2_lane_hello_ack_t hello_ack;
        r2_lane_closing_t closing;
        r2_lane_past_t past;
        bool turn;                   /* DOWN for want of descriptors: others will give some back */
        uint8_t put_offs;            /* calls in a row that the peer had no descriptors for */
        uint8_t refused_since_taken; /* calls refused since one was taken, even if without an
                                        answer; R2_REFUSED_MAX at most */
        uint64_t closing_ns; /* since when its end is asked for by us, or agreed; 0 = it is not */
        /* ended while we were away: counts as failed then; 0 = not to be judged */
        uint64_t judged_ns;
        uint32_t refused_streak; /* refused in a row, since the last lane was lost */
        uint64_t refused_ns;     /* the first of them */
        bool disproved;       /* it refused while the process was heard, and is not answered yet */
        bool unsure;          /* this process was away before its first acknowledgement */
        bool in_vain;         /* a call failed since the end that is to be judged */
        bool renewed;         /* that was an end of our own: judged by what is opened instead */
        uint8_t unproved;     /* since then so many connections were made, and carried nothing */
        bool can_rdma;        /* both ends have published an RDMA port */
        bool peer_lost;       /* the peer's RDMA device stays dead, as it has said */
        uint64_t probe_id;    /* to the peer's kernel, under way; 0 = none */
        uint64_t probe_ns;    /* when it was asked */
        uint64_t kernel_ns;   /* when the peer's kernel last answered one; 0 = never */
        r2_lane_conn_t *call; /* owned: offered in the call under way; NULL: it goes on without */
        uint64_t connect_offer; /* offered in the connect request under way */
        uint64_t connect_id;    /* of the connect request under way; 0 = none */
        uint64_t connect_ns;    /* since when it is */
        uint32_t attempt;       /* our connect requests so far */
        uint32_t peer_attempt;  /* the peer's calls up to this one are history */
        uint64_t retry_ns;      /* DOWN: next attempt */
        uint32_t failures;      /* in a row */
    } connect;
    UT_hash_handle hh; /* in net->connections, by rx_connection */
} r2_lane_t;
static_assert(sizeof(r2_lane_t) <= 576, "nine cache lines: 1,024 peers with four rails have 3 MB");
static_assert(offsetof(r2_lane_t, connect) <= 384, "six cache lines: all that packets touch");

/** What a lane does and counts as in a state. */
typedef struct r2_lane_state_info {
    const char *name;
    r2_lane_state_t phase;      /* first of the states among which state_ns stays as it is */
    r2_lane_grade_t grade;      /* of a lane that is neither failed nor unreachable */
    bool may_send;              /* takes new packets */
    r2_lane_state_t on_silence; /* next, when an acknowledgement has been missing too long */
    r2_lane_state_t on_ack;     /* next, when one came */
    void (*timer)(r2_lane_t *lane);
    uint64_t (*deadline_ns)(const r2_lane_t *lane);
} r2_lane_state_info_t;

/** By state (lane_timer.c). */
extern const r2_lane_state_info_t r2_lane_states[R2_LANE_SUSPECT + 1];

/** Grade of a lane. */
static inline r2_lane_grade_t r2_lane_grade(const r2_lane_t *lane)
{
    if (lane->unreachable) {
        return R2_GRADE_UNREACHABLE;
    }
    return lane->failed ? R2_GRADE_FAILED : r2_lane_states[lane->state].grade;
}

/** True if it is wired and not suspect; in doubt or unreachable, too, and until it is fenced. */
static inline bool r2_lane_is_up(const r2_lane_t *lane)
{
    return r2_lane_states[lane->state].may_send;
}

/** True if it takes new packets: in doubt or unreachable, too, where no lane is sound. */
static inline bool r2_lane_may_send(const r2_lane_t *lane)
{
    return r2_lane_is_up(lane) && !lane->failed;
}

/** True if it has no connection, and none is under way. */
static inline bool r2_lane_is_down(const r2_lane_t *lane)
{
    return lane->state <= R2_LANE_RESTING;
}

/** What its next connection should go by: RDMA, unless the device of either end stays dead. */
static inline bool r2_lane_wants_rdma(const r2_lane_t *lane)
{
    return lane->connect.can_rdma && !lane->connect.peer_lost && !lane->rail->nic.rdma_lost;
}

/** True if what it had in flight was given to other lanes, too, in a silence that lasts. */
static inline bool r2_lane_is_silent(const r2_lane_t *lane)
{
    return lane->state >= R2_LANE_DOUBT;
}

/** True if it is wired and the peer may be reached by it; until it is fenced if it failed. */
static inline bool r2_lane_is_connected(const r2_lane_t *lane)
{
    return lane->state >= R2_LANE_UP && r2_lane_grade(lane) >= R2_GRADE_FAILED;
}

/** True if one of the two ends has asked for its end (idle.c). */
static inline bool r2_lane_is_ending(const r2_lane_t *lane)
{
    return lane->connect.closing >= R2_CLOSING_HEARD || 0 != lane->connect.closing_ns;
}

/** True if it gets packets before all others. */
static inline bool r2_lane_is_sound(const r2_lane_t *lane)
{
    return R2_GRADE_SOUND == r2_lane_grade(lane) && !r2_lane_is_ending(lane);
}

/** True if it may get packets: where no lane is sound, or those have no room. */
static inline bool r2_lane_is_usable(const r2_lane_t *lane)
{
    return r2_lane_may_send(lane) && !r2_lane_is_ending(lane);
}

/** True if it takes packets, and something is known against it: the detector finds out what. */
static inline bool r2_lane_is_doubted(const r2_lane_t *lane)
{
    return r2_lane_may_send(lane) && R2_GRADE_SOUND != r2_lane_grade(lane);
}

/** True if it is in doubt, and nothing is left that says so. */
static inline bool r2_lane_is_cleared(const r2_lane_t *lane)
{
    return R2_LANE_DOUBT == lane->state && NULL == lane->tx.in_flight && !lane->unreachable;
}

/** True if it takes packets, and carries none. */
static inline bool r2_lane_is_idle(const r2_lane_t *lane)
{
    return r2_lane_may_send(lane) && NULL == lane->tx.in_flight;
}

/**
 * True if it is not up and was not given up so far: it may come up. Also one that failed in wire-up
 * for the first time: it is opened anew at once.
 */
static inline bool r2_lane_has_hope(const r2_lane_t *lane)
{
    return lane->state < R2_LANE_UP && 0 == lane->connect.failures && !lane->unreachable &&
           r2_rail_usable(lane->rail);
}

/* On slower lanes a question costs next to nothing, and what arrives when shows how fast they
 * are. */
#define R2_FAST_BYTES_PER_S (50u * 1000 * 1000)

/** Bytes per second that a lane delivers; 0: not known. */
static inline uint64_t r2_lane_rate(const r2_lane_t *lane)
{
    return r2_max(lane->tx.load.bytes_per_s, lane->tx.delivery.bytes_per_s);
}

/* What delivers that much has processes that look often: it says what the lane can do. */
#define R2_TRUE_BYTES_PER_S (500u * 1000 * 1000)

/**
 * The same by the quickest packet of late, `most` times what it delivers at most. What is delivered
 * says little of a lane whose processes look rarely, since they share a core.
 */
static inline uint64_t r2_lane_peak(const r2_lane_t *lane, uint32_t most)
{
    const uint64_t rate = r2_lane_rate(lane);

    return r2_clamp_u64(1000 * (uint64_t) lane->tx.peak_kbytes_per_s, rate,
                        r2_max(rate, r2_min(most * rate, R2_TRUE_BYTES_PER_S)));
}

/** True of one on which packets are spared that nobody waits for. */
static inline bool r2_lane_is_fast(const r2_lane_t *lane)
{
    return r2_lane_rate(lane) >= R2_FAST_BYTES_PER_S;
}

/** True if the peer does not know of all that came on it. */
static inline bool r2_lane_owes_ack(const r2_lane_t *lane)
{
    return lane->state >= R2_LANE_UP && R2_ACK_NONE != lane->rx.ack;
}

/** True if it is down for want of descriptors, here or at the peer. */
static inline bool r2_lane_is_short(const r2_lane_t *lane)
{
    return r2_lane_is_down(lane) && R2_ERR_NO_DESCRIPTORS == lane->why;
}

/** True if the next progress pass has something to do or to say on it. */
static inline bool r2_lane_is_stirring(const r2_lane_t *lane)
{
    return lane->failed || r2_lane_owes_ack(lane) || R2_HELLO_ACK_DUE == lane->connect.hello_ack ||
           R2_CLOSING_NO != lane->connect.closing || 0 != lane->connect.closing_ns ||
           (0 != lane->timing.barred_ns && lane->state >= R2_LANE_UP);
}

/* lane.c, hello.c */
void r2_lane_open(r2_lane_t *lane);
void r2_lane_fence(r2_lane_t *lane, r2_status_t why, bool tell_peer);
void r2_lane_connected(r2_lane_t *lane, uint8_t kind);
/** A connect request is over. @return its worker, which the caller has to put; NULL: it has
 * none. */
r2_lane_conn_t *r2_lane_call_over(r2_lane_t *lane);
void r2_lane_cancel_connect(r2_lane_t *lane);
/** Takes back a call that the peer has not got. @return false: it may have; nothing was done. */
bool r2_lane_withdraw_call(r2_lane_t *lane);
/** True if nothing that went over this connection was ever acknowledged. */
bool r2_lane_is_unproved(const r2_lane_t *lane);
/** True if the peer may have given it up in wire-up, so that it never was up there. */
bool r2_lane_may_be_over(const r2_lane_t *lane);
/** Takes back a request that asked after a lane in wire-up, and waited for room at the peer while
 * the lane came up: the peer would take it for news, and close what stands. */
void r2_lane_withdraw_moot(r2_lane_t *lane);
void r2_lane_failed(void *worker, void *conn, r2_status_t status);
/** Opens an endpoint on a worker, which it keeps in use. @return as ep_open(). */
r2_status_t r2_lane_conn_create(r2_rail_worker_t *worker, r2_lane_conn_t **conn_p);
/** Closes it and gives its worker back. Never from inside a callback. */
void r2_lane_conn_destroy(r2_lane_conn_t *conn);
/**
 * Connects to what the other's offer says, and sends HELLO; over a loose transport only where the
 * peer has connected already. The lane takes `conn` if it has one afterwards, whatever is returned.
 * @return R2_OK or the transport's error.
 */
r2_status_t r2_lane_wire(r2_lane_t *lane, r2_lane_conn_t *conn, const struct r2_hello_offer *theirs,
                         uint64_t rx_connection, bool peer_is_wired);
void r2_lane_back_off(r2_lane_t *lane, r2_status_t why);
/** Counts a lane that failed, and tells the detector. */
void r2_lane_report(r2_lane_t *lane, r2_status_t why);
/** Ends a lane that nothing is known against: nobody is told. */
void r2_lane_close(r2_lane_t *lane);
/** Ends a lane that may be well, and opens it anew: at once, after a pause where that is often. */
void r2_lane_reopen(r2_lane_t *lane);
/**
 * Tells that a lane is over, by another one; without one it waits for the next.
 * @param rested it was closed for what it held.
 */
void r2_lane_tell_peer(r2_link_t *link, uint64_t connection, bool rested);
/** Does nothing if it is in that state. Within a phase state_ns stays as it is. */
void r2_lane_enter(r2_lane_t *lane, r2_lane_state_t state);
const char *r2_lane_state_name(r2_lane_state_t state);
void r2_hello_request(void *net, uint32_t rail_idx, uint64_t token, const void *request,
                      size_t bytes);
void r2_hello_result(void *net, uint64_t connect_id, r2_status_t status, const void *reply,
                     size_t bytes);
/** The peer has answered a call by way of a third host that was given up. If it took it, its end of
 * the lane is another one than ours by now: ours is called anew. */
void r2_hello_late(r2_lane_t *lane, const void *reply, size_t bytes);
bool r2_hello_waits(void *net, uint64_t connect_id);

#endif
