# SPDX-License-Identifier: Apache-2.0
"""Hermes: the NIC senses the state of each path and chooses one by a tag, the UDP source port; the sender's
leaf switch follows the tag (RLB §II-A.3).

The leaf chooses slot = UDP source port mod size of the next-hop group (p4src/hermes). The size is a multiple
of the number n of next hops, so n consecutive source ports select all paths. These begin at a multiple of n
in the range of unassigned ports. Tag and next hop correspond as long as every link is up.

In networks with more than two tiers the tag decides only the first hop; ECMP chooses the others, and its hash
includes the tag.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
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

_EQUAL_WEIGHT = 1.0


@scheme
class HermesConfig(SchemeConfig, frozen=True, kw_only=True):
    """The NIC chooses the path by RTT and ECN marks; the first switch follows the UDP source port."""

    name: ClassVar[str] = "hermes"
    title: ClassVar[str] = "Hermes"
    about: ClassVar[str] = "NICs choose paths by the RTT and the ECN marks measured on each"

    @property
    def only_transport(self) -> str:
        """DCQCN: only its packets have the ECN marks that Hermes needs."""
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
    """Path lists by source and destination address; all hosts of a pair of leaves share one list object."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._hops = next_hops(topology)
        self._between = cache(self._make)

    def of(self, source_ip: str, target_ip: str) -> PathList:
        """The paths from one host to another."""
        source, target = (self._topology.host_by_ip(ip).switch for ip in (source_ip, target_ip))
        return self._between(source, target)

    def _make(self, source: str, target: str) -> PathList:
        # hosts of the same leaf have one path
        size = 1 if source == target else len(self._hops[source][target])
        # the first multiple of `size` among the unassigned ports, FIRST_PORT to LAST_PORT
        first = -(-FIRST_PORT // size) * size
        if first + size - 1 > LAST_PORT:
            raise SpecError(f"scheme hermes: {source} has {size} next hops, more than there are tags")
        # tag, latency (not used here) and weight of each path; flows to hosts of one leaf (`place`) share
        # what they measured
        return PathList(tuple(range(first, first + size)), (0,) * size, (_EQUAL_WEIGHT,) * size, place=target)


def with_hermes(config: NicConfig, topology: Topology, scheme: Resolved, scale: float) -> NicConfig:
    """The settings of NICs that choose paths by Hermes, in a network slowed down by its time scale.

    Hermes' delay of one hop is the time in which the fastest link sends a queue at which RED marks every
    packet, or one BDP without RED. (Assumption: its authors use DCTCP, whose threshold marks every packet.)
    """
    frame_bytes, red = scheme.frame_bytes, scheme.red
    queue_bytes = bdp_bytes(topology, frame_bytes) if red is None else red.kmax_bytes
    # scaled: Hermes' default times, multiplied by the time scale; the network's times include it already
    sensing = replace(
        scaled(Sensing(), scale),
        base_rtt_ns=base_rtt_ns(topology, frame_bytes),
        hop_ns=sending_ns(queue_bytes, topology.fastest_bps),
    )
    return replace(config, steering=SteeringConfig(algorithm=HERMES), hermes=sensing)
