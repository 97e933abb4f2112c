# SPDX-License-Identifier: Apache-2.0
"""Nodes of a pipeline form no circle: such a program is refused in a line, and of all others a frame gets through."""

from __future__ import annotations

import functools
import json
import re
import threading
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tailrace.switch.compiler import CompilerError, load_program
from tailrace.switch.compiler.emit import emit
from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json
from tailrace.switch.core import V1ModelSwitch
from tests.switch.bmv2_builder import Builder, Json, assign, call, const, field, op
from tests.switch.fuzz.builds import PROGRAMS

FRAME_S = 60.0
"""Far more than the moment that a frame takes."""
SMALL = 120_000
"""Bytes of the JSON of programs that are run."""


def three() -> Json:
    """Tables t, u and v, one behind the other; u goes by hit and miss."""
    b = Builder([("a", 8)])
    step = b.action("step", [assign(field("in", "a"), op("+", field("in", "a"), const(1)))])
    for name in "tuv":
        b.table(name, [("exact", "in", "a")], "exact", [step])
    program = b.json()
    table(program, "u")["next_tables"] = {"__HIT__": "v", "__MISS__": "v"}
    return program


def table(program: Json, name: str) -> Json:
    definition: Json = next(t for t in program["pipelines"][0]["tables"] if t["name"] == name)
    return definition


def add_condition(program: Json, **more: str | None) -> None:
    """While a field has a value."""
    condition = {"name": "if", "expression": op("==", field("in", "a"), const(1)), "true_next": None, **more}
    program["pipelines"][0]["conditionals"] = [condition]


def add_call(program: Json, following: str) -> None:
    program["pipelines"][0]["action_calls"] = [{"name": "call", "action_id": 0, "next_node": following}]


def refusal(program: Json) -> str:
    with pytest.raises(CompilerError) as caught:
        read_bmv2_json(json.dumps(program).encode(), "x.json")
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "circle"),
    [
        (lambda p: table(p, "t")["next_tables"].update(step="t"), '"t" -> "t"'),
        (lambda p: table(p, "v")["next_tables"].update(step="u"), '"u" -> "v" -> "u"'),
        (lambda p: table(p, "v").update(base_default_next="t"), '"t" -> "u" -> "v" -> "t"'),
        (lambda p: table(p, "u")["next_tables"].update(__HIT__="t"), '"t" -> "u" -> "t"'),
        (lambda p: table(p, "u")["next_tables"].update(__MISS__="u"), '"u" -> "u"'),
        (lambda p: add_condition(p, true_next="if"), '"if" -> "if"'),
        (lambda p: add_condition(p, false_next="if"), '"if" -> "if"'),
        (lambda p: add_call(p, "call"), '"call" -> "call"'),
    ],
)
def test_a_circle_is_refused_and_named(change: Callable[[Json], object], circle: str) -> None:
    """Whatever makes a node follow, and whether or not a packet gets there."""
    program = three()
    change(program)
    assert f'x.json: pipelines["ingress"]: the control flow has a cycle: {circle}' == refusal(program)


def test_so_is_one_of_egress() -> None:
    program = three()
    program["pipelines"][0]["name"], program["pipelines"][1]["name"] = "egress", "ingress"
    table(program, "v")["base_default_next"] = "v"
    assert 'x.json: pipelines["egress"]: the control flow has a cycle: "v" -> "v"' == refusal(program)


def chain(length: int, last: str | None) -> Json:
    """So many conditions, each behind the one before."""
    program = three()
    names = [f"if {i}" for i in range(length)]
    program["pipelines"][0]["conditionals"] = [
        {"name": name, "expression": op("==", field("in", "a"), const(1)), "true_next": following}
        for name, following in zip(names, [*names[1:], last], strict=True)
    ]
    return program


def test_of_a_long_circle_some_nodes_are_named() -> None:
    named = " -> ".join(f'"if {i}"' for i in range(6))
    assert refusal(chain(5_000, "if 0")).endswith(f'{named} -> 4994 more -> "if 0"')


def test_a_long_pipeline_needs_no_recursion() -> None:
    assert 5_000 == len(read_bmv2_json(json.dumps(chain(5_000, None)).encode()).ingress.conditionals)


@pytest.mark.parametrize(
    ("steps", "counted"), [(63, "++jumps"), (64, "(jumps += 2)"), (2000, "(jumps += 32)")]
)
def test_long_rounds_of_an_action_are_fewer(steps: int, counted: str) -> None:
    """2,000 steps a million times held up the switch for seconds; the jump is one more."""
    b = Builder([("a", 8)])
    b.run([assign(field("in", "a"), const(1))] * steps + [call("_jump", const(0))])
    assert f"if ({counted} > TR_LOOP_LIMIT)" in emit(read_bmv2_json(b.text()))


@pytest.mark.parametrize(("steps", "counted"), [(64, "++visited"), (65, "(visited += 2)")])
def test_so_are_visits_of_a_long_state(steps: int, counted: str) -> None:
    program = three()
    step = {"op": "set", "parameters": [field("in", "a"), const(1)]}
    [state] = program["parsers"][0]["parse_states"][:1]
    state["parser_ops"] = [step] * steps
    assert f"if ({counted} > TR_PARSER_LIMIT)" in emit(read_bmv2_json(json.dumps(program).encode()))


# ---- programs whose next nodes are others ----


def nodes(pipeline: Json) -> list[Json]:
    return [node for key in ("tables", "conditionals", "action_calls") for node in pipeline.get(key) or []]


def places(node: Json) -> Iterator[tuple[Json, str]]:
    """Where a node says which one follows: an object and a key in it."""
    for at in ("true_next", "false_next", "base_default_next", "next_node"):
        if at in node:
            yield node, at
    following = node.get("next_tables") or {}
    for at in following:
        yield following, at


def has_circle(pipeline: Json) -> bool:
    return is_circular(
        {node["name"]: {owner[at] for owner, at in places(node) if owner[at]} for node in nodes(pipeline)}
    )


def is_circular(graph: dict[str, set[str]]) -> bool:
    """By the standard library."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


@functools.cache
def text_of(name: str) -> bytes:
    return PROGRAMS[name].read_bytes()


def mutant(data: st.DataObject, names: list[str]) -> Json:
    """A program of which one to three nodes are followed by others of their pipeline, or by none."""
    program: Json = json.loads(text_of(data.draw(st.sampled_from(names))))
    pipeline = data.draw(st.sampled_from([p for p in program["pipelines"] if nodes(p)]))
    edges = [place for node in nodes(pipeline) for place in places(node)]
    for owner, at in data.draw(st.lists(st.sampled_from(edges), min_size=1, max_size=3)):
        owner[at] = data.draw(st.sampled_from([None, *(node["name"] for node in nodes(pipeline))]))
    return program


def gotos(text: str) -> dict[str, set[str]]:
    """Of the C functions of both pipelines: the nodes to which each node jumps."""
    graph: dict[str, set[str]] = {}
    for function in re.findall(r"^static void trp_(?:in|e)gress\(.*?^}", text, re.MULTILINE | re.DOTALL):
        node = ""
        for label, target in re.findall(r"(\bnode_\w+):|goto (node_\w+);", function):
            node = label or node
            graph.setdefault(node, set()).update([target] if target else [])
    return graph


@settings(max_examples=40)
@given(st.data())
def test_a_program_is_taken_if_and_only_if_it_has_no_circle(data: st.DataObject) -> None:
    """The C text of what is taken has none either: whatever a node decides, a packet comes to its end."""
    program = mutant(data, sorted(PROGRAMS))
    if any(map(has_circle, program["pipelines"])):
        assert "has a cycle" in refusal(program)
        return
    edges = gotos(emit(read_bmv2_json(json.dumps(program).encode())))
    assert edges and not is_circular(edges)


@settings(max_examples=8)
@given(st.data())
def test_a_frame_gets_through_what_is_taken(data: st.DataObject) -> None:
    program = mutant(data, [name for name, path in PROGRAMS.items() if path.stat().st_size < SMALL])
    assume(not any(map(has_circle, program["pipelines"])))
    made = load_program(json.dumps(program).encode(), options=("-O0",))

    def frames() -> None:
        with V1ModelSwitch(made) as switch:
            for at in range(64):
                switch.inject(at % 4, bytes((at * i) % 256 for i in range(at, at + 200)), at_ns=at)
                switch.run(at)

    thread = threading.Thread(target=frames, daemon=True)
    thread.start()
    thread.join(FRAME_S)
    assert not thread.is_alive()
