# SPDX-License-Identifier: Apache-2.0
"""One direction of a link: who is at its ends, how long it takes, and what a fault does to frames on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from native.virtual.events import RankClass, rank
from native.virtual.prng import SplitMix64

FrameTest = Callable[[bytes], bool]
"""Whether a fault concerns a frame."""


@dataclass(frozen=True, slots=True)
class End:
    """A port of a switch, or the one port (0) of a host."""

    node: str
    port: int


class WireEvent(Enum):
    """What a tap is told of a frame."""

    SENT = "sent"
    """Its first bit goes out now."""
    RECEIVED = "received"
    """Its last bit has arrived now."""
    LOST = "lost"
    """It would have been received now, but a fault took it."""


Tap = Callable[["Wire", WireEvent, int, bytes, int], None]
"""tap(wire, event, now_ns, frame, virtual_bytes)"""


Deliver = Callable[[int, bytes, int], None]
"""deliver(now_ns, frame, virtual_bytes) hands a frame to whom the wire leads."""


def _nowhere(_now_ns: int, _frame: bytes, _virtual_bytes: int) -> None:
    return None


@dataclass(slots=True)
class RandomDrop:
    """Drops a share of the frames for which `matches` is true (None: all), by a generator of its own."""

    threshold: int
    prng: SplitMix64
    matches: FrameTest | None
    from_ns: int
    until_ns: int | None

    def takes(self, now_ns: int, frame: bytes) -> bool:
        """Whether the frame is lost. Draws a number only for frames that the fault concerns."""
        if now_ns < self.from_ns or (self.until_ns is not None and now_ns >= self.until_ns):
            return False
        if self.matches is not None and not self.matches(frame):
            return False
        return self.prng.next() < self.threshold


@dataclass(slots=True, eq=False)
class Wire:
    """One direction of a link. `nominal_rate_bps` is without faults; counters count frames."""

    index: int
    source: End
    target: End
    nominal_rate_bps: int
    delay_ns: int
    up: bool = True
    cuts: int = 0
    """How often the link went down: a frame that was sent before a cut does not arrive."""
    drops: list[RandomDrop] = field(default_factory=list)
    taps: list[Tap] = field(default_factory=list)
    deliver: Deliver = _nowhere
    received: int = 0
    lost: int = 0
    rank: int = field(init=False)

    def __post_init__(self) -> None:
        self.rank = rank(RankClass.ARRIVAL, self.index)

    @property
    def name(self) -> str:
        """For people: `leaf1:3>spine1:1`."""
        return f"{self.source.node}:{self.source.port}>{self.target.node}:{self.target.port}"

    def tell(self, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        """Calls the taps."""
        for tap in self.taps:
            tap(self, event, now_ns, frame, virtual_bytes)

    def loses(self, now_ns: int, cuts: int, frame: bytes) -> bool:
        """Whether a frame that was sent when `cuts` cuts had been made is lost before it arrives now."""
        if cuts != self.cuts:
            return True
        lost = False
        for drop in self.drops:
            # every drop draws for every frame, so that one fault does not change another's numbers
            lost = drop.takes(now_ns, frame) or lost
        return lost
