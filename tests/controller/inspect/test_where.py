# SPDX-License-Identifier: Apache-2.0
"""The language of --where: meaning against Python's own operators, and errors that point at the slip."""

from __future__ import annotations

import operator
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.p4rt.values import Interval, Mac, Masked, SwitchPort
from tailrace.spec import SpecError
from tailrace.tables.listing import Column, Listing, Row
from tailrace.tables.row_filter import RowFilter, RowFilterError

COLUMNS = tuple(Column(name) for name in ("name", "count", "ratio", "match", "ports", "up", "none"))
ROWS: tuple[Row, ...] = (
    {
        "name": "leaf1",
        "count": 5,
        "ratio": 0.5,
        "match": {"hdr.ipv4.dst": IPv4Network("10.0.1.0/24"), "mac": Mac.parse("02:00:00:00:00:01")},
        "ports": (SwitchPort(1, "h1"), SwitchPort(3, "spine1")),
        "up": True,
        "none": None,
    },
    {
        "name": "leaf2",
        "count": 2048,
        "ratio": 2.25,
        "match": {"hdr.ipv4.dst": IPv4Network("10.0.0.0/16"), "mac": None},
        "ports": (),
        "up": False,
        "none": None,
    },
    {
        "name": "spine1",
        "count": 0,
        "ratio": None,
        "match": {"hdr.ipv4.dst": IPv4Address("10.0.2.2")},
        "ports": (SwitchPort(7, None),),
        "up": True,
        "none": 1,
    },
)
LISTING = Listing("things", COLUMNS, ROWS, frozenset({"hdr.ipv4.dst", "mac"}))


def passing(text: str, listing: Listing = LISTING) -> list[object]:
    return [row["name"] for row in RowFilter(text).apply(listing).rows]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("name == leaf1", ["leaf1"]),
        ("name == LEAF1", ["leaf1"]),
        ("name != leaf1", ["leaf2", "spine1"]),
        ("name ~ EAF", ["leaf1", "leaf2"]),
        ("name == 'leaf1'", ["leaf1"]),
        ("count > 4", ["leaf1", "leaf2"]),
        ("count >= 2KiB", ["leaf2"]),
        ("count == 0x800", ["leaf2"]),
        ("count in 1..10", ["leaf1"]),
        ("count in (0, 5)", ["leaf1", "spine1"]),
        ("count", ["leaf1", "leaf2"]),
        ("ratio < 1", ["leaf1"]),
        ("up and count", ["leaf1"]),
        ("not up", ["leaf2"]),
        ("up == no", ["leaf2"]),
        ("none == none", ["leaf1", "leaf2"]),
        ("none != none", ["spine1"]),
        ("ratio == none", ["spine1"]),
        ("dst == 10.0.1.0/24", ["leaf1"]),
        ("dst in 10.0.0.0/16", ["leaf1", "leaf2", "spine1"]),
        ("dst in 10.0.1.0/24", ["leaf1"]),
        ("dst has 10.0.1.77", ["leaf1", "leaf2"]),
        ("dst has 10.0.2.2", ["leaf2", "spine1"]),
        ("match.dst has 10.0.2.2", ["leaf2", "spine1"]),
        ("hdr.ipv4.dst has 10.0.2.2", ["leaf2", "spine1"]),
        ("mac == 02-00-00-00-00-01", ["leaf1"]),
        ("ports == spine1", ["leaf1"]),
        ("ports == 3", ["leaf1"]),
        ("ports == 3:spine1", ["leaf1"]),
        ("ports != 3", ["leaf2", "spine1"]),
        ("ports", ["leaf1", "spine1"]),
        ("ports > 5", ["spine1"]),
        ("name == leaf1 or name == leaf2 and count == 1", ["leaf1"]),
        ("(name == leaf1 or name == leaf2) and count == 2048", ["leaf2"]),
        ("not name == leaf1 and up", ["spine1"]),
        ("not (name == leaf1 or up)", ["leaf2"]),
        ("not not up", ["leaf1", "spine1"]),
    ],
)
def test_meaning(text: str, names: list[str]) -> None:
    assert passing(text) == names


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("", 1, "expected the name of a field"),
        ("name =", 6, "use =="),
        ("count == 1 && up", 12, "use 'and'"),
        ("count == 1 | up", 12, "use 'or'"),
        ("! up", 1, "use 'not'"),
        ("name == 'leaf1", 9, "open quote"),
        ("name ==", 8, "expected a value"),
        ("name leaf1", 6, "expected a comparison"),
        ("(name == leaf1", 15, "expected ')'"),
        ("name == leaf1)", 14, "expected 'and', 'or' or the end"),
        ("count in (1, 2", 15, "expected ',' or ')'"),
        ("count in ()", 11, "expected a value"),
        ("nmae == leaf1", 1, "did you mean name?"),
        ("match.xyzzy == 1", 1, "no field"),
        ("dst == 10.0.1.256", 8, "cannot be compared"),
        ("up == maybe", 7, "cannot be compared"),
        ("ports < spine1", 9, "cannot be compared"),
        ("count in 1..x", 10, "cannot be compared"),
        ("not " * 500 + "up", 401, "nested too deeply"),
    ],
)
def test_errors_name_the_column(text: str, column: int, part: str) -> None:
    with pytest.raises(RowFilterError) as caught:
        passing(text)
    assert str(caught.value).startswith(f"--where, column {column}: ")
    assert part in str(caught.value)
    assert isinstance(caught.value, SpecError)


def test_a_name_inside_a_cell_is_known_without_rows() -> None:
    empty = LISTING.replace_rows(())
    assert passing("dst == 10.0.0.1 and ports == 7", empty) == []
    with pytest.raises(RowFilterError):
        passing("dts == 1", empty)


def test_masks_and_ranges_take_values_in() -> None:
    rows: tuple[Row, ...] = (
        {"name": "mask", "match": {"key": Masked(0x10, 0xF0, 8)}},
        {"name": "range", "match": {"key": Interval(80, 443)}},
        {"name": "any", "match": {"key": None}},
        {"name": "other", "match": {}},
    )
    listing = Listing("t", (Column("name"), Column("match")), rows, frozenset({"key"}))
    assert passing("key has 0x1f", listing) == ["mask", "any"]
    assert passing("key has 81", listing) == ["range", "any"]
    assert passing("key has 444", listing) == ["any"]
    assert passing("key == 80..443", listing) == ["range"]


COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Expression = tuple[str, Callable[[Row], bool]]
"""Text of a filter, and what decides about a row."""

tests_ = st.builds(
    lambda name, op, number: (
        f"{name} {op} {number}",
        lambda row: COMPARISONS[op](row[name], number),
    ),
    st.sampled_from(["a", "b"]),
    st.sampled_from(sorted(COMPARISONS)),
    st.integers(-3, 3).filter(lambda number: number >= 0),
)
expressions = st.recursive(
    tests_,
    lambda inner: st.one_of(
        st.builds(lambda x: (f"not ({x[0]})", lambda row: not x[1](row)), inner),
        st.builds(lambda x, y: (f"({x[0]}) and ({y[0]})", lambda row: x[1](row) and y[1](row)), inner, inner),
        st.builds(lambda x, y: (f"({x[0]}) or ({y[0]})", lambda row: x[1](row) or y[1](row)), inner, inner),
    ),
    max_leaves=12,
)
NUMBERS = Listing(
    "numbers",
    (Column("a"), Column("b")),
    tuple({"a": a, "b": b} for a in range(4) for b in range(4)),
)


@settings(max_examples=200)
@given(expressions)
def test_it_means_what_python_means(expression: Expression) -> None:
    text, decides = expression
    assert list(RowFilter(text).apply(NUMBERS).rows) == [row for row in NUMBERS.rows if decides(row)]


WORDS = ["a", "b", "==", "~", "(", ")", "and", "or", "not", "in", "has", ",", "1", "x", "'", "=", "..", "/"]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_text_either_filters_or_fails_with_a_column(words: list[str]) -> None:
    try:
        RowFilter(" ".join(words)).apply(NUMBERS)
    except RowFilterError as error:
        assert 0 <= error.position <= len(" ".join(words))
