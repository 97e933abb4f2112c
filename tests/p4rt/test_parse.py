# SPDX-License-Identifier: Apache-2.0
"""Values as people write them, as P4Runtime's bytestrings and matches."""

from __future__ import annotations

from typing import Any

import pytest
from finsy.proto import p4i, p4t
from hypothesis import given
from hypothesis import strategies as st

from tailrace.p4rt.by_name import parse
from tailrace.p4rt.fields import FieldKind, TypedField, data_field, fields_of, make_field
from tailrace.spec import SpecError

_M = p4i.MatchField


def signed(width: int) -> TypedField:
    spec = p4t.P4DataTypeSpec()
    spec.bitstring.int.bitwidth = width
    return data_field("f", spec, p4t.P4TypeInfo())


@pytest.mark.parametrize(
    ("width", "value", "octets"),
    [
        (8, 0, b"\0"),
        (16, 255, b"\xff"),
        (16, [255], b"\xff"),
        (16, [["0xff"]], b"\xff"),
        (9, "0x1FF", b"\1\xff"),
        (8, " 7 ", b"\7"),
        (1, True, b"\1"),
        (16, -1, b"\xff\xff"),
        (8, -128, b"\x80"),
        (32, "10.0.0.1", b"\x0a\0\0\1"),
        (32, "167772161", b"\x0a\0\0\1"),
        (48, "08:00:00:00:01:11", b"\x08\0\0\0\1\x11"),
        (48, "8-0-0-0-1-11", b"\x08\0\0\0\1\x11"),
        (128, "::1", b"\1"),
        (128, "2001:db8::", b"\x20\1\x0d\xb8" + bytes(12)),
    ],
)
def test_values(width: int, value: Any, octets: bytes) -> None:
    assert parse.octets(make_field("f", width), value) == octets


@pytest.mark.parametrize(
    ("width", "value", "said"),
    [
        (8, 256, "f: 256 does not fit bit<8>"),
        (8, -129, "f: -129 does not fit bit<8>"),
        (8, "-1", "does not fit bit<8>"),
        (8, "ten", "f: 'ten' is not a number such as 5 or 0x1f"),
        (8, "", "is not a number"),
        (8, "1_0", "is not a number"),
        (8, "٣", "is not a number"),
        (8, 1.0, "f: 1.0 is not a number or a string"),
        (8, None, "None is not"),
        (8, [1, 2], "is not a number"),
        (8, {}, "is not a number"),
        (32, "300.1.1.1", "'300.1.1.1' is not an IPv4 address"),
        (32, "10.0.0.0/8", "is not an IPv4 address"),
        (32, "10.0.0", "is not an IPv4 address"),
        (16, "10.0.0.1", "is not a number"),
        (48, "08:00:00:00:01", "is not a MAC address"),
        (128, ":::", "is not an IPv6 address"),
        (64, "9" * 5000, "is not a number"),
        (64, 1 << 9_000, "does not fit bit<64>"),
    ],
)
def test_what_is_no_value(width: int, value: Any, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse.octets(make_field("f", width), value)
    assert said in str(caught.value) and len(str(caught.value)) < 200


@given(st.integers(1, 130), st.data())
def test_signed_values_have_their_shortest_form(width: int, data: st.DataObject) -> None:
    """P4Runtime 8.3: the fewest octets of two's complement, which are read back as the same value."""
    field, value = signed(width), data.draw(st.integers(-(1 << (width - 1)), (1 << (width - 1)) - 1))
    octets = parse.octets(field, data.draw(st.sampled_from((value, str(value)))))
    assert field.from_bytes(octets, lambda _: None) == value
    assert len(octets) == 1 or octets[0] not in (0, 0xFF) or (octets[0] ^ octets[1]) & 0x80


def test_the_specifications_examples_of_signed_values() -> None:
    for width, value, octets in (
        (8, 99, b"\x63"),
        (8, -99, b"\x9d"),
        (12, -739, b"\xfd\x1d"),
        (16, 0, b"\0"),
    ):
        assert parse.octets(signed(width), value) == octets
    for wrong in (128, -129, "128"):
        with pytest.raises(SpecError, match="does not fit int<8>"):
            parse.octets(signed(8), wrong)


def translated(*, string: bool) -> TypedField:
    types = p4t.P4TypeInfo()
    made = types.new_types["T"].translated_type
    if string:
        made.sdn_string.SetInParent()
    else:
        made.sdn_bitwidth = 32
    param = p4i.Action.Param(
        id=1, name="f", bitwidth=0 if string else 32, type_name=p4t.P4NamedType(name="T")
    )
    return fields_of([param], types)[1]


def test_translated_values() -> None:
    assert parse.octets(translated(string=True), "eth0") == b"eth0"
    assert parse.octets(translated(string=True), 7) == b"7"
    assert translated(string=True).from_bytes(b"eth0", lambda _: None) == "eth0"
    assert parse.octets(translated(string=False), 1 << 31) == b"\x80\0\0\0"


def test_a_field_without_a_type_takes_numbers() -> None:
    """Of `error` P4Info gives neither a width nor a type."""
    field = fields_of([p4i.MatchField(id=1, name="f")], p4t.P4TypeInfo())[1]
    assert field.kind is FieldKind.NUMBER
    assert parse.octets(field, 3) == b"\3"


def test_an_enums_members_by_name() -> None:
    types = p4t.P4TypeInfo()
    types.serializable_enums["E"].underlying_type.bitwidth = 8
    types.serializable_enums["E"].members.add(name="UP", value=b"\2")
    assert parse.octets(make_field("f", 8, type_name="E", types=types), "UP") == b"\2"


@pytest.mark.parametrize(
    ("kind", "width", "value", "text"),
    [
        (_M.EXACT, 32, ["10.0.0.1"], "10.0.0.1"),
        (_M.LPM, 32, ["10.0.1.7", 24], "10.0.1.0/24"),
        (_M.LPM, 32, ["10.0.1.0", "24"], "10.0.1.0/24"),
        (_M.LPM, 32, "10.0.1.0/24", "10.0.1.0/24"),
        (_M.LPM, 32, "10.0.1.1", "10.0.1.1/32"),
        (_M.LPM, 32, [["10.0.1.1"], 32], "10.0.1.1/32"),
        (_M.LPM, 32, ["10.0.1.1", 0], "None"),
        (_M.TERNARY, 32, ["10.1.2.3", "255.255.0.0"], "10.1.0.0/16"),
        (_M.TERNARY, 32, "10.0.0.0/8", "10.0.0.0/8"),
        (_M.TERNARY, 32, "10.0.0.1&&&0xff", "0.0.0.1&&&0xff"),
        (_M.TERNARY, 32, "10.0.0.1/&255", "0.0.0.1&&&0xff"),
        (_M.TERNARY, 32, 5, "0.0.0.5"),
        (_M.TERNARY, 32, [5, 0], "None"),
        (_M.RANGE, 16, [80, "443"], "80..443"),
        (_M.RANGE, 16, "80->443", "80..443"),
        (_M.RANGE, 16, "80...443", "80..443"),
        (_M.RANGE, 16, "80..443", "80..443"),
        (_M.RANGE, 16, 80, "80..80"),
        (_M.RANGE, 16, [0, 65535], "None"),
        (_M.OPTIONAL, 16, [80], "80"),
    ],
)
def test_matches(kind: Any, width: int, value: Any, text: str) -> None:
    info = p4i.MatchField(id=3, name="dst" if width == 32 else "f", bitwidth=width, match_type=kind)
    field = fields_of([info], p4t.P4TypeInfo())[3]
    parsed = parse.match(field, info, value)
    assert (text == "None") is (parsed is None)
    if parsed is not None:
        assert (parsed.field_id, str(field.from_match(parsed, lambda _: None))) == (3, text)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (_M.LPM, ["10.0.0.0", 33], "33 is not a prefix length of 0 to 32"),
        (_M.LPM, "10.0.0.0/-1", "is not a prefix length"),
        (_M.LPM, "10.0.0.0/", "is not a prefix length"),
        (_M.LPM, ["10.0.0.0", True], "True"),
        (_M.LPM, [1, 2, 3], "expected one value or two, found 3"),
        (_M.LPM, [], "expected one value or two, found 0"),
        (_M.TERNARY, ["10.0.0.0", "x"], "'x' is not a number"),
        (_M.RANGE, [5, 4], "5 is above 4"),
        (_M.EXACT, ["10.0.0.0", 8], "is not a number"),
        (_M.UNSPECIFIED, 1, "none of P4Runtime's"),
        (_M.TERNARY, " " * 200_000, "is not a number"),
    ],
)
def test_what_is_no_match(kind: Any, value: Any, said: str) -> None:
    info = p4i.MatchField(id=1, name="dst", bitwidth=32, match_type=kind)
    with pytest.raises(SpecError) as caught:
        parse.match(fields_of([info], p4t.P4TypeInfo())[1], info, value)
    assert said in str(caught.value) and len(str(caught.value)) < 200
