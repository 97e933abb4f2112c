# SPDX-License-Identifier: Apache-2.0
"""Properties of targets, which run the P4 programs (BMv2, the native switch, the virtual network), for the
controller: timestamp ticks, emulated PFC, and lossless channels.
"""

from __future__ import annotations

import msgspec

from tailrace.spec import SpecError
from tailrace.spec.watchdog import Watchdog

MOST_DEVICE_ID = (1 << 64) - 1
"""P4Runtime's device ids have 64 bits."""


class EmulatedPfc(msgspec.Struct, frozen=True):
    """Thresholds of PFC in the P4 program, in buffered bytes of an ingress port.

    watchdog: the PFC watchdog of links between switches, as a spec string (spec.watchdog)
    """

    xoff_bytes: int
    xon_bytes: int
    watchdog: str = Watchdog().spec()


class Target(msgspec.Struct, frozen=True):
    """A target.

    tick_ns: unit of the target's v1model timestamps, in ns
    pfc: thresholds of PFC emulated by the program, for traffic managers without PFC; else None
    channels: number of lossless priorities on links between switches; a packet changes to the next priority
        at each hop. 0: packets keep their priority
    """

    tick_ns: int
    name: str
    pfc: EmulatedPfc | None = None
    channels: int = 0

    def ticks(self, time_ns: int) -> int:
        """A time in ticks, rounded up."""
        return -(-time_ns // self.tick_ns)


_TICK_NS = {"bmv2": 1_000, "native": 1_000, "virtual": 1}


def target(
    name: str, tick_ns: int | None = None, pfc: EmulatedPfc | None = None, channels: int = 0
) -> Target:
    """The target with a name; `tick_ns`: the clock tick of its switches; None: the default.

    Raises:
        SpecError: the name is unknown, or the tick is not possible with BMv2.
    """
    default_ns = _TICK_NS.get(name)
    if default_ns is None:
        raise SpecError(f"target {name!r} is not known; expected {', '.join(_TICK_NS)}")
    if tick_ns is None:
        tick_ns = default_ns
    if tick_ns < 1 or (name == "bmv2" and tick_ns != default_ns):
        raise SpecError(f"target {name}: its clock cannot have ticks of {tick_ns} ns")
    return Target(tick_ns, name, pfc, channels)
