# SPDX-License-Identifier: Apache-2.0
"""Messages that are made once for all switches are those that another P4Runtime client, finsy, makes for each."""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import finsy
import pytest
from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tailrace.p4rt import encoding, programs
from tailrace.p4rt.canonical import action_value, canonical, table_key
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.entities import (
    P4CloneSessionEntry,
    P4DigestEntry,
    P4Entity,
    P4MeterConfig,
    P4MulticastGroupEntry,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.spec import SpecError
from tailrace.topology import parse_topology
from tests.schemes.planned import intent

ECMP = programs.load("ecmp")

_DRAGONFLY, _SLIM_FLY = "dragonfly:p=2,a=4,h=2", "slim-fly:q=5"
NETWORKS = [
    ("ecmp", "fat-tree:k=4"),
    ("spray", "leaf-spine:leaves=3,spines=3,hosts=2"),
    ("letflow", _DRAGONFLY),
    ("presto", "leaf-spine:leaves=2,spines=3,hosts=1"),
    ("drill", "fat-tree:k=4"),
    ("flowcut", "fat-tree:k=4"),
    ("flowcut", _DRAGONFLY),
    ("rlb", "fat-tree:k=4"),
    ("valiant", _DRAGONFLY),
    ("spritz:variant=spray", _DRAGONFLY),
    ("spritz:variant=scout", _SLIM_FLY),
]


@cache
def _schema(program: P4Program) -> finsy.P4Schema:
    return finsy.P4Schema(program.p4info)


def by_finsy(program: P4Program, entity: P4Entity) -> p4r.Entity:
    """The message that finsy makes of an entity."""
    fields = structs.asdict(entity)
    if isinstance(entity, P4TableEntry):
        meter = entity.meter_config
        fields |= {
            "match": finsy.P4TableMatch(entity.match or {}),
            "action": finsy.P4TableAction(entity.action.name, **entity.action.args),
            "meter_config": meter and finsy.P4MeterConfig(**structs.asdict(meter)),
        }
    kinds = {
        P4TableEntry: finsy.P4TableEntry,
        P4MulticastGroupEntry: finsy.P4MulticastGroupEntry,
        P4CloneSessionEntry: finsy.P4CloneSessionEntry,
        P4DigestEntry: finsy.P4DigestEntry,
    }
    message: p4r.Entity = kinds[type(entity)](**fields).encode(_schema(program))
    return message


@pytest.mark.parametrize(("scheme", "topology"), NETWORKS)
def test_as_finsy(scheme: str, topology: str) -> None:
    """All entities of all switches, without and with a dead link, and once more from what is kept."""
    network = parse_topology(topology)
    link = network.links[0]
    for down in (frozenset(), frozenset({(link.a, link.a_port)})):
        desired = intent(network, parse_scheme(scheme), target("virtual"), down)
        for _ in range(2):
            for switch in desired.values():
                program = programs.load(switch.program)
                wanted = [by_finsy(program, entity) for entity in switch.entities]
                assert wanted == encode(program, switch.entities)


def _route(dst: str, group: int, **more: Any) -> P4TableEntry:
    action = P4TableAction("to_group", group=group, size=2)
    return P4TableEntry("ipv4_routes", match=P4TableMatch(dst=dst), action=action, **more)


@st.composite
def routes(draw: st.DrawFn) -> P4Entity:
    """One of few entities, which often differ in one thing only, be it one that is seldom set."""
    meter = P4MeterConfig(cir=1, cburst=1, pir=1, pburst=2)
    seldom: list[dict[str, Any]] = [{}, {"priority": 1}, {"meter_config": meter}]
    more = draw(st.sampled_from(seldom))
    entry = _route(draw(st.sampled_from(["10.0.0.0/24", "10.0.1.0/24"])), draw(st.integers(1, 2)), **more)
    if draw(st.booleans()):
        entry.action = P4TableAction("to_host", port=1, dst_mac="02:00:00:00:00:01")
    return draw(st.sampled_from([entry, P4CloneSessionEntry(1, replicas=[1])]))


@given(entities=st.lists(routes(), max_size=30))
def test_what_differs_is_told_apart(entities: list[P4Entity]) -> None:
    """Whatever was encoded before, an entity's message is its own."""
    assert [by_finsy(ECMP, entity) for entity in entities] == encode(ECMP, entities)


def test_a_changed_entity() -> None:
    """An entity that is changed after it was encoded gets another message."""
    entry = _route("10.0.2.0/24", 1)
    before = encode(ECMP, [entry])[0]
    entry.action = P4TableAction("to_group", group=2, size=2)
    assert [by_finsy(ECMP, entry)] == encode(ECMP, [entry])
    assert before != encode(ECMP, [entry])[0]


def test_programs_are_told_apart() -> None:
    """The same entity has other numbers in another program."""
    entries = [_route("10.0.3.0/24", 1)]
    for name in ("ecmp", "spritz", "dragonfly"):
        program = programs.load(name)
        assert [by_finsy(program, entries[0])] == encode(program, entries)


def test_no_more_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages stay right where there are more than are kept."""
    monkeypatch.setattr(encoding, "MOST_CACHED", 3)
    entries = [_route(f"10.1.{number % 7}.0/24", 1) for number in range(30)]
    assert [by_finsy(ECMP, entry) for entry in entries] == encode(ECMP, entries)


def test_errors() -> None:
    """What the program does not have is refused every time."""
    call = P4TableAction("to_group", group=1, size=2)
    for _ in range(2):
        with pytest.raises(SpecError, match="no_such_field"):
            encode(ECMP, [P4TableEntry("ipv4_routes", call, match=P4TableMatch(no_such_field=1))])


octets = st.binary(max_size=3)


@st.composite
def table_entries(draw: st.DrawFn) -> p4r.Entity:
    """Any table entry, well made or not."""
    entity = p4r.Entity()
    entry = entity.table_entry
    entry.table_id = draw(st.integers(1, 2))
    entry.priority = draw(st.integers(0, 1))
    entry.is_default_action = draw(st.booleans())
    for number in draw(st.lists(st.integers(1, 11), max_size=3)):
        match = entry.match.add(field_id=number)
        kind = draw(st.sampled_from(["exact", "lpm", "ternary"]))
        getattr(match, kind).value = draw(octets)
    entry.action.action.action_id = draw(st.integers(1, 2))
    for number in draw(st.lists(st.integers(1, 3), max_size=3)):
        entry.action.action.params.add(param_id=number, value=draw(octets))
    return entity


@settings(max_examples=300)
@given(entity=table_entries())
def test_kept_keys_are_right(entity: p4r.Entity) -> None:
    """Key and value that are looked up are those of the entity itself, whatever message holds it."""
    entry = entity.table_entry
    expected = (table_key(entry), ("action", *action_value(entry.action.action)))
    copy = p4r.Entity()
    copy.CopyFrom(entity)
    assert expected == canonical(entity) == canonical(copy)
    entry.table_id += 5
    assert canonical(copy) == expected
    assert canonical(entity)[0] != expected[0]


def test_halves_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of n keys with m actions n + m - 1 are encoded, and each of the n * m messages is as finsy makes it."""
    program = programs.load("ecmp")
    asked = 0
    original = encoding._table_entry

    def counted(*arguments: Any) -> p4r.Entity:
        nonlocal asked
        asked += 1
        return original(*arguments)

    for size in (3, 6):
        asked = 0
        encoding._cache.cache_clear()
        pairs = [_route(f"10.{size}.{i}.0/24", j) for i in range(size) for j in range(1, size)]
        with monkeypatch.context() as patched:
            patched.setattr(encoding, "_table_entry", counted)
            messages = encode(program, pairs)
        assert [by_finsy(program, entity) for entity in pairs] == messages
        assert size + (size - 1) - 1 == asked


COLLIDING = """
tables {
  preamble { id: 33554433 name: "in.acl" alias: "acl" }
  match_fields { id: 1 name: "hdr.eth.src" bitwidth: 48 match_type: EXACT }
  match_fields { id: 2 name: "hdr.ip.src" bitwidth: 32 match_type: TERNARY }
  action_refs { id: 16777217 } action_refs { id: 16777218 } size: 4
}
actions { preamble { id: 16777217 name: "in.send" alias: "a" } params { id: 1 name: "port" bitwidth: 9 } }
actions { preamble { id: 16777218 name: "in.drop" alias: "a" } }
"""


def test_names_that_end_alike(tmp_path: Path) -> None:
    """finsy takes no such P4Info; a plug-in's program may have it."""
    (tmp_path / "x.json").write_text("{}", "utf-8")
    (tmp_path / "x.p4info.txtpb").write_text(COLLIDING, "utf-8")
    program = programs.read(tmp_path / "x.json")
    match = P4TableMatch({"hdr.eth.src": "02:00:00:00:00:01", "hdr.ip.src": IPv4Network("10.0.0.0/8")})
    entry = P4TableEntry(
        "acl",
        match=match,
        action=P4TableAction("send", port=3),
        priority=5,
        meter_config=P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4),
    )
    (message,) = encode(program, [entry])
    table_entry = message.table_entry
    assert (table_entry.table_id, table_entry.priority, table_entry.meter_config.pburst) == (33554433, 5, 4)
    exact, ternary = table_entry.match
    assert (exact.exact.value, ternary.ternary.value) == (b"\2\0\0\0\0\1", b"\x0a\0\0\0")
    assert table_entry.action.action.action_id == 16777217
    wrong = P4TableEntry("acl", match=P4TableMatch(src=1), action=P4TableAction("drop"), priority=5)
    with pytest.raises(SpecError, match="match field 'src' matches 2"):
        encode(program, [wrong])


@pytest.mark.parametrize("rate", ["cir", "cburst", "pir", "pburst", "eburst"])
def test_entries_with_other_rates_differ(rate: str) -> None:
    """Whichever number of the meter differs, the controller would write the entry again."""
    entity_a, entity_b = p4r.Entity(), p4r.Entity()
    for entity in (entity_a, entity_b):
        entity.table_entry.table_id = 1
        entity.table_entry.meter_config.cir = 5
    setattr(entity_b.table_entry.meter_config, rate, 9)
    assert canonical(entity_a) != canonical(entity_b)
