# SPDX-License-Identifier: Apache-2.0
"""Hermes: the NIC chooses the path by what it senses of each, and the first switch follows (RLB §II-A.3).

The leaf of a sender takes the UDP source port modulo the size of the group of next hops (p4src/hermes), a
multiple of their number, so as many source ports in a row name all paths. They begin at a multiple of that
number among the ports that are nobody's in particular. Tag and next hop agree as long as every link is up.

In networks of more than two tiers the tag decides the first hop only; further ones are those of ECMP, which
hashes the tag, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tailrace.codec.numbers import FIRST_PORT, LAST_PORT
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.dcqcn import HermesNicConfig as Sensing
from tailrace.hosts.options.nic import DCQCN, HERMES, NicConfig, SteeringConfig
from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.basic import ResolvedBasic
from tailrace.schemes.resolved import Resolved, SchemeContext
from tailrace.spec import SpecError
from tailrace.spec.scale import scaled
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import next_hops
from tailrace.topology.timing import base_rtt_ns, bdp_bytes, sending_ns

_EQUAL = 1.0


@scheme
class HermesConfig(SchemeConfig, frozen=True, kw_only=True):
    """The NIC chooses the path; the first switch follows the UDP source port. NICs want ECN marks for it."""

    name: ClassVar[str] = "hermes"
    about: ClassVar[str] = "NICs choose paths by what they sense of each"

    @property
    def only_transport(self) -> str:
        """Only its packets have the marks that Hermes looks at."""
        return DCQCN

    @property
    def marks_queues(self) -> bool:
        return True

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedHermes:
        return self.resolved(ResolvedHermes, topology, context, program=self.name)


class ResolvedHermes(ResolvedBasic, frozen=True, kw_only=True):
    def nic(self, topology: Topology, context: SchemeContext, scale: float) -> NicConfig:
        return with_hermes(super().nic(topology, context, scale), topology, self, scale)

    def paths(self, topology: Topology) -> TagTable:
        return TagTable(topology)


class TagTable:
    """Path lists by source and destination address; those of the same two leaves are the same object."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._hops = next_hops(topology)
        self._lists: dict[tuple[str, str], PathList] = {}

    def of(self, source_ip: str, target_ip: str) -> PathList:
        """The paths from one host to another one."""
        source, target = (self._topology.host_by_ip(ip).switch for ip in (source_ip, target_ip))
        paths = self._lists.get((source, target))
        if paths is None:
            paths = self._lists[source, target] = self._make(source, target)
        return paths

    def _make(self, source: str, target: str) -> PathList:
        # between hosts of one leaf there is but one
        size = 1 if source == target else len(self._hops[source][target])
        first = -(-FIRST_PORT // size) * size
        if first + size - 1 > LAST_PORT:
            raise SpecError(f"scheme hermes: {source} has {size} next hops, more than there are tags")
        return PathList(tuple(range(first, first + size)), (0,) * size, (_EQUAL,) * size, place=target)


def with_hermes(config: NicConfig, topology: Topology, scheme: Resolved, scale: float) -> NicConfig:
    """The settings of NICs that choose paths by Hermes, in a network at its time scale.

    The delay of one hop is that of a queue from which on RED marks everything, at the fastest link; of one
    BDP where nothing marks. (Its authors have DCTCP, which marks all from one length on: assumption.)
    """
    frame_bytes, red = scheme.frame_bytes, scheme.red
    queue_bytes = bdp_bytes(topology, frame_bytes) if red is None else red.kmax_bytes
    sensing = replace(
        scaled(Sensing(), scale),
        base_rtt_ns=base_rtt_ns(topology, frame_bytes),
        hop_ns=sending_ns(queue_bytes, topology.fastest_bps),
    )
    return replace(config, steering=SteeringConfig(algorithm=HERMES), hermes=sensing)
