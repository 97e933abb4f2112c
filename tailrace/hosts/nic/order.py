# SPDX-License-Identifier: Apache-2.0
"""Counts reordering at a receiver, independently of its transport.

Only first transmissions count. They leave the source in the order of their PSNs, so a network that keeps the
order delivers them in that order, with gaps where packets were lost.

* overtaken: arrivals after the arrival of a larger PSN, that is, of a packet that was sent later.
* out of order: arrivals whose PSN is not the expected PSN (Flowcut §III-C2). The expected PSN is the smallest
  PSN that has not arrived and still will arrive as a first transmission; lost packets are not expected. It is
  not known at once whether a gap is a loss or a delay, so arrivals after a gap are undecided until the gap is
  filled. If a first transmission fills the gap, they were out of order. If a retransmission fills it, they
  were not, since the missing packet was lost. A first transmission that arrives after its retransmission
  counts as one out-of-order packet.
* out-of-order degree: PSN of an out-of-order packet minus the expected PSN; the maximum (Flowcut §IV-C).
* path changes: pairs of first transmissions that arrived, were sent one after the other, and have different
  path tags. A path tag is a field into which each fabric switch mixes its egress port, so it differs between
  paths. Tags are compared in the order of sending: a flow that moves to another path once counts as one
  change, even if packets of both paths arrive interleaved. A packet that arrives after more than KEPT_TAGS
  later packets, or after its flow is complete, may be left out.

Without loss, "out of order" is exactly the number of arrivals with expected PSN ≠ received PSN. With loss
but no reordering it is 0. The receiver also counts arrivals as its transport handles them, losses and
retransmissions included (`hosts.nic.receiver`): `out_of_order_raw` and `out_of_sequence`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from tailrace.hosts.flows.observation import NO_TAG

# Longer gaps are truncated to this length. No window is that large, so only an error can cause such a gap.
MAX_GAP_PACKETS = 1 << 16

KEPT_TAGS = 1 << 10
"""At least this many of the latest path tags are stored, for comparison with delayed packets."""

_NONE = -1


class OrderObserver:
    """Observes the packets of one flow, by index from 0 without wrapping.

    highest: the greatest index of a packet that arrived as a first transmission; -1: none has arrived.
    tag: the path tag of that packet; NO_TAG: there is no such packet.
    """

    __slots__ = (
        "_early",
        "_from_first",
        "_last_recovered",
        "_missing",
        "_numbers",
        "_tags",
        "_waiting",
        "degree_max",
        "highest",
        "out_of_order",
        "overtaken",
        "path_changes",
        "tag",
    )

    def __init__(self) -> None:
        """Nothing has arrived."""
        self.out_of_order = 0
        self.overtaken = 0
        self.degree_max = 0
        self.path_changes = 0
        self.highest = -1
        self.tag: int = NO_TAG
        self._missing: list[int] = []  # sorted: not arrived, and below the highest arrival
        self._waiting: list[int] = []  # sorted: arrivals after a gap, not yet counted as in or out of order
        self._early: set[int] | None = None  # above the highest arrival: arrived as retransmissions only
        # indices of the latest first transmissions, ascending, and their tags; kept while packets may still
        # arrive between them
        self._numbers: list[int] = []
        self._tags: list[int] = []
        self._from_first = False  # whether `_numbers` begins with the flow's first arrival
        self._last_recovered = _NONE  # the highest index that arrived as a retransmission first

    def resume(
        self,
        packets: int,
        highest: int,
        tag: int,
        out_of_order: int,
        overtaken: int,
        degree_max: int,
        path_changes: int,
    ) -> None:
        """Restores the state of a complete flow of `packets` packets.

        No packet below `highest` is missing; the packets above it have arrived as retransmissions only.
        """
        self.highest = highest
        self.tag = tag
        self.out_of_order = out_of_order
        self.overtaken = overtaken
        self.degree_max = degree_max
        self.path_changes = path_changes
        self._early = set(range(highest + 1, packets)) or None

    def on_packet(self, index: int, retransmission: bool, tag: int) -> None:
        """Counts an arrival: its index in the flow, whether it is a retransmission, and its path tag."""
        if index == self.highest + 1 and not (self._numbers or self._early or retransmission):
            if tag != self.tag:
                self._change_tag(tag)
            self.highest = index
        elif retransmission:
            self._on_retransmission(index)
        elif index > self.highest:
            self._open_gap(index)
            if self._missing:
                self._waiting.append(index)
            if self._missing or self._numbers or self._last_recovered > self.highest:
                self._remember(index, tag)
            if tag != self.tag:
                self._change_tag(tag)
            self.highest = index
        else:
            self._on_delayed(index, tag)

    def _change_tag(self, tag: int) -> None:
        """Stores the tag of the new highest packet, which differs from the previous tag."""
        if self.tag != NO_TAG:
            self.path_changes += 1
        self.tag = tag

    def _remember(self, index: int, tag: int) -> None:
        """Appends a packet and its tag, since delayed packets may still arrive before it."""
        numbers, tags = self._numbers, self._tags
        if not numbers:
            self._from_first = self.highest < 0
            if self.highest >= 0:
                numbers.append(self.highest)
                tags.append(self.tag)
        numbers.append(index)
        tags.append(tag)
        if len(numbers) == 2 * KEPT_TAGS:
            self._drop_first(KEPT_TAGS)

    def _drop_first(self, count: int) -> None:
        """Removes the first `count` packets and tags; all if no packet can arrive between them any more."""
        if count:
            del self._numbers[:count]
            del self._tags[:count]
            self._from_first = False
        if not self._missing and self._last_recovered < self._numbers[0]:
            self._numbers.clear()
            self._tags.clear()

    def _put_between(self, index: int, tag: int) -> None:
        """Inserts a delayed packet, and corrects the number of path changes."""
        numbers, tags = self._numbers, self._tags
        position = bisect_left(numbers, index)
        if not numbers or (position == 0 and not self._from_first):
            return
        after = tags[position]
        changes = 1 if tag != after else 0
        if position > 0:
            before = tags[position - 1]
            changes += (1 if before != tag else 0) - (1 if before != after else 0)
        self.path_changes += changes
        numbers.insert(position, index)
        tags.insert(position, tag)

    def _open_gap(self, end: int) -> None:
        """Records the packets between the highest arrival and the new arrival `end` as missing."""
        first = max(self.highest + 1, end - MAX_GAP_PACKETS)
        early = self._early
        if early is None:
            self._missing.extend(range(first, end))
            return
        self._missing.extend([number for number in range(first, end) if number not in early])
        self._early = {number for number in early if number > end} or None

    def _on_retransmission(self, index: int) -> None:
        if index > self.highest:
            if self._early is None:
                self._early = set()
            self._early.add(index)
            self._last_recovered = max(self._last_recovered, index)
            return
        position = bisect_left(self._missing, index)
        if position < len(self._missing) and self._missing[position] == index:
            del self._missing[position]
            self._last_recovered = max(self._last_recovered, index)
            self._decide()

    def _on_delayed(self, index: int, tag: int) -> None:
        self.overtaken += 1
        self.degree_max = max(self.degree_max, self.highest - index)
        self._put_between(index, tag)
        position = bisect_left(self._missing, index)
        if position == len(self._missing) or self._missing[position] != index:
            self.out_of_order += 1
            return
        del self._missing[position]
        later = bisect_right(self._waiting, index)
        self.out_of_order += len(self._waiting) - later
        del self._waiting[later:]
        if position > 0:
            self._waiting.append(index)
        self._decide()

    def _decide(self) -> None:
        """Removes arrivals with no gap below them from the undecided arrivals: they were in order."""
        if self._missing:
            del self._waiting[: bisect_left(self._waiting, self._missing[0])]
        else:
            self._waiting.clear()
        if self._numbers:
            first = self._missing[0] if self._missing else self._numbers[-1]
            below = bisect_left(self._numbers, first) - 1
            # the last packet below all gaps stays, to be compared with the packet that fills the first gap
            self._drop_first(below if below > 0 and self._last_recovered < self._numbers[0] else 0)
