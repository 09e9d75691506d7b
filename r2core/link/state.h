/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of a link, and what its files are to each other. For link/ only.
 *
 * Bottom to top: no file calls one that stands further on (./check layers).
 *
 *   wire peer_info offer runs turn        headers; what processes publish, offer; numbers; lanes
 *   limits evidence rates delivery rtt    what may be; what the detector is told; measures
 *   unexpected                            messages that nobody waits for yet
 *   link relay_lane unread item           a link; its relay lane; what lies unread; queues
 *   ack_state control                     what a lane has received; control packets
 *   fetch place put landing direct        memory that peers put to, and puts to theirs; a GPU's;
 *                                         memory that lanes read to; what NICs do by themselves
 *   copies                                room for copies of what is sent
 *   tx_packet credit grant                packets; credit that we have, credit that we give
 *   lane idle place_end                   life of a lane; silence; receives that are given up
 *   local rx_match local_rx               posted receives and their messages; messages within the
 *                                         host
 *   ack hedge rx_data mismatch            what follows from acknowledgements and data
 *   room tx                               descriptors for lanes; queues onto lanes
 *   direct_move message give_up leave     what NICs do by themselves; messages from their
 *                                         beginning to each kind of end
 *   presence relay_call hello             is the peer there; how lanes to it are opened
 *   relay_forward relay_way               for others, and through others
 *   lane_timer net_health timer           what is due; what the detector orders
 *   relay rx rx_land read net             what arrives; the progress pass that drives everything
 */
#ifndef R2_LINK_STATE_H
#define R2_LINK_STATE_H

#include "base/util.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/match.h"
#include "link/packet.h"
#include "link/runs.h"
#include "link/turn.h"

/* Receives longer than this get credit as soon as they are posted; shorter ones only on request. */
#define R2_CREDIT_MIN_BYTES 16384u

/* Packets up to this size go by the lane whose turn it is: latency counts, not the sum of rails. */
#define R2_SHORT_PACKET_BYTES (4096u + (uint32_t) sizeof(r2_wire_header_t))
/* The longest message that a mailbox takes. */
#define R2_LOCAL_MOST_BYTES 8192u

/* A header of who sends it may be in front of a message of eager_bytes. */
#define R2_EAGER_HEAD_BYTES 256u

/* Of the budget of unexpected data calls have no more: credit comes for their receives, and has the
 * rest put where it belongs. Messages that no receive is posted for are taken as they come. */
#define R2_EAGER_CALL_BYTES (256u << 10)

/*
 * What a peer can make this process hold, for each link. The budget of unexpected data counts what
 * a chunk costs to keep beside its bytes, on both sides alike, so that it bounds many small
 * messages, too. The other bounds are far from what a peer in order needs; what is above them is
 * not taken and, but for receives that it spoke of, not acknowledged.
 */
#define R2_EAGER_COST_BYTES 256u  /* of one chunk sent without credit, beside its bytes */
#define R2_RX_SHORT_BYTES   512u  /* receives that are looked for at several sockets (read.c) */
#define R2_COPIES_MAX       1024u /* messages in copies */
#define R2_RX_BITMAPS_MAX   (4u << 20) /* bytes of bitmaps of messages being received */
#define R2_RX_ARRIVING_MAX  65536u     /* messages being received */
#define R2_RX_UNPOSTED_MAX  65536u     /* receives that the peer spoke of and that are not posted */
#define R2_RX_GAPS_MAX      65536u     /* gaps in the numbers of complete messages */
#define R2_CREDITS_MAX      65536u     /* credits that came early */
#define R2_REQUESTS_MAX     32768u /* of ours, without answer: the peer keeps a receive for each */
#define R2_UNSEQUENCED_MAX  64u    /* unsequenced packets that a lane's transport holds */

struct r2_link {
    r2_net_t *net; /* borrowed */
    uint32_t rank;
    uint32_t chunk_most_bytes; /* of a chunk */
    bool same_host;
    bool is_active;              /* in net->active */
    r2_status_t broken;          /* R2_OK, R2_ERR_NO_PATH, R2_ERR_PEER_GONE */
    struct r2_link *prev, *next; /* in net->active */
    uint32_t lane_count;
    r2_turn_t turn; /* of the lane for short messages */
    struct {        /* sending */
        uint64_t next_number;
        r2_tx_item_t *control, *retransmit; /* owned lists: before all data; sent before and lost */
        r2_tx_item_t *relayed;     /* owned list: frames for third processes, after those */
        r2_tx_message_t *queue;    /* messages with unsent chunks, by order, equal ones in turn */
        r2_tx_message_t *messages; /* owned list: all that are not complete */
        r2_table_t uncredited;     /* of r2_tx_message_t by tag */
        r2_table_t credits;        /* of r2_credit_t, owned, by tag: arrived early */
        uint32_t requests;         /* messages that asked for credit and got none */
        uint32_t asks;             /* messages that are to ask when there is room for that */
        uint32_t mute;           /* messages that may not go and of which the peer does not know */
        uint32_t eager_consumed; /* the peer's count, modulo 2^32 */
        uint64_t mute_ns;        /* when they ask for credit: nothing else is left; 0 = not yet */
        uint64_t eager_sent;     /* bytes sent without credit */
        uint32_t copied_bytes;   /* in copies, and of messages that may be copied */
        uint32_t packed_bytes;   /* in blocks of r2_link_block() */
        uint32_t copies;         /* messages in copied_bytes */
        /* control packets by kind: to be sent, or not acknowledged */
        uint32_t unsettled[R2_WIRE_LEAVE + 1];
        uint64_t short_ns;          /* there was no memory for a packet: next try; 0 = there was */
        uint64_t direct_ns;         /* next look at what NICs read and write; 0 = nothing waits */
        uint64_t in_flight_packets; /* sequenced, over all lanes */
        struct {
            uint64_t from_ns;   /* start of the interval */
            uint64_t waited_ns; /* chunks waited for lanes in it */
            uint64_t since_ns;  /* counted up to here; 0 = none waits */
            uint64_t look_ns;   /* when acknowledgements were last found, */
            uint32_t looks;     /* and how often in this interval */
        } rates;                /* rates.c */
    } tx;
    struct {                       /* receiving */
        uint64_t watermark;        /* every message number before this is complete */
        r2_runs_t completed;       /* owned: numbers after it that are complete, too */
        r2_table_t arriving;       /* of r2_rx_message_t, owned, by number */
        r2_table_t matches;        /* of r2_rx_match_t, owned, by tag */
        r2_rx_message_t *deferred; /* list: receives to be fed when the application drives again */
        uint32_t consumed;         /* eager bytes given to receives, modulo 2^32 */
        uint32_t short_bytes;      /* messages up to this size come by one way: r2_link_stripes() */
        uint32_t striped;          /* posted matches that are longer */
        uint32_t shorts;           /* posted matches of up to R2_RX_SHORT_BYTES */
        uint64_t unexpected_bytes;
        uint64_t unexpected_cost; /* of unexpected chunks that came without credit */
        r2_grants_t grants;
        struct r2_place *places; /* owned list: memory that the peer may put to (place.h) */
        r2_unexpected_queue_t unexpected[3]; /* by r2_unexpected_t */
        uint64_t bitmap_bytes;               /* of messages being received */
        uint32_t unposted;                   /* matches that are not posted */
        bool rts_lost;                       /* the peer asked for more of them than were kept */
        bool hurry;                          /* the packet at hand ended a message in chunks */
    } rx;
    struct {         /* state of the path */
        bool wired;  /* a lane has been up */
        bool silent; /* the detector was told that no lane is up */
        bool rests;  /* its last lane was closed for want of descriptors */
        /* the peer called, and there were no descriptors for a lane; until a direct one is sound,
         * or a call to the peer finds no connection */
        bool owed;
        /* until a direct lane is sound: */
        bool inquired;        /* others wanted to reach the peer through us, and it could not be */
        uint64_t inquired_ns; /* the newest time that they did; 0 = they did not */
        bool leaving;         /* the peer was told that this process ends */
        bool left_behind;     /* it is not waited for any more */
        bool left;            /* the peer said that it ends */
        bool parted;          /* and what follows from it was done */
        uint32_t slept;       /* stamp of the newest pause_ns of half of peak_delay_ns or more */
        /* most above the usual round trip of its lane, of late */
        uint64_t peak_delay_ns, peak_delay_at_ns;
        /* longest silence of all lanes together while something was in flight, of late */
        uint64_t pause_ns, pause_at_ns;
        uint16_t unread;    /* newest word of the peer on its rails (unread.c) */
        uint16_t unread_at; /* by its clock */
        uint32_t told;      /* by so much that clock went on with its words (unread.c) */
        uint64_t unread_ns; /* when it came */
        uint64_t
            await_ns; /* since when receives wait and nothing is in flight; 0 = that is not so */
        /* next look at receives and messages that have not met; 0 = there are none */
        uint64_t mismatch_ns;
        uint64_t last_rx_ns;
        uint64_t heard_ns;        /* for how long the peer was heard: pauses count up to a limit */
        uint64_t no_path_ns;      /* since when; 0 = there is a path or nothing to send */
        uint64_t answered_ns;     /* newest answer to a call over a rail */
        uint64_t spoke_ns;        /* newest word of the process beside packets: hello, messages */
        uint64_t lost_ns;         /* since when no lane is up; 0 = one is */
        uint64_t waited_ns;       /* without a path, while nothing excused the peer */
        uint64_t waited_at_ns;    /* counted up to here */
        uint64_t next_probe_ns;   /* no path: next question to the peer's kernels */
        uint64_t relay_wanted_ns; /* since when a lane is missed; 0 = none is */
        struct r2_relay_way *relay; /* owned: state of the relay lane; NULL = none so far */
    } path;
    struct r2_direct *directs; /* owned list: what NICs read and write by themselves (direct.h) */
    struct r2_local *local;    /* owned: mailboxes within the host (local.h); NULL: none so far */
    r2_peer_info_t info;       /* what the peer published */
    /* one per pair of rails, then the relay lane, if there is one: always with room */
    r2_lane_t lanes[];
};
static_assert(sizeof(r2_link_t) <= 1520, "without its lanes: 1,024 peers have 1.5 MB");

/* limits.c */
/* In multiples of failure_timeout_ms: a link on which nothing answers is checked at this
 * interval. */
#define R2_SILENT_TIMES 20u
/* The peer still sends and has not acknowledged our oldest packet for so long: our way out is
 * dead. */
#define R2_ACK_STALL_TIMES 40u
/** So many times failure_timeout_ms, within reason: what a step in the life of a lane may take. */
uint64_t r2_scaled_timeout_ns(const r2_net_t *net, uint32_t times);
/** A silence that is longer is a pause: the peer may have been stopped. */
uint64_t r2_net_pause_ns(const r2_net_t *net);
/** This process may come so much later than it wanted to, and has not been away. */
uint64_t r2_net_own_silence_ns(const r2_net_t *net);
/** How long acknowledgements may be missing. */
uint64_t r2_lane_timeout_ns(const r2_lane_t *lane);
/** Time in 65 us, for path.slept; begins anew after 78 hours. */
static inline uint32_t r2_pause_stamp(uint64_t now_ns)
{
    return (uint32_t) (now_ns >> 16);
}
/** True if its oldest packet has been waiting for half a timeout: not for what is urgent. */
bool r2_lane_is_overdue(const r2_lane_t *lane);
/** True if this process did not look at its rails for longer than its timers asked for
 * (stopped). */
bool r2_net_was_away(r2_net_t *net);
/** True if it was away, and has not read all that came meanwhile. */
bool r2_net_reads_on(r2_net_t *net);
/** True if it has just come back, and links had timers due before: no sleep until news. */
bool r2_net_was_late(const r2_net_t *net);

/* link.c */
void r2_link_activate(r2_link_t *link);
/** True if timers or queues have to look at it. */
bool r2_link_busy(const r2_link_t *link);
/** True if there is something to send to the peer or to receive from it. */
bool r2_link_wanted(const r2_link_t *link);
/** True if the peer does not hold all that we have for it, or does not know what we hold. */
bool r2_link_owes(const r2_link_t *link);
/** True if acknowledgements are due to it. */
bool r2_link_owes_acks(const r2_link_t *link);
/** Receives that wait for a message of the peer. */
static inline uint32_t r2_link_posted(const r2_link_t *link)
{
    return link->rx.matches.count - link->rx.unposted;
}

/**
 * True if a message may come by other lanes than the one whose turn it is, though all are well, or
 * by a lane and not by a mailbox.
 */
static inline bool r2_link_stripes(const r2_link_t *link, uint64_t message_bytes)
{
    return message_bytes > link->rx.short_bytes;
}

/** True if receives wait for data, or messages for credit. */
static inline bool r2_link_awaits(const r2_link_t *link)
{
    return r2_link_posted(link) > 0 || link->tx.uncredited.count > 0;
}
/** True if a lane is up that the peer may be reached by; also one that is about to be fenced. */
static inline bool r2_link_has_lane(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_lane_is_connected(&link->lanes[i])) {
            return true;
        }
    }
    return false;
}
/** Tries all lanes soon if none is left: what is wrong must be known, or repaired, without
 * delay. */
void r2_link_expedite(r2_link_t *link, uint64_t pause_ns);

/** True if failures of its lanes are no news: one of both ends has done with it. */
static inline bool r2_link_is_over(const r2_link_t *link)
{
    return link->net->ending || link->path.left;
}

/** True if the peer is to be told of credit. */
static inline bool r2_grant_owes(const r2_link_t *link)
{
    return link->rx.grants.notify_count > 0 || NULL != link->rx.grants.discards;
}

/**
 * In its state, and we have been here to look: what would end it may have come while we were
 * stopped.
 */
static inline uint64_t r2_lane_since_ns(const r2_lane_t *lane)
{
    return r2_max(lane->state_ns, lane->timing.base_ns);
}

/* lanes through a third host (relay.h) */
#define R2_RELAY_RAIL (R2_RAILS_MAX + 1u) /* index of the pseudo rail, at both ends */
static inline bool r2_lane_is_relay(const r2_lane_t *lane)
{
    return R2_RELAY_RAIL == lane->rail->idx;
}
/** Grade of the best lane of a link. */
static inline r2_lane_grade_t r2_link_grade(const r2_link_t *link)
{
    r2_lane_grade_t best = R2_GRADE_NONE;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        best = r2_max(best, r2_lane_grade(&link->lanes[i]));
    }
    return best;
}
/** Grade of the best lane but `except` (NULL: of all) that leads through no third process. */
static inline r2_lane_grade_t r2_link_direct_grade(const r2_link_t *link, const r2_lane_t *except)
{
    r2_lane_grade_t best = R2_GRADE_NONE;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (lane != except && !r2_lane_is_relay(lane)) {
            best = r2_max(best, r2_lane_grade(lane));
        }
    }
    return best;
}

/* evidence.c */
void r2_lane_tell(const r2_lane_t *lane, r2_lane_event_t event, r2_status_t why);
void r2_link_tell_silence(r2_link_t *link, bool silent);

/* unread.c: what lies unread at a process that reads slowly */
/** True if that is longer ago than a process takes that comes back at once. */
bool r2_unread_for_long(const r2_net_t *net, uint64_t since_ns);
/** Notes of which rails not all may have been read, or is on its way. After a look at all. */
void r2_unread_look(r2_net_t *net);
/** Time of a word, for the header. */
uint16_t r2_unread_stamp(uint64_t now_ns);
/** Such bits of the peer came. */
void r2_unread_heard(r2_lane_t *lane, uint16_t rails, uint16_t stamp);
/** What the peer's clock says now, as far as its words and our own clock tell: for `told`. */
uint32_t r2_unread_clock(const r2_link_t *link);
/** By how much the peer's clock went on, as it says, since this lane came into its state. */
uint64_t r2_unread_told_ns(const r2_lane_t *lane);
/** By how much its words on this lane are later than the lane's oldest packet in flight. */
uint64_t r2_unread_answered_ns(const r2_lane_t *lane);
/** No question of `asked_ns` or later is answered by the peer's host over this lane's rails. */
void r2_lane_cut_off(r2_lane_t *lane, uint64_t asked_ns);
/** A packet came on it: it is not unreachable any more, unless that is old. */
void r2_lane_reached(r2_lane_t *lane);
/** True if what this lane waits for may lie unread in our own buffers. */
bool r2_unread_is_here(const r2_lane_t *lane);
/** True if it may lie unread at the peer. */
bool r2_unread_is_there(const r2_lane_t *lane);
/** True if it may lie unread at either end: then that it does not come says nothing of the lane. */
bool r2_unread_excuses(const r2_lane_t *lane);
/**
 * The peer asks after a lane that stands at both ends, since it has heard nothing on it.
 * @param awaits the oldest packet that it has no acknowledgement of.
 * @return true: it is to wait, what it sent may lie unread here.
 */
bool r2_unread_answer(r2_lane_t *lane, uint32_t awaits);

/* give_up.c */
/** Messages to and from the peer are given up, with an error. */
void r2_link_break(r2_link_t *link, r2_status_t status);

/* leave.c */
/** The peer ends: what is under way to it counts as acknowledged, receives without their message
 * fail. */
void r2_link_part(r2_link_t *link);

/* presence.c: is the process at the other end gone, stopped, or out of reach */
#define R2_REFUSED_RETRY_NS (80 * R2_NS_PER_MS) /* a refused call is made again */
/** The process at the other end said something, on whatever way. */
void r2_link_spoke(r2_link_t *link);
/** Others want to reach the process through this one, and cannot: what it is like is found out. */
void r2_link_inquire(r2_link_t *link);
/** True if no lane to the process is up, but its kernel has answered of late: it is stopped. */
bool r2_link_is_busy(const r2_link_t *link);
/** Outcomes of a connect request over a direct lane: refused, no answer, answered by the
 * process. @param taken somebody listens, and the request waits there. */
void r2_lane_refused(r2_lane_t *lane);
void r2_lane_unanswered(r2_lane_t *lane, bool taken);
/** True while the next refusal may still change what is thought of the process. */
bool r2_lane_refusal_counts(const r2_lane_t *lane);
void r2_lane_answered(r2_lane_t *lane);
/** Asks the kernel behind the peer's listener; r2_net_probed() follows. @return false: it
 * cannot. */
bool r2_lane_probe_kernel(r2_lane_t *lane);
/** Counts how long somebody has been waiting for a link that has no lane, and ends it. */
void r2_link_presence_timer(r2_link_t *link);
uint64_t r2_link_presence_deadline_ns(const r2_link_t *link);

/**
 * True if the peer was heard for a good part of the time since this lane came into its state, by
 * whichever lane: it runs, and this lane does not. It is asked, so that one that runs and has
 * nothing to say is not taken for stopped.
 */
bool r2_lane_peer_runs(const r2_lane_t *lane);
/** A connection ends: of a lane that is judged it counts if its peer was heard, and not on it. */
void r2_lane_unproved(r2_lane_t *lane);

/* timer.c */
void r2_link_timers(r2_link_t *link);
uint64_t r2_link_deadline_ns(const r2_link_t *link);

/* lane_timer.c */
/** Does what is due. */
void r2_lane_timer(r2_lane_t *lane);
/** When something will be. */
uint64_t r2_lane_deadline_ns(const r2_lane_t *lane);

#endif
