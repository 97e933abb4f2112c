# SPDX-License-Identifier: Apache-2.0
"""Every scheme declares itself in whole: what it comes to in a network has no gap, and travels as JSON."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
import pytest

from tailrace.cli.explain.scheme_text import listing
from tailrace.p4rt.target import target
from tailrace.results.run_result import scheme_counters
from tailrace.schemes.base import SchemeConfig, resolve, scheme
from tailrace.schemes.blocks.basic import ResolvedBasic
from tailrace.schemes.errors import IntentError
from tailrace.schemes.intent import intent
from tailrace.schemes.registry import SCHEMES, parse_scheme, resolved_of
from tailrace.schemes.resolved import SchemeContext
from tailrace.sim.outcome import Outcome
from tailrace.spec import SpecError, keys
from tailrace.topology import Topology, parse_topology

TOPOLOGIES = tuple(
    parse_topology(words)
    for words in ("leaf-spine:leaves=2,spines=2,hosts=1", "dragonfly:p=1,a=2,h=1", "slim-fly:q=3,p=1")
)
VARIANTS = (
    *(name for name in SCHEMES.names if name != "program"),  # needs files
    *("ecmp:over=all", "minimal:draw=hop", "letflow:hf2t=on", "spritz:mode=coarse", "flowcut:growth=off"),
    *(f"flowcut:variant={name}" for name in ("ingress", "nic")),
    *(f"rlb:variant={name}" for name in ("presto", "letflow", "hermes")),
)
MAY_BE_NONE = ("red", "hf2t", "held_paths")
"""Queues do not mark, NICs do not stretch gaps, senders hold all paths: these are values."""


@pytest.mark.parametrize("words", VARIANTS)
@pytest.mark.parametrize(
    "context", [SchemeContext(), SchemeContext(mtu_bytes=1000, room_bytes=9000, transport="dcqcn")]
)
def test_nothing_is_open_and_all_travels(words: str, context: SchemeContext) -> None:
    """In each topology that a scheme can have; JSON gives back the very same."""
    resolved = []
    for topology in TOPOLOGIES:
        try:
            resolved.append(resolve(parse_scheme(words), topology, context))
        except IntentError:
            continue
    assert resolved
    for config in resolved:
        fields = msgspec.structs.asdict(config)
        assert [name for name, value in fields.items() if value is None and name not in MAY_BE_NONE] == []
        assert resolved_of(msgspec.json.decode(msgspec.json.encode(config))) == config
        assert config.name == words.partition(":")[0]


@pytest.mark.parametrize(
    "document",
    [None, {}, {"kind": "SwitchConfig"}, {"kind": "ResolvedBasic"}, [], {"kind": "ResolvedBasic", "name": 3}],
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
    context = SchemeContext(room_bytes=12_345, ack_ratio=2.0, slowest=0.01, pause_bytes=300_000)
    assert resolve(parse_scheme("ecmp"), topology, context).queue_limit_bytes == 12_345
    assert resolve(parse_scheme("ecmp:queue=7KB"), topology, context).queue_limit_bytes == 7_000
    assert resolve(parse_scheme("ecmp"), topology, context).control_share == 0.14
    assert resolve(parse_scheme("ecmp:control=0.5"), topology, context).control_share == 0.5
    assert resolve(parse_scheme("rlb:flows=2"), topology, context).pauses_at_bytes == 300_000
    assert resolve(parse_scheme("rlb:flows=2,pfc=900KB"), topology, context).pauses_at_bytes == 900_000
    assert resolve(parse_scheme("rlb:flows=2"), topology).pauses_at_bytes not in (300_000, 900_000)


def test_a_scheme_from_elsewhere_is_known_everywhere() -> None:
    """By registering alone: its words, its listing, its place in a network, and its row of counters."""

    class Resolved(ResolvedBasic, frozen=True, kw_only=True):
        colours: int

    @scheme
    class Painted(SchemeConfig, frozen=True, kw_only=True):
        name: ClassVar[str] = "painted"
        about: ClassVar[str] = "packets are painted"
        counters: ClassVar[tuple[str, ...]] = ("paint_",)
        colours: Annotated[int, keys.integer("colours", "of packets", least=1, most=9)] = 3

        def resolve(self, topology: Topology, context: SchemeContext) -> Resolved:
            return self.resolved(Resolved, topology, context, program="spray")

    try:
        config = resolve(parse_scheme("painted:colours=5,seed=3"), TOPOLOGIES[0])
        assert (config.program, config.hash_seed, getattr(config, "colours")) == ("spray", 3, 5)  # noqa: B009
        assert resolved_of(msgspec.to_builtins(config)) == config
        with pytest.raises(SpecError, match="scheme painted: colours must be at most 9, found '10'"):
            parse_scheme("painted:colours=10")
        rows = {row["key"]: row["default"] for row in listing(["painted"], TOPOLOGIES[0]).rows}
        assert rows["colours"] == "3"
        assert intent(TOPOLOGIES[0], config, target("virtual")).keys() == {
            switch.name for switch in TOPOLOGIES[0].switches
        }
        outcome = Outcome(
            (), 0.0, counters={"leaf1": {"paint_used": 2, "drops": 1}, "leaf2": {"paint_used": 3}}
        )
        assert scheme_counters(outcome.counters) == {"painted": {"paint_used": 5}}
    finally:
        del SCHEMES._entries["painted"]
