# SPDX-License-Identifier: Apache-2.0
"""The paths from one host to another: an entry of the sender's endpoint table (Spritz §III-C)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tailrace.codec.calls import PORT_MASK, VLAN_MASK
from tailrace.hosts.errors import ConfigError


@dataclass(frozen=True, slots=True)
class PathList:
    """All paths to a destination (Spritz: an EV entry list); index 0 is a minimal path.

    evs: entropy value (EV) of each path, 1..65535, all different. An EV is a UDP source port: EV1 of Spritz
        is the high byte, EV2 the low byte.
    latencies_ps: latency of each path.
    weights: relative frequency with which each path is drawn (Spritz eq. 1, scaled), 0 or more, not all 0.
    vlans: VLAN ID of the packets on each path, in coarse mode (Spritz §III-D): the VLAN selects a class of
        paths, and switches hash the EV to choose a path of the class. Empty: no tags.
    place: a name shared by all destinations that are reached by the same paths, for example the name of
        their switch; flows to the same place may share the state of these paths. Empty: none.
    """

    evs: tuple[int, ...]
    latencies_ps: tuple[int, ...]
    weights: tuple[float, ...]
    vlans: tuple[int, ...] = ()
    place: str = ""

    def __post_init__(self) -> None:
        """Raises ConfigError on invalid values."""
        evs, latencies, weights = self.evs, self.latencies_ps, self.weights
        if not evs:
            raise ConfigError("path list: it is empty")
        if not len(evs) == len(latencies) == len(weights):
            raise ConfigError(
                f"path list: {len(evs)} EVs, {len(latencies)} latencies and {len(weights)} weights, "
                "expected the same number of each"
            )
        if min(evs) < 1 or max(evs) > PORT_MASK:
            wrong = next(ev for ev in evs if not 1 <= ev <= PORT_MASK)
            raise ConfigError(f"path list: EV {wrong}, expected 1..{PORT_MASK}")
        if len(set(evs)) != len(evs):
            twice = next(ev for position, ev in enumerate(evs) if ev in evs[:position])
            raise ConfigError(f"path list: EV {twice} is given twice")
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
