# SPDX-License-Identifier: Apache-2.0
"""Topology files of htsim (.topo): trees with two or three tiers.

    Nodes 1024                          hosts
    Tiers 2
    Podsize 1024                        hosts of a pod
    Tier 0                              of top-of-rack switches; 1: aggregation, 2: core
    Downlink_speed_Gbps 100             also Downlink_Latency_ns, Switch_Latency_ns
    Radix_Down 32                       also Radix_Up, Oversubscribed
    Tier 1
    Bundle 1                            parallel links down to each switch below

Every switch of a pod is linked to every switch of the next tier in the pod. Position p in a pod (of A
positions) is linked to the core switches p, p + A, p + 2A, ... Not supported: queue sizes; latencies that
differ between switches; Spritz's Dragonflies and Slim Flies (our `dragonfly` has the same host numbers).
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tailrace.formats.network import LinkData, NetworkData, NodeData
from tailrace.formats.registry import Kind, Source, register
from tailrace.spec import SpecError
from tailrace.spec.limits import refuse_above

_HEADER = ("nodes", "tiers", "podsize")
_OF_TIER = {"switch_latency_ns": 0, "oversubscribed": 0, "bundle": 1, "downlink_latency_ns": 0}
"""Keys of a tier with a default, in lower case."""

_NEEDED = ("downlink_speed_gbps", "radix_down", "radix_up")
_FAMILY = "the topologies dragonfly and slim-fly describe such networks"
_QUEUES = "queues are limited by the scheme's key queue="
_REFUSED = {"p": _FAMILY, "queue_up": _QUEUES, "queue_down": _QUEUES}
_GBPS = 10**9
_MOST_LINKS = 1 << 18
_ROLES = {"leaf-spine": ("leaf", "spine"), "fat-tree": ("edge", "agg", "core")}
"""By kind of tree, the roles of switches by tier."""


def _recognises(source: Source) -> bool:
    keys = {words[0].lower() for words in source.head if len(words) == 2}
    return keys >= {"tiers", "nodes"} or keys >= {"p", "link_speed_host_gbps"}


def _read(source: Source) -> NetworkData:
    header: dict[str, int] = {}
    tiers: dict[int, dict[str, int]] = {}
    values = header
    for line, words in source.lines():
        key = words[0].lower()
        if len(words) != 2:
            raise source.error(line, "expected a key and a number")
        if key in _REFUSED:
            raise source.error(line, f"{words[0]}: not supported: {_REFUSED[key]}")
        value = source.number(line, words[0], words[1])
        if key == "tier":
            if value in tiers or value > 2:
                raise source.error(line, f"tier {value}: expected each of 0, 1 and 2 once")
            values = tiers[value] = {**_OF_TIER, "line": line}
        elif key not in (_HEADER if values is header else (*_OF_TIER, *_NEEDED)):
            raise source.error(line, f"{words[0][:40]}: unknown")
        else:
            values[key] = value
    for key in _HEADER:
        if not header.get(key):
            raise source.error(key, "missing or 0")
    count = header["tiers"]
    if count not in (2, 3) or set(tiers) != set(range(count)):
        raise source.error("tiers", f"expected 2 or 3, and tiers 0 to {count - 1}")
    return _tree(source, header["nodes"], header["podsize"], [tiers[number] for number in range(count)])


def _tree(source: Source, nodes: int, pod: int, tiers: list[dict[str, int]]) -> NetworkData:
    """The tree with this number of hosts in all and in a pod."""

    def error(number: int, problem: str) -> Exception:
        return source.error(tiers[number]["line"], f"tier {number}: {problem}")

    for number, tier in enumerate(tiers):
        for key in ("bundle", *_NEEDED[: 2 + (number < len(tiers) - 1)]):
            if not tier.get(key):
                raise error(number, f"{key} is missing or 0")
        if tier["switch_latency_ns"] != tiers[0]["switch_latency_ns"]:
            raise error(number, "not supported: a switch latency that differs from that of tier 0")
    # numbers of switches: in a pod, and above each node
    pods, tors = nodes // pod, pod // tiers[0]["radix_down"]
    above = [1, *(low["radix_up"] // up["bundle"] for low, up in pairwise(tiers))]
    if nodes != pods * tors * tiers[0]["radix_down"] or (len(tiers) == 2 and pods > 1):
        raise source.error("nodes", f"{nodes} hosts do not fill pods of {pod} (one if there are 2 tiers)")
    for number, (low, up) in enumerate(pairwise(tiers), start=1):
        down = (tors if number == 1 else pods) * up["bundle"]
        if (up["radix_down"], low["radix_up"]) != (down, above[number] * up["bundle"]):
            raise error(number, f"radix_down, or radix_up of tier {number - 1}, does not fit the rest")
        rates = low["radix_down"] * low["downlink_speed_gbps"], low["radix_up"] * up["downlink_speed_gbps"]
        if low["oversubscribed"] and low["oversubscribed"] * rates[1] != rates[0]:
            raise error(number - 1, f"oversubscribed: links have {rates[0]} Gbps down and {rates[1]} up")
    total = nodes + pods * (tors * tiers[0]["radix_up"] + above[1] * tiers[1].get("radix_up", 0))
    refuse_above(str(source.path), "links", total, _MOST_LINKS)
    return _network(tiers, nodes, pods, tors, above)


def _network(tiers: list[dict[str, int]], nodes: int, pods: int, tors: int, above: list[int]) -> NetworkData:
    """The tree with these numbers of hosts, pods, switches of tier 0 in a pod, switches above each node."""
    kind = "fat-tree" if len(tiers) == 3 else "leaf-spine"
    aggs, roles = above[1], _ROLES[kind]
    counts = (nodes, pods * tors, pods * aggs, aggs * above[-1])
    names = [[f"{role}{i}" for i in range(count)] for role, count in zip(("h", *roles), counts, strict=False)]
    # by tier, the number of the j-th switch above node i
    upper = (
        lambda i, _: i // tiers[0]["radix_down"],
        lambda i, j: i // tors * aggs + j,
        lambda i, j: i % aggs + aggs * j,
    )
    links = [
        LinkData(tier["line"], name, 0, names[number + 1][upper[number](i, j)], 0, rate_bps, delay_ns)
        for number, tier in enumerate(tiers)
        for rate_bps, delay_ns in [(tier["downlink_speed_gbps"] * _GBPS, tier["downlink_latency_ns"])]
        for i, name in enumerate(names[number])
        for j in range(above[number])
        for _ in range(tier["bundle"])
    ]
    sizes = (tors, aggs) if len(tiers) == 3 else ()
    switches = tuple(
        NodeData(name, role=role, group=i // sizes[number] if number < len(sizes) else -1)
        for number, role in enumerate(roles)
        for i, name in enumerate(names[number + 1])
    )
    hosts = tuple(map(NodeData, names[0]))
    return NetworkData(switches, hosts, tuple(links), tiers[0]["switch_latency_ns"], kind)


def _write(data: NetworkData) -> str:
    """The file of a leaf-spine or a fat tree; in htsim core switches may get other numbers."""
    roles = _ROLES.get(data.kind, ())
    if not roles:
        raise SpecError("htsim-topo: expected a leaf-spine or a fat-tree; other networks cannot be written")
    tiers = {switch.name: roles.index(switch.role) for switch in data.switches}
    sizes = Counter(tiers.values())
    pods = len({switch.group for switch in data.switches if switch.role == roles[0]})
    text = f"Nodes {len(data.hosts)}\nTiers {len(roles)}\nPodsize {len(data.hosts) // pods}\n"
    # `b` is the upper end of a link
    links = [[link for link in data.links if tiers[link.b] == tier] for tier in range(len(roles))]
    rates = [{(link.rate_bps or 0, link.delay_ns) for link in each} for each in links]
    bundles = [set(Counter((link.a, link.b) for link in each).values()) for each in links]
    are_equal = {len(each) for each in rates} == {len(each) for each in bundles} == {1}
    if not are_equal or any(rate % _GBPS for ((rate, _),) in rates):
        raise SpecError("htsim-topo: expected equal links in each tier, with a rate in whole Gbps")
    for tier, (((rate_bps, delay_ns),), (bundle,)) in enumerate(zip(rates, bundles, strict=True)):
        down = len(links[tier]) // sizes[tier]
        text += f"Tier {tier}\nDownlink_speed_Gbps {rate_bps // _GBPS}\nRadix_Down {down}\n"
        text += f"Downlink_Latency_ns {delay_ns}\nSwitch_Latency_ns {data.latency_ns or 0}\nBundle {bundle}\n"
        if tier + 1 < len(roles):
            up = len(links[tier + 1]) // sizes[tier]
            ((upper_bps, _),) = rates[tier + 1]
            if down * rate_bps % (up * upper_bps):
                raise SpecError(f"htsim-topo: tier {tier}: the oversubscription is no whole number")
            text += f"Radix_Up {up}\nOversubscribed {down * rate_bps // (up * upper_bps)}\n"
    return text


register("htsim-topo", Kind.TOPOLOGY, "topology of htsim (.topo)", _recognises, _read, _write)
