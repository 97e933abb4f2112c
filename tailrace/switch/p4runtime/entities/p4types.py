# SPDX-License-Identifier: Apache-2.0
"""P4Data: a type in P4Info becomes a plan, which converts P4Data messages to integers and back.

In the data plane a value of any type is a list of unsigned integers, one per scalar field, in the order of
declaration. Signed scalars are in two's complement of their width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tailrace.p4rt.messages import p4d, p4t
from tailrace.p4rt.status import P4RtError, invalid
from tailrace.switch.p4runtime.entities.bytestring import decode, decode_signed, encode, encode_signed
from tailrace.switch.p4runtime.entities.translation import Translations

MOST_PARTS = 1 << 16
"""Most types in a P4Info, counting each use in another type; a few nested structs could have millions."""
_MOST_DEPTH = 32
"""Deepest nesting of a type."""


class TypePlan(ABC):
    """The layout of a P4 type in the data plane; `widths`: bits of each scalar."""

    widths: tuple[int, ...]

    @abstractmethod
    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        """Writes the next values, one per scalar of this type, into `data`."""

    @abstractmethod
    def decode(self, data: p4d.P4Data, what: str) -> list[int]:
        """The scalars in `data`; `what`: its name in errors.

        Raises:
            P4RtError: INVALID_ARGUMENT: `data` is of another type; OUT_OF_RANGE: a value is too wide.
        """


class _Scalar(TypePlan):
    """A scalar in field `kind` of P4Data; `to_data` and `from_data` convert its values.

    `expected`: the kind of value in errors. The last argument of `from_data` is the value's name in errors.
    """

    def __init__(
        self,
        bits: int,
        to_data: Callable[[int], bytes | bool],
        from_data: Callable[[Any, str], int],
        kind: str = "bitstring",
        expected: str = "a bitstring",
    ) -> None:
        self.widths = (bits,)
        self._to_data, self._from_data = to_data, from_data
        self._kind, self._expected = kind, expected

    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        setattr(data, self._kind, self._to_data(next(values)))

    def decode(self, data: p4d.P4Data, what: str) -> list[int]:
        if data.WhichOneof("data") != self._kind:
            raise invalid(f"{what}: {self._expected} is expected")
        return [self._from_data(getattr(data, self._kind), what)]


def _unsigned(bits: int, kind: str = "bitstring", expected: str = "a bitstring") -> _Scalar:
    """A bit<bits>, or an enum with such values."""
    return _Scalar(bits, encode, lambda data, what: decode(data, bits, what), kind, expected)


def _signed(bits: int) -> _Scalar:
    """An int<bits>."""

    def to_data(value: int) -> bytes:
        return encode_signed(value - (1 << bits) if value >> (bits - 1) else value)

    return _Scalar(bits, to_data, lambda data, what: decode_signed(data, bits, what) & (1 << bits) - 1)


class _Members(TypePlan):
    """A struct or a tuple."""

    def __init__(self, kind: str, members: Sequence[TypePlan]) -> None:
        self.kind = kind
        self.members = members
        self.widths = tuple(bits for member in members for bits in member.widths)

    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        message = data.struct if self.kind == "struct" else data.tuple
        message.SetInParent()
        for member in self.members:
            member.encode(values, message.members.add())

    def decode(self, data: p4d.P4Data, what: str) -> list[int]:
        if data.WhichOneof("data") != self.kind:
            raise invalid(f"{what}: a {self.kind} is expected")
        given = data.struct.members if self.kind == "struct" else data.tuple.members
        if len(given) != len(self.members):
            raise invalid(f"{what}: {len(self.members)} members are expected, not {len(given)}")
        return [
            value
            for plan, member in zip(self.members, given, strict=True)
            for value in plan.decode(member, what)
        ]


class _Header(TypePlan):
    def __init__(self, widths: tuple[int, ...]) -> None:
        self.widths = widths

    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        data.header.is_valid = True
        for _ in self.widths:
            data.header.bitstrings.append(encode(next(values)))

    def decode(self, data: p4d.P4Data, what: str) -> list[int]:
        if data.WhichOneof("data") != "header" or not data.header.is_valid:
            raise invalid(f"{what}: a valid header is expected")
        if len(data.header.bitstrings) != len(self.widths):
            raise invalid(
                f"{what}: {len(self.widths)} fields are expected, not {len(data.header.bitstrings)}"
            )
        fields = zip(data.header.bitstrings, self.widths, strict=True)
        return [decode(value, bits, what) for value, bits in fields]


class TypePlanner:
    """Makes one plan, scalar by scalar."""

    def __init__(self, types: Translations, program_widths: Sequence[int], what: str) -> None:
        """Args:
        types: P4Info's types and their translations.
        program_widths: the scalars' widths in the program; P4Info lacks those of translated types.
        what: the name of the type's owner in errors.
        """
        self._types = types
        self._program_widths = program_widths
        self._what = what
        self._scalar_count = 0  # scalars that have plans

    def plan(self, spec: p4t.P4DataTypeSpec, depth: int = 0) -> TypePlan:
        """The plan of a type that is nested in `depth` others.

        Raises:
            P4RtError: INVALID_ARGUMENT: P4Info contradicts itself, or the type is not supported.
        """
        info, what = self._types.types, self._what
        if depth > _MOST_DEPTH:
            raise invalid(f"{what}: its type in P4Info is nested more than {_MOST_DEPTH} deep")
        self._count(1)
        kind = spec.WhichOneof("type_spec")
        if kind == "tuple":
            return _Members("tuple", [self.plan(m, depth + 1) for m in spec.tuple.members])
        if kind == "struct" and spec.struct.name in info.structs:
            members = info.structs[spec.struct.name].members
            return _Members("struct", [self.plan(m.type_spec, depth + 1) for m in members])
        if kind == "new_type" and spec.new_type.name in info.new_types:
            new_type = info.new_types[spec.new_type.name]
            if new_type.WhichOneof("representation") == "original_type":
                return self.plan(new_type.original_type, depth + 1)
        leaf = self._leaf(spec, kind)
        self._scalar_count += len(leaf.widths)
        return leaf

    def _count(self, parts: int) -> None:
        """Counts types within types, before their plans are made."""
        self._types.parts += parts
        if self._types.parts > MOST_PARTS:
            raise invalid(
                f"{self._what}: with it the types in P4Info have at least {self._types.parts} parts; "
                f"the limit is {MOST_PARTS}"
            )

    def _leaf(self, spec: p4t.P4DataTypeSpec, kind: str | None) -> TypePlan:
        """The plan of a scalar or a header."""
        info, what = self._types.types, self._what
        if kind == "bitstring":
            return _bitstring(spec.bitstring, what)
        if kind == "bool":
            return _Scalar(1, bool, lambda value, _what: int(value), "bool", "a bool")
        if kind == "header" and spec.header.name in info.headers:
            fields = info.headers[spec.header.name].members
            self._count(len(fields))
            return _Header(tuple(_bitstring(f.type_spec, what).widths[0] for f in fields))
        if kind == "serializable_enum" and spec.serializable_enum.name in info.serializable_enums:
            bits = info.serializable_enums[spec.serializable_enum.name].underlying_type.bitwidth
            return _unsigned(bits, "enum_value", "an enum value")
        if kind == "new_type" and self._scalar_count < len(self._program_widths):
            bits = self._program_widths[self._scalar_count]
            sdn = self._types.sdn(spec.new_type.name, bits)
            if sdn is not None:
                return _Scalar(bits, sdn.to_sdn, sdn.to_wire)
        raise _unsupported(what, kind)


def _bitstring(spec: p4t.P4BitstringLikeTypeSpec, what: str) -> TypePlan:
    kind = spec.WhichOneof("type_spec")
    if kind == "bit" and spec.bit.bitwidth > 0:
        return _unsigned(spec.bit.bitwidth)
    if kind == "int" and spec.int.bitwidth > 0:
        return _signed(spec.int.bitwidth)
    raise _unsupported(what, kind)


def _unsupported(what: str, kind: str | None) -> P4RtError:
    return invalid(f"{what}: type '{kind}' in P4Info is unknown or not supported")
