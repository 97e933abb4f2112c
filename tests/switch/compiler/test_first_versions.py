# SPDX-License-Identifier: Apache-2.0
"""What only the first versions of BMv2's JSON have (P4_14, and p4c of 2017) does what simple_switch does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tailrace.switch.compiler import CompilerError, load_program
from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json
from tailrace.switch.core import ActionCall, Replica, V1ModelSwitch
from tests.switch.bmv2_builder import Builder, assign, call, const, field, op, pack

Json = dict[str, Any]


def sent(
    program: Json, frame: bytes, *, port: int = 1, entries: list[tuple[str, bytes, ActionCall]] | None = None
) -> list[tuple[int, bytes]]:
    """What a switch with the program sends because of a frame."""
    compiled = load_program(json.dumps(program).encode())
    with V1ModelSwitch(compiled) as switch:
        for table, key, action in entries or []:
            index = compiled.model.table(table).index
            switch.table_insert(index, key, b"\xff" * len(key), target=action)
        switch.inject(port, frame, at_ns=0)
        switch.run(until_ns=1_000_000)
        return [(out.port, out.data) for out in switch.outputs()]


def only(program: Json, frame: bytes) -> bytes:
    ((_, data),) = sent(program, frame)
    return data


def refused(program: Json) -> str:
    with pytest.raises(CompilerError) as caught:
        read_bmv2_json(json.dumps(program).encode())
    return str(caught.value)


# ---- header types ----


@pytest.mark.parametrize(
    ("start", "amount", "expected"), [(250, 5, 255), (250, 6, 255), (255, 255, 255), (3, 4, 7)]
)
def test_an_unsigned_saturating_field(start: int, amount: int, expected: int) -> None:
    b = Builder([("a", 8), ("b", 8)])
    b.run([call("add_to_field", field("in", "a"), field("in", "b"))])
    program = b.json()
    program["header_types"][1]["fields"][0] = ["a", 8, False, True]
    assert only(program, bytes([start, amount, 0]))[0] == expected


@pytest.mark.parametrize(("start", "amount", "expected"), [(100, 100, 127), (-100, -100, -128), (5, -9, -4)])
def test_a_signed_saturating_field(start: int, amount: int, expected: int) -> None:
    b = Builder([("a", 8), ("b", 8)])
    b.run([call("add", field("in", "a"), field("in", "a"), field("in", "b"))])
    program = b.json()
    program["header_types"][1]["fields"] = [["a", 8, True, True], ["b", 8, True]]
    frame = bytes([start & 255, amount & 255, 0])
    assert only(program, frame)[0] == expected & 255


def test_other_writers_of_saturating_fields_are_refused_by_name() -> None:
    b = Builder([("a", 8)])
    b.run([call("modify_field_rng_uniform", field("in", "a"), const(0), const(1))])
    program = b.json()
    program["header_types"][1]["fields"][0] = ["a", 8, False, True]
    assert "saturating" in refused(program)


def with_length(expression: Json, max_length: int | None = 20) -> Json:
    """`in` is a byte `kind`, a nibble of zeros and a nibble `words`, and the bytes that `words` says."""
    b = Builder([("kind", 8), ("zero", 4), ("words", 4)], [("end", 8)])
    program = b.json()
    program["header_types"][1]["fields"].append(["rest", "*"])
    program["header_types"][1]["length_exp"] = expression
    if max_length is not None:
        program["header_types"][1]["max_length"] = max_length
    return program


WORDS = op("*", {"type": "local", "value": 2}, const(32))
"""p4c-bm's form: a local is a field of the header that is extracted."""


@pytest.mark.parametrize("words", range(5))
@pytest.mark.parametrize("max_length", [20, None])
def test_a_header_type_says_its_length(words: int, max_length: int | None) -> None:
    program = with_length(WORDS, max_length)
    rest = bytes(range(4 * words))
    frame = bytes([7, words]) + rest + b"\xee" + b"payload"
    assert only(program, frame) == frame
    # the header behind it is where the length says
    program["deparsers"][0]["order"] = ["out"]
    assert only(program, frame) == b"\xee" + b"payload"


def test_a_length_beyond_the_packet_or_the_maximum_is_an_error() -> None:
    program = with_length(WORDS, 6)
    program["deparsers"][0]["order"] = ["out"]
    for frame in (bytes([7, 2]) + bytes(20), bytes([7, 1, 0, 0])):
        # nothing of it was taken out of the packet
        assert only(program, frame) == frame


def test_a_length_by_fields_behind_it_is_refused() -> None:
    program = with_length(op("*", {"type": "local", "value": 3}, const(32)))
    assert "only on fields before the varbit field" in refused(program)


# ---- $valid$ ----


def with_valid(value: Json, tail: list[Json]) -> Json:
    """The parser sets `$valid$` of `out`; the table `look` has it as its key."""
    b = Builder([("a", 8)])
    hit = b.action("hit", [assign(field("in", "a"), const(0xAA)), *tail])
    miss = b.action("miss", [assign(field("in", "a"), const(0xBB)), *tail])
    b.table("look", [("exact", "out", "$valid$")], "exact", [hit, miss], default=(miss, []))
    program = b.json()
    ops = program["parsers"][0]["parse_states"][0]["parser_ops"]
    ops.append({"op": "set", "parameters": [field("out", "$valid$"), value]})
    return program


@pytest.mark.parametrize("value", [0, 1])
def test_the_hidden_field_can_be_written_and_validity_stays(value: int) -> None:
    program = with_valid(const(value), [])
    action = read_bmv2_json(json.dumps(program).encode()).action("hit").index
    ((_, data),) = sent(program, b"\x01\x02rest", entries=[("look", b"\x01", ActionCall(action, ()))])
    assert data == bytes([0xAA if value else 0xBB]) + b"\x02rest"


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize(("change", "after"), [("remove_header", 0), ("add_header", 1)])
def test_the_hidden_field_follows_what_makes_headers_valid(value: int, change: str, after: int) -> None:
    header = {"type": "header", "value": "out"}
    steps = [call("remove_header", header), call("add_header", header)][: 1 + after]
    seen = assign(field("in", "a"), field("out", "$valid$"))
    assert steps[-1]["op"] == change
    program = with_valid(const(value), [*steps, seen])
    data = only(program, b"\x01\x02rest")
    assert data == bytes([after]) + (b"\x00" if after else b"") + b"rest"


def test_the_hidden_field_is_no_part_of_the_packet_or_of_a_copy() -> None:
    program = with_valid(const(0), [])
    assert only(program, b"\x01\x02") == b"\xbb\x02"


# ---- parsers ----


def test_shift_counts_bytes() -> None:
    program = Builder([("a", 8)]).json()
    ops = program["parsers"][0]["parse_states"][0]["parser_ops"]
    ops.insert(1, {"op": "shift", "parameters": [3]})
    assert only(program, b"axyzb...") == b"ab..."


def select(program: Json, transitions: list[Json], key: Json) -> Json:
    """Selects behind `in`; the state `more` extracts `out`."""
    state = program["parsers"][0]["parse_states"][0]
    more = dict(state, name="more", id=1, parser_ops=[state["parser_ops"].pop()])
    program["parsers"][0]["parse_states"].append(more)
    state["transition_key"], state["transitions"] = [key], transitions
    return program


OLD_END = {"value": "default", "mask": None, "next_state": None}


@pytest.mark.parametrize(
    ("transitions", "taken"),
    [
        ([{"value": "0x05", "mask": None, "next_state": "more"}, OLD_END], True),
        ([{"value": "0x07", "mask": "0x0d", "next_state": "more"}, OLD_END], True),
        ([{"value": "0x06", "next_state": "more"}, OLD_END], False),
        ([{"type": "hexstr", "value": "default", "next_state": "more"}], True),
        ([{"value": "default", "next_state": "more"}], True),
        ([{"value": "0x06", "mask": None, "next_state": None}], False),
        ([], False),
        # bits that no key of 4 bits has: BMv2 compares whole bytes
        ([{"value": "0x15", "mask": None, "next_state": "more"}, OLD_END], False),
        ([{"value": "0x15", "mask": "0x0f", "next_state": "more"}, OLD_END], True),
    ],
)
def test_transitions_without_type(transitions: list[Json], taken: bool) -> None:
    program = select(Builder([("a", 4), ("n", 4)]).json(), transitions, field("in", "n"))
    program["deparsers"][0]["order"] = []
    assert only(program, b"\x35\x99x") == (b"x" if taken else b"\x99x")


def test_errors_that_a_program_leaves_out_come_behind_its_own() -> None:
    program = Builder([("a", 8)]).json()
    program["errors"] = [["NoError", 3], ["Mine", 9]]
    errors = read_bmv2_json(json.dumps(program).encode()).errors
    assert list(errors.items())[:4] == [("NoError", 3), ("Mine", 9), ("PacketTooShort", 10), ("NoMatch", 11)]


# ---- the rest ----


IPV4 = [
    ("version", 4), ("ihl", 4), ("tos", 8), ("length", 16), ("id", 16), ("flags", 3), ("offset", 13), ("ttl", 8),
    ("protocol", 8), ("checksum", 16), ("src", 32), ("dst", 32),
]  # fmt: skip


@pytest.mark.parametrize("cond", [None, True, False])
def test_a_checksum_of_type_ipv4(cond: bool | None) -> None:
    b = Builder(IPV4)
    b.run([assign(field("in", "ttl"), const(9))])
    program = b.json()
    checksum: Json = {"name": "c", "id": 0, "type": "ipv4", "target": ["in", "checksum"]}
    if cond is not None:
        checksum["if_cond"] = {"type": "bool", "value": cond}
    program["checksums"] = [checksum]
    header = pack(IPV4, [4, 5, 0, 40, 1, 0, 0, 64, 17, 0x1234, 0x0A000001, 0x0A000002])
    data = only(program, header + bytes(20))
    words = [int.from_bytes(data[i : i + 2], "big") for i in range(0, 20, 2)]
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    assert (total == 0xFFFF) is (cond is not False)


def test_a_checksum_of_type_ipv4_elsewhere_is_refused() -> None:
    program = Builder([("a", 16)]).json()
    program["checksums"] = [{"name": "c", "id": 0, "type": "ipv4", "target": ["in", "a"]}]
    assert "bytes 10 and 11" in refused(program)


P4_14_STANDARD = [
    ["ingress_port", 9], ["packet_length", 32], ["egress_spec", 9], ["egress_port", 9], ["egress_instance", 32],
    ["instance_type", 32], ["clone_spec", 32], ["_padding", 5],
]  # fmt: skip


def p4_14(body: list[Json]) -> Json:
    """A program with p4c-bm's metadata: simple_switch finds its fields in headers of their own."""
    b = Builder([("a", 8)])
    b.run(body)
    program = b.json()
    program["header_types"][0]["fields"] = P4_14_STANDARD
    program["header_types"].append(
        {
            "name": "intrinsic_t",
            "id": 3,
            "fields": [["mcast_grp", 4], ["egress_rid", 4], ["lf_field_list", 8]],
        }
    )
    program["headers"].append(
        {"name": "intrinsic_metadata", "id": 3, "header_type": "intrinsic_t", "metadata": True}
    )
    return program


def test_intrinsic_metadata_is_a_header_of_its_own() -> None:
    program = p4_14([assign(field("intrinsic_metadata", "mcast_grp"), const(5))])
    b = Builder([("a", 8)])
    b.actions = program["actions"]
    rid = b.action("rid", [assign(field("in", "a"), field("intrinsic_metadata", "egress_rid"))])
    b.table("in_egress", [], "exact", [rid], default=(rid, []), const_default=True, egress=True)
    program["actions"] = b.actions
    program["pipelines"][1] = b.json()["pipelines"][1]
    compiled = load_program(json.dumps(program).encode())
    with V1ModelSwitch(compiled) as switch:
        switch.mcast_set(5, [Replica(2, 3), Replica(4, 7)])
        switch.inject(1, b"\x00\x01", at_ns=0)
        switch.run(until_ns=1_000_000)
        assert sorted((o.port, o.data) for o in switch.outputs()) == [(2, b"\x03\x01"), (4, b"\x07\x01")]


def test_drop_takes_the_multicast_group_back() -> None:
    program = p4_14([assign(field("intrinsic_metadata", "mcast_grp"), const(5)), call("drop")])
    assert sent(program, b"\x00\x01") == []


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda p: p["headers"].append(dict(p["headers"][1], id=9)), 'two headers are named "in"'),
        (lambda p: p["headers"].append(dict(p["headers"][1], name="x")), "two headers have id 1"),
        (lambda p: p["actions"].append(dict(p["actions"][0])), "two actions have id 0"),
        (lambda p: p["pipelines"][0]["tables"].append(p["pipelines"][0]["tables"][0]), "two control nodes"),
        (lambda p: p["header_types"].append(p["header_types"][0]), "two header types"),
        (lambda p: p["parsers"][0]["parse_states"].append(p["parsers"][0]["parse_states"][0]), "two parse states"),
        (lambda p: p["__meta__"].update(version=[1, 5]), "JSON format 1.5 is older than 2.0"),
        (lambda p: p["__meta__"].update(version=[2]), "expected 2 elements"),
        (lambda p: p["pipelines"][0]["tables"][0].pop("max_size"), "max_size or entries"),
        (lambda p: p["pipelines"][0]["tables"][0]["default_entry"].pop("action_data"), '"action_data" is missing'),
        (lambda p: p["pipelines"][0]["tables"][0]["next_tables"].update(__HIT__=None), "nothing else"),
        (lambda p: p["pipelines"][0]["tables"][0]["next_tables"].clear(), 'no node for action "body"'),
        (lambda p: p["pipelines"][0]["conditionals"].append({"name": "c", "id": 0}), "true_next"),
        (lambda p: p["errors"].extend([["A", 1], ["B", 1]]), "another error has this name"),
        (lambda p: p["pipelines"][0]["tables"][0].update(type="indirect"), '"act_prof_name" is missing'),
        (lambda p: p["extern_instances"].append({"name": "e"}), 'extern ""'),
    ],
)  # fmt: skip
def test_what_bmv2_refuses_is_refused_with_its_place(damage: Any, expected: str) -> None:
    b = Builder([("a", 8)])
    b.run([assign(field("in", "a"), const(1))])
    program = json.loads(b.text())
    damage(program)
    assert expected in refused(program)
