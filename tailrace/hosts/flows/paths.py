# SPDX-License-Identifier: Apache-2.0
"""The paths from a host to another one, as its endpoint table has them (Spritz §III-C)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tailrace.codec.calls import PORT_MASK, VLAN_MASK
from tailrace.hosts.errors import ConfigError


@dataclass(frozen=True, slots=True)
class PathList:
    """An EV entry list: one entry a path; index 0 is a minimal one.

    evs: entropy values, 1..65535, all different: UDP source ports, EV1 in the high byte, EV2 in the low.
    latencies_ps: of each path.
    weights: how much more often than others each path is drawn (Spritz eq. 1, scaled), 0 or more, and
        not all 0.
    vlans: VLAN ID of the packets on each path, in coarse mode (Spritz §III-D): the tag is its class,
        and the EV what switches hash to choose a path of the class. Empty: no tags.
    place: what the destination shares with others that are reached by the same paths, the name of its
        switch say; senders may share what they know of these. Empty: nothing.
    """

    evs: tuple[int, ...]
    latencies_ps: tuple[int, ...]
    weights: tuple[float, ...]
    vlans: tuple[int, ...] = ()
    place: str = ""

    def __post_init__(self) -> None:
        """Raises ConfigError on values that make no sense."""
        evs, latencies, weights = self.evs, self.latencies_ps, self.weights
        if not evs:
            raise ConfigError("path list: it is empty")
        if not len(evs) == len(latencies) == len(weights):
            raise ConfigError(
                f"path list: {len(evs)} EVs, {len(latencies)} latencies and {len(weights)} weights, "
                "expected as many of each"
            )
        if min(evs) < 1 or max(evs) > PORT_MASK:
            wrong = next(ev for ev in evs if not 1 <= ev <= PORT_MASK)
            raise ConfigError(f"path list: EV {wrong}, expected 1..{PORT_MASK}")
        if len(set(evs)) != len(evs):
            twice = next(ev for position, ev in enumerate(evs) if ev in evs[:position])
            raise ConfigError(f"path list: EV {twice} is there twice")
        if min(latencies) < 0:
            raise ConfigError(f"path list: latency {min(latencies)} ps, expected 0 or more")
        if not all(math.isfinite(weight) and weight >= 0 for weight in weights):
            wrong_weight = next(weight for weight in weights if not (math.isfinite(weight) and weight >= 0))
            raise ConfigError(f"path list: weight {wrong_weight}, expected 0 or more")
        if max(weights) <= 0:
            raise ConfigError("path list: all weights are 0")
        if self.vlans and len(self.vlans) != len(evs):
            raise ConfigError(f"path list: {len(self.vlans)} VLAN IDs for {len(evs)} EVs")
        if self.vlans and not 0 <= min(self.vlans) <= max(self.vlans) <= VLAN_MASK:
            raise ConfigError(f"path list: VLAN IDs {sorted(set(self.vlans))}, expected 0..{VLAN_MASK}")
