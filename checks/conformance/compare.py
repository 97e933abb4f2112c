# SPDX-License-Identifier: Apache-2.0
"""Run the same packets through two switches and find every packet whose outputs differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from checks.conformance.packets import Packet
from tailrace.bmv2.dataplane import Outputs

WINDOW = 256
MAX_EXAMPLES = 20
Mask = Sequence[tuple[int, int]]
"""Byte ranges of output frames that are not compared: (offset, length)."""
Window = Callable[[Sequence[Packet]], list[Outputs]]
"""Sends a window of packets through a switch at once; returns the outputs of each packet."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One packet that the switches treat differently."""

    index: int
    packet: Packet
    expected: Outputs
    actual: Outputs

    def as_json(self) -> dict[str, object]:
        """For conformance.json: hexadecimal frames."""
        return {
            "index": self.index,
            "port": self.packet.port,
            "packet": self.packet.data.hex(),
            "bmv2": [[port, data.hex()] for port, data in self.expected],
            "native": [[port, data.hex()] for port, data in self.actual],
        }


@dataclass(slots=True)
class ComparisonCounts:
    """Sums over a run. `transient`: differences that vanished when the packet was sent alone; `reordered`:
    the same outputs in another order on one port, as replicas may leave in any order.
    """

    packets: int = 0
    outputs: int = 0
    dropped: int = 0
    mismatches: int = 0
    transient: int = 0
    reordered: int = 0
    examples: list[Mismatch] = field(default_factory=list)


def blank(data: bytes, mask: Mask) -> bytes:
    """`data` with the byte ranges of `mask` set to zero."""
    if not mask:
        return data
    out = bytearray(data)
    for start, length in mask:
        end = min(start + length, len(out))
        if start < end:
            out[start:end] = bytes(end - start)
    return bytes(out)


def normalized(outputs: Outputs, mask: Mask) -> Outputs:
    """Masked outputs, sorted by port; the order on each port stays."""
    return sorted(((port, blank(data, mask)) for port, data in outputs), key=lambda output: output[0])


def windows(packets: Iterable[Packet], size: int = WINDOW) -> Iterator[list[Packet]]:
    """Cut the packets into lists of at most `size`."""
    window: list[Packet] = []
    for packet in packets:
        window.append(packet)
        if len(window) == size:
            yield window
            window = []
    if window:
        yield window


def compare(
    reference: Window,
    candidate: Window,
    packets: Iterable[Packet],
    mask: Mask,
    *,
    stateful: bool,
) -> ComparisonCounts:
    """Feed both switches and compare packet by packet.

    All copies of the packets of a window must fit into the queues, as BMv2 drops silently if a queue is full.
    If the program is stateless, a packet whose outputs differ is sent to both switches again, alone: only a
    difference that occurs again is a mismatch.
    """
    result = ComparisonCounts()
    for window in windows(packets):
        for packet, expected, actual in zip(window, reference(window), candidate(window), strict=True):
            result.packets += 1
            result.outputs += len(expected)
            result.dropped += not expected
            index = result.packets - 1
            if normalized(expected, mask) == normalized(actual, mask):
                continue
            if sorted(normalized(expected, mask)) == sorted(normalized(actual, mask)):
                result.reordered += 1
                continue
            if not stateful:
                expected, actual = reference([packet])[0], candidate([packet])[0]
                if sorted(normalized(expected, mask)) == sorted(normalized(actual, mask)):
                    result.transient += 1
                    continue
            result.mismatches += 1
            if len(result.examples) < MAX_EXAMPLES:
                result.examples.append(Mismatch(index, packet, expected, actual))
    return result
