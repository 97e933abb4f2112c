# SPDX-License-Identifier: Apache-2.0
"""From the controller's endpoint table to the path lists that NICs take; neither knows the other."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tailrace.experiments.plan.words import with_option
from tailrace.hosts.flows.paths import PathList
from tailrace.schemes.defaults import known, resolve
from tailrace.schemes.path_tags import TagTable, follows_tags
from tailrace.schemes.registry import BoundedConfig, SchemeConfig, parse_scheme
from tailrace.schemes.spritz.declaration import SPRITZ
from tailrace.schemes.spritz.defaults import ACK_BYTES
from tailrace.schemes.spritz.endpoints import EndpointPaths, endpoint_paths
from tailrace.topology import Topology
from tailrace.words.scale import scaled

STEERED_PROGRAM = SPRITZ
"""The P4 program whose switches steer by entropy values, or draw paths hop by hop."""

FRAME_HEADER_BYTES = ACK_BYTES
"""What a frame has beside its payload, as Spritz, Table II reckons: our own have 6 bytes less."""

_LISTS_KEPT = 1 << 15


class EndpointTable:
    """Path lists by source and destination; hosts of the same two switches share one (Spritz §III-C)."""

    def __init__(self, topology: Topology, paths: EndpointPaths) -> None:
        self._topology = topology
        self._paths = paths
        self._between = lru_cache(_LISTS_KEPT)(self._make)

    def of(self, source_ip: str, target_ip: str) -> PathList:
        """The paths from one host to another one."""
        source, target = (self._topology.host_by_ip(ip).switch for ip in (source_ip, target_ip))
        return self._between(source, target)

    def _make(self, source: str, target: str) -> PathList:
        # hosts of one switch share a list
        ends = [self._topology.hosts_of(switch)[0].ip for switch in (source, target)]
        evs, latencies_ps, weights = zip(*self._paths.of(*ends), strict=True)
        return PathList(evs, latencies_ps, weights, self._paths.vlans_of(*ends))


def frame_bytes(scheme: SchemeConfig) -> int:
    """A full frame as a scheme over the program reckons with it, in bytes."""
    assert isinstance(scheme, BoundedConfig), "no other scheme runs over the program"
    return known(scheme.frame_bytes)


def steered_scheme(
    words: str, topology: Topology, scale: float, mtu_bytes: int, *, marks: bool = False
) -> tuple[str, SchemeConfig | None]:
    """The words, and the complete scheme at its time scale if it runs over the program; else None.

    Frames are those of the experiment, unless the words say otherwise. `marks`: it has flows that choose
    their own paths, so hosts may mark packets as such.

    Raises:
        SpecError: the words are no scheme, or one that the topology cannot have.
    """
    given = scaled(parse_scheme(words), scale)
    if resolve(given, topology).program != STEERED_PROGRAM:
        return words, None
    if isinstance(given, BoundedConfig) and given.frame_bytes is None:
        size_bytes = mtu_bytes + FRAME_HEADER_BYTES
        words, given = with_option(words, "frame", str(size_bytes)), replace(given, frame_bytes=size_bytes)
    if isinstance(given, BoundedConfig) and marks and not given.marks:
        words = with_option(words, "marks", "yes")
        given = scaled(parse_scheme(words), scale)
    return words, resolve(given, topology)


def endpoint_table(topology: Topology, scheme: SchemeConfig) -> EndpointTable | TagTable | None:
    """The table of a network at its time scale; None where its switches follow neither entropy values nor
    path tags.
    """
    if follows_tags(scheme):
        return TagTable(topology)
    config = resolve(scheme, topology)
    if config.program != STEERED_PROGRAM:
        return None
    return EndpointTable(topology, endpoint_paths(topology, config))
