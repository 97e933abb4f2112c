# SPDX-License-Identifier: Apache-2.0
"""Entities by names and values: what is decoded is encoded to the same message."""

from __future__ import annotations

from typing import Any

from finsy.proto import p4i, p4r, p4t
from hypothesis import given
from hypothesis import strategies as st

from tailrace.p4rt.by_name import parse
from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.fields import TypedField, make_field
from tailrace.p4rt.values import text_of

_M = p4i.MatchField
_TYPES = p4t.P4TypeInfo()
_TYPES.serializable_enums["E"].members.add(name="UP", value=b"\2")
_FIELDS = (
    *(make_field(name, width) for name, width in (("f", 8), ("f", 9), ("f", 100), ("dst", 32), ("dst", 48))),
    *(make_field("dst", 128), make_field("f", 8, type_name="E", types=_TYPES)),
)


@st.composite
def matches(draw: st.DrawFn) -> tuple[TypedField, _M, p4r.FieldMatch]:
    field, kind = (
        draw(st.sampled_from(_FIELDS)),
        draw(st.sampled_from((_M.EXACT, _M.LPM, _M.TERNARY, _M.RANGE))),
    )
    full = (1 << field.width) - 1
    low, high = sorted(draw(st.tuples(st.integers(0, full), st.integers(0, full))))
    value: Any = low
    if kind == _M.LPM:
        value = [low, draw(st.integers(1, field.width))]
    elif kind == _M.TERNARY:
        value = [low, draw(st.integers(1, full))]
    elif kind == _M.RANGE:
        value = [low, high - (high - low == full)]
    info = _M(id=1, name=field.name, bitwidth=field.width, match_type=kind)
    match = parse.match(field, info, value)
    assert match is not None
    return field, info, match


@given(matches())
def test_the_text_of_a_match_is_parsed_again(drawn: tuple[TypedField, _M, p4r.FieldMatch]) -> None:
    field, info, match = drawn
    text = text_of(field.from_match(match, lambda _: None))
    assert parse.match(field, info, text) == match, text


def test_an_entry_as_text_and_back() -> None:
    info = p4i.P4Info()
    action = info.actions.add(preamble=p4i.Preamble(id=1, name="in.forward", alias="forward"))
    action.params.add(id=1, name="port", bitwidth=9)
    table = info.tables.add(preamble=p4i.Preamble(id=2, name="in.route", alias="route"))
    table.match_fields.add(id=1, name="hdr.ip.dst", bitwidth=32, match_type=_M.TERNARY)
    table.action_refs.add(id=1)
    names = ProgramNames(info).table("route")
    entry = names.encode({"dst": "10.0.0.0/8"}, names.action("forward").encode([3]), priority=7)
    assert names.text(entry) == "dst=10.0.0.0/8 priority 7 forward(port=3)"
    key = {name: text_of(value) for name, value in names.key(entry.match).items()}
    assert names.encode(key, entry.action.action, priority=7) == entry
    assert names.action("forward").encode({"port": 3}) == entry.action.action
