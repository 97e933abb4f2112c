# SPDX-License-Identifier: Apache-2.0
"""What kind of value a field holds, and its text and JSON."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from itertools import pairwise

import pytest
from finsy.proto import p4r, p4t
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.p4rt.fields import FieldKind, make_field
from tailrace.p4rt.values import (
    Interval,
    Mac,
    Masked,
    SwitchPort,
    Value,
    Wide,
    json_of,
    natural_key,
    sort_key,
    text_of,
)


def nobody(_port: int) -> None:
    return None


@pytest.mark.parametrize(
    ("name", "width", "kind"),
    [
        ("hdr.ipv4.dstAddr", 32, FieldKind.IPV4),
        ("dst", 32, FieldKind.IPV4),
        ("next_hop", 32, FieldKind.IPV4),
        ("nhop_ipv4", 32, FieldKind.IPV4),
        ("hdr.ipv6.src_addr", 128, FieldKind.IPV6),
        ("hdr.ethernet.dstAddr", 48, FieldKind.MAC),
        ("dst_mac", 48, FieldKind.MAC),
        ("srcMac", 48, FieldKind.MAC),
        ("ingress_global_timestamp", 48, FieldKind.NUMBER),
        ("src_count", 32, FieldKind.NUMBER),
        ("dst_id", 32, FieldKind.NUMBER),
        ("hop_latency", 32, FieldKind.NUMBER),
        ("limit_bytes", 32, FieldKind.NUMBER),
        ("hash_seed", 32, FieldKind.NUMBER),
        ("dst_port", 16, FieldKind.NUMBER),
        ("port", 9, FieldKind.PORT),
        ("egress_spec", 9, FieldKind.PORT),
        ("port", 16, FieldKind.NUMBER),
        ("key", 104, FieldKind.WIDE),
        ("label", 0, FieldKind.TEXT),
    ],
)
def test_kind_by_name_and_width(name: str, width: int, kind: FieldKind) -> None:
    assert make_field(name, width).kind is kind


def test_a_format_annotation_wins_over_the_name() -> None:
    assert make_field("key", 32, annotations=("@format(IPV4_ADDRESS)",)).kind is FieldKind.IPV4
    assert make_field("dst", 48, annotations=("@format(MAC_ADDRESS)",)).kind is FieldKind.MAC


def test_an_enum_shows_names_and_unknown_numbers() -> None:
    types = p4t.P4TypeInfo()
    enum = types.serializable_enums["State_t"]
    enum.underlying_type.bitwidth = 8
    enum.members.add(name="IDLE", value=b"\0")
    field = make_field("state", 8, type_name="State_t", types=types)
    assert field.value(0, nobody) == "IDLE"
    assert field.value(9, nobody) == "9"


def match(kind: str, **values: object) -> p4r.FieldMatch:
    field_match = p4r.FieldMatch(field_id=1)
    for name, value in values.items():
        setattr(getattr(field_match, kind), name, value)
    return field_match


@pytest.mark.parametrize(
    ("name", "width", "given_match", "value", "text"),
    [
        ("dst", 32, match("exact", value=b"\x0a\0\0\1"), IPv4Address("10.0.0.1"), "10.0.0.1"),
        ("dst", 32, match("lpm", value=b"\x0a\0\1\0", prefix_len=24), IPv4Network("10.0.1.0/24"), "10.0.1.0/24"),
        ("dst", 32, match("lpm", value=b"\x0a\0\1\0", prefix_len=32), IPv4Network("10.0.1.0/32"), "10.0.1.0/32"),
        ("dst", 32, match("ternary", value=b"\x0a\0\0\0", mask=b"\xff\0\0\0"), IPv4Network("10.0.0.0/8"), "10.0.0.0/8"),
        ("dst", 32, match("ternary", value=b"\x05", mask=b"\xff"), Masked(IPv4Address(5), 255, 32), "0.0.0.5&&&0xff"),
        ("dst", 128, match("lpm", value=b"\x20\x01" + bytes(14), prefix_len=16), IPv6Network("2001::/16"), "2001::/16"),
        ("dst", 128, match("optional", value=b"\1"), IPv6Address("::1"), "::1"),
        ("type", 16, match("ternary", value=b"\x08\0", mask=b"\xff\0"), Masked(0x800, 0xFF00, 16), "0x800/8"),
        ("type", 16, match("ternary", value=b"\x08\0", mask=b"\xff\xff"), 0x800, "2048"),
        ("type", 16, match("lpm", value=b"\x08\0", prefix_len=5), Masked(0x800, 0xF800, 16), "0x800/5"),
        ("dport", 16, match("range", low=b"\x50", high=b"\1\xbb"), Interval(80, 443), "80..443"),
        ("mac", 48, match("exact", value=b"\1"), Mac(1), "00:00:00:00:00:01"),
        ("port", 9, match("exact", value=b"\1\xfe"), SwitchPort(510), "510"),
        ("key", 100, match("exact", value=b"\1" + bytes(9)), Wide(1 << 72), "0x1000000000000000000"),
    ],
)  # fmt: skip
def test_matches(name: str, width: int, given_match: p4r.FieldMatch, value: Value, text: str) -> None:
    converted = make_field(name, width).from_match(given_match, nobody)
    assert converted == value
    assert type(converted) is type(value)
    assert text_of(converted) == text


def test_ports_show_their_neighbour() -> None:
    converted = make_field("port", 9).value(3, {3: "spine1"}.get)
    assert text_of(converted) == "3:spine1"
    assert json_of(converted) == {"port": 3, "peer": "spine1"}


def test_json_keeps_numbers_and_nests() -> None:
    value: Value = {"a": (SwitchPort(1), 2), "b": None, "c": 0.5, "d": True, "e": IPv4Address("10.0.0.1")}
    assert json_of(value) == {
        "a": [{"port": 1, "peer": None}, 2],
        "b": None,
        "c": 0.5,
        "d": True,
        "e": "10.0.0.1",
    }


def test_text_of_cells() -> None:
    assert text_of(None) == "-"
    assert text_of({}) == "-"
    assert text_of({"key": None, "other": True}) == "key=* other=yes"
    assert text_of((1, "x")) == "1 x"
    assert text_of(1.23456) == "1.235"
    assert text_of(123456.7) == "123457"


def test_bad_mac_addresses() -> None:
    for text in ("", "02:00", "02:00:00:00:00:00:01", "gg:00:00:00:00:00"):
        with pytest.raises(ValueError, match="MAC"):
            Mac.parse(text)


@settings(max_examples=100)
@given(st.integers(0, (1 << 48) - 1))
def test_mac_round_trip(number: int) -> None:
    assert Mac.parse(str(Mac(number))) == Mac(number)


values = st.one_of(
    st.none(),
    st.integers(0, 99),
    st.floats(0, 9),
    st.text("ab1", max_size=3),
    st.builds(IPv4Address, st.integers(0, 9)),
    st.builds(SwitchPort, st.integers(0, 9), st.sampled_from([None, "x"])),
    st.builds(lambda bits: IPv4Network((0, bits)), st.integers(0, 32)),
    st.builds(Masked, st.integers(0, 9), st.integers(0, 15), st.just(4)),
    st.tuples(st.integers(0, 9)),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 3)),
)


@settings(max_examples=200)
@given(st.lists(values, max_size=6))
def test_values_of_all_kinds_can_be_sorted(some: list[Value]) -> None:
    keys = [sort_key(value) for value in some]
    keys.sort()
    assert all(not (late < early) for early, late in pairwise(keys))


def test_names_sort_as_people_count() -> None:
    assert sorted(["leaf10", "leaf2", "leaf1", "h1"], key=natural_key) == ["h1", "leaf1", "leaf2", "leaf10"]
