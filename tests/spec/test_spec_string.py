# SPDX-License-Identifier: Apache-2.0
"""name:key=value,key=value and the values in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tailrace.spec import Spec, SpecError, SpecOptions, parse


def test_parse() -> None:
    """Name and options are split; blanks around them do not matter; the text can be had again."""
    words = parse(" leaf-spine: leaves=2, rate=10Gbps ", "topology")
    assert Spec("leaf-spine", {"leaves": "2", "rate": "10Gbps"}, "topology") == words
    assert str(words) == "leaf-spine:leaves=2,rate=10Gbps"
    assert words == parse(str(words), "topology")
    assert parse("ecmp") == Spec("ecmp", {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "topology: the name is missing in ''"),
        (":a=1", "topology: the name is missing in ':a=1'"),
        ("x:", "topology x: expected key=value after the colon"),
        ("x:a", "topology x: expected key=value, found 'a'"),
        ("x:a=", "topology x: expected key=value, found 'a='"),
        ("x:=1", "topology x: expected key=value, found '=1'"),
        ("x:a=1,,b=2", "topology x: expected key=value, found ''"),
        ("x:a=1,a=2", "topology x: key 'a' is given twice"),
    ],
)
def test_refuse(text: str, message: str) -> None:
    """Bad words are refused in one line that says what they are for."""
    with pytest.raises(SpecError) as caught:
        parse(text, "topology")
    assert message == str(caught.value)


def test_unknown_key() -> None:
    """An unknown key is refused with the one that was meant, else with the keys that there are."""
    with pytest.raises(SpecError) as caught:
        SpecOptions(parse("leaf-spine:leafs=2", "topology"), ("leaves", "spines"))
    assert "topology leaf-spine: unknown key 'leafs'; did you mean leaves?" == str(caught.value)
    with pytest.raises(SpecError) as caught:
        SpecOptions(parse("leaf-spine:up=2", "topology"), ("leaves", "spines"))
    assert "topology leaf-spine: unknown key 'up'; expected leaves, spines" == str(caught.value)
    with pytest.raises(SpecError, match="unknown key 'a'; expected no keys"):
        SpecOptions(parse("x:a=1"), ())


KEYS = ("i", "f", "r", "t", "b", "c", "y")


def options(text: str) -> SpecOptions:
    return SpecOptions(parse(text, "thing"), KEYS)


def test_values() -> None:
    """Each kind of value is converted to its smallest unit."""
    taken = options("x:i=-3,f=0.25,r=1Mbps,t=3us,b=2KiB,c=red,y=on")
    assert "i" in taken
    assert "z" not in taken
    assert taken.integer("i") == -3
    assert taken.number("f") == 0.25
    assert taken.rate_bps("r") == 1_000_000
    assert taken.time_ns("t") == 3_000
    assert taken.size_bytes("b") == 2_048
    assert taken.choice("c", ("red", "blue")) == "red"
    assert taken.flag("y") is True
    assert taken.text("c") == "red"


def test_defaults() -> None:
    """A missing key has its default; without one it is an error."""
    empty = options("x")
    assert empty.integer("i", 7) == 7
    assert empty.flag("y", default=False) is False
    with pytest.raises(SpecError) as caught:
        empty.time_ns("t")
    assert "thing x: key 't' is missing" == str(caught.value)


@pytest.mark.parametrize(
    ("text", "take", "message"),
    [
        ("x:i=a", lambda o: o.integer("i"), "i must be a whole number, found 'a'"),
        ("x:i=1.5", lambda o: o.integer("i"), "i must be a whole number, found '1.5'"),
        ("x:i=0", lambda o: o.integer("i", least=1), "i must be at least 1, found '0'"),
        ("x:i=9", lambda o: o.integer("i", most=8), "i must be at most 8, found '9'"),
        ("x:f=nan", lambda o: o.number("f"), "f must be a number, found 'nan'"),
        ("x:f=1e999", lambda o: o.number("f"), "f must be a number, found '1e999'"),
        ("x:f=2", lambda o: o.number("f", most=1), "f must be at most 1, found '2'"),
        ("x:f=-1", lambda o: o.number("f", least=0), "f must be at least 0, found '-1'"),
        ("x:r=0", lambda o: o.rate_bps("r"), "r must be more than 0, found '0'"),
        ("x:r=1us", lambda o: o.rate_bps("r"), "r must be a rate such as 10Gbps, found '1us'"),
        ("x:t=1m", lambda o: o.time_ns("t"), "t must be a time such as 10us, found '1m'"),
        ("x:b=1X", lambda o: o.size_bytes("b"), "b must be a size such as 64KiB, found '1X'"),
        ("x:c=green", lambda o: o.choice("c", ("red", "blue")), "c=green: expected red, blue"),
        ("x:y=maybe", lambda o: o.flag("y"), "y must be yes or no, found 'maybe'"),
    ],
)
def test_bad_values(text: str, take: Callable[[SpecOptions], object], message: str) -> None:
    """A bad value is refused in one line with the key, what was expected and what was found."""
    with pytest.raises(SpecError) as caught:
        take(options(text))
    assert f"thing x: {message}" == str(caught.value)
