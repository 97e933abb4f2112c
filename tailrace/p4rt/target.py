# SPDX-License-Identifier: Apache-2.0
"""What a switch of a target is like, as far as the controller must know: ticks, PFC that it lacks, and
channels of PFC that it has.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.spec import SpecError
from tailrace.spec.watchdog import Watchdog

MOST_DEVICE_ID = (1 << 64) - 1
"""P4Runtime has 64 bits for it."""


@dataclass(frozen=True, slots=True)
class EmulatedPfc:
    """Thresholds, in bytes of what one port brought and still waits, of PFC that the program itself does.

    watchdog: of pauses between switches, as spec.watchdog has it
    """

    xoff_bytes: int
    xon_bytes: int
    watchdog: str = Watchdog().words()


@dataclass(frozen=True, slots=True)
class Target:
    """A target. `tick_ns` is the unit of v1model's timestamps there, in ns.

    pfc: where the traffic manager has none and the program stands in for it; else None
    channels: lossless priorities of links between switches, of which a packet takes one after the other; 0:
        there is one, and it keeps that
    """

    tick_ns: int
    name: str
    pfc: EmulatedPfc | None = None
    channels: int = 0

    def ticks(self, time_ns: int) -> int:
        """The ticks that are not shorter than a time."""
        return -(-time_ns // self.tick_ns)


_TICK_NS = {"bmv2": 1_000, "native": 1_000, "virtual": 1}


def target(
    name: str, tick_ns: int | None = None, pfc: EmulatedPfc | None = None, channels: int = 0
) -> Target:
    """The target with a name; `tick_ns` where its switches are started with another tick than usual.

    Raises:
        SpecError: the name is not known, or BMv2 is to have another tick than its own.
    """
    usual = _TICK_NS.get(name)
    if usual is None:
        raise SpecError(f"target {name!r} is not known; expected {', '.join(_TICK_NS)}")
    if tick_ns is None:
        tick_ns = usual
    if tick_ns < 1 or (name == "bmv2" and tick_ns != usual):
        raise SpecError(f"target {name}: its clock cannot have ticks of {tick_ns} ns")
    return Target(tick_ns, name, pfc, channels)
