# SPDX-License-Identifier: Apache-2.0
"""Topology files of htsim (.topo): trees with two or three tiers, and Dragonflies.

    Nodes 1024                          hosts
    Tiers 2
    Podsize 1024                        hosts of a pod
    Tier 0                              of top-of-rack switches; 1: aggregation, 2: core
    Downlink_speed_Gbps 100
    Radix_Down 32
    Radix_Up 32
    Downlink_Latency_ns 1000
    Switch_Latency_ns 0
    Oversubscribed 1
    Tier 1
    ...
    Bundle 1                            parallel links down to each switch below

Every switch of a pod is linked to every switch of the next tier in the pod. Position p in a pod (of A
positions) is linked to the core switches p, p + A, p + 2A, ... The forms with p, a, h (Dragonfly) and p, q
(Slim Fly) come from Spritz's simulator; its Dragonfly has the links and host numbers of the topology
`dragonfly`. Not supported: its Slim Fly, in which routers have other numbers than in `slim-fly`; queue
sizes; latencies that differ between switches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tailrace.formats.network import HostData, LinkData, NetworkData, SwitchData
from tailrace.formats.registry import Format, Kind, Source, register
from tailrace.spec import SpecError
from tailrace.spec.limits import refuse_above

NAME = "htsim-topo"

_HEADER = ("nodes", "tiers", "podsize")
_OF_TIER = {
    "downlink_speed_gbps": 0,
    "radix_down": 0,
    "radix_up": 0,
    "downlink_latency_ns": 0,
    "switch_latency_ns": 0,
    "oversubscribed": 0,
    "bundle": 1,
}
"""Keys of a tier, in lower case, and their defaults; 0: not given."""

_QUEUES = ("queue_up", "queue_down")
_ROUTERS = ("p", "a", "h", "q")
_SPEEDS = tuple(f"link_speed_{kind}_gbps" for kind in ("global", "local", "host"))
_LATENCIES = tuple(f"link_latency_{kind}_ns" for kind in ("global", "local", "host"))
_OF_HEADER = (*_HEADER, *_ROUTERS, "switch_latency_ns", *_SPEEDS, *_LATENCIES)
_GBPS = 10**9
_ROLES = {"leaf-spine": ("leaf", "spine"), "fat-tree": ("edge", "agg", "core")}
"""By kind of tree, the roles of switches by tier."""

_MOST_HOSTS, _MOST_LINKS = 1 << 16, 1 << 18


def _recognises(source: Source) -> bool:
    keys = {words[0].lower() for words in source.head if len(words) == 2}
    return keys >= {"tiers", "nodes"} or bool(keys & {*_SPEEDS, *_LATENCIES} and "p" in keys)


@dataclass(frozen=True, slots=True)
class _Tier:
    """The keys of a tier, at its first line."""

    line: int
    values: dict[str, int] = field(default_factory=_OF_TIER.copy)


def _read(source: Source) -> NetworkData:
    header: dict[str, int] = {}
    tiers: dict[int, _Tier] = {}
    values = header
    for line, words in source.lines():
        key = words[0].lower()
        if len(words) != 2:
            raise source.error(line, "expected a key and a number")
        if key in _QUEUES:
            raise source.error(
                line, f"{words[0]}: not supported: queues are limited by the scheme's key queue="
            )
        value = source.number(line, words[0], words[1])
        if key == "tier":
            if value in tiers or value > 2:
                raise source.error(line, f"tier {value}: expected each of 0, 1 and 2 once")
            tiers[value] = _Tier(line)
            values = tiers[value].values
        elif key not in (_OF_HEADER if values is header else _OF_TIER):
            raise source.error(line, f"{words[0][:40]}: unknown")
        else:
            values[key] = value
    if "p" in header:
        return NetworkData(family=_family(source, header))
    return _Tree(source, header, tiers).network()


def _family(source: Source, header: dict[str, int]) -> str:
    """The spec string of a Dragonfly."""
    if "q" in header:
        raise source.error("q", "not supported: routers of a Slim Fly have other numbers than in slim-fly")
    speeds = {header.get(key, 0) for key in _SPEEDS}
    if len(speeds) > 1 or 0 in speeds:
        raise source.error("", f"expected equal {', '.join(_SPEEDS)}; other Dragonflies are not supported")
    missing = [key for key in ("a", "h", *_LATENCIES) if key not in header]
    if missing:
        raise source.error("", f"{missing[0]} is missing")
    delays = (f"{kind}={header[f'link_latency_{kind}_ns']}ns" for kind in ("global", "local", "host"))
    options = [f"p={header['p']},a={header['a']},h={header['h']},rate={speeds.pop()}Gbps", *delays]
    return f"dragonfly:{','.join(options)},latency={header.get('switch_latency_ns', 0)}ns"


class _Tree:
    """Computes the switches and links of a tree."""

    def __init__(self, source: Source, header: dict[str, int], tiers: dict[int, _Tier]) -> None:
        self._source = source
        for key in _HEADER:
            if not header.get(key):
                raise source.error(key, "missing or 0")
        self._hosts, self._pod_hosts = header["nodes"], header["podsize"]
        count = header["tiers"]
        if count not in (2, 3):
            raise source.error("tiers", f"expected 2 or 3, found {count}")
        if set(tiers) != set(range(count)):
            raise source.error("tiers", f"expected tiers 0 to {count - 1}")
        self._tiers = [tiers[number] for number in range(count)]
        for number, tier in enumerate(self._tiers):
            needed = ["downlink_speed_gbps", "radix_down", "bundle"] + ["radix_up"] * (number < count - 1)
            missing = next((key for key in needed if not tier.values[key]), None)
            if missing:
                raise source.error(tier.line, f"tier {number}: {missing} is missing or 0")
        self._check_oversubscription()

    def _check_oversubscription(self) -> None:
        for number, (tier, upper) in enumerate(zip(self._tiers, self._tiers[1:], strict=False)):
            given = tier.values["oversubscribed"]
            down = tier.values["radix_down"] * tier.values["downlink_speed_gbps"]
            up = tier.values["radix_up"] * upper.values["downlink_speed_gbps"]
            if given and given * up != down:
                problem = (
                    f"tier {number}: oversubscribed is {given}, but links down have {down} Gbps and up {up}"
                )
                raise self._source.error(tier.line, problem)

    def _divided(self, number: int, what: str, total: int, part: int) -> int:
        """The quotient of two numbers, which must be whole and not 0."""
        if total % part or not total // part:
            problem = f"tier {number}: {total} {what} cannot be divided by {part}"
            raise self._source.error(self._tiers[number].line, problem)
        return total // part

    def network(self) -> NetworkData:
        """The tree: hosts, then switches by tier, with links from the lower to the upper end."""
        tor, agg = (tier.values for tier in self._tiers[:2])
        pods = self._divided(0, "hosts", self._hosts, self._pod_hosts)
        tors = self._divided(0, "hosts of a pod", self._pod_hosts, tor["radix_down"])
        aggs = self._divided(0, "links up", tor["radix_up"], agg["bundle"])
        self._check_radix(1, tors * agg["bundle"])
        refuse_above(str(self._source.path), "hosts", self._hosts, _MOST_HOSTS)
        refuse_above(str(self._source.path), "links", pods * tors * tor["radix_up"], _MOST_LINKS)
        three = len(self._tiers) == 3
        if not three and pods > 1:
            raise self._source.error("podsize", "with 2 tiers, expected all hosts in one pod")
        kind = "fat-tree" if three else "leaf-spine"
        names = _ROLES[kind]
        lower = [
            SwitchData(f"{names[0]}{i}", role=names[0], group=i // tors if three else -1)
            for i in range(pods * tors)
        ]
        upper = [
            SwitchData(f"{names[1]}{i}", role=names[1], group=i // aggs if three else -1)
            for i in range(pods * aggs)
        ]
        hosts = tuple(HostData(f"h{number}") for number in range(self._hosts))
        links = [
            self._link(0, host.name, lower[number // tor["radix_down"]].name)
            for number, host in enumerate(hosts)
        ]
        for number, switch in enumerate(lower):
            for peer in upper[number // tors * aggs :][:aggs]:
                links += [self._link(1, switch.name, peer.name)] * agg["bundle"]
        cores = list(self._cores(pods, aggs, upper, links)) if three else []
        switches = (*lower, *upper, *cores)
        return NetworkData(switches, hosts, tuple(links), self._latency_ns(), kind=kind)

    def _cores(
        self, pods: int, aggs: int, upper: list[SwitchData], links: list[LinkData]
    ) -> Iterator[SwitchData]:
        """The core switches; adds their links."""
        agg, core = (tier.values for tier in self._tiers[1:])
        each = self._divided(1, "links up", agg["radix_up"], core["bundle"])
        self._check_radix(2, pods * core["bundle"])
        refuse_above(str(self._source.path), "links", len(upper) * agg["radix_up"], _MOST_LINKS)
        for number, switch in enumerate(upper):
            for index in range(each):
                name = f"core{number % aggs + aggs * index}"
                links += [self._link(2, switch.name, name)] * core["bundle"]
        return (SwitchData(f"core{number}", role="core") for number in range(aggs * each))

    def _check_radix(self, number: int, links: int) -> None:
        radix = self._tiers[number].values["radix_down"]
        if radix != links:
            problem = f"tier {number}: radix_down is {radix}, but a switch has {links} links down"
            raise self._source.error(self._tiers[number].line, problem)

    def _link(self, number: int, lower: str, upper: str) -> LinkData:
        values = self._tiers[number].values
        rate_bps = values["downlink_speed_gbps"] * _GBPS
        return LinkData(self._tiers[number].line, lower, 0, upper, 0, rate_bps, values["downlink_latency_ns"])

    def _latency_ns(self) -> int:
        latencies = {tier.values["switch_latency_ns"] for tier in self._tiers}
        if len(latencies) > 1:
            raise self._source.error("switch_latency_ns", "not supported: tiers with different latencies")
        return latencies.pop()


def _write(data: NetworkData) -> str:
    """The file of a leaf-spine or a fat tree; in htsim core switches may get other numbers."""
    roles = _ROLES.get(data.kind, ())
    if not roles:
        raise SpecError(f"{NAME}: expected a leaf-spine or a fat-tree; other networks cannot be written")
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
        raise SpecError(f"{NAME}: expected equal links in each tier, with a rate in whole Gbps")
    for tier, (((rate_bps, delay_ns),), (bundle,)) in enumerate(zip(rates, bundles, strict=True)):
        down = len(links[tier]) // sizes[tier]
        text += f"Tier {tier}\nDownlink_speed_Gbps {rate_bps // _GBPS}\nRadix_Down {down}\n"
        text += f"Downlink_Latency_ns {delay_ns}\nSwitch_Latency_ns {data.latency_ns or 0}\nBundle {bundle}\n"
        if tier + 1 < len(roles):
            up = len(links[tier + 1]) // sizes[tier]
            ((upper_bps, _),) = rates[tier + 1]
            if down * rate_bps % (up * upper_bps):
                raise SpecError(f"{NAME}: tier {tier}: the oversubscription is no whole number")
            text += f"Radix_Up {up}\nOversubscribed {down * rate_bps // (up * upper_bps)}\n"
    return text


register(Format(NAME, Kind.TOPOLOGY, "topology of htsim (.topo)", _recognises, _read, _write))
