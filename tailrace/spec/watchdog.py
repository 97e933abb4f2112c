# SPDX-License-Identifier: Apache-2.0
"""The PFC watchdog: when a paused queue counts as a PFC storm, the watchdog's spec, and defaults of a port.

    detect=2ms,restore=10ms,share=5%,action=drop
    off

A port to a trusted neighbour (another switch, or an unknown one) has `Watchdog()`, which detects queues that
send nothing: a deadlock, or a broken NIC. Hosts are not trusted; `of_host` gives:

    detect   the time to send `xoff` bytes at the rate of the host's port. `xoff` is the number of bytes from
             one ingress port at which the switch pauses that port's neighbour. So a pause by the host that is
             shorter than `detect` makes the switch pause nobody else. At most MOST_PAUSES times the longest
             pause, at least the time of a jumbo frame
    share    HOST_SHARE: even if the host often sends pause frames, packets to it leave at 95 % of the port's
             rate, or are dropped
    restore  the longest pause of 802.1Qbb, at the rate of the port
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
"""Detection and restoration time if nothing is known of a port: a common default of real switches."""

HOST_SHARE = 0.05
"""The share of time for which a host may pause its port: half of the throughput, 10 %, that other hosts whose
packets wait behind its packets may lose.
"""

MOST_PAUSES = 64

UNLIMITED_BPS = 10_000_000_000
"""The rate for converting quanta to time if a port has no rate limit (tailrace/switch/core/c/tr_pfc.c)."""

LEAST_SHARE = 1e-6
MOST_NS = 1 << 56

MAX_PAUSE_BITS = MAX_QUANTA * QUANTUM_BITS
_JUMBO_BYTES = 9216
_ACTIONS: tuple[StormAction, ...] = ("drop", "ignore")


@dataclass(frozen=True, slots=True)
class Watchdog:
    """When a paused queue is in a PFC storm, and how its packets are treated then.

    detect_ns: time for which a queue with waiting packets may be paused without a break; 0: no watchdog
    restore_ns: time without a pause frame after which the queue works normally again
    share: share of time for which a queue may be paused in the long run, above 0, up to 1, in steps of 1e-6;
        1: only `detect_ns` counts
    action: `drop` waiting and arriving packets, or `ignore` pauses and send them
    """

    detect_ns: int = WATCHDOG_NS
    restore_ns: int = WATCHDOG_NS
    share: float = 1.0
    action: StormAction = "drop"

    def spec(self) -> str:
        """The spec string that `parse_watchdog` parses."""
        if not self.detect_ns:
            return "off"
        share = f"{Decimal(round(self.share * 1_000_000)).scaleb(-4).normalize():f}%"
        return f"detect={self.detect_ns}ns,restore={self.restore_ns}ns,share={share},action={self.action}"


WATCHDOG = Watchdog()
NO_WATCHDOG = Watchdog(detect_ns=0)


def of_switch(storm: str = "drop", time_scale: float = 1) -> Watchdog:
    """The default watchdog of a port to a switch.

    Args:
        storm: one of STORMS.
        time_scale: factor of all times in this network (spec.scale).
    """
    time_ns = round(WATCHDOG_NS * time_scale)
    usual = Watchdog(time_ns, time_ns)
    return NO_WATCHDOG if storm == "off" else replace(usual, action="ignore" if storm == "ignore" else "drop")


def of_host(rate_bps: int, xoff_bytes: int, action: StormAction = "drop") -> Watchdog:
    """The watchdog of a port to a host.

    Args:
        rate_bps: rate of the port; 0: no rate limit.
        xoff_bytes: bytes from one port that may wait before that port is paused.
        action: see Watchdog.
    """
    rate_bps = rate_bps or UNLIMITED_BPS
    # bytes * NS_BITS / (bits/s) is a time in ns
    fill_ns = -(-max(xoff_bytes, _JUMBO_BYTES) * NS_BITS // rate_bps)
    max_ns = -(-MAX_PAUSE_BITS * NS_PER_S // rate_bps)
    return Watchdog(min(fill_ns, MOST_PAUSES * max_ns), max_ns, HOST_SHARE, action)


def of_port(watchdog: Watchdog, *, host: bool, rate_bps: int, xoff_bytes: int) -> Watchdog:
    """The watchdog of a port; `watchdog` is that of ports to switches. A host's port has stricter limits."""
    if not host or not watchdog.detect_ns:
        return watchdog
    return of_host(rate_bps, xoff_bytes, watchdog.action)


def parse_watchdog(text: str) -> Watchdog:
    """Parses a watchdog's spec; items that are left out are as in `Watchdog()`.

    Raises:
        UnitError: the spec is invalid; the message names the item.
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
            raise UnitError(f"{key} is given twice")
        fields[name] = parse(value)
    return Watchdog(**fields)  # type: ignore[arg-type]


def _time(text: str) -> int:
    time_ns = parse_time_ns(text)
    if not 0 < time_ns <= MOST_NS:
        raise UnitError(f"{text!r}: expected more than 0, and at most 2 years")
    return time_ns


def _share(text: str) -> float:
    number, unit = split(text.removesuffix("%"))  # `split` limits the number of digits and refuses exponents
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
