# SPDX-License-Identifier: Apache-2.0
"""Declared keys: what words give a struct, what they are refused for, and what listings show."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated

import msgspec
import pytest

from tailrace.spec import SpecError, keys, parse
from tailrace.spec.keys import REQUIRED, keys_of, read
from tailrace.spec.registry import Registry


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
