/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Lanes and file descriptors. For link/ only.
 */
#ifndef R2_LINK_IDLE_H
#define R2_LINK_IDLE_H

#include "link/state.h"

/** Connections that carried nothing, until the way of the data is to blame: one may have met a peer
 * that had just made another. */
#define R2_UNPROVED_MAX 2u

/** A lane that rests is to be opened as any that is down. */
void r2_idle_wake(r2_lane_t *lane);
/** True if a lane that is down is due to be opened. */
bool r2_idle_may_open(r2_lane_t *lane);
/** False if descriptors for a lane were looked for just now, in vain. */
static inline bool r2_idle_may_look(const r2_net_t *net)
{
    return net->now_ns >= net->short_until_ns;
}
/** True if another lane of the link is there or being opened. */
bool r2_idle_has_way(const r2_lane_t *lane);
/** For how long a lane leaves the way to others of its link, which differ: or the first of those
 * that are tried at the same time would be the only one that ever is. */
uint64_t r2_idle_turn_ns(const r2_net_t *net);
/** True if a lane that has no descriptors is to get some of others. */
bool r2_idle_needs(const r2_lane_t *lane);
/** True if this side has nothing for a lane, or another lane for it. */
bool r2_idle_spares(const r2_lane_t *lane);
/** A lane that is down waits until it is needed, and `pause_ns` at least. */
void r2_idle_rest(r2_lane_t *lane, uint64_t pause_ns);
/** Ends a lane on which nothing answers: the peer is told, and has a timeout to read it. */
void r2_idle_end(r2_lane_t *lane);

/* room.c */
/** Makes room for calls of others, where the application has taken what is kept for them. */
void r2_room_keep(r2_net_t *net);
/** True if a lane of the link waits for descriptors of others, here or at the peer. */
bool r2_room_awaits_turn(const r2_link_t *link);
/**
 * The peer of a connect request is stopped: where descriptors are short the call goes on without
 * its worker. @return false: too many do; it is to end.
 */
bool r2_room_lend(r2_lane_t *lane);
/**
 * Takes a worker for a lane (r2_rail_get()). Without descriptors for it the lane is put off, and
 * the end of an idle one is asked for if the link has no other.
 */
r2_status_t r2_idle_worker(r2_lane_t *lane, r2_rail_worker_t **worker_p);
/** The peer asked for a lane, and there were no descriptors: it is called when there are some. */
void r2_idle_owes(r2_lane_t *lane);
/** A call to the peer found no connection: it is owed no lane until it calls again. */
void r2_idle_owes_none(r2_lane_t *lane);
/** The same for want of descriptors at the peer: tried again later. */
void r2_idle_put_off(r2_lane_t *lane);
/** Descriptors were given back: they are for lanes that have none, now. */
void r2_idle_expedite(r2_net_t *net);
/** A packet came on a lane. In the middle of progress: only notes it. */
void r2_idle_heard(r2_lane_t *lane, uint8_t kind);
/**
 * The peer opens a lane anew that is there: true if that is because of the want of descriptors, and
 * it is closed.
 * @param rested the peer says that it has closed it.
 */
bool r2_idle_replaced(r2_lane_t *lane, bool rested);
/** The connection of a lane has ended, and this process or its peer is late: the peer will tell
 * why. */
void r2_idle_ended(r2_lane_t *lane);
/**
 * Ends a lane for what it holds, and opens it anew. It is no fault if it comes up, or a call for it
 * is refused.
 */
void r2_idle_renew(r2_lane_t *lane);
/** The same where the peer has done so. */
void r2_idle_renewed(r2_lane_t *lane);
/** What a lane was is no question any more: it is up, has failed, or another end is to be
 * judged. */
static inline void r2_idle_settle(r2_lane_t *lane)
{
    lane->connect.judged_ns = 0;
    lane->connect.renewed = false;
    lane->connect.unproved = 0;
}
/** What it was. @param rested the peer has closed it; false: it failed. */
void r2_idle_judge(r2_lane_t *lane, bool rested);
/** No connection can be made here. If none can be made next time either, the lane has failed, and
 * that the peer calls changes nothing. */
void r2_idle_nothing_opens(r2_lane_t *lane);
/** Nobody has told in time: it failed if a call did, unless the peer has got the question now. */
void r2_idle_judge_late(r2_lane_t *lane);
/** When it counts as failed if nothing is heard; R2_NEVER_NS: there is nothing to judge, or no
 * descriptor to ask with. */
static inline uint64_t r2_idle_judged_ns(const r2_lane_t *lane)
{
    return 0 == lane->connect.judged_ns || r2_lane_is_short(lane) ? R2_NEVER_NS
                                                                  : lane->connect.judged_ns;
}
/** Closes what was asked for, or is closed at the other end. After the progress pass. */
void r2_idle_scan(r2_lane_t *lane);
/** Of a lane that rests or is being closed; R2_NEVER_NS: none. */
uint64_t r2_idle_deadline_ns(const r2_lane_t *lane);
/** True if a lane of the link waits until it is needed. */
bool r2_idle_is_resting(const r2_link_t *link);
/** True if a link has no lane because nobody needed one: that is no silence. */
bool r2_idle_holds(const r2_link_t *link);
/** True if a lane of the link lacks descriptors, here or at the peer. */
bool r2_idle_is_short(const r2_link_t *link);
/** For an error: a line that names the limit, if that is what is wrong. @return its length. */
size_t r2_idle_explain(const r2_link_t *link, char *text_p, size_t text_bytes);

#endif
