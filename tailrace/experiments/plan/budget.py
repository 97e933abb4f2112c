# SPDX-License-Identifier: Apache-2.0
"""How much a machine can hold in real time, and the time scale that follows.

A run at line rate costs so many packets a second at each host. Each packet, with its acknowledgments, costs
its two hosts some CPU time, and every switch on its path. The costs below were measured at a few hundred
packets a second, where waking up costs more than the work itself; they choose the default time scale, and
warn about one that is too small. Whether a run kept up is observed while it runs, not computed.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from tailrace.codec.sizes import HEADER_BYTES
from tailrace.topology import Topology, max_switches_on_path

_US = 1e-6
_SHARE_OF_CORES = 0.75
_SIGNIFICANT_DIGITS = 2


@dataclass(frozen=True, slots=True)
class PacketCost:
    """CPU time in s of one data packet with its acknowledgments: at both hosts together, and at a switch."""

    hosts_s: float
    switch_s: float


COSTS = {
    "native": PacketCost(hosts_s=120 * _US, switch_s=130 * _US),
    "bmv2": PacketCost(hosts_s=120 * _US, switch_s=450 * _US),
}
"""By real-time target; the virtual one has a clock of its own, and holds anything."""


def load(topology: Topology, target: str, mtu_bytes: int) -> float:
    """Cores that a run at full speed needs if every host sends at line rate; 0 for the virtual target."""
    cost = COSTS.get(target)
    if cost is None:
        return 0.0
    packets_per_s = sum(host.rate_bps for host in topology.hosts) / (8 * (mtu_bytes + HEADER_BYTES))
    return packets_per_s * (cost.hosts_s + max_switches_on_path(topology) * cost.switch_s)


def capacity(cores: int | None = None) -> float:
    """Cores that a run may fill on this machine."""
    return _SHARE_OF_CORES * (cores or os.cpu_count() or 1)


def time_scale(topology: Topology, target: str, mtu_bytes: int, cores: int | None = None) -> float:
    """The smallest time scale that this machine holds, rounded up to two digits; 1 for the virtual target."""
    needed = load(topology, target, mtu_bytes) / capacity(cores)
    if needed <= 1:
        return 1.0
    unit = 10.0 ** (math.floor(math.log10(needed)) + 1 - _SIGNIFICANT_DIGITS)
    # a product with 0.1 would bring in digits of its own
    return round(math.ceil(needed / unit) * unit, 9)


def warning(
    topology: Topology, target: str, mtu_bytes: int, scale: float, cores: int | None = None
) -> str | None:
    """One line if the time scale asks for more than this machine holds, else None."""
    needed = load(topology, target, mtu_bytes) / scale / capacity(cores)
    if needed <= 1:
        return None
    enough = time_scale(topology, target, mtu_bytes, cores)
    return (
        f"time scale {scale:g} asks for about {needed:.1f} times what this machine holds; "
        f"the run will probably be marked as overloaded ({enough:g} would do)"
    )
