# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""Graphs of files: which are in circles, and how many calls run upward in the best order."""


def circles(nodes, edges):
    """Sets of nodes that reach each other (Tarjan), those of one node left out; largest first."""
    after = {node: sorted(b for a, b in edges if a == node) for node in nodes}
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in after[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(nodes):
        if node not in index:
            visit(node)
    return sorted((circle for circle in found if len(circle) > 1), key=lambda c: (-len(c), c))


def best_place(node, order, weights):
    """(change of the upward calls from the bottom place, place) where a node has fewest."""
    best = now = sum(weights.get((node, other), 0) for other in order)
    place = 0
    for i, other in enumerate(order):
        now += weights.get((other, node), 0) - weights.get((node, other), 0)
        if now < best:
            best, place = now, i + 1
    return best, place


def upward(nodes, weights):
    """
    An order of files, bottom to top, and the upward calls that are left in it. No exact search:
    one file after the other moves to its best place until none moves, from three starts.
    """
    nodes = sorted(nodes)

    def rank(node):
        return (sum(n for (a, _), n in weights.items() if a == node)
                - sum(n for (_, b), n in weights.items() if b == node), node)

    def count(order):
        at = {node: i for i, node in enumerate(order)}
        return sum(n for (a, b), n in weights.items() if at[b] > at[a])

    found = []
    for order in (list(nodes), nodes[::-1], sorted(nodes, key=rank)):
        left, moved = count(order), True
        while moved:
            moved = False
            for node in nodes:
                others = [other for other in order if other != node]
                _, place = best_place(node, others, weights)
                tried = others[:place] + [node] + others[place:]
                if count(tried) < left:
                    order, left, moved = tried, count(tried), True
        found.append((left, order))
    return min(found)
