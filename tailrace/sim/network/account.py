# SPDX-License-Identifier: Apache-2.0
"""Conservation of frames: checks that every frame and every byte of virtual payload is accounted for.

Virtual payload is payload of which only the length is simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tailrace.sim.network.core import SwitchAccount, WireAccount


class Amount(msgspec.Struct, frozen=True):
    """A number of frames, and of bytes of virtual payload."""

    frames: int = 0
    payload_bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.frames + other.frames, self.payload_bytes + other.payload_bytes)


def _sum(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, Amount())


class _Switch(msgspec.Struct, frozen=True):
    """The counts of a switch, in the order of core.SwitchAccount. The switch core counts `truncated_bytes` to
    `held`, which is in its queues. The network counts `entered` and the fields below.
    """

    truncated_bytes: int
    core_in: Amount
    made: Amount
    core_out: Amount
    dropped: Amount
    held: Amount
    entered: Amount
    unwired: Amount
    to_cpu: Amount
    swallowed: Amount
    packet_outs: Amount

    @staticmethod
    def of(raw: SwitchAccount) -> _Switch:
        truncated_bytes, *amounts = raw
        return _Switch(truncated_bytes, *(Amount(*amount) for amount in amounts))


class _Wire(msgspec.Struct, frozen=True):
    """The counts of a wire (one direction of a link)."""

    sent: Amount
    delivered: Amount
    cut: Amount
    dropped: Amount
    under_way: Amount

    @staticmethod
    def of(raw: WireAccount) -> _Wire:
        return _Wire(*(Amount(*amount) for amount in raw))

    @property
    def balanced(self) -> bool:
        return self.sent == _sum((self.delivered, self.cut, self.dropped, self.under_way))


class NetworkAccount(msgspec.Struct, frozen=True):
    """Where all frames are: `sent`, `packet_outs` and `made` count all frames that ever existed, the other
    amounts count what became of them.

    sent: sent by hosts
    made: made by switches: clones, multicast copies, pause frames
    delivered: delivered to hosts
    unwired: sent by switches to ports without a wire
    truncated_bytes: payload that switches cut off
    cut: lost on links that went down or were down
    swallowed: dropped by switches because of a blackhole fault
    queued: waiting in switches
    under_way: in flight on a wire
    reasons: frames dropped in switches, by the core's drop reason; some reasons are no loss, such as the end
        of a pause frame that the port has obeyed
    unsound: names of the wires and switches whose counts do not add up
    """

    sent: Amount
    packet_outs: Amount
    made: Amount
    delivered: Amount
    to_cpu: Amount
    unwired: Amount
    dropped_in_switches: Amount
    truncated_bytes: int
    cut: Amount
    dropped_by_faults: Amount
    swallowed: Amount
    queued: Amount
    under_way: Amount
    reasons: Mapping[str, int]
    unsound: tuple[str, ...]

    @staticmethod
    def of(
        switches: Mapping[str, SwitchAccount],
        wires: Iterable[tuple[tuple[str, bool, bool], WireAccount]],
        reasons: Mapping[str, int],
    ) -> NetworkAccount:
        """The account that follows from the network's counts.

        Args:
            switches: counts by switch name.
            wires: for each wire its name, whether it begins at a host, whether it ends at a host; its counts.
            reasons: frames dropped in all switches, by drop reason.
        """
        nodes = {name: _Switch.of(raw) for name, raw in switches.items()}
        accounts = [(ends, _Wire.of(raw)) for ends, raw in wires]
        all_nodes, all_wires = nodes.values(), [wire for _, wire in accounts]
        unsound = [name for (name, _, _), wire in accounts if not wire.balanced]
        unsound += [name for name, node in nodes.items() if node.core_in != node.entered]
        to_wires = _sum(wire.sent for (_, from_host, _), wire in accounts if not from_host)
        departed = _sum([to_wires, *(node.unwired + node.to_cpu for node in all_nodes)])
        if departed != _sum(node.core_out for node in all_nodes):
            unsound.append("what switches sent")
        return NetworkAccount(
            sent=_sum(wire.sent for (_, from_host, _), wire in accounts if from_host),
            packet_outs=_sum(node.packet_outs for node in all_nodes),
            made=_sum(node.made for node in all_nodes),
            delivered=_sum(wire.delivered for (_, _, to_host), wire in accounts if to_host),
            to_cpu=_sum(node.to_cpu for node in all_nodes),
            unwired=_sum(node.unwired for node in all_nodes),
            dropped_in_switches=_sum(node.dropped for node in all_nodes),
            truncated_bytes=sum(node.truncated_bytes for node in all_nodes),
            cut=_sum(wire.cut for wire in all_wires),
            dropped_by_faults=_sum(wire.dropped for wire in all_wires),
            swallowed=_sum(node.swallowed for node in all_nodes),
            queued=_sum(node.held for node in all_nodes),
            under_way=_sum(wire.under_way for wire in all_wires),
            reasons=dict(reasons),
            unsound=tuple(unsound),
        )

    @property
    def balanced(self) -> bool:
        """Whether no frame or byte is missing or counted twice, in the network and in each part of it."""
        arrived = (self.delivered, self.to_cpu, self.unwired)
        lost = (self.dropped_in_switches, self.cut, self.dropped_by_faults, self.swallowed)
        accounted = _sum((*arrived, *lost, Amount(0, self.truncated_bytes), self.queued, self.under_way))
        explained = sum(self.reasons.values()) == self.dropped_in_switches.frames
        return _sum((self.sent, self.packet_outs, self.made)) == accounted and explained and not self.unsound
