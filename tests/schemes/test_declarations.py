# SPDX-License-Identifier: Apache-2.0
"""Every scheme declares itself in whole: what it comes to in a network has no gap, and travels as JSON."""

from __future__ import annotations

import msgspec
import pytest

from tailrace.schemes.base import resolve
from tailrace.schemes.errors import IntentError
from tailrace.schemes.registry import SCHEMES, parse_scheme, resolved_of
from tailrace.schemes.resolved import Around
from tailrace.topology import parse_topology
from tailrace.words import SpecError

TOPOLOGIES = tuple(
    parse_topology(words)
    for words in ("leaf-spine:leaves=2,spines=2,hosts=1", "dragonfly:p=1,a=2,h=1", "slim-fly:q=3,p=1")
)
VARIANTS = (
    *SCHEMES.names,
    *("ecmp:over=all", "minimal:draw=hop", "letflow:hf2t=on", "spritz:mode=coarse", "flowcut:growth=off"),
    *(f"flowcut:variant={name}" for name in ("ingress", "nic")),
    *(f"rlb:variant={name}" for name in ("presto", "letflow", "hermes")),
)
MAY_BE_NONE = ("red", "hf2t")
"""Queues do not mark, NICs do not stretch gaps: these are values."""


@pytest.mark.parametrize("words", VARIANTS)
@pytest.mark.parametrize("around", [Around(), Around(mtu_bytes=1000, room_bytes=9000, transport="dcqcn")])
def test_nothing_is_open_and_all_travels(words: str, around: Around) -> None:
    """In each topology that a scheme can have; JSON gives back the very same."""
    resolved = []
    for topology in TOPOLOGIES:
        try:
            resolved.append(resolve(parse_scheme(words), topology, around))
        except IntentError:
            continue
    assert resolved
    for found in resolved:
        fields = msgspec.structs.asdict(found)
        assert [name for name, value in fields.items() if value is None and name not in MAY_BE_NONE] == []
        assert resolved_of(msgspec.json.decode(msgspec.json.encode(found))) == found
        assert found.name == words.partition(":")[0]


@pytest.mark.parametrize(
    "document",
    [None, {}, {"kind": "SwitchConfig"}, {"kind": "ResolvedPlain"}, [], {"kind": "ResolvedPlain", "name": 3}],
)
def test_what_is_no_scheme_is_refused(document: object) -> None:
    """In one line."""
    with pytest.raises(SpecError, match=r"^scheme: [^\n]+$"):
        resolved_of(document)


@pytest.mark.parametrize("name", SCHEMES.names)
def test_every_key_says_what_it_is(name: str) -> None:
    """A name of its own, a range and a meaning; and a default, unless none is needed."""
    keys = SCHEMES.keys(name)
    assert len({key.name for key in keys}) == len(keys)
    for key in keys:
        assert key.values
        assert key.help
    assert SCHEMES.entry(name).help


def test_what_is_known_around_decides_defaults_and_no_more() -> None:
    """A limit that was given stays."""
    topology = TOPOLOGIES[0]
    around = Around(room_bytes=12_345, answers=2.0, slowest=0.01, pause_bytes=300_000)
    assert resolve(parse_scheme("ecmp"), topology, around).queue_limit_bytes == 12_345
    assert resolve(parse_scheme("ecmp:queue=7KB"), topology, around).queue_limit_bytes == 7_000
    assert resolve(parse_scheme("ecmp"), topology, around).control_share == 0.14
    assert resolve(parse_scheme("ecmp:control=0.5"), topology, around).control_share == 0.5
    assert resolve(parse_scheme("rlb:flows=2"), topology, around).pauses_at_bytes == 300_000
    assert resolve(parse_scheme("rlb:flows=2,pfc=900KB"), topology, around).pauses_at_bytes == 900_000
    assert resolve(parse_scheme("rlb:flows=2"), topology).pauses_at_bytes not in (300_000, 900_000)
