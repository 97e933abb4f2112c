# SPDX-License-Identifier: Apache-2.0
"""How much load a machine can carry in real time, and the time scale (slow-down factor) that follows.

At line rate each host sends a certain number of packets a second. Each packet, with its acknowledgments,
costs CPU time at its two hosts and at every switch on its path. The costs below were measured at a few
hundred packets a second, where waking up costs more than the work itself. They yield the default time scale,
and a warning if the user's scale is too small. Whether a run kept up is observed while it runs, not computed.
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
    "bmv2": PacketCost(hosts_s=120 * _US, switch_s=1500 * _US),
}
"""By real-time target; BMv2's switch runs the largest program, Flowcut's, and is built for speed
(docs/compare/targets.md). The virtual target has its own clock, so no load is too high for it.
"""


def load(topology: Topology, target: str, mtu_bytes: int) -> float:
    """Cores that a run at full speed needs if every host sends at line rate; 0 for the virtual target."""
    cost = COSTS.get(target)
    if cost is None:
        return 0.0
    packets_per_s = sum(host.rate_bps for host in topology.hosts) / (8 * (mtu_bytes + HEADER_BYTES))
    return packets_per_s * (cost.hosts_s + max_switches_on_path(topology) * cost.switch_s)


def capacity(cores: int | None = None) -> float:
    """Number of cores of this machine that a run may use."""
    return _SHARE_OF_CORES * (cores or os.cpu_count() or 1)


def time_scale(topology: Topology, target: str, mtu_bytes: int, cores: int | None = None) -> float:
    """The smallest time scale at which this machine keeps up, rounded up to two digits; 1 if virtual."""
    needed = load(topology, target, mtu_bytes) / capacity(cores)
    if needed <= 1:
        return 1.0
    unit = 10.0 ** (math.floor(math.log10(needed)) + 1 - _SIGNIFICANT_DIGITS)
    # a product with 0.1 would add rounding errors as further digits
    return round(math.ceil(needed / unit) * unit, 9)


def warning(
    topology: Topology, target: str, mtu_bytes: int, scale: float, cores: int | None = None
) -> str | None:
    """One line if the time scale is too small for this machine, else None."""
    needed = load(topology, target, mtu_bytes) / scale / capacity(cores)
    if needed <= 1:
        return None
    enough = time_scale(topology, target, mtu_bytes, cores)
    return (
        f"time scale {scale:g} needs about {needed:.1f} times the CPU time that this machine has; "
        f"the run will probably be marked as overloaded ({enough:g} would suffice)"
    )
