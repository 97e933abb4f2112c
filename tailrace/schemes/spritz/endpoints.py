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
from tailrace.topology.paths.bounded import MINIMAL, NON_MINIMAL, BoundedPaths

LATENCY, UNIFORM = WEIGHTS = ("latency", "uniform")

COARSE_EVS = 8
_FIRST_COARSE_EV = 0xC000

_NO_PATH = PathList((1,), (0,), (1.0,))
"""The list between hosts of the same switch, where the EV is ignored."""

_LISTS_CACHED = 1 << 15
_EVS_CACHED = 1 << 24
_CLASSES = {MINIMAL: "MINIMAL", NON_MINIMAL: "NONMINIMAL"}
"""For each class of paths, the member of VlanId_t in the P4 source."""


class EndpointPaths:
    """The EV lists of all endpoints; hosts of one switch share them (Spritz §III-C)."""

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
        self._lists = lru_cache(min(_LISTS_CACHED, _EVS_CACHED // paths.most_evs))(self._make)

    def of(self, source_ip: str, target_ip: str, /) -> PathList:
        """The list from host to host: minimal paths first, then in order of latency, links and EV.

        For hosts of the same switch it has one path, of latency 0.

        Raises:
            KeyError: no host has such an address.
        """
        source, target = (self.paths.topology.host_by_ip(ip).switch for ip in (source_ip, target_ip))
        return self.between(source, target)

    def between(self, src: str, dst: str) -> PathList:
        """The list from switch to switch."""
        return self._lists(src, dst)

    def _classes(self, src: str, dst: str) -> dict[str, int]:
        """The classes of existing paths, each with its mean latency in ps."""
        classes: dict[str, list[int]] = {}
        for path in self.paths.between(src, dst):
            classes.setdefault(path.category, []).append(path.latency_ps)
        return {name: sum(latencies) // len(latencies) for name, latencies in classes.items()}

    def _make(self, src: str, dst: str) -> PathList:
        if src == dst:
            return _NO_PATH
        vlans: tuple[int, ...] = ()
        if self._coarse:
            classes = self._classes(src, dst)
            means = [latency_ps for latency_ps in classes.values() for _ in range(COARSE_EVS)]
            entries = list(enumerate(means, _FIRST_COARSE_EV))  # (EV, latency in ps)
            vlans = tuple(self._vids[name] for name in classes for _ in range(COARSE_EVS))
        else:
            entries = self.paths.entries(src, dst, self._most, self._seed)
        evs, latencies_ps = zip(*entries, strict=True)
        # there are few different latencies: entries of the same latency share one float
        max_ps = max(latencies_ps)
        weight_of = {latency_ps: self._weight(latency_ps, max_ps) for latency_ps in set(latencies_ps)}
        weights = tuple(weight_of[latency_ps] for latency_ps in latencies_ps)
        return PathList(evs, latencies_ps, weights, vlans)

    def _weight(self, latency_ps: int, max_ps: int) -> float:
        if self._weights != LATENCY or latency_ps == max_ps:
            return 1.0
        return max_ps / latency_ps * self._scale
