# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What r2 finds on each host: r2_info there, piece by piece in short lines.

A launcher may cut its ranks' output anywhere, so lines are short, ranks speak one after the other,
and whoever reads counts the pieces.
"""

import json
import os
import socket
import subprocess
import time

from .jobs import SiteError

MARK = "r2_site "
TRIES = 3
TURN_S = 0.03           # between two ranks' words
TURNS_MOST_S = 5.0
INFO_LIMIT_S = 60
RANK_NAMES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID", "PMI_RANK")
OF_PORT = ("link", "state", "gid", "gid_index", "gid_kind", "lid")


def rank_here():
    """This process's rank, or 0."""
    for name in RANK_NAMES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def pieces_of(doc, rank):
    """The lines of one host, from what r2_info says."""
    ports = {port["port"]: port for port in doc["rdma_ports"]}
    host = socket.gethostname()
    yield {"host": host, "rank": rank, "rails": len(doc["rails"]),
           "problems": len(doc["problems"]), "r2": doc["r2"],
           "open_mpi": doc["open_mpi"]["version"], "libraries": doc["libraries"]}
    for rail in doc["rails"]:
        port = ports.get(rail["rdma"], {})
        yield {"host": host, "rank": rank, "rail": {**rail, **{n: port.get(n) for n in OF_PORT}}}
    for problem in doc["problems"]:
        text = "%s: %s; %s" % (problem["level"], problem["what"], problem["remedy"])
        yield {"host": host, "rank": rank, "problem": text[:400]}


def here(info):
    """The verb --look, on each rank: prints what r2_info says on this host."""
    rank = rank_here()
    time.sleep(min(TURNS_MOST_S, TURN_S * rank))
    try:
        done = subprocess.run([info, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=INFO_LIMIT_S, check=False)
        pieces = list(pieces_of(json.loads(done.stdout), rank))
    except (OSError, ValueError, subprocess.TimeoutExpired) as why:
        pieces = [{"host": socket.gethostname(), "rank": rank, "error": str(why)[:400]}]
    for piece in pieces:
        os.write(1, (MARK + json.dumps(piece) + "\n").encode())
    return 0


def read(text):
    """Pieces of all ranks -> list of hosts in the order of their first ranks, and number of ranks;
    None: something is missing."""
    by_rank = {}
    for line in text.splitlines():
        _, mark, rest = line.partition(MARK)
        if mark:
            try:
                piece = json.loads(rest)
            except ValueError:
                return None
            by_rank.setdefault(piece["rank"], []).append(piece)
    hosts = {}
    for rank in sorted(by_rank):
        host = whole(by_rank[rank])
        if host is None:
            return None
        hosts.setdefault(host["host"], host)
    return (list(hosts.values()), len(by_rank)) if hosts else None


def whole(pieces):
    """One rank's pieces as one host, or None."""
    head = next((p for p in pieces if "rails" in p or "error" in p), None)
    if head is None or "error" in head:
        return head
    rails = [p["rail"] for p in pieces if "rail" in p]
    problems = [p["problem"] for p in pieces if "problem" in p]
    if len(rails) != head["rails"] or len(problems) != head["problems"]:
        return None
    return {**head, "rails": rails, "problems": problems}


def look(launcher, ranks, variables):
    """Asks all hosts; returns (hosts, number of ranks)."""
    said = None
    for _ in range(TRIES):
        said = launcher.run(ranks, variables, [launcher.programs.site, "--look",
                                               launcher.programs.info])
        found = read(said.out)
        if said.status == 0 and found:
            break
    else:
        raise SiteError("the launcher does not start programs, or one of them says nothing "
                        "(exit status %d): %s" % (said.status, said.last_lines()))
    for host in found[0]:
        if "error" in host:
            raise SiteError("r2_info fails on %s: %s" % (host["host"], host["error"]))
    return found


def common_rails(hosts):
    """Names of rails that all hosts have at the same place; None: they differ."""
    names = [[rail["name"] for rail in host["rails"]] for host in hosts]
    return names[0] if all(n == names[0] for n in names) else None
