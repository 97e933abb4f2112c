# SPDX-License-Identifier: Apache-2.0
"""The PFC watchdog: when a paused queue is in a storm, its spec, and the defaults of a port.

    detect=2ms,restore=10ms,share=5%,action=drop
    off

A switch that its neighbour is trusted for (another switch, or nobody knows who) has `Watchdog()`, which finds
queues that stand still: a deadlock, a card that is broken. A host is trusted with nothing; `of_host`:

    detect   as long as the memory of one port, `xoff`, hides that nothing leaves: what comes in for the host
             at the rate of its port fills that much until then, and only with more is anybody else paused.
             MOST_PAUSES of the longest pauses at most, and the time of a jumbo frame at least
    share    HOST_SHARE: whatever the host asks for, what is sent to it leaves at 95 % of the port's rate, or
             is dropped
    restore  the longest pause that 802.1Qbb knows, at the rate of the port
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from tailrace.spec.constants import MAX_QUANTA, NS_BITS, NS_PER_S, QUANTUM_BITS
from tailrace.spec.errors import UnitError
from tailrace.spec.units import parse_time_ns, split

StormAction = Literal["drop", "ignore"]

STORMS = ("drop", "ignore", "off")
"""Actions in a storm; off: there is no watchdog."""

WATCHDOG_NS = 200_000_000
"""Detection and restoration where nothing is known of a port: what switches are delivered with."""

HOST_SHARE = 0.05
"""Of the time a host may hold what is sent to it; half of what a pair beside it may lose by that."""

MOST_PAUSES = 64

UNLIMITED_BPS = 10_000_000_000
"""The rate at which quanta count where a port has none (tailrace/switch/core/c/tr_pfc.c)."""

LEAST_SHARE = 1e-6
MOST_NS = 1 << 56

MAX_PAUSE_BITS = MAX_QUANTA * QUANTUM_BITS
_JUMBO_BYTES = 9216
_ACTIONS: tuple[StormAction, ...] = ("drop", "ignore")


@dataclass(frozen=True, slots=True)
class Watchdog:
    """When a queue that pauses hold is in a storm, and what becomes of it then.

    detect_ns: held for so long, with packets that wait; 0: there is no watchdog
    restore_ns: when no pause has been asked for in so long, the queue is as before
    share: of the time, over 0 to 1, that a queue may be held in the long run, in steps of 1e-6; 1: what
        counts is only a time without a break
    action: `drop` what waits and what comes, or `ignore` pauses and send it
    """

    detect_ns: int = WATCHDOG_NS
    restore_ns: int = WATCHDOG_NS
    share: float = 1.0
    action: StormAction = "drop"

    def spec(self) -> str:
        """The spec that `parse_watchdog` takes."""
        if not self.detect_ns:
            return "off"
        share = f"{Decimal(round(self.share * 1_000_000)).scaleb(-4).normalize():f}%"
        return f"detect={self.detect_ns}ns,restore={self.restore_ns}ns,share={share},action={self.action}"


WATCHDOG = Watchdog()
NO_WATCHDOG = Watchdog(detect_ns=0)


def of_switch(storm: str = "drop", time_scale: float = 1) -> Watchdog:
    """What suits the port of a switch, where everything takes so many times as long.

    Args:
        storm: one of STORMS.
    """
    time_ns = round(WATCHDOG_NS * time_scale)
    usual = Watchdog(time_ns, time_ns)
    return NO_WATCHDOG if storm == "off" else replace(usual, action="ignore" if storm == "ignore" else "drop")


def of_host(rate_bps: int, xoff_bytes: int, action: StormAction = "drop") -> Watchdog:
    """What suits the port of a host.

    Args:
        rate_bps: of the port; 0: it has none.
        xoff_bytes: what may wait of one port before it is paused.
    """
    rate_bps = rate_bps or UNLIMITED_BPS
    hidden_ns = -(-max(xoff_bytes, _JUMBO_BYTES) * NS_BITS // rate_bps)
    max_ns = -(-MAX_PAUSE_BITS * NS_PER_S // rate_bps)
    return Watchdog(min(hidden_ns, MOST_PAUSES * max_ns), max_ns, HOST_SHARE, action)


def of_port(watchdog: Watchdog, *, host: bool, rate_bps: int, xoff_bytes: int) -> Watchdog:
    """The watchdog of a port where switches have this one: of a host it is closer, and does the same."""
    if not host or not watchdog.detect_ns:
        return watchdog
    return of_host(rate_bps, xoff_bytes, watchdog.action)


def parse_watchdog(text: str) -> Watchdog:
    """The watchdog of a spec; what is left out is as in `Watchdog()`.

    Raises:
        UnitError: it is none; one line names the item.
    """
    if text == "off":
        return NO_WATCHDOG
    fields: dict[str, object] = {}
    for item in text.split(","):
        key, equals, value = item.partition("=")
        if not equals or key not in _KEYS:
            raise UnitError(f"{item!r}: expected one of {', '.join(_KEYS)} with its value")
        name, parse = _KEYS[key]
        if name in fields:
            raise UnitError(f"{key} is there twice")
        fields[name] = parse(value)
    return Watchdog(**fields)  # type: ignore[arg-type]


def _time(text: str) -> int:
    time_ns = parse_time_ns(text)
    if not 0 < time_ns <= MOST_NS:
        raise UnitError(f"{text!r}: expected more than 0, and at most 2 years")
    return time_ns


def _share(text: str) -> float:
    number, unit = split(text.removesuffix("%"))  # which bounds its digits and knows no exponents
    if unit:
        raise UnitError(f"{text!r} is no share such as 5%")
    share = number / (100 if text.endswith("%") else 1)
    if not LEAST_SHARE <= share <= 1:
        raise UnitError(f"{text!r}: expected more than 0 and at most 100%")
    return float(share)


def _action(text: str) -> StormAction:
    for action in _ACTIONS:
        if text == action:
            return action
    raise UnitError(f"{text!r}: expected {' or '.join(_ACTIONS)}")


_KEYS: dict[str, tuple[str, Callable[[str], object]]] = {
    "detect": ("detect_ns", _time),
    "restore": ("restore_ns", _time),
    "share": ("share", _share),
    "action": ("action", _action),
}
