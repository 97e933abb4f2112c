# SPDX-License-Identifier: Apache-2.0
"""Offsets and widths of the fields in a stack of headers, from their formats.

The codec takes all offsets and widths from here, so that they are defined only once, in the Scapy layers
(codec/layers). Names are "LAYER.field".
"""

from __future__ import annotations

import msgspec

from tailrace.codec.formats import formats


class Span(msgspec.Struct, frozen=True):
    """One or several adjacent fields: bit offset in the stack, and length in bits."""

    start: int
    bits: int

    @property
    def byte(self) -> int:
        """Offset in bytes."""
        return self.start // 8

    @property
    def end(self) -> int:
        """Offset of the byte after the span."""
        return (self.start + self.bits) // 8


class HeaderLayout:
    """Offsets of all fields in a stack of headers of fixed size; without options and trailers."""

    def __init__(self, *layers: str) -> None:
        """Takes the class names of the layers, outermost first."""
        self._fields: dict[str, Span] = {}
        self._starts: dict[str, int] = {}
        bit = 0
        for layer in layers:
            self._starts[layer] = bit // 8
            for name, bits in formats().fields[layer]:
                self._fields[f"{layer}.{name}"] = Span(bit, bits)
                bit += bits
        self.size_bytes = bit // 8

    def start(self, layer: str) -> int:
        """Offset in bytes of a layer's first byte."""
        return self._starts[layer]

    def span(self, first: str, last: str | None = None) -> Span:
        """The span from one field to another, inclusive.

        Raises:
            KeyError: there is no such field.
            ValueError: the span is not of whole bytes.
        """
        begin, end = self._fields[first], self._fields[last or first]
        span = Span(begin.start, end.start + end.bits - begin.start)
        if span.start % 8 or span.bits % 8:
            raise ValueError(f"{first} to {last}: not whole bytes")
        return span

    def shift(self, span: Span, name: str) -> int:
        """By how many bits a field's value is shifted left in the number that a span forms."""
        field = self._fields[name]
        return span.start + span.bits - field.start - field.bits

    def mask(self, name: str) -> int:
        """The largest value of a field."""
        return (1 << self._fields[name].bits) - 1

    def put(self, buffer: bytearray, name: str, value: int) -> None:
        """Writes one field; raises ValueError if the value does not fit."""
        field = self._fields[name]
        if not 0 <= value <= self.mask(name):
            raise ValueError(f"{name}: {value} does not fit into {field.bits} bits")
        first, last = field.start // 8, (field.start + field.bits + 7) // 8
        shift = last * 8 - field.start - field.bits
        integer = int.from_bytes(buffer[first:last], "big")
        integer = integer & ~(self.mask(name) << shift) | value << shift
        buffer[first:last] = integer.to_bytes(last - first, "big")
