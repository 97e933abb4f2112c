# SPDX-License-Identifier: Apache-2.0
"""The EV lists of endpoints (hosts): an EV (entropy value), a latency and a weight for each path (Spritz
§III-C, §IV).

By eq. 1 of Spritz, the weight of a path is the latency of the longest path in the list divided by the path's
latency; all weights except the longest path's are multiplied by the scheme's scale (§V-A). Uniform weights
are all 1. A list may contain only some of the paths (§III-C).

In the coarse-grained mode (§III-D) an endpoint chooses only among two classes of paths, minimal and
non-minimal. Its list has COARSE_EVS EVs for each class, which switches hash together with the rest of the
5-tuple. Packets with such an EV have the VLAN ID of its class; the EV's latency is the mean latency of the
class.
"""

from __future__ import annotations

from functools import lru_cache

from tailrace.hosts.flows.paths import PathList
from tailrace.p4rt import programs
from tailrace.schemes.spritz.app import PROGRAM
from tailrace.topology import Topology
from tailrace.topology.paths.bounded import MINIMAL, NON_MINIMAL, BoundedPaths

LATENCY, UNIFORM = WEIGHTS = ("latency", "uniform")

Entry = tuple[int, int, float]
"""EV, latency in ps, weight."""

COARSE_EVS = 8
_FIRST_COARSE_EV = 0xC000

_NO_PATH: tuple[Entry, ...] = ((1, 0, 1.0),)
"""The list between hosts of the same switch, where the EV is ignored."""

_LISTS_CACHED, _TABLES_CACHED = 4096, 1 << 15
_CLASSES = {MINIMAL: "MINIMAL", NON_MINIMAL: "NONMINIMAL"}
"""For each class of paths, the member of VlanId_t in the P4 source."""


class EndpointPaths:
    """The EV lists of all endpoints; hosts of one switch share them."""

    def __init__(
        self,
        paths: BoundedPaths,
        *,
        weights: str,
        scale: float,
        coarse: bool = False,
        most: int | None = None,
        seed: int = 0,
    ) -> None:
        """Lists are made at their first use.

        Args:
            paths: all bounded simple paths.
            weights: one of WEIGHTS.
            scale: factor of all weights except the longest path's.
            coarse: whether lists contain classes of paths; `most` and `seed` are then ignored.
            most: number of paths in a list; None: all.
            seed: seed of the random choice of these paths (BoundedPaths.entries).

        Raises:
            P4ProgramError: VLAN IDs are needed, and the program is missing.
        """
        self.paths = paths
        self._weights, self._scale = weights, scale
        self._coarse, self._most, self._seed = coarse, most, seed
        vid = programs.load(PROGRAM).enum if coarse else None
        self._vids = {} if vid is None else {name: vid("VlanId_t", key) for name, key in _CLASSES.items()}
        self._entries = lru_cache(_LISTS_CACHED)(self._make)

    def of(self, src_ip: str, dst_ip: str) -> tuple[Entry, ...]:
        """The list from host to host: minimal paths first, then in order of latency, links and EV.

        For hosts of the same switch it has one entry, of latency 0.

        Raises:
            KeyError: no host has such an address.
        """
        return self.between(*self._switches(src_ip, dst_ip))

    def vlans_of(self, src_ip: str, dst_ip: str) -> tuple[int, ...]:
        """The VLAN ID of each entry of the list from `of`; empty if packets have no VLAN tag.

        Raises:
            KeyError: no host has such an address.
        """
        src, dst = self._switches(src_ip, dst_ip)
        if not self._coarse or src == dst:
            return ()
        return tuple(self._vids[name] for name in self._classes(src, dst) for _ in range(COARSE_EVS))

    def between(self, src: str, dst: str) -> tuple[Entry, ...]:
        """The list from switch to switch."""
        return self._entries(src, dst) if src != dst else _NO_PATH

    def _switches(self, src_ip: str, dst_ip: str) -> tuple[str, str]:
        topology = self.paths.topology
        return topology.host_by_ip(src_ip).switch, topology.host_by_ip(dst_ip).switch

    def _classes(self, src: str, dst: str) -> dict[str, int]:
        """The classes of existing paths, each with its mean latency in ps."""
        classes: dict[str, list[int]] = {}
        for path in self.paths.between(src, dst):
            classes.setdefault(path.category, []).append(path.latency_ps)
        return {name: sum(latencies) // len(latencies) for name, latencies in classes.items()}

    def _make(self, src: str, dst: str) -> tuple[Entry, ...]:
        if self._coarse:
            means = [ps for ps in self._classes(src, dst).values() for _ in range(COARSE_EVS)]
            entries = list(enumerate(means, _FIRST_COARSE_EV))  # (EV, latency in ps)
        else:
            entries = self.paths.entries(src, dst, self._most, self._seed)
        max_ps = max(latency_ps for _, latency_ps in entries)
        # there are few different latencies: entries of the same latency share one float
        weights = {latency_ps: self._weight(latency_ps, max_ps) for _, latency_ps in entries}
        return tuple((ev, latency_ps, weights[latency_ps]) for ev, latency_ps in entries)

    def _weight(self, latency_ps: int, max_ps: int) -> float:
        if self._weights != LATENCY or latency_ps == max_ps:
            return 1.0
        return max_ps / latency_ps * self._scale


class EndpointTable:
    """Path lists by source and destination, in the form for NICs; all hosts of a pair of switches share a
    list (Spritz §III-C).
    """

    def __init__(self, topology: Topology, paths: EndpointPaths) -> None:
        self._topology = topology
        self._paths = paths
        self._between = lru_cache(_TABLES_CACHED)(self._make)

    def of(self, source_ip: str, target_ip: str, /) -> PathList:
        """The paths from one host to another."""
        source, target = (self._topology.host_by_ip(ip).switch for ip in (source_ip, target_ip))
        return self._between(source, target)

    def _make(self, source: str, target: str) -> PathList:
        # hosts of one switch share a list
        ends = [self._topology.hosts_of(switch)[0].ip for switch in (source, target)]
        evs, latencies_ps, weights = zip(*self._paths.of(*ends), strict=True)
        return PathList(evs, latencies_ps, weights, self._paths.vlans_of(*ends))
