# SPDX-License-Identifier: Apache-2.0
"""Converts FieldMatch messages to packed keys and back (P4Runtime specification 9.1.1).

A packed key is the concatenation of its fields, each left-padded to full bytes. Its mask has the same layout:
all ones for an exact field, the prefix for an lpm field. A range field has its low bound in the key and its
high bound in the mask. A don't-care field has a mask of zeros (or the full range), and no FieldMatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import P4RtError, invalid
from tailrace.switch.p4runtime.entities.bytestring import decode, shortest

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from tailrace.switch.p4runtime.pins.strings import SdnStrings

    FieldMatches = RepeatedCompositeFieldContainer[p4r.FieldMatch]


class MatchKind(Enum):
    """Match kinds of P4Info."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"
    OPTIONAL = "optional"


# module constants, as looking up enum members costs time for every field of every entry
_EXACT, _LPM, _TERNARY, _RANGE, _OPTIONAL = (
    MatchKind.EXACT,
    MatchKind.LPM,
    MatchKind.TERNARY,
    MatchKind.RANGE,
    MatchKind.OPTIONAL,
)


class PackedKey(NamedTuple):
    """A key in the data plane's layout; `prefix_bits`: length of the lpm field's prefix."""

    key: bytes
    mask: bytes
    prefix_bits: int


Identity = bytes | tuple[bytes, bytes, int]
"""Identifies an entry in its table: the key, and unless all fields are exact, the mask and the priority."""


class MatchField:
    """One field of a key, at byte `offset` of the packed key.

    `bits`: width of values in messages. `wire_bits`: width in the data plane, which may be larger if P4Info
    translates the type; the `above` additional high bits are zero and part of every lpm prefix. `full` and
    `highest`: the packed values with all bits of the data plane, and with all bits of messages. `high_bits`:
    how many bits values use in the most significant byte of `nbytes` packed bytes, from 0 to 8.
    """

    __slots__ = (
        *("_value_bytes", "above", "bits", "full", "high_bits", "highest", "id", "kind", "name", "nbytes"),
        *("offset", "sdn", "zero"),
    )

    def __init__(
        self, field_id: int, name: str, bits: int, offset: int, kind: MatchKind, wire_bits: int = 0
    ) -> None:
        self.id = field_id
        self.name = f"field '{name}'"
        self.bits = bits
        self.nbytes = (max(bits, wire_bits) + 7) // 8
        self._value_bytes = (bits + 7) // 8
        self.high_bits = max(bits - 8 * (self.nbytes - 1), 0)
        self.kind = kind
        self.offset = offset
        self.above = max(wire_bits - bits, 0)
        self.full = ((1 << bits + self.above) - 1).to_bytes(self.nbytes, "big")
        self.highest = ((1 << bits) - 1).to_bytes(self.nbytes, "big")
        self.zero = bytes(self.nbytes)
        self.sdn: Callable[[bytes], bytes] = shortest
        """Converts packed bytes to the value in messages."""

    def pack(self, data: bytes) -> bytes:
        """`data` as exactly `nbytes` bytes, left-padded.

        Raises:
            P4RtError: OUT_OF_RANGE for an empty string or a value that is too wide.
        """
        size, nbytes = len(data), self.nbytes
        if size == nbytes:
            if self.high_bits == 8 or (self.high_bits and not data[0] >> self.high_bits):
                return data
        elif 0 < size < self._value_bytes:
            return data.rjust(nbytes, b"\0")
        return decode(data, self.bits, self.name).to_bytes(nbytes, "big")

    def pack_for_lookup(self, data: bytes) -> bytes:
        """Like `pack`, but changes no state."""
        return self.pack(data)

    def prefix_mask(self, prefix_bits: int) -> bytes:
        """The packed mask of a prefix of `prefix_bits` bits."""
        return ((1 << self.bits + self.above) - (1 << (self.bits - prefix_bits))).to_bytes(self.nbytes, "big")


class NamedField(MatchField):
    """A field whose values are strings in messages (sdn_string) and numbers in the data plane."""

    __slots__ = ("names",)

    def __init__(self, field_id: int, name: str, names: SdnStrings, offset: int, kind: MatchKind) -> None:
        super().__init__(field_id, name, names.bits, offset, kind)
        self.names = names
        self.sdn = lambda packed: names.to_sdn(int.from_bytes(packed, "big"))

    def pack(self, data: bytes) -> bytes:
        """The packed number of a string, allocated if needed. Raises P4RtError as SdnStrings.to_wire."""
        return self.names.to_wire(data, self.name).to_bytes(self.nbytes, "big")

    def pack_for_lookup(self, data: bytes) -> bytes:
        """The packed number of a string; allocates none.

        Raises:
            _UnknownError: the string has no number.
        """
        number = self.names.look_up(data)
        if number is None:
            raise _UnknownError
        return number.to_bytes(self.nbytes, "big")


class _UnknownError(Exception):
    """A string (sdn_string) that has no number in the data plane."""


class KeyPlan(msgspec.Struct):
    """How the keys of one table or value set are packed.

    `what`: its name in errors. `by_id`: position and field by field id. `required`: bit mask of exact fields.
    """

    what: str
    fields: tuple[MatchField, ...]
    by_id: dict[int, tuple[int, MatchField]]
    needs_priority: bool
    only_exact: bool
    full_mask: bytes
    required: int

    def pack(self, matches: Iterable[p4r.FieldMatch], *, lookup: bool = False) -> PackedKey:
        """The packed key of an entry.

        Args:
            lookup: the key is not written, so no string gets a number: see `look_up`.

        Raises:
            P4RtError: INVALID_ARGUMENT or OUT_OF_RANGE, with the field's name.
        """
        keys = [f.zero for f in self.fields]
        masks = [f.full if f.kind is _RANGE else f.zero for f in self.fields]
        seen = prefix_bits = 0
        by_id = self.by_id
        for match in matches:
            placed = by_id.get(match.field_id)
            if placed is None:
                raise invalid(f"{self.what} has no field with id {match.field_id}")
            position, field = placed
            if seen >> position & 1:
                raise invalid(f"{field.name} is given twice")
            seen |= 1 << position
            kind = field.kind
            if kind is _EXACT:
                value = match.exact.value
                if not value and not match.HasField("exact"):
                    raise _wrong_kind(field)
                keys[position] = field.pack_for_lookup(value) if lookup else field.pack(value)
                masks[position] = field.full
            elif kind is _LPM:
                prefix_bits, keys[position], masks[position] = _lpm(field, match)
            elif kind is _RANGE:
                keys[position], masks[position] = _range(field, match)
            elif kind is _TERNARY:
                keys[position], masks[position] = _ternary(field, match)
            else:
                if not match.HasField("optional"):
                    raise _wrong_kind(field)
                value = match.optional.value
                keys[position] = field.pack_for_lookup(value) if lookup else field.pack(value)
                masks[position] = field.full
        if self.required & ~seen:
            raise self._missing(seen)
        if self.only_exact:
            return PackedKey(b"".join(keys), self.full_mask, 0)
        return PackedKey(b"".join(keys), b"".join(masks), prefix_bits)

    def identity(self, packed: PackedKey, priority: int) -> Identity:
        """The identity of an entry."""
        return packed.key if self.only_exact else (packed.key, packed.mask, priority)

    def look_up(self, matches: Iterable[p4r.FieldMatch]) -> PackedKey | None:
        """The packed key of an entry to look up; None: a string has no number, so no entry matches.

        Raises:
            P4RtError: as `pack`.
        """
        try:
            return self.pack(matches, lookup=True)
        except _UnknownError:
            return None

    def unpack(self, packed: PackedKey, out: FieldMatches) -> None:
        """Appends the FieldMatch messages of a packed key to `out`, without don't-care fields."""
        key, mask, _ = packed
        for field in self.fields:
            end = field.offset + field.nbytes
            value, field_mask = key[field.offset : end], mask[field.offset : end]
            kind = field.kind
            if kind is _EXACT:
                match = out.add()
                match.exact.value = field.sdn(value)
            elif kind is _RANGE:
                if value == field.zero and field_mask == field.full:
                    continue
                match = out.add()
                match.range.low = shortest(value)
                match.range.high = shortest(field_mask)
            elif field_mask == field.zero:
                continue
            else:
                match = out.add()
                if kind is _LPM:
                    match.lpm.value = shortest(value)
                    match.lpm.prefix_len = int.from_bytes(field_mask, "big").bit_count() - field.above
                elif kind is _TERNARY:
                    match.ternary.value = shortest(value)
                    match.ternary.mask = shortest(field_mask)
                else:
                    match.optional.value = field.sdn(value)
            match.field_id = field.id

    def masked(self, packed: PackedKey) -> Iterator[tuple[bytes, bytes]]:
        """The key as pairs of value and mask, as parsers compare them; a range becomes several prefixes."""
        parts: list[list[tuple[bytes, bytes]]] = []
        for field in self.fields:
            end = field.offset + field.nbytes
            key, mask = packed.key[field.offset : end], packed.mask[field.offset : end]
            parts.append(list(_prefixes(field, key, mask)) if field.kind is _RANGE else [(key, mask)])
        for chosen in product(*parts):
            yield b"".join(key for key, _ in chosen), b"".join(mask for _, mask in chosen)

    def _missing(self, seen: int) -> P4RtError:
        for position, field in enumerate(self.fields):
            if field.kind is _EXACT and not seen >> position & 1:
                return invalid(f"{field.name} is missing; an exact field cannot be omitted")
        return invalid("a field is missing")


def key_plan(what: str, fields: Sequence[MatchField]) -> KeyPlan:
    """The plan of a key with these fields.

    Raises:
        P4RtError: INVALID_ARGUMENT when two fields have the same id.
    """
    by_id = {field.id: (position, field) for position, field in enumerate(fields)}
    if len(by_id) != len(fields):
        raise invalid(f"P4Info: {what} has fields with the same id")
    required = sum(1 << position for position, field in enumerate(fields) if field.kind is _EXACT)
    return KeyPlan(
        what=what,
        fields=tuple(fields),
        by_id=by_id,
        needs_priority=any(field.kind in (_TERNARY, _RANGE, _OPTIONAL) for field in fields),
        only_exact=all(field.kind is _EXACT for field in fields),
        full_mask=b"".join(b"\xff" * field.nbytes for field in fields),
        required=required,
    )


def _wrong_kind(field: MatchField) -> P4RtError:
    return invalid(f"{field.name}: an {field.kind.value} match is expected")


def _lpm(field: MatchField, match: p4r.FieldMatch) -> tuple[int, bytes, bytes]:
    """The prefix length in the data plane, the key and the mask."""
    if not match.HasField("lpm"):
        raise _wrong_kind(field)
    lpm = match.lpm
    prefix_bits = lpm.prefix_len
    if not 0 < prefix_bits <= field.bits:
        raise invalid(
            f"{field.name}: prefix length {prefix_bits} is not in 1..{field.bits}; omit a don't-care field"
        )
    mask, key = field.prefix_mask(prefix_bits), field.pack(lpm.value)
    if int.from_bytes(key, "big") & ((1 << (field.bits - prefix_bits)) - 1):
        raise invalid(f"{field.name}: the value has bits outside of the prefix")
    return prefix_bits + field.above, key, mask


def _ternary(field: MatchField, match: p4r.FieldMatch) -> tuple[bytes, bytes]:
    """The key and the mask."""
    if not match.HasField("ternary"):
        raise _wrong_kind(field)
    key, mask = field.pack(match.ternary.value), field.pack(match.ternary.mask)
    if mask == field.zero:
        raise invalid(f"{field.name}: the mask is zero; omit a don't-care field")
    if int.from_bytes(key, "big") & ~int.from_bytes(mask, "big"):
        raise invalid(f"{field.name}: the value has bits outside of the mask")
    return key, mask


def _prefixes(field: MatchField, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The prefixes that cover exactly the numbers from `low` to `high`."""
    start, last = int.from_bytes(low, "big"), int.from_bytes(high, "big")
    full = int.from_bytes(field.full, "big")
    while start <= last:
        block = start & -start or full + 1  # size of the largest aligned block that begins here
        while start + block - 1 > last:
            block >>= 1
        yield start.to_bytes(field.nbytes, "big"), (full & ~(block - 1)).to_bytes(field.nbytes, "big")
        start += block


def _range(field: MatchField, match: p4r.FieldMatch) -> tuple[bytes, bytes]:
    """The low and the high bound."""
    if not match.HasField("range"):
        raise _wrong_kind(field)
    low, high = field.pack(match.range.low), field.pack(match.range.high)
    if low > high:
        raise invalid(f"{field.name}: the low bound is above the high bound")
    if low == field.zero and high == field.highest:
        raise invalid(f"{field.name}: the range contains every value; omit a don't-care field")
    return low, high
