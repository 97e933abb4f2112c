# SPDX-License-Identifier: Apache-2.0
"""Declared keys: what words give a struct, what they are refused for, and what listings show."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import msgspec
import pytest

from tailrace.spec import Spec, SpecError, keys, parse
from tailrace.spec.keys import REQUIRED, keys_of, read, write
from tailrace.spec.registry import Registry
from tailrace.spec.units import parse_alpha


@dataclass(frozen=True, slots=True)
class Links:
    rate_bps: Annotated[int, keys.rate("rate", "of links")] = 10**9
    delay_ns: Annotated[int | None, keys.time("delay", "of links", absent="by length")] = None


@dataclass(frozen=True, slots=True)
class Ring:
    switches: Annotated[int, keys.integer("switches", "how many", least=3, most=9)]
    colour: Annotated[str, keys.choice("colour", "of them", ("red", "blue"))] = "red"
    share: Annotated[float, keys.number("share", "a part", above=0, most=1)] = 1.0
    links: Links = Links()
    scratch: int = 7

    def __post_init__(self) -> None:
        if self.colour == "blue" and self.switches == 3:
            raise SpecError("three cannot be blue")


class Packed(msgspec.Struct, frozen=True):
    size_bytes: Annotated[int, keys.size("size", "of it", least=1)]
    on: Annotated[bool, keys.flag("on", "whether")] = False


def test_words_become_a_struct_with_its_groups() -> None:
    """Values are checked and converted, groups are filled, what is missing is the default."""
    ring = read(parse("ring:switches=4,delay=2us,colour=blue"), Ring)
    assert ring == Ring(4, "blue", links=Links(delay_ns=2000))
    assert read(parse("x:size=1KiB,on=yes"), Packed) == Packed(1024, on=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ring", "thing ring: key 'switches' is missing"),
        ("ring:switches=2", "thing ring: switches must be at least 3, found '2'"),
        ("ring:switches=10", "thing ring: switches must be at most 9, found '10'"),
        ("ring:switches=3,colour=green", "thing ring: colour=green: expected red, blue"),
        ("ring:switches=3,share=0", "thing ring: share must be more than 0, found '0'"),
        ("ring:switches=3,colour=blue", "thing ring: three cannot be blue"),
        ("ring:switches=3,scratch=1", "expected switches, colour, share, rate, delay"),
    ],
)
def test_bad_words_are_refused_by_name(text: str, problem: str) -> None:
    """One line names the words, the key and what was expected."""
    with pytest.raises(SpecError) as caught:
        read(parse(text, "thing"), Ring)
    assert problem in str(caught.value)


def test_unknown_keys() -> None:
    """An unknown key is refused with the one that was meant, else with the keys that there are."""
    with pytest.raises(SpecError) as caught:
        read(parse("links:rte=2bps", "topology"), Links)
    assert "topology links: unknown key 'rte'; did you mean rate?" == str(caught.value)
    with pytest.raises(SpecError) as caught:
        read(parse("links:up=2", "topology"), Links)
    assert "topology links: unknown key 'up'; expected rate, delay" == str(caught.value)
    with pytest.raises(SpecError, match="unknown key 'a'; expected no keys"):
        read(parse("x:a=1"), Nothing)


@dataclass(frozen=True, slots=True)
class Nothing:
    """Has no keys."""


@dataclass(frozen=True, slots=True)
class Values:
    """Each kind of key."""

    i: Annotated[int, keys.integer("i", "", least=-3, most=8)] = 0
    f: Annotated[float, keys.number("f", "", least=0, most=1)] = 0.0
    r: Annotated[int, keys.rate("r", "")] = 1
    t: Annotated[int, keys.time("t", "", most=10_000)] = 0
    b: Annotated[int, keys.size("b", "", least=2)] = 2
    c: Annotated[str, keys.choice("c", "", ("red", "blue"))] = "blue"
    y: Annotated[bool, keys.flag("y", "")] = False
    w: Annotated[str, keys.text("w", "", "any")] = ""
    a: Annotated[Fraction, keys.parsed("a", "", "a factor", parse_alpha)] = Fraction(1)


def test_values() -> None:
    """Each kind of value is converted to its smallest unit, and written as it was given."""
    text = "x:i=-3,f=0.25,r=1Mbps,t=3us,b=2KiB,c=red,y=on,w=some,a=1/8"
    values = read(parse(text), Values)
    assert Values(-3, 0.25, 1_000_000, 3_000, 2_048, "red", y=True, w="some", a=Fraction(1, 8)) == values
    assert text == str(Spec("x", write(values)))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("i=a", "i must be a whole number, found 'a'"),
        ("i=1.5", "i must be a whole number, found '1.5'"),
        ("i=" + "1" * 101, f"i must be a whole number of at most 100 digits, found '{'1' * 100}...'"),
        ("i=-4", "i must be at least -3, found '-4'"),
        ("i=9", "i must be at most 8, found '9'"),
        ("f=nan", "f must be a number, found 'nan'"),
        ("f=1e999", "f must be a number, found '1e999'"),
        ("f=2", "f must be at most 1, found '2'"),
        ("f=-1", "f must be at least 0, found '-1'"),
        ("r=0", "r must be more than 0, found '0'"),
        ("r=1us", "r must be a rate such as 10Gbps, found '1us'"),
        ("t=1m", "t must be a time such as 10us, found '1m'"),
        ("t=11us", "t must be at most 10us, found '11us'"),
        ("t=101000000s", "t must be at most 8640000s, found '101000000s'"),
        ("b=1X", "b must be a size such as 64KiB, found '1X'"),
        ("b=1", "b must be at least 2, found '1'"),
        ("c=green", "c=green: expected red, blue"),
        ("y=maybe", "y must be yes or no, found 'maybe'"),
        ("a=x", "a must be a factor, found 'x'"),
    ],
)
def test_bad_values(option: str, message: str) -> None:
    """A bad value is refused in one line with the key, what was expected and what was found."""
    with pytest.raises(SpecError) as caught:
        read(parse(f"x:{option}", "thing"), Values)
    assert f"thing x: {message}" == str(caught.value)


def test_keys_tell_their_range_and_default() -> None:
    """What listings and documents are made of."""
    shown = {key.name: (key.values, key.default_text) for key in keys_of(Ring)}
    assert shown == {
        "switches": ("3 to 9", ""),
        "colour": ("red|blue", "red"),
        "share": ("0 to 1", "1"),
        "rate": ("rate", "1Gbps"),
        "delay": ("time", "by length"),
    }
    assert keys_of(Ring)[0].default is REQUIRED
    assert [(key.name, key.default_text) for key in keys_of(Packed)] == [("size", ""), ("on", "off")]


def test_inherited_keys_come_after_a_struct_s_own() -> None:
    """A struct may be an heir of another."""

    @dataclass(frozen=True)
    class Wheel(Links):
        spokes: Annotated[int, keys.integer("spokes", "how many")] = 3

    assert [key.name for key in keys_of(Wheel)] == ["spokes", "rate", "delay"]
    assert dataclasses.asdict(read(parse("w:rate=5bps"), Wheel)) == {
        "rate_bps": 5,
        "delay_ns": None,
        "spokes": 3,
    }


def test_a_registry_refuses_what_is_taken_or_no_name() -> None:
    """Names are checked, and belong to one thing."""
    things: Registry[Ring] = Registry("thing", files="FILE.x")
    things.register("ring", "a ring")(Ring)
    with pytest.raises(SpecError, match=r"thing 'ring' is registered twice: by .*test_keys and by"):
        things.register("ring", "another")(Links)
    with pytest.raises(SpecError, match=r"thing '\.\./x': expected a name of at most 40"):
        things.register("../x", "no name")
    with pytest.raises(SpecError, match=r"thing 'cube' is not known; expected ring or FILE\.x"):
        things.parse("cube")
