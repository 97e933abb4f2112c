# SPDX-License-Identifier: Apache-2.0
"""The kind of a P4Info field, and its typed value from P4Runtime's bytestrings.

P4Info contains a field's width, sometimes a type, rarely a format. The first rule that applies determines the
field's kind, that is, how its value is shown:

1. type is a serializable enum: the member's name;
2. annotation @format(IPV4_ADDRESS), @format(IPV6_ADDRESS) or @format(MAC_ADDRESS);
3. width 0: text (P4Runtime's SDN strings), or a number if P4Info contains no type, as for `error`;
4. width 9: a port (v1model's PortId_t is the only 9-bit type that programs use);
5. width 32, 48 or 128 and a name that suggests an address: IPv4, MAC or IPv6;
6. width above 64: hexadecimal; otherwise a number.

A name suggests an address if its parts include one of ADDRESS_TERMS, or "next" and "hop", and none of
NON_ADDRESS_TERMS. Only the last component of a name counts (`dstAddr` of `hdr.ipv4.dstAddr`); it is split
into parts at underscores and capitals.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import msgspec

from tailrace.p4rt.messages import p4i, p4r, p4t
from tailrace.p4rt.values import Interval, Mac, Masked, SwitchPort, Value, Wide

PeerOf = Callable[[int], "str | None"]
"""Returns the name of the neighbour at a port; None: unknown."""

PORT_BITS = 9
_JSON_BITS = 64
ADDRESS_TERMS = frozenset(
    {"addr", "address", "dest", "destination", "dip", "dmac", "dst", "gateway", "gw", "ip", "ipv4", "ipv6"}
    | {"mac", "nexthop", "nhop", "sip", "smac", "source", "src"}
)
NON_ADDRESS_TERMS = frozenset(
    {"bytes", "checksum", "count", "csum", "hash", "id", "index", "label", "latency", "len", "length", "port"}
    | {"proto", "protocol", "size", "time", "ttl", "type"}
)
_ADDRESS_BITS = {32: "IPV4", 48: "MAC", 128: "IPV6"}
_MOST_DEPTH = 32
"""The greatest depth of `type` declarations that refer to each other."""
_NAME_PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_FORMATS = {"IPV4_ADDRESS": "IPV4", "IPV6_ADDRESS": "IPV6", "MAC_ADDRESS": "MAC"}


class FieldKind(enum.Enum):
    """How a field's value is shown."""

    NUMBER = "number"
    WIDE = "wide number"
    ENUM = "enum"
    IPV4 = "IPv4 address"
    IPV6 = "IPv6 address"
    MAC = "MAC address"
    PORT = "port"
    TEXT = "text"


class TypedField(msgspec.Struct, frozen=True):
    """A match field, an action's parameter, a member of a struct or an index.

    width: in bits; 0 for text (P4Runtime's SDN strings)
    members: names of an enum's values, else empty
    signed: whether the type is int<width>, in two's complement
    """

    name: str
    width: int
    kind: FieldKind
    members: Mapping[int, str]
    signed: bool = False

    def value(self, number: int, peer_of: PeerOf) -> Value:
        """The typed value of a number."""
        if self.kind is FieldKind.ENUM:
            return self.members.get(number, str(number))
        if self.kind is FieldKind.PORT:
            return SwitchPort(number, peer_of(number))
        return _CONVERSIONS.get(self.kind, _as_number)(number)

    def from_bytes(self, data: bytes, peer_of: PeerOf) -> Value:
        """The typed value of a P4Runtime bytestring."""
        if self.kind is FieldKind.TEXT:
            return data.decode(errors="replace")
        return self.value(int.from_bytes(data, "big", signed=self.signed), peer_of)

    def to_bytes(self, number: int) -> bytes:
        """The shortest bytestring of a number (P4Runtime specification 8.3)."""
        bits = (number if number >= 0 else ~number).bit_length() + self.signed
        return number.to_bytes((bits + 7) // 8 or 1, "big", signed=self.signed)

    def from_match(self, match: p4r.FieldMatch, peer_of: PeerOf) -> Value:
        """The typed value of a match."""
        which = match.WhichOneof("field_match_type")
        if which == "exact":
            return self.from_bytes(match.exact.value, peer_of)
        if which == "optional":
            return self.from_bytes(match.optional.value, peer_of)
        if which == "lpm":
            low_bits = (1 << match.lpm.prefix_len) - 1
            mask = low_bits << (self.width - match.lpm.prefix_len)
            return self._masked(match.lpm.value, mask, peer_of, prefix=True)
        if which == "ternary":
            mask = int.from_bytes(match.ternary.mask, "big")
            return self._masked(match.ternary.value, mask, peer_of, prefix=False)
        if which == "range":
            return Interval(
                self.from_bytes(match.range.low, peer_of), self.from_bytes(match.range.high, peer_of)
            )
        return None

    def _masked(self, data: bytes, mask: int, peer_of: PeerOf, *, prefix: bool) -> Value:
        """Addresses with a prefix mask become networks; ternary values with a full mask become values."""
        number, prefix_bits = int.from_bytes(data, "big"), mask.bit_count()
        if mask == (1 << self.width) - 1 and not prefix:
            return self.value(number, peer_of)
        leading = mask == ((1 << prefix_bits) - 1) << (self.width - prefix_bits)
        if leading and self.kind is FieldKind.IPV4:
            return IPv4Network((number, prefix_bits))
        if leading and self.kind is FieldKind.IPV6:
            return IPv6Network((number, prefix_bits))
        return Masked(self.value(number, peer_of), mask, self.width)


def _as_number(number: int) -> Value:
    return number


_CONVERSIONS: Mapping[FieldKind, Callable[[int], Value]] = {
    FieldKind.IPV4: IPv4Address,
    FieldKind.IPV6: IPv6Address,
    FieldKind.MAC: Mac,
    FieldKind.WIDE: Wide,
}


def make_field(
    name: str,
    width: int,
    *,
    annotations: tuple[str, ...] = (),
    type_name: str = "",
    types: p4t.P4TypeInfo | None = None,
) -> TypedField:
    """A field of the kind that the rules at the top of this file determine.

    Args:
        name: the field's name in P4Info, with or without the headers before it.
        width: width of the field in bits.
        annotations: the field's annotations in P4Info, as text.
        type_name: name of the field's P4 type; empty: the type has no name.
        types: P4Info's types.
    """
    members = enum_members(types, type_name)
    if members:
        return TypedField(name, width, FieldKind.ENUM, members)
    if types is not None and type_name in types.new_types:
        translated = types.new_types[type_name].translated_type
        width = 0 if translated.HasField("sdn_string") else translated.sdn_bitwidth or width
    if width == 0 and types is not None and not type_name:
        return TypedField(name, width, FieldKind.NUMBER, {})
    return TypedField(name, width, _kind(name, width, annotations), {})


def _kind(name: str, width: int, annotations: tuple[str, ...]) -> FieldKind:
    for annotation in annotations:
        for text, kind in _FORMATS.items():
            if annotation.startswith("@format") and text in annotation:
                return FieldKind[kind]
    if width == 0:
        return FieldKind.TEXT
    if width == PORT_BITS:
        return FieldKind.PORT
    if width in _ADDRESS_BITS and _suggests_address(name):
        return FieldKind[_ADDRESS_BITS[width]]
    return FieldKind.WIDE if width > _JSON_BITS else FieldKind.NUMBER


def _suggests_address(name: str) -> bool:
    last = re.sub(r"\[.*\]$", "", name).rsplit(".", 1)[-1]
    parts = {part.lower() for part in _NAME_PART.findall(last)}
    if parts & NON_ADDRESS_TERMS:
        return False
    return bool(parts & ADDRESS_TERMS) or {"next", "hop"} <= parts


def enum_members(types: p4t.P4TypeInfo | None, type_name: str) -> Mapping[int, str]:
    """Names of the values of a serializable enum; empty when there is no such enum."""
    if types is None or type_name not in types.serializable_enums:
        return {}
    members = types.serializable_enums[type_name].members
    return {int.from_bytes(member.value, "big"): member.name for member in members}


def fields_of(
    members: Iterable[p4i.MatchField | p4i.Action.Param], types: p4t.P4TypeInfo
) -> dict[int, TypedField]:
    """The key fields of a table, or the parameters of an action, by id; without a name the id is the name."""
    return {
        member.id: make_field(
            member.name or str(member.id),
            member.bitwidth,
            annotations=tuple(member.annotations),
            type_name=member.type_name.name,
            types=types,
        )
        for member in members
    }


def data_field(name: str, spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo) -> TypedField:
    """The field of a P4Data scalar: a bitstring, a serializable enum, or a translated type."""
    which = spec.bitstring.WhichOneof("type_spec")
    if which is None:
        enum_name = spec.serializable_enum.name
        width = _JSON_BITS if enum_name else 0  # any width but 0, which would mean text
        return make_field(name, width, type_name=enum_name or spec.new_type.name, types=types)
    bits = getattr(spec.bitstring, which)
    width = bits.max_bitwidth if which == "varbit" else bits.bitwidth
    if which == "int":
        return TypedField(name, width, FieldKind.NUMBER, {}, signed=True)
    return make_field(name, max(width, 1))


def original(spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo) -> p4t.P4DataTypeSpec:
    """The original type of a `type` declaration, through further declarations, up to a translated type."""
    for _ in range(_MOST_DEPTH):
        name = spec.new_type.name
        if name not in types.new_types or not types.new_types[name].HasField("original_type"):
            break
        spec = types.new_types[name].original_type
    return spec
