# SPDX-License-Identifier: Apache-2.0
"""Three-level fat tree of k-port switches, with tapering at the edge (Flowcut §III-B1).

There are k pods of k/2 edge switches. An edge switch has k/2 hosts and, with taper t, k/(2t) uplinks, one to
each of the k/(2t) aggregation switches of its pod. An aggregation switch has k/2 links down and k/2 up; the
i-th of every pod shares the i-th k/2 core switches with the others. Without taper that makes k³/4 hosts and
full bisection.

Ports: edge: hosts, then aggregation switches; agg: edges, then cores; core: port p leads to pod p.
"""

from __future__ import annotations

from tailrace.topology.families.build import Builder
from tailrace.topology.families.options import LINK_KEYS, links_of
from tailrace.topology.model import Topology
from tailrace.topology.paths.restricted import KEY, narrow_of
from tailrace.words import Options, SpecError, Words


def fat_tree(words: Words) -> Topology:
    """fat-tree:k=,taper=,hosts=,narrow= (hosts on each edge switch, k/2 unless given).

    Raises:
        SpecError: a bad option; k is odd, or k/2 is no multiple of taper.
    """
    options = Options(words, ("k", "taper", "hosts", *LINK_KEYS, KEY))
    k = options.integer("k", 4, least=2)
    if k % 2:
        raise options.error("k", "even")
    half = k // 2
    taper = options.integer("taper", 1, least=1)
    if half % taper:
        raise SpecError(f"{words.title}: taper must divide k/2 = {half}, found '{taper}'")
    hosts = options.integer("hosts", half, least=1)
    builder = Builder(words, links_of(options))
    uplinks = half // taper
    edges_total, aggs_total = k * half, k * uplinks
    builder.expect(
        switches=edges_total + aggs_total + uplinks * half,
        hosts=edges_total * hosts,
        links=edges_total * uplinks + aggs_total * half,
    )
    pods = range(1, k + 1)
    edges = {
        pod: [builder.switch(f"edge{pod}_{i}", "edge", pod - 1, hosts) for i in range(1, half + 1)]
        for pod in pods
    }
    aggs = {
        pod: [builder.switch(f"agg{pod}_{i}", "agg", pod - 1) for i in range(1, uplinks + 1)] for pod in pods
    }
    cores = [builder.switch(f"core{i}", "core") for i in range(1, uplinks * half + 1)]
    for pod in pods:
        for edge in edges[pod]:
            for agg in aggs[pod]:
                builder.link(edge, agg)
        for index, agg in enumerate(aggs[pod]):
            for core in cores[index * half : (index + 1) * half]:
                builder.link(agg, core)
    return builder.topology(narrow_of(options))
