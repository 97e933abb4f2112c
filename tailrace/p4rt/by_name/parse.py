# SPDX-License-Identifier: Apache-2.0
"""Parses values to P4Runtime's bytestrings and matches (specification 8.3 and 9.1.1).

A value is an integer or a string. The string is a number (decimal, 0x, 0b or 0o), an IPv4, IPv6 or MAC
address for fields of that width, the name of an enum's member, or any text for a type translated to
sdn_string. A list of one value is the same as that value. A negative integer stands for its two's complement,
as in p4lang's tutorials.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from tailrace.p4rt.fields import FieldKind, TypedField
from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.values import Mac
from tailrace.spec import SpecError

_ADDRESSES: Mapping[int, tuple[str, str, Callable[[str], int]]] = {
    32: (".", "an IPv4 address", lambda text: int(IPv4Address(text))),
    48: (":", "a MAC address", lambda text: Mac.parse(text).number),
    128: (":", "an IPv6 address", lambda text: int(IPv6Address(text))),
}
"""By width: separator, name and parser of addresses."""
_DIGITS = re.compile(r"-?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0+|[1-9][0-9]*)", re.ASCII)
_MOST_DIGITS = 1 << 12
_SHOWN = 60


def octets(field: TypedField, value: object) -> bytes:
    """The shortest bytestring of a value.

    Raises:
        SpecError: the value does not have the field's type, or is too large or too small.
    """
    value = _single(value)
    if field.kind is FieldKind.TEXT:
        if not isinstance(value, (str, int)):
            raise _wrong_type(field, value, "a string")
        return str(value).encode("utf-8", "surrogatepass")
    return field.to_bytes(number(field, value))


def number(field: TypedField, value: object) -> int:
    """The number of a value, in the range of the field's type; raises SpecError like `octets`."""
    value = _single(value)
    if isinstance(value, str):
        result = _number_of_text(field, value.strip())
        allows_negative = field.signed
    elif isinstance(value, int):
        result, allows_negative = int(value), True
    else:
        raise _wrong_type(field, value, "a number or a string")
    width = field.width or result.bit_length() + 1
    least = -(1 << (width - 1)) if allows_negative else 0
    most = (1 << (width - field.signed)) - 1
    if not least <= result <= most:
        kind = "int" if field.signed else "bit"
        raise SpecError(f"{field.name}: {_shown(value)} does not fit {kind}<{field.width}>")
    return result if field.signed else result & (1 << width) - 1


def _single(value: object) -> object:
    while isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    return value


def _number_of_text(field: TypedField, text: str) -> int:
    for value, member in field.members.items():
        if text == member:
            return value
    if field.width in _ADDRESSES:
        separator, name, number_of = _ADDRESSES[field.width]
        if separator in text or (field.width == 48 and "-" in text[1:]):
            try:
                return number_of(text)
            except ValueError:
                raise _wrong_type(field, text, name) from None
    if len(text) > _MOST_DIGITS or not _DIGITS.fullmatch(text):
        raise _wrong_type(field, text, "a number such as 5 or 0x1f" + _alternatives(field))
    return int(text, 0)


def _alternatives(field: TypedField) -> str:
    if field.members:
        return f", or one of {', '.join(list(field.members.values())[:4])}"
    return f", or {_ADDRESSES[field.width][1]}" if field.width in _ADDRESSES else ""


def _wrong_type(field: TypedField, value: object, what: str) -> SpecError:
    return SpecError(f"{field.name}: {_shown(value)} is not {what}")


def _shown(value: object) -> str:
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 512 else hex(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# ---- matches ----


def match(field: TypedField, info: p4i.MatchField, value: Any) -> p4r.FieldMatch | None:
    """The match of a field; None: don't care, which P4Runtime omits.

    Besides single values, LPM fields take [value, length] or "value/length"; ternary fields [value, mask],
    "value&&&mask" or "value/length"; range fields [low, high], "low->high" or "low..high".

    Raises:
        SpecError: the value is not a valid match for the field.
    """
    kind = info.match_type
    field_match = p4r.FieldMatch(field_id=info.id)
    if kind == p4i.MatchField.EXACT:
        field_match.exact.value = octets(field, value)
    elif kind == p4i.MatchField.OPTIONAL:
        field_match.optional.value = octets(field, value)
    elif kind == p4i.MatchField.LPM:
        bits, length = _prefix(field, _pair(value, "/"))
        if not length:
            return None
        field_match.lpm.value, field_match.lpm.prefix_len = field.to_bytes(bits), length
    elif kind == p4i.MatchField.TERNARY:
        bits, mask = _value_and_mask(field, value)
        if not mask:
            return None
        field_match.ternary.value, field_match.ternary.mask = field.to_bytes(bits), field.to_bytes(mask)
    elif kind == p4i.MatchField.RANGE:
        pair = _pair(value, "->", "...", "..")
        low, high = number(field, pair[0]), number(field, pair[-1])
        if low > high:
            raise SpecError(f"{field.name}: {_shown(pair[0])} is above {_shown(pair[-1])}")
        if low == 0 and high == (1 << field.width) - 1:
            return None
        field_match.range.low, field_match.range.high = field.to_bytes(low), field.to_bytes(high)
    else:
        raise SpecError(f"{field.name}: its match kind is none of P4Runtime's")
    return field_match


def _pair(value: Any, *separators: str) -> Sequence[Any]:
    """The parts of a match: one or two."""
    if isinstance(value, str):
        separator = next((each for each in separators if each in value), None)
        return (value,) if separator is None else value.partition(separator)[::2]
    if isinstance(value, (list, tuple)):
        if not 1 <= len(value) <= 2:
            raise SpecError(f"expected one value or two, found {len(value)}")
        return value
    return (value,)


def _prefix(field: TypedField, pair: Sequence[Any]) -> tuple[int, int]:
    """A value with the bits after its prefix cleared, and the prefix length."""
    length = field.width
    if len(pair) == 2:
        text = str(pair[1]).strip()
        if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) or int(text) > field.width:
            raise SpecError(f"{field.name}: {_shown(pair[1])} is not a prefix length of 0 to {field.width}")
        length = int(text)
    mask = (1 << field.width) - (1 << (field.width - length))
    return number(field, pair[0]) & mask, length


def _value_and_mask(field: TypedField, value: Any) -> tuple[int, int]:
    """A value with the bits outside its mask cleared, and the mask."""
    pair = _pair(value, "&&&", "/&", "&")
    if len(pair) == 1 and isinstance(value, str) and "/" in value:
        bits, length = _prefix(field, _pair(value, "/"))
        return bits, (1 << field.width) - (1 << (field.width - length))
    mask = number(field, pair[1]) if len(pair) == 2 else (1 << field.width) - 1
    return number(field, pair[0]) & mask, mask
