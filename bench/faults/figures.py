# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Figures of one fault, from byte counters, iterations and event files. No I/O, no clock.

A shot is a dict: host, rail (of the victim), asked_ns (the fault was asked for), at_ns (it had
taken effect), heal_ns (so had the heal), until_ns (the next one is asked for)."""

import bisect

DATA_BYTES = 4096           # that a host receives in one sample; acknowledgements alone are less
WINDOW_NS = 10**9           # in which a gap counts (design: [fault, fault + 1 s])
GOOD = 0.95                 # of healthy throughput
HARMLESS = ("healthy", "peer_busy", "peer_silent")


def silent_ns(at_ns, received, from_ns, to_ns):
    """Longest time between two deliveries to one host, the part of it within [from, to]."""
    first = max(1, bisect.bisect_left(at_ns, from_ns) - 1)
    longest, last = 0, from_ns
    for i in range(first, len(at_ns)):
        if received[i] - received[i - 1] < DATA_BYTES:
            continue
        longest = max(longest, min(at_ns[i], to_ns) - last)
        last = max(from_ns, at_ns[i])
        if last >= to_ns:
            return longest
    return max(longest, to_ns - last)


def moved(at_ns, received, from_ns, to_ns):
    """Bytes that all hosts have received between two times."""
    first, last = bisect.bisect_left(at_ns, from_ns), bisect.bisect_left(at_ns, to_ns)
    last = min(last, len(at_ns) - 1)
    return sum(each[last] - each[first] for each in received) if last > first else 0


def rate(at_ns, received, from_ns, to_ns):
    """Bytes per ns."""
    return moved(at_ns, received, from_ns, to_ns) / (to_ns - from_ns)


def progress(iterations, from_ns, to_ns):
    """Iterations per ns of (from, to, ...), seconds; one that is only partly within counts with
    that part."""
    done = 0.0
    for start_s, end_s, *_ in iterations:
        inside = min(end_s * 1e9, to_ns) - max(start_s * 1e9, from_ns)
        done += max(0.0, inside) / ((end_s - start_s) * 1e9)
    return done / (to_ns - from_ns)


def reached_ns(at_ns, received, goal, span_ns, from_ns, to_ns):
    """Time from `from` to the earliest moment from which on the rate over one span is at least goal
    (bytes per ns). None: not before `to`."""
    first = bisect.bisect_left(at_ns, from_ns)
    for i in range(first, len(at_ns)):
        if at_ns[i] + span_ns > to_ns:
            return None
        if rate(at_ns, received, at_ns[i], at_ns[i] + span_ns) >= goal:
            return at_ns[i] - from_ns
    return None


def blames(event, host, rail):
    """Does this verdict name this NIC?"""
    return event.get("blamed", "").endswith("h%d" % host) and event.get("rail") == rail


def verdicts(events, shot, kind, ranks):
    """What the ranks say of a fault: rank -> ns until the right verdict (None: never), and all
    verdicts that name another part or another kind."""
    since = [e for e in events if e["event"] == "verdict"
             and shot["asked_ns"] <= e["mono_ns"] < shot["until_ns"]]
    right = [e for e in since if kind and e["verdict"] == kind
             and blames(e, shot["host"], shot["rail"])
             and e["mono_ns"] < shot["heal_ns"]]
    took = {rank: min((max(0, e["mono_ns"] - shot["at_ns"]) for e in right if e["rank"] == rank),
                      default=None)
            for rank in range(ranks)}
    wrong = [e for e in since if e["verdict"] not in HARMLESS
             and not (kind and e["verdict"] == kind and blames(e, shot["host"], shot["rail"]))]
    return took, wrong


def gaps(events, shot):
    """Rank -> longest pause (ns) that r2 itself has noted for this fault."""
    noted = {}
    for e in events:
        if e["event"] == "recovered" and shot["asked_ns"] <= e["since_ns"] < shot["heal_ns"]:
            noted[e["rank"]] = max(noted.get(e["rank"], 0), e["gap_ns"])
    return noted


def lost_lanes(events, shot):
    """Number of lanes that were given up in the meantime."""
    return sum(e["event"] == "lane_down" and shot["asked_ns"] <= e["mono_ns"] < shot["until_ns"]
               for e in events)


def quantile(values, share):
    """The value that this share of all does not exceed; None without any."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def median(values):
    """Middle value; None without any."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if not ordered:
        return None
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
