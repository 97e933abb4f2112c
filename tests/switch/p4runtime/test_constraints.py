# SPDX-License-Identifier: Apache-2.0
"""The language of @entry_restriction and @action_restriction (p4lang/p4-constraints), without a server."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.p4runtime.pins.constraints import (
    EXACT_STRING,
    INT,
    MAX_NESTING,
    MAX_TOKENS,
    OPTIONAL_STRING,
    STRING,
    Conjunct,
    ConstraintParser,
    Scope,
    Type,
)


def parse(text: str, scope: Scope, what: str) -> list[Conjunct]:
    return list(ConstraintParser(text, scope, what).conjuncts())


TYPES = {
    "exact8": Type("exact", 8),
    "hdr.ipv4.dst": Type("ternary", 32),
    "opt8": Type("optional", 8),
    "lpm32": Type("lpm", 32),
    "range16": Type("range", 16),
    "vrf": Type(EXACT_STRING, 10),
    "port": Type(OPTIONAL_STRING, 9),
    "name": STRING,
    "plain8": Type("bit", 8),
}
SCOPE = Scope(
    "key", {name: (i, type_) for i, (name, type_) in enumerate(TYPES.items())}, {"priority": (9, INT)}
)
VALUES = [
    (5, 255),
    (0x0A000000, 0xFF000000),
    (0, 0),
    (0x0A000000, 8),
    (10, 20),
    (b"", 1023),
    (b"eth0", 511),
    b"",
    200,
    7,
]


def holds(text: str, values=VALUES) -> bool:
    return all(constraint.holds(values) for constraint in parse(text, SCOPE, "table 't', @entry_restriction"))


@pytest.mark.parametrize(
    "text",
    [
        "!!true",
        "exact8 == 5",
        "exact8::value == 0x5 && exact8 == 0b101 && exact8 == 0o5 && exact8 == 0d5 && exact8 == 0X05",
        "exact8 < 6 && exact8 >= 5 && exact8 <= 5 && exact8 > 4 && exact8 != 6",
        "exact8 == 261",  # modulo 2^8, as the conversion to bit<8> is in P4
        "hdr.ipv4.dst::mask == 0xff000000",
        "hdr . ipv4 . dst::value == ipv4('10.0.0.0')",
        "hdr.ipv4.dst != ipv4('10.0.0.0')",  # an int is an exact match of it
        "opt8::mask == 0; opt8 != 0; opt8::value == 0;",
        "lpm32::prefix_length == 8 && lpm32 != 0x0a000000 && lpm32::prefix_length > -1",
        "range16::low == 10 && range16::high <= 20 && range16 != 10",
        "::priority == 7; ::priority < 0x7fffffff",
        "vrf == 0 && port != 0 && port::mask == -1 && name == 0 && 0 == vrf && vrf::value == 0",
        "plain8 == 200 && plain8 != 0",
        "-1 < 0 && --1 == 1 && -(3) != 3",
        "exact8::value == plain8 || exact8 != plain8",
        "true == true; (exact8 == 5) == true; true != false",
        "mac('00:00:00:00:00:05') == 5 && ipv6('::1') == 1 && ipv4('0.0.1.0') == 256",
        "true || false && false",  # && is tighter
        "true -> false || true",  # and -> looser than ||
        "// a comment; false\n true /* false \n */ ; // the end",
        "(true; true;);",
        "false -> (exact8 == 1 -> exact8 == 2)",
    ],
)
def test_what_holds(text):
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "true; exact8 == 4; true",
        "true -> false",
        "vrf != 0",
        "port == 0",
        "opt8 == 0",
        "hdr.ipv4.dst::mask != 0 -> exact8 == 6",
    ],
)
def test_what_does_not_hold(text):
    assert not holds(text)


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "expected a key, a number, 'true'"),
        ("exact8", 1, 1, "expected a bool, not a value of type exact<8>"),
        ("true;\n  bad == 1", 2, 3, "no key 'bad': expected one of exact8, hdr.ipv4.dst"),
        ("exact8 == 5 == 6", 1, 13, "needs parentheses"),
        ("(true", 1, 6, "expected ')', not 'the end'"),
        ("true)", 1, 5, "expected an operator or the end, not ')'"),
        ("exact8 == 8w5", 1, 12, "expected an operator or the end, not 'w5'"),
        ("exact8::mask == 0", 1, 7, "a value of type exact<8> has value, not 'mask'"),
        ("hdr.ipv4.dst < 5", 1, 14, "which have no order"),
        ("hdr.ipv4.dst == exact8", 1, 14, "'==' between different types, ternary<32> and exact<8>"),
        ("-exact8 == 1", 1, 2, "expected a int, not a value of type exact<8>"),
        ("::weight == 1", 1, 1, "no attribute 'weight': expected one of priority"),
        ("vrf == 5", 1, 5, "can only be compared by == or != with 0"),
        ("ipv4('10.0.0') == 1", 1, 6, "'10.0.0' is no ipv4 address"),
        ("ipx('1') == 1", 1, 1, "expected ipv4, ipv6 or mac"),
        ("ipv4(10) == 1", 1, 6, "expected an address in single quotes"),
        ("ex\u00e4ct == 1", 1, 3, "unexpected '\u00e4'"),
        ("1" * 5000 + " == 1", 1, 1, "a number of more than 1024 digits"),
    ],
)
def test_errors_name_the_place_and_what_is_allowed(text, line, column, said):
    with pytest.raises(P4RtError) as caught:
        holds(text)
    assert caught.value.code == Code.INVALID_ARGUMENT
    assert caught.value.message.startswith(
        f"table 't', @entry_restriction, line {line}, column {column}: "
    ), caught.value.message
    assert said in caught.value.message


def test_the_parts_that_are_shown():
    text = "hdr.ipv4.dst::mask!=0->(exact8==5||::priority>1); // why\n exact8==4 && true"
    parts = parse(text, SCOPE, "x")
    assert [(part.text, part.names) for part in parts] == [
        (
            "hdr.ipv4.dst::mask != 0 -> (exact8 == 5 || ::priority > 1)",
            ("hdr.ipv4.dst", "exact8", "::priority"),
        ),
        ("exact8 == 4", ("exact8",)),
        ("true", ()),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "(" * (MAX_NESTING + 1) + "true" + ")" * (MAX_NESTING + 1),
        "!" * 1_000_000 + "true",
        "true;" * MAX_TOKENS,
        "/*" * 200_000,
        "0" * 100_000 + "==0",
        "(true ->" * 100,
    ],
)
def test_hostile_texts_are_refused_soon(text):
    begin = time.perf_counter()
    with pytest.raises(P4RtError):
        holds(text)
    assert time.perf_counter() - begin < 5


def test_the_deepest_and_longest_are_taken():
    deep = "exact8 == 5"
    for _ in range(MAX_NESTING):
        deep = f"(true -> false || true && {deep})"
    assert holds(deep)
    assert holds(";".join(["exact8 == 5"] * (MAX_TOKENS // 4)))
    assert holds("!" * (MAX_TOKENS - 2) + "true") == (MAX_TOKENS % 2 == 0)


# ---- against Python ----

_Case = tuple[str, Callable[[list[int]], bool]]
_NAMES = ("a", "b", "c")
_NUMBERS = Scope("parameter", {name: (i, Type("bit", 8)) for i, name in enumerate(_NAMES)}, {})
_WRITTEN: list[Callable[[int], str]] = [str, hex, bin, oct, lambda n: f"0d{n}"]
_OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@st.composite
def _comparisons(draw) -> _Case:
    left, right = draw(st.sampled_from(range(3))), draw(st.one_of(st.integers(-300, 600), st.none()))
    sign = draw(st.sampled_from(sorted(_OPERATORS)))
    compare = _OPERATORS[sign]
    if right is None:
        other = draw(st.sampled_from(range(3)))
        return f"{_NAMES[left]}{sign}{_NAMES[other]}", lambda v: compare(v[left], v[other])
    minus = "-" if right < 0 else ""
    text = f"{minus}{draw(st.sampled_from(_WRITTEN))(abs(right))}"
    return f"{_NAMES[left]} {sign} {text}", lambda v: compare(v[left], right % 256)


def _joined(sign: str, first: _Case, other: _Case) -> _Case:
    (left, of_left), (right, of_right) = first, other
    if sign == "->":
        return f"(({left}) -> ({right}))", lambda v: not of_left(v) or of_right(v)
    if sign == "||":
        return f"({left} || {right})", lambda v: of_left(v) or of_right(v)
    if sign == "!=":
        return f"(({left}) != ({right}))", lambda v: of_left(v) != of_right(v)
    return f"({left} {sign} {right}{';' if sign == ';' else ''})", lambda v: of_left(v) and of_right(v)


_EXPRESSIONS = st.recursive(
    st.one_of(_comparisons(), st.sampled_from([("true", lambda _: True), ("false", lambda _: False)])),
    lambda inner: st.one_of(
        st.builds(_joined, st.sampled_from(["->", "||", "&&", ";", "!="]), inner, inner),
        inner.map(lambda case: (f"!({case[0]})", lambda v: not case[1](v))),
        inner.map(lambda case: (f"/* {len(case[0])} */ ({case[0]}) // x\n", case[1])),
    ),
    max_leaves=25,
)


@given(_EXPRESSIONS, st.lists(st.integers(0, 255), min_size=3, max_size=3))
def test_an_expression_is_what_python_says(case: _Case, values: list[int]):
    text, expected = case
    assert all(part.holds(values) for part in parse(text, _NUMBERS, "x")) == expected(values)


@given(st.text(alphabet="ab01x:;&|-><=!()'./* \n", max_size=40))
def test_any_text_is_parsed_or_refused(text: str):
    try:
        parts = parse(text, _NUMBERS, "x")
    except P4RtError as error:
        assert error.code == Code.INVALID_ARGUMENT
    else:
        for part in parts:
            assert part.holds([1, 2, 3]) in (True, False)
