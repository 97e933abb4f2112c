# SPDX-License-Identifier: Apache-2.0
"""Every path that data can take by the entries of switches, in the programs that have channels: whatever a
hash, a queue or an entropy value chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from tailrace.p4rt import programs
from tailrace.p4rt.intent import SwitchIntent
from tailrace.topology import Host, Topology
from tests.schemes.planned import default, planned_tables, rows
from tests.schemes.walker import Tables

MOST_LINKS = 12
"""A path that is longer loops."""

Channel = tuple[str, int, int]
"""A link between switches, by switch and port at its beginning, and how many a packet has passed before it."""


class Step(NamedTuple):
    """A packet at a switch: how it came, after so many links, and the detour that it is on (in a Dragonfly), or
    with the program `spritz` whether it has the tag that permits a second choice.
    """

    switch: str
    in_port: int
    links: int
    detour: int = 0


class Dragonfly:
    """One switch with the program `dragonfly` or `flowcut_dragonfly`."""

    def __init__(self, intended: SwitchIntent) -> None:
        self._tables = Tables(intended)
        roles = rows(intended, "port_role")
        self._within = {int(match["ingress_port"]) for match, action, _ in roles if action == "group_port"}
        onward = rows(intended, "onward_groups")
        self._onward = {int(key["toward"]): (int(to["group"]), int(to["size"])) for key, _, to in onward}
        far = rows(intended, "far_groups")
        self._far = {int(key["toward"]): {name: int(n) for name, n in to.items()} for key, _, to in far}
        minimal = rows(intended, "minimal_paths")
        self._minimal = {(int(key["toward"]), int(key["slot"])): int(to["port"]) for key, _, to in minimal}
        detours = rows(intended, "detours")
        self._detours = {
            (int(key["list"]), int(key["slot"])): (int(to["port"]), int(to["group"]))
            for key, _, to in detours
        }
        rule = programs.load(intended.program).enum("PathRule_t", "MINIMAL")
        self._may_detour = default(intended, "path_config")[1]["rule"] != rule

    def choices(self, step: Step, src: Host, dst: Host) -> Iterator[tuple[int, int]]:
        """Ports by which a packet may leave to another switch, each with the detour that it is on then."""
        address = IPv4Address(dst.ip)
        routes = [route for route in self._tables.prefixes if address in route[0]]
        _, group, size = max(routes, key=lambda route: route[0].prefixlen)
        if step.in_port in self._within:
            toward = step.detour or group
            detour = step.detour if toward in self._onward else 0
            group, size = self._onward.get(toward, (group, size))
            yield from ((port, detour) for port in self._slots(group, size))
            return
        yield from ((port, 0) for port in self._slots(group, size))
        far = self._far.get(group)
        if not step.links and far is not None:
            yield from ((self._minimal[group, slot], 0) for slot in range(far["paths"]))
            for slot in range(far["detours"] if self._may_detour else 0):
                place = slot + far["count"] if slot >= far["first"] else slot
                yield self._detours[far["list"], place]

    def _slots(self, group: int, size: int) -> Iterator[int]:
        return (self._tables.members[group, slot] for slot in range(size))


class Spritz:
    """One switch with the program `spritz`."""

    def __init__(self, intended: SwitchIntent) -> None:
        self._tables = planned_tables(intended)
        destinations = rows(intended, "destinations")
        self._defaults = {IPv4Network(str(key["dst"])): int(to["port"]) for key, _, to in destinations}
        slots = [int(key["slot"]) for key, _, _ in rows(intended, "path_slots")]
        enum, mode = programs.load(intended.program).enum, default(intended, "spritz_config")[1]["mode"]
        self._values = range(0 if mode == enum("SpritzMode_t", "MINIMAL") else 1 + max(slots, default=0))
        self._needs_tag = mode in (enum("SpritzMode_t", "CLASS"), enum("SpritzMode_t", "UGAL_L"))

    def choices(self, step: Step, src: Host, dst: Host) -> Iterator[tuple[int, int]]:
        """As Dragonfly's: the default table's port, which UGAL-L may take, and those of the role's list."""
        source, address = IPv4Address(src.ip), IPv4Address(dst.ip)
        yield next(port for prefix, port in self._defaults.items() if address in prefix), 0
        if self._needs_tag and step.links and not step.detour:
            return
        for value in self._values:
            port = self._tables.port(step.in_port, int(source), int(address), value << 8 | value)
            assert port is not None
            yield port, int(not step.links)


PROGRAMS: dict[str, type[Dragonfly] | type[Spritz]] = {
    "dragonfly": Dragonfly,
    "flowcut_dragonfly": Dragonfly,
    "spritz": Spritz,
}


def dependencies(
    topology: Topology, intents: Mapping[str, SwitchIntent]
) -> Iterator[tuple[Channel | None, Channel]]:
    """Channels that follow each other on some path; None: before it there is a host."""
    switches = {name: PROGRAMS[intended.program](intended) for name, intended in intents.items()}
    peers = {name: topology.ports_of(name) for name in switches}
    hosts = [topology.hosts_of(leaf)[0] for leaf in topology.leaves]
    for src, dst in ((src, dst) for src in hosts for dst in hosts if src is not dst):
        seen: set[Step] = set()
        waiting = [Step(src.switch, src.port, 0)]
        while waiting:
            step = waiting.pop()
            if step.switch == dst.switch or step in seen:
                continue
            seen.add(step)
            assert step.links < MOST_LINKS, f"a packet from {src.name} to {dst.name} loops"
            came = peers[step.switch][step.in_port]
            before = (came.name, came.port, step.links - 1) if step.links else None
            for port, detour in switches[step.switch].choices(step, src, dst):
                peer = peers[step.switch][port]
                assert peer.kind == "switch", f"{step.switch} delivers to {peer.name}"
                yield before, (step.switch, port, step.links)
                waiting.append(Step(peer.name, peer.port, step.links + 1, detour))
