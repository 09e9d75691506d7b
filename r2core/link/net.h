/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Net: the network side of one process: its rails, its links, and the table of lane connections.
 */
#ifndef R2_LINK_NET_H
#define R2_LINK_NET_H

#include "base/clock.h"
#include "base/hash.h"
#include "base/logger.h"
#include "link/peer_info.h"
#include "base/blocks.h"
#include "base/pool.h"
#include "link/wire.h"
#include "oob/oob.h"
#include "oob/post.h"
#include "r2/counters.h"
#include "r2/ctx.h"
#include "r2/params.h"
#include "r2/transport.h"
#include "rail/hello.h"
#include "rail/probe.h"
#include "rail/rail.h"

struct r2_link;
struct r2_lane;

/** What the net needs to know of collectives. Called under the engine lock. */
typedef struct r2_net_upcalls {
    /** True if messages of the collective that this tag names will never be wanted any more. */
    bool (*over)(void *arg, const r2_tag_t *tag);
    /**
     * A peer tells that a communicator failed for good there. Only to be noted: called in the
     * middle of a progress pass.
     */
    void (*aborted)(void *arg, uint32_t rank, uint64_t comm_key, r2_status_t status);
    /**
     * True if a message with this tag and plan digest may still be sent to a peer. Asked where none
     * is under way. NULL: it may.
     */
    bool (*sends)(void *arg, uint32_t rank, const r2_tag_t *tag, uint32_t digest);
    /** True if a receive may still take a message of a peer with this tag and plan digest. NULL: it
     * may. */
    bool (*receives)(void *arg, uint32_t rank, const r2_tag_t *tag, uint32_t digest);
    /**
     * A message came that no receive of its collective took, or will take. Only to be noted, as
     * aborted(). NULL: it does not matter.
     */
    void (*stray)(void *arg, uint32_t rank, uint64_t comm_key);
    /**
     * A whole message came that nobody announced (R2_LINK_UNEXPECTED_KEY), while the application
     * drives. Only to be copied and noted, as aborted(). @return false: not now, the link is to
     * keep it. NULL: so it is with all of them.
     */
    bool (*unexpected)(void *arg, uint32_t rank, const r2_tag_t *tag, const void *data,
                       uint64_t bytes);
    /** Messages to or from a peer were given up for good. Only to be noted, as aborted(). */
    void (*lost)(void *arg, uint32_t rank, r2_status_t status);
    /*
     * Evidence for the detector; each may be NULL. Only to be noted, as aborted(). Not for lanes
     * within the host.
     */
    void (*lane)(void *arg, uint32_t rank, uint32_t rail_idx, uint32_t peer_rail_idx,
                 r2_lane_event_t event, r2_status_t why);
    /** No lane to a peer is up though one is wanted (silent), or one is again. */
    void (*peer)(void *arg, uint32_t rank, bool silent);
    /** A notice about health of a peer. */
    void (*notice)(void *arg, uint32_t rank, const void *data, size_t bytes);
    /**
     * What a lane carried in an interval in which its link always had more to carry. For all lanes
     * of the link in a row, for the same interval. @param outbound acknowledged by the peer, else
     * received.
     */
    void (*rate)(void *arg, uint32_t rank, uint32_t rail_idx, bool outbound, uint64_t bytes,
                 uint64_t interval_ns);
    /** False if `via` is known not to reach `rank`. NULL: nothing is known. */
    bool (*reaches)(void *arg, uint32_t via, uint32_t rank);
    /** True if others say that this process is gone. NULL: nothing is known. */
    bool (*gone)(void *arg, uint32_t rank);
    /** Since when out-of-band messages to a process are refused; 0: they are not. NULL: no such. */
    uint64_t (*refused_ns)(void *arg, uint32_t rank);
    /**
     * What is known of the rails between our host and that process's, for an error: lines that
     * begin with two blanks. NULL: nothing is known.
     */
    void (*describe)(void *arg, uint32_t rank, char *text_p, size_t text_bytes);
    void *arg; /* borrowed: outlives the net */
} r2_net_upcalls_t;

/** What is published for others than the net. */
typedef struct r2_net_extra {
    uint32_t users;             /* bits of r2_user_t */
    const uint8_t *post, *cost; /* borrowed */
    uint32_t post_bytes, cost_bytes;
    bool local; /* processes of a host may share memory */
} r2_net_extra_t;

/* Lanes whose connection ids differ in their low bits, if there are no more: a power of two. */
#define R2_NET_RECENT 64u

#define R2_NET_KNOWN_MAX 1024u /* of so many processes it is kept what they published */

/** What a process without a link has published, as it was asked for last. */
typedef struct r2_net_known {
    uint32_t rank;
    r2_peer_info_t info; /* store NULL: nobody's */
} r2_net_known_t;

/** The network side of one process. Everything in it belongs to the engine lock. */
typedef struct r2_net {
    const r2_clock_t *clock;   /* borrowed */
    const r2_params_t *params; /* borrowed */
    const r2_log_t *log;       /* borrowed */
    r2_counters_t *counters;   /* borrowed */
    r2_tp_t tp;
    r2_hello_t hello;
    r2_probe_t probe; /* ops NULL: nobody can be asked */
    r2_oob_t oob;
    r2_net_upcalls_t upcalls;
    r2_tp_callbacks_t callbacks;
    void (*note_own_silence)(struct r2_net *net); /* net.c: asks for all deadlines (limits.c) */
    uint32_t rank, size;
    r2_net_extra_t extra; /* borrowed until r2_net_init() is over */
    r2_peer_info_t info;  /* what this process publishes */
    r2_rail_t rails[R2_RAILS_MAX];
    uint32_t rail_count;
    r2_rail_t local;        /* shared memory of the host */
    struct r2_relay *relay; /* owned: lanes through third hosts, forwarding for others */
    int epoll_fd;           /* borrowed: gets the descriptors of all workers; -1: none */
    size_t segment_bytes;   /* largest packet: header and chunk */
    uint64_t first_seq;     /* where message numbers start */
    uint64_t now_ns;        /* time of this progress pass */
    /* false: the service thread drives, application memory is off limits */
    bool may_deliver;
    /* an application thread drives: sinks, which run code of the user, may be called */
    bool app_drives;
    bool hands_over; /* so the newest packet went to who wants messages that nobody announced */
    /* who drives comes back at once: acknowledgements may wait for more */
    bool staying;
    /* an application drives, and comes back soon as a rule: not all is looked after each time */
    bool spins;
    r2_rail_t *busy_rail;  /* borrowed from rails[]: the last that something came by; or NULL */
    uint32_t busy_times;   /* so often, one after the other */
    uint32_t glances;      /* progress passes that looked at no other, and those between them */
    bool heard;            /* the newest progress pass got something from a rail */
    uint16_t unread;       /* bit r: rail r may have more than was read so far (unread.c) */
    uint16_t unread_local; /* all bits: so may the rail within the host */
    bool acks_held;        /* an acknowledgement waits for the next progress pass */
    bool in_callback;      /* inside a transport upcall: only note and enqueue */
    /* since when this process leaves (r2_net_leave()); 0: it does not */
    uint64_t leaving_ns;
    bool ending;                           /* after the final fence: failures are not news */
    struct r2_link **links;                /* owned: by rank, NULL until first use */
    r2_net_known_t *known;                 /* owned: [known_count], by the rank's remainder */
    uint32_t known_count;                  /* of all processes, up to R2_NET_KNOWN_MAX */
    struct r2_link *active;                /* owned list: links that timers must look at */
    struct r2_inbox *inbox;                /* owned; NULL: links within the host have only lanes */
    struct r2_local *locals;               /* borrowed list: links with mailboxes to read */
    struct r2_lane *connections;           /* hash by connection id */
    struct r2_lane *recent[R2_NET_RECENT]; /* borrowed: found there last, by low bits of the id */
    uint64_t next_connect;                 /* connect request ids */
    uint64_t next_probe;                   /* ids of questions to kernels */
    uint64_t unexpected_bytes;             /* over all links */
    uint64_t open_bytes;   /* granted to peers and not given to receives, over all links */
    uint32_t asking_links; /* links with receives that are to get credit */
    uint64_t last_progress_ns;
    uint64_t progressed_all_ns; /* the newest progress pass that looked at every worker */
    uint32_t partial_passes;    /* since then */
    bool progressed_all;        /* that was the newest one */
    uint64_t whole_ns;          /* the newest progress pass that looked after everything */
    bool was_brief;             /* the newest one did not */
    uint64_t back_ns;           /* end of the newest time without a progress pass; 0 = none yet */
    uint64_t late_ns;           /* end of the newest one that timers were due in; 0 = none yet */
    uint64_t drained_ns;        /* newest progress pass that found nothing */
    uint64_t last_rx_ns;        /* newest packet from anybody */
    uint64_t mismatch_ns;       /* next look at what is kept as unexpected for nobody */
    uint64_t early_credits;     /* credits kept, over all links */
    struct r2_unexpected_queue *unexpected[3]; /* lists by r2_unexpected_t: links with unexpected
                                                  messages without a receive, in turn */
    uint32_t unexpected_count[3];              /* how many there are */
    uint64_t awaited_recvs; /* posted receives that wait for payload, over all links */
    uint32_t unwired_links; /* links of which no lane has ever been up */
    uint32_t
        pending_lanes; /* CONNECTING or WIRING: not all the descriptors that they take are taken */
    bool crowded;      /* this process waits for processors: packets are turns (estimator.c) */
    bool tight;        /* descriptors are short: room.c */
    bool turns;        /* other lanes had descriptors when there were not enough */
    uint64_t keep_ns;  /* next look at what is kept free */
    uint32_t lent_connects; /* connect requests that go on without a worker */
    uint64_t
        short_until_ns; /* there were not enough: not asked for before, unless some came back */
    char error_text[R2_ERROR_TEXT_BYTES]; /* of the newest link that broke for good */
    r2_pool_t packets, items, messages;   /* free lists for sending */
    r2_pool_t matches, arriving, credits; /* for receiving */
    r2_pool_t places, targets;            /* memory granted to peers, and by them */
    r2_blocks_t blocks; /* memory of other lengths: copies, what is kept as unexpected, bitmaps */
} r2_net_t;

/** Opens devices and listeners and fills net->info. Fields above `tp` and parts are set by the
 * caller. */
r2_status_t r2_net_init(r2_net_t *net, const r2_nic_t *nics, size_t nic_count, uint64_t host_id,
                        const char *host_name);
/** Frees all links and rails; what is in flight is discarded. */
void r2_net_fini(r2_net_t *net);

/**
 * One progress pass: all workers, then timers, acknowledgements and queues.
 * @return number of events; 0 = nothing to do.
 */
unsigned r2_net_progress(r2_net_t *net);
/**
 * The first part of a progress pass: reads from the rails. The rest follows, but may be left out if
 * there was nothing.
 * @param glance only what is waited for is looked at, where `staying` says that somebody waits;
 * else the rail that all came by of late.
 * @return events.
 */
unsigned r2_net_read(r2_net_t *net, bool glance);
/** True if the next progress pass of who spins is to look no further than at the rail that all came
 * by of late, since everything was looked after just now. */
bool r2_net_glances(r2_net_t *net);
/**
 * The rest of a progress pass that has found so many events.
 * @param brief only what packets ask for (`r2_net_is_brief`, asked once in a pass).
 */
void r2_net_progress_rest(r2_net_t *net, unsigned events, bool brief);
/** The part of a progress pass that does not read from rails: fences, timers, queues,
 * acknowledgements. */
void r2_net_progress_links(r2_net_t *net);
/** What packets that came ask for: queues and acknowledgements. @param took_long the time is asked
 * for anew. */
void r2_net_progress_traffic(r2_net_t *net, bool took_long);
/**
 * True if who drives comes back at once, and everything was looked after just now: then this pass
 * does what packets ask for, and no more.
 */
bool r2_net_is_brief(const r2_net_t *net);
/** How much unexpected data may be kept of each peer without credit: equal on all processes of a
 * job. */
uint64_t r2_net_unexpected_bytes(const r2_net_t *net);
/** Prepares all workers for sleeping on epoll_fd. @return false: there is work, progress first. */
bool r2_net_arm(r2_net_t *net);
/** Next time a progress pass has work because of a timer; R2_NEVER_NS: none. */
uint64_t r2_net_deadline_ns(const r2_net_t *net);
/**
 * This process ends, others may go on: tells each peer as soon as that holds everything. To be
 * called again, with progress passes in between. @return true: no peer needs this process any more,
 * or none of those that do is heard of.
 */
bool r2_net_leave(r2_net_t *net);
/** True if something waits to be sent, a peer waits for acknowledgements, or theirs are worth a
 * read. */
bool r2_net_owes(const r2_net_t *net);
/** True if something waits for the network: acknowledgements, lanes being opened, unexpected
 * data. */
bool r2_net_outstanding(const r2_net_t *net);

/** The link to a process, created on first use. @return R2_OK, R2_ERR_NOT_FOUND, R2_ERR_VERSION,
 * ... */
r2_status_t r2_net_link(r2_net_t *net, uint32_t rank, struct r2_link **link_p);

/**
 * What a process published. @param info_p to be given back by r2_peer_info_put().
 * @return R2_OK, R2_ERR_NOT_FOUND (it does not run r2), R2_ERR_VERSION, ...
 */
r2_status_t r2_net_lookup(r2_net_t *net, uint32_t rank, r2_peer_info_t *info_p);
/**
 * Way to one rail of a peer: what the peer published, and which rail of ours is paired with it.
 * @param info_p to be given back by r2_peer_info_put().
 * @return R2_OK, R2_ERR_NOT_FOUND (no such rail, or the same host), R2_ERR_NO_PATH (not paired).
 */
r2_status_t r2_net_way(r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx, r2_peer_info_t *info_p,
                       uint32_t *rail_idx_p);
/**
 * Sends a notice about health over the best lane to a peer. Not in time, if at all: notices are
 * repeated until they are acknowledged by their own protocol. The link is created if need be with
 * `create`.
 * @param bytes up to R2_NOTICE_BYTES_MAX.
 * @return R2_OK, R2_ERR_NO_PATH (no lane is up, or enough notices wait), R2_ERR_NOT_FOUND, ...
 */
r2_status_t r2_net_notice(r2_net_t *net, uint32_t rank, const void *data, size_t bytes,
                          bool create);
/**
 * What is known of a peer's rail, or of the path to it, from elsewhere. Dead: lanes of ours to it
 * are fenced and not tried before `retry_ns`, unless no other lane is left. Alive: they are tried
 * at once.
 */
void r2_net_peer_rail(r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx, bool dead,
                      uint64_t retry_ns);
/** The same for a rail of ours, towards all peers. */
void r2_net_own_rail(r2_net_t *net, uint32_t rail_idx, bool dead, uint64_t retry_ns);
/** When something was last acknowledged over that lane to a peer; 0: never. */
uint64_t r2_net_delivered_ns(const r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx);
/** True if that lane to a peer is an RDMA one that is tried, also again and again, and not up. */
bool r2_net_is_mute(const r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx);
/**
 * True if this process was away and has not read all that came meanwhile, or came back so shortly
 * ago that what does not come by rails may be unread, too.
 */
bool r2_net_catches_up(r2_net_t *net);
/** The same of any lane over a rail of ours, to another host. */
bool r2_net_is_own_mute(const r2_net_t *net, uint32_t rail_idx);
/** Least smoothed round trip over that rail of ours, to any peer on another host; 0: not known. */
uint64_t r2_net_round_trip_ns(const r2_net_t *net, uint32_t rail_idx);
/**
 * Tells the detector once more how the lanes to all peers from a rank on are: some of it could not
 * be noted.
 */
void r2_net_tell_states(r2_net_t *net, uint32_t from);
/** Somebody says that a peer process is gone: tried at once, so that it is known. */
void r2_net_check_peer(r2_net_t *net, uint32_t rank);

/** Bit of the ids of probes that are the net's: their results go to r2_net_probed(). */
#define R2_NET_PROBE (1ull << 63)

/**
 * Asks a process for an acknowledgement on its lane of that rail, and on another lane that is
 * sound: r2_net_delivered_ns() tells that it came. @return false: the lane is not up, or has no
 * room.
 */
bool r2_net_ask(r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx);
/** Which connection the process's lane of that rail has; 0: it is not up. */
uint64_t r2_net_connection(const r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx);
/** When any lane to the process but that of the rail last had something acknowledged; 0: never. */
uint64_t r2_net_delivered_beside_ns(const r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx);
void r2_net_probed(r2_net_t *net, uint64_t id, r2_probe_answer_t answer);
/** True if a lane to a process is up, or was until now. */
bool r2_net_reaches(const r2_net_t *net, uint32_t rank);
/** An out-of-band message of a process came: it lives. */
void r2_net_heard(r2_net_t *net, uint32_t rank);

/** There will not be enough file descriptors for all lanes: they are opened sparingly. */
void r2_net_tighten(r2_net_t *net);

/** A NIC lost or got carrier (or its address). */
void r2_net_rail_event(r2_net_t *net, size_t rail_idx, bool carrier);
/** The RDMA device of a rail stays dead, or is back (`nic.rdma_lost`): lanes that could go by RDMA
 * and go the other way are fenced, and open anew. */
void r2_net_rail_changes(r2_net_t *net, size_t rail_idx);
/** The RDMA port of a rail has the NIC's address at another index: queue pairs that were made with
 * the old one say another address, or none. Their lanes are fenced, and open anew. */
void r2_net_rail_moved(r2_net_t *net, size_t rail_idx);

#endif
