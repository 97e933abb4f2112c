# SPDX-License-Identifier: Apache-2.0
"""P4Data for the types that P4Info describes: a type becomes a plan, which turns P4Data into integers and
back.

In the data plane a value of any type is a list of unsigned integers, one for each scalar inside it, in order
of declaration. Signed scalars are kept in two's complement of their width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from finsy.proto import p4d, p4t

from tailrace.p4rt.status import P4RtError, invalid
from tailrace.switch.p4runtime.entities.bytestring import decode, decode_signed, encode, encode_signed
from tailrace.switch.p4runtime.entities.translation import Sdn, Translations

MOST_PARTS = 1 << 16
"""Types within all types of a P4Info: a few nested structs could make millions."""
_MOST_DEPTH = 32


class TypePlan(ABC):
    """The layout of a P4 type in the data plane; `widths`: bits of its scalars."""

    widths: tuple[int, ...]

    @abstractmethod
    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        """Takes this type's scalars from `values` and puts them into `data`."""

    @abstractmethod
    def decode(self, data: p4d.P4Data, what: str) -> list[int]:
        """The scalars in `data`; `what` names it in errors (INVALID_ARGUMENT, OUT_OF_RANGE)."""


class _Bits(TypePlan):
    def __init__(self, bits: int) -> None:
        self.widths = (bits,)

    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        data.bitstring = encode(next(values))

    def decode(self, data: p4d.P4Data, what: str) -> list[int]:
        if data.WhichOneof("data") != "bitstring":
            raise invalid(f"{what}: a bitstring is expected")
        return [decode(data.bitstring, self.widths[0], what)]


class _SignedBits(_Bits):
    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        value, bits = next(values), self.widths[0]
        data.bitstring = encode_signed(value - (1 << bits) if value >> (bits - 1) else value)

    def decode(self, data: p4d.P4Data, what: str) -> list[int]:
        if data.WhichOneof("data") != "bitstring":
            raise invalid(f"{what}: a bitstring is expected")
        return [decode_signed(data.bitstring, self.widths[0], what) & (1 << self.widths[0]) - 1]


class _Translated(TypePlan):
    """A translated type: a number or a string."""

    def __init__(self, sdn: Sdn, bits: int) -> None:
        self.widths = (bits,)
        self._sdn = sdn

    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        data.bitstring = self._sdn.to_sdn(next(values))

    def decode(self, data: p4d.P4Data, what: str) -> list[int]:
        if data.WhichOneof("data") != "bitstring":
            raise invalid(f"{what}: a bitstring is expected")
        return [self._sdn.to_wire(data.bitstring, what)]


class _Bool(TypePlan):
    widths = (1,)

    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        data.bool = bool(next(values))

    def decode(self, data: p4d.P4Data, what: str) -> list[int]:
        if data.WhichOneof("data") != "bool":
            raise invalid(f"{what}: a bool is expected")
        return [int(data.bool)]


class _SerializableEnum(TypePlan):
    def __init__(self, bits: int) -> None:
        self.widths = (bits,)

    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        data.enum_value = encode(next(values))

    def decode(self, data: p4d.P4Data, what: str) -> list[int]:
        if data.WhichOneof("data") != "enum_value":
            raise invalid(f"{what}: an enum value is expected")
        return [decode(data.enum_value, self.widths[0], what)]


class _Members(TypePlan):
    """A struct or a tuple."""

    def __init__(self, kind: str, members: Sequence[TypePlan]) -> None:
        self.kind = kind
        self.members = members
        self.widths = tuple(bits for member in members for bits in member.widths)

    def encode(self, values: Iterator[int], data: p4d.P4Data) -> None:
        like = data.struct if self.kind == "struct" else data.tuple
        like.SetInParent()
        for member in self.members:
            member.encode(values, like.members.add())

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


def plan_of(spec: p4t.P4DataTypeSpec, types: Translations, program: Sequence[int], what: str) -> TypePlan:
    """The plan of a type in P4Info.

    Args:
        spec: the type.
        types: P4Info's types and their translations.
        program: the widths of its scalars in the program; P4Info lacks those of translated types.
        what: names the owner in errors.

    Raises:
        P4RtError: INVALID_ARGUMENT when P4Info contradicts itself or the type cannot be a data-plane scalar
        or record.
    """
    return _Planner(types, list(program), what).plan(spec, 0)


class _Planner:
    """Makes one plan, scalar by scalar."""

    def __init__(self, types: Translations, program: list[int], what: str) -> None:
        self._types = types
        self._program = program
        self._what = what
        self._scalars = 0

    def plan(self, spec: p4t.P4DataTypeSpec, depth: int) -> TypePlan:
        """The plan of a type at a depth of nesting."""
        info, what = self._types.types, self._what
        if depth > _MOST_DEPTH:
            raise invalid(f"{what}: its type in P4Info is nested without end")
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
        scalar = self._scalar(spec, kind)
        self._scalars += len(scalar.widths)
        return scalar

    def _count(self, parts: int) -> None:
        """Counts parts before they are made."""
        self._types.parts += parts
        if self._types.parts > MOST_PARTS:
            raise invalid(
                f"{self._what}: with it the types in P4Info have {self._types.parts} parts and more; "
                f"the limit is {MOST_PARTS}"
            )

    def _scalar(self, spec: p4t.P4DataTypeSpec, kind: str | None) -> TypePlan:
        info, what = self._types.types, self._what
        if kind == "bitstring":
            return _bitstring(spec.bitstring, what)
        if kind == "bool":
            return _Bool()
        if kind == "header" and spec.header.name in info.headers:
            fields = info.headers[spec.header.name].members
            self._count(len(fields))
            return _Header(tuple(_bitstring(f.type_spec, what).widths[0] for f in fields))
        if kind == "serializable_enum" and spec.serializable_enum.name in info.serializable_enums:
            return _SerializableEnum(
                info.serializable_enums[spec.serializable_enum.name].underlying_type.bitwidth
            )
        if kind == "new_type" and self._scalars < len(self._program):
            bits = self._program[self._scalars]
            sdn = self._types.sdn(spec.new_type.name, bits)
            if sdn is not None:
                return _Translated(sdn, bits)
        raise _unsupported(what, kind)


def _bitstring(spec: p4t.P4BitstringLikeTypeSpec, what: str) -> TypePlan:
    kind = spec.WhichOneof("type_spec")
    if kind == "bit" and spec.bit.bitwidth > 0:
        return _Bits(spec.bit.bitwidth)
    if kind == "int" and spec.int.bitwidth > 0:
        return _SignedBits(spec.int.bitwidth)
    raise _unsupported(what, kind)


def _unsupported(what: str, kind: str | None) -> P4RtError:
    return invalid(f"{what}: type '{kind}' in P4Info is not known or not supported here")
