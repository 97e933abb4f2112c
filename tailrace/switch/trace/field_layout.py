# SPDX-License-Identifier: Apache-2.0
"""Memory layout of fields in a program's packet header vector (PHV) and C locals, and values in traces."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Any

import msgspec

from tailrace.switch.compiler.model import Model
from tailrace.switch.core.lib import C
from tailrace.switch.trace.events import FieldChange

VALID = "$valid$"
_BLOCK = 16
"""Block size in bytes for comparing two PHVs."""
_SCALARS = "scalars."
"""Prefix of variables outside of structs: p4c makes them fields of a header `scalars`."""


class LayoutField(msgspec.Struct, frozen=True, eq=False):
    """A field, or a hidden field of a header (such as its validity): `size` bytes at `offset`, little-endian.

    Instances are equal only if identical.
    """

    name: str
    header: int | None
    bits: int
    offset: int
    size: int
    big_endian: bool = False
    """Whether the bytes are in the order of the packet, as those of varbit fields."""
    signed: bool = False
    """Whether the type is int<bits>, in two's complement."""

    def of(self, content: bytes | bytearray) -> int:
        """The field's value in the bytes of a PHV or of locals; bytes beyond their end count as zeros."""
        raw = content[self.offset : self.offset + self.size]
        if self.big_endian:
            return int.from_bytes(raw.ljust(self.size, b"\0"), "big")
        number = int.from_bytes(raw, "little")
        return from_twos_complement(number, self.bits) if self.signed else number


def from_twos_complement(number: int, bits: int) -> int:
    """The value of an int<bits> whose bits, read as an unsigned number, are `number`."""
    return number - (1 << bits) if number >> (bits - 1) & 1 else number


class FieldLayout:
    """The fields of a tracing build.

    spaces: all fields, by offset, in the PHV (index 0) and in the C locals (index 1)
    by_header: the PHV's fields of each header, in the order of their declaration
    valid: the validity bit of each header
    """

    def __init__(self, model: Model, raw: Any) -> None:
        """`raw`: the array `tr_program_places` of the build."""
        by_space: tuple[list[LayoutField], list[LayoutField]] = ([], [])
        index = 0
        while raw[index].kind != C.TR_PLACE_END:
            place = raw[index]
            by_space[place.space].append(_field(model, place))
            index += 1
        self.spaces = tuple(tuple(sorted(fields, key=lambda f: f.offset)) for fields in by_space)
        self._offsets = tuple([f.offset for f in fields] for fields in self.spaces)
        self.by_header: dict[int, list[LayoutField]] = {}
        self.valid: dict[int, LayoutField] = {}
        for field in by_space[0]:
            if field.header is None:
                continue
            if field.name.endswith(VALID) and field.bits == 1:
                self.valid.setdefault(field.header, field)
            else:
                self.by_header.setdefault(field.header, []).append(field)

    def overlapping(self, space: int, offset: int, length: int) -> Iterator[LayoutField]:
        """The fields of a space that overlap `length` bytes at an offset."""
        fields = self.spaces[space]
        first = max(0, bisect.bisect_right(self._offsets[space], offset) - 1)
        for field in fields[first:]:
            if field.offset >= offset + length:
                return
            if field.offset + field.size > offset:
                yield field


def shown_name(name: str) -> str:
    """A field's name without the prefix that p4c gives variables."""
    return name.removeprefix(_SCALARS)


def _field(model: Model, place: Any) -> LayoutField:
    if place.kind == C.TR_PLACE_STACK:  # the next index of a stack
        return LayoutField(f"{model.stacks[place.index].name}.$filled$", None, 0, place.offset, place.bytes)
    header = model.headers[place.index]
    if place.kind == C.TR_PLACE_VALID:
        return LayoutField(f"{header.name}.{VALID}", place.index, 1, place.offset, place.bytes)
    field = model.header_types[header.type].fields[place.field]
    name = shown_name(f"{header.name}.{field.name}")
    if place.kind == C.TR_PLACE_BITS:  # the current length of a varbit field
        return LayoutField(f"{name}.$bits$", place.index, 0, place.offset, place.bytes)
    return LayoutField(name, place.index, field.bits, place.offset, place.bytes, field.varbit, field.signed)


class PacketFields:
    """The contents of the PHV and the C locals of one packet during its trace."""

    def __init__(self, layout: FieldLayout) -> None:
        self._layout = layout
        self.spaces = [bytearray(), bytearray()]

    def copy(self) -> PacketFields:
        """The same contents for a copy of the packet."""
        other = PacketFields(self._layout)
        other.spaces = [bytearray(space) for space in self.spaces]
        return other

    def begin(self, phv: bytes) -> tuple[FieldChange, ...]:
        """Begins a stage with this PHV and zeroed locals; returns the changes since the last stage."""
        before = self.spaces[0].ljust(len(phv), b"\0")
        self.spaces = [bytearray(phv), bytearray()]
        differ = (
            field
            for offset in range(0, len(phv), _BLOCK)
            if before[offset : offset + _BLOCK] != phv[offset : offset + _BLOCK]
            for field in self._layout.overlapping(0, offset, _BLOCK)
        )
        return tuple(
            FieldChange(field.name, field.bits, old, new)
            for field in dict.fromkeys(differ)
            if (old := field.of(before)) != (new := field.of(phv))
        )

    def write(self, runs: list[tuple[int, int, bytes]]) -> tuple[FieldChange, ...]:
        """Applies changed bytes, each run as (space, offset, bytes); returns the changes of fields."""
        if not runs:
            return ()
        before_write: dict[LayoutField, tuple[int, int]] = {}
        for space, offset, new in runs:
            content = self.spaces[space]
            if len(content) < offset + len(new):
                content.extend(bytes(offset + len(new) - len(content)))
            for field in self._layout.overlapping(space, offset, len(new)):
                if field not in before_write:
                    before_write[field] = space, field.of(content)
            # bytes are written only after all old values are read
        for space, offset, new in runs:
            self.spaces[space][offset : offset + len(new)] = new
        return tuple(
            FieldChange(field.name, field.bits, before, after)
            for field, (space, before) in before_write.items()
            if (after := field.of(self.spaces[space])) != before
        )

    def value(self, field: LayoutField) -> int:
        """The value of a field of the PHV."""
        return field.of(self.spaces[0])
