# SPDX-License-Identifier: Apache-2.0
"""What the compiler cannot take is refused in one line that names file and place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.switch.compiler import CompilerError, load_program
from tailrace.switch.compiler.emit import emit
from tailrace.switch.compiler.errors import NotCompiledError
from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json
from tests.switch.bmv2_builder import Builder, assign, call, const, field, op

PROGRAMS = sorted((Path(__file__).parents[2] / "programs" / "build").glob("*.json"))


def good() -> dict[str, Any]:
    b = Builder([("a", 8)])
    b.run([assign(field("in", "a"), op("+", field("in", "a"), const(1)))])
    return b.json()


def refused(program: dict[str, Any] | bytes) -> str:
    text = program if isinstance(program, bytes) else json.dumps(program).encode()
    with pytest.raises(CompilerError) as caught:
        read_bmv2_json(text, "x.json")
    message = str(caught.value)
    assert message.startswith("x.json: ")
    assert "\n" not in message
    return message


def test_the_good_program_is_accepted() -> None:
    assert "test.p4" == read_bmv2_json(json.dumps(good()).encode()).name


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("ingress_parser", "egress_parser"), "a program for PSA (Portable Switch Architecture)"),
        (("main_parser",), "a program for PNA (Portable NIC Architecture)"),
        (("some_parser",), 'parsers: a program for v1model has one named "parser", found "some_parser"'),
        ((), 'parsers: a program for v1model has one named "parser", found none'),
    ],
)
def test_programs_of_other_architectures_are_named(names: tuple[str, ...], said: str) -> None:
    program = good()
    program["parsers"] = [{**program["parsers"][0], "name": name} for name in names]
    assert said in refused(program)


Change = Callable[[dict[str, Any]], object]


def header(program: dict[str, Any], name: str) -> dict[str, Any]:
    instance: dict[str, Any] = next(
        candidate for candidate in program["headers"] if candidate["name"] == name
    )
    return instance


def stack(program: dict[str, Any], kind: str, members: list[str]) -> None:
    """A stack with the type of a header, of other ones."""
    ids = [header(program, name)["id"] for name in members]
    made = {"name": "stack", "id": 0, "header_type": header(program, kind)["header_type"], "header_ids": ids}
    program["header_stacks"] = [made]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda p: p["__meta__"].update(version=[3, 0]), "JSON format 3.0 is newer than 2.24"),
        (lambda p: p["__meta__"].update(version=[2, 25]), "JSON format 2.25 is newer than 2.24"),
        (lambda p: p["__meta__"].update(version=[2, "24"]), "__meta__.version[1]: expected an integer"),
        (lambda p: p["__meta__"].update(version=None), "__meta__.version: expected an array"),
        (lambda p: p.pop("headers"), '"headers" is missing'),
        (lambda p: header(p, "in").update(metadata=True), '"in" is metadata; expected a packet header'),
        (lambda p: stack(p, "out", ["in"]), 'header "in" is of another type than the stack'),
        (lambda p: stack(p, "in", ["in", "in"]), 'header "in" is already in a stack or union'),
        (lambda p: p.update(field_lists=[{"id": 1, "elements": []}] * 2), "two field lists have id 1"),
        (lambda p: p["extern_instances"].append({"name": "e", "type": "magic"}), 'extern "magic"'),
        (lambda p: p["actions"][0]["primitives"][0].update(op="fly"), 'primitive "fly"'),
        (lambda p: p["actions"][0]["primitives"][0]["parameters"].pop(), "takes 2 parameters"),
        # as p4c writes `header_t[2] stack = { (header_t){ 1 }, other }`, on which BMv2 aborts
        (
            lambda p: p["actions"][0]["primitives"][0].update(
                op="assign_header", parameters=[{"type": "header", "value": "in"}, [const(1)]]
            ),
            "primitives[0].parameters[1]: expected an object",
        ),
        (
            lambda p: p["actions"][0]["primitives"][0]["parameters"][0].update(value=["in", "z"]),
            'no field "z"',
        ),
        (lambda p: p["actions"][0]["primitives"][0]["parameters"][0].update(value=["y", "a"]), '"y"'),
        (lambda p: p["pipelines"][0]["tables"][0].update(match_type="magic"), 'match type "magic"'),
        (lambda p: p["pipelines"][0]["tables"][0].update(type="magic"), 'table type "magic"'),
        (lambda p: p["pipelines"][0]["tables"][0].update(action_ids=[7]), "no action has id 7"),
        (lambda p: p["pipelines"][0].update(init_table="nowhere"), 'no node is named "nowhere"'),
        (lambda p: p["pipelines"].pop(), '"ingress" and "egress"'),
        (lambda p: p["header_types"][1]["fields"].append(["odd", 3, False]), "whole bytes"),
        (lambda p: p["header_types"][1]["fields"].append(["big", 99999, False]), "from 0 to 4096"),
        (lambda p: p["parsers"][0].update(init_state="nowhere"), 'no state is named "nowhere"'),
        (
            lambda p: p["parsers"][0]["parse_states"][0]["parser_ops"].append({"op": "x", "parameters": []}),
            'parser operation "x"',
        ),
        (
            lambda p: p["calculations"].append({"name": "c", "id": 0, "algo": "md5", "input": []}),
            'hash algorithm "md5"',
        ),
        (
            lambda p: p["actions"][0]["primitives"][0]["parameters"][1]["value"]["value"].update(op="**"),
            'operator "**"',
        ),
        (
            lambda p: p["actions"][0]["primitives"][0].update(
                op="_jump", parameters=[{"type": "hexstr", "value": "0x9"}]
            ),
            "jump target",
        ),
        (
            lambda p: p["actions"][0]["primitives"][0]["parameters"].__setitem__(
                1, {"type": "runtime_data", "value": 0}
            ),
            "parameter 0 is used",
        ),
        (
            lambda p: p["register_arrays"].append({"name": "r", "id": 0, "size": 4, "bitwidth": 0}),
            "from 1 to 4096",
        ),
    ],
)
def test_a_construct_is_named(change: Change, expected: str) -> None:
    program = good()
    change(program)
    assert expected in refused(program)


def test_a_key_that_no_slot_could_hold_is_refused() -> None:
    b = Builder([(f"f{i}", 4096) for i in range(9)])
    action = b.action("a", [])
    b.table("t", [("exact", "in", f"f{i}") for i in range(9)], "exact", [action])
    assert "the key has more than 4096 bytes" in refused(b.json())


def test_more_headers_than_a_packet_can_have_are_refused() -> None:
    """Of 10 MB a resubmitted packet cleared and copied all, 65,536 times before anybody else had a turn."""
    program = good()
    wide = [[f"f{i}", 4096, False] for i in range(513)]
    program["header_types"].append({"name": "wide_t", "id": 9, "fields": wide})
    program["headers"].append({"name": "wide", "id": 9, "header_type": "wide_t", "metadata": True})
    assert "headers: headers and metadata take 263" in refused(program)


@pytest.mark.parametrize("place", ["parser", "deparser"])
def test_a_jump_outside_of_actions_is_refused(place: str) -> None:
    """It has no place to go to."""
    program, jump = good(), call("_jump", const(0))
    if place == "parser":
        step = {"op": "primitive", "parameters": [jump]}
        program["parsers"][0]["parse_states"][0]["parser_ops"].append(step)
    else:
        program["deparsers"][0]["primitives"] = [jump]
    assert "jump target outside the action" in refused(program)


def test_what_needs_more_stack_than_there_is_is_not_compiled(tmp_path: Path) -> None:
    """The switch crashed with the first packet."""

    def sum_of(leaves: int) -> Any:
        half = leaves // 2
        return op("^", sum_of(half), sum_of(leaves - half)) if half else field("in", "a")

    b = Builder([("a", 4096)])
    b.run([assign(field("in", "a"), sum_of(2048))])
    with pytest.raises(NotCompiledError, match="frame"):
        load_program(b.text(), cache_dir=tmp_path, options=("-O0",))


def test_an_unbounded_shift_is_refused() -> None:
    """A comparison needs the whole value, which a shift by 32 bits could make gigabytes long."""
    b = Builder([("a", 8), ("n", 32)])
    shifted = op("<<", field("in", "a"), field("in", "n"))
    b.run([assign(field("in", "a"), op("b2d", None, op("==", shifted, const(1))))])
    with pytest.raises(CompilerError, match="may need more than 8192 bits"):
        emit(read_bmv2_json(b.text()))


def test_nested_comparisons_are_read_once() -> None:
    """Not twice at every level: 60 levels of a 7 KB program took longer than anybody can wait."""
    b, e = Builder([("a", 8)]), field("in", "a")
    for _ in range(60):
        e = op("b2d", None, op("==", e, const(1)))
    b.run([assign(field("in", "a"), e)])
    assert 60 == emit(read_bmv2_json(b.text())).count(" == (uint64_t)")


def test_an_action_of_many_tables_is_compiled_once() -> None:
    """Inlined 80 times, 400 primitives take the C compiler minutes, and longer the more there are."""
    b = Builder([("a", 8)])
    steps = [assign(field("in", "a"), op("+", field("in", "a"), const(1)))] * 400
    large, small = b.action("large", steps), b.action("small", steps[:2])
    for i in range(80):
        b.table(f"t{i}", [("exact", "in", "a")], "exact", [large, small])
    text = emit(read_bmv2_json(b.text()))
    assert "static void action_0_large(" in text
    assert "TR_INLINE void action_1_small(" in text


def test_so_is_one_that_is_only_a_default() -> None:
    b = Builder([("a", 8)])
    steps = [assign(field("in", "a"), op("+", field("in", "a"), const(1)))] * 40
    large = b.action("large", steps)
    for i in range(3):
        b.table(f"t{i}", [], "exact", [], default=(large, []), const_default=True)
    assert "static void action_0_large(" in emit(read_bmv2_json(b.text()))


@pytest.mark.parametrize("path", PROGRAMS[::8], ids=lambda p: p.stem)
def test_truncated_programs_are_refused(path: Path) -> None:
    """Every prefix of a program that is cut somewhere is no program."""
    text = path.read_bytes().rstrip()
    for end in range(0, len(text) - 1, max(1, len(text) // 23)):
        refused(text[:end])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_the_c_text_is_a_pure_function_of_the_program(path: Path) -> None:
    """No date, no path, no order of a hash table."""
    text = path.read_bytes()
    first = emit(read_bmv2_json(text, "somewhere/a.json"))
    assert first == emit(read_bmv2_json(text, "elsewhere/b.json"))
    assert "somewhere" not in first


def test_a_compiled_program_comes_from_the_cache(tmp_path: Path) -> None:
    b = Builder([("a", 8)])
    b.run([assign(field("in", "a"), const(7))])
    first = load_program(b.text(), cache_dir=tmp_path)
    made = first.library.stat().st_mtime_ns
    second = load_program(b.text(), cache_dir=tmp_path)
    assert (first.library, made) == (second.library, second.library.stat().st_mtime_ns)
    assert [first.library] == list(tmp_path.glob("program-*"))


def test_a_program_that_was_read_comes_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the same, and read anew where what was kept is damaged, or is of another program."""
    b = Builder([("a", 8)])
    b.run([assign(field("in", "a"), const(7))])
    first = load_program(b.text(), cache_dir=tmp_path)
    (kept,) = tmp_path.glob("model-*")
    monkeypatch.setattr("tailrace.switch.compiler.read.bmv2_json.read_bmv2_json", None)
    assert load_program(b.text(), cache_dir=tmp_path).model == first.model
    monkeypatch.undo()
    for content in (kept.read_bytes()[:-40], b"", b"cnothing\nhere\n."):
        kept.write_bytes(content)
        assert load_program(b.text(), cache_dir=tmp_path).model == first.model
        assert kept.read_bytes() != content
    other = Builder([("a", 8)])
    other.run([assign(field("in", "a"), const(8))])
    load_program(other.text(), cache_dir=tmp_path)
    (other_model,) = set(tmp_path.glob("model-*")) - {kept}
    other_model.write_bytes(kept.read_bytes())
    assert load_program(other.text(), cache_dir=tmp_path).model != first.model


def test_without_a_c_compiler_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(CompilerError, match="no-such-compiler is not on PATH"):
        load_program(Builder([("a", 8)]).text(), source="p.json", cache_dir=tmp_path)
    assert [] == list(tmp_path.glob("program-*"))
