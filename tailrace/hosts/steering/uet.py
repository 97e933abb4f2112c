# SPDX-License-Identifier: Apache-2.0
"""Path selection of Ultra Ethernet's transport (UET), as in the consortium's simulator (uet-htsim, uec_mp).

oblivious   packets take the entropy values (EVs, UDP source ports) in turn; each round has another order
bitmap      the same, but an EV that was marked, trimmed or lost is skipped as often as its penalty says
mixed       an EV that proved good is used again (RecycledFifo of steering.reps); without one, as `bitmap`

The simulator's further modes, REPS and its predecessor, are those of steering.reps.

DEVIATION: the simulator reports timeouts with EV 0, whichever path lost the packet; here a timeout reports
the EV of the lost packet, so that its penalty counts.
"""

from __future__ import annotations

import random
from typing import Final

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.base import ACK_ECN, NACK, TIMEOUT, Steering
from tailrace.hosts.steering.reps import RecycledFifo

MOST_PENALTY: Final = 15
MARK_PENALTY: Final = 1
TRIM_PENALTY: Final = 4


class UetOblivious(Steering):
    """One flow. Packet i of a round takes EV number i XOR a number drawn for the round."""

    __slots__ = ("_evs", "_index", "_mask", "_rng", "_xor")

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:  # noqa: ARG002
        """Args:
        paths: EVs of the flow; the first 2^n of them are used, for the largest n.
        flow_hash: hash of the flow's 5-tuple; not used.
        rng: draws the order of each round.
        """
        super().__init__(paths)
        self._rng = rng
        self._evs: tuple[int, ...] = paths.evs
        size = 1
        while 2 * size <= len(paths.evs):
            size *= 2
        self._mask: int = size - 1
        self._index = 0
        self._xor: int = rng.randrange(size)

    def next_ev(self, now_ns: int) -> int:  # noqa: ARG002  (part of the interface)
        """The EV of the packet that is sent now."""
        self.explored += 1
        number = self._index ^ self._xor
        self._advance()
        return self._evs[number]

    def _advance(self) -> None:
        self._index += 1
        if self._index > self._mask:
            self._index = 0
            self._xor = self._rng.randrange(self._mask + 1)

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """Does nothing: this mode ignores feedback."""


class UetBitmap(UetOblivious):
    """One flow; penalties are 0..MOST_PENALTY."""

    __slots__ = ("_number_of", "_penalties")

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:
        """Args: as for UetOblivious."""
        super().__init__(config, paths, flow_hash, rng)
        self._penalties: list[int] = [0] * (self._mask + 1)
        self._number_of: dict[int, int] = {
            ev: number for number, ev in enumerate(paths.evs[: self._mask + 1])
        }

    def next_ev(self, now_ns: int) -> int:  # noqa: ARG002  (part of the interface)
        """The next EV without a penalty. The first EV that is skipped has its penalty reduced by 1."""
        self.explored += 1
        number = self._index ^ self._xor
        if self._penalties[number] > 0:
            self._penalties[number] -= 1
            # if all EVs have penalties, each is looked at once, and the last is taken
            for _ in range(self._mask + 1):
                self._advance()
                number = self._index ^ self._xor
                if self._penalties[number] == 0:
                    break
        self._advance()
        return self._evs[number]

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:  # noqa: ARG002
        """Adds the penalty of a mark, a trimmed packet or a timeout."""
        number = self._number_of.get(ev, -1)
        if number < 0:
            return
        penalty = 0
        if feedback == ACK_ECN:
            penalty = MARK_PENALTY
        elif feedback == NACK:
            penalty = TRIM_PENALTY
        elif feedback == TIMEOUT:
            penalty = MOST_PENALTY
            self.blocked += 1
        self._penalties[number] = min(MOST_PENALTY, self._penalties[number] + penalty)


class UetMixed(UetBitmap):
    """One flow: an EV that proved good is used again; without one, the bitmap decides."""

    __slots__ = ("_fifo",)

    def __init__(self, config: SteeringConfig, paths: PathList, flow_hash: int, rng: random.Random) -> None:
        """Args: as for UetOblivious."""
        super().__init__(config, paths, flow_hash, rng)
        self._fifo = RecycledFifo(config, paths, flow_hash, rng)

    def next_ev(self, now_ns: int) -> int:
        """The EV of the packet that is sent now."""
        ev = self._fifo.recycled()
        if ev:
            self.reused += 1
            return ev
        return super().next_ev(now_ns)

    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """Updates the penalties, and remembers the EV of a packet that arrived unmarked."""
        super().on_feedback(now_ns, feedback, ev)
        self._fifo.on_feedback(now_ns, feedback, ev)
