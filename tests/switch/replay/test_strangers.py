# SPDX-License-Identifier: Apache-2.0
"""Saved traces of strangers: checked key by key, in bounded time, and never code."""

from __future__ import annotations

import ast
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from google.protobuf.message import Message

from tailrace.p4rt.programs import parse_p4info
from tailrace.p4rt.requests import parse_write_request
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.switch.p4runtime import program_compiler
from tailrace.switch.replay import document, ptf, runner, stf
from tailrace.switch.replay.document import SavedTrace
from tests.bad_input.readers import mutant
from tests.long import times
from tests.processes import running
from tests.switch.replay.test_replay import traces

_CONSTANTS = {"P4INFO", "DEVICE_CONFIG", "WRITE_REQUEST", "PACKET", "EXPECTED"}


@pytest.fixture(scope="module")
def good() -> list[dict[str, Any]]:
    """Documents with most kinds of entities."""
    names = ("action_profiles", "cloning", "match_kinds", "registers")
    made = [max((m for _, m in traces(name, 20)), key=lambda m: len(m.write_request)) for name in names]
    return [json.loads(document.as_json(saved)) for saved in made]


Change = Callable[[dict[str, Any]], object]


def _set(*path: str | int, to: object) -> Change:
    def change(made: Any) -> None:
        for step in path[:-1]:
            made = made[step]
        made[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_set("version", to=2), "version: expected 1, found 2"),
        (_set("format", to="pcap"), "format: expected"),
        (_set("more", to=1), "unknown key"),
        (_set("write_request", to="updates {"), "write_request: expected a p4.v1.WriteRequest as text"),
        (_set("write_request", to="updates { more: 1 }"), 'has no field named "more"'),
        (_set("write_request", to="\ud800"), "write_request: expected"),
        (_set("write_request", to="updates {}" * 10_001), "10001 updates; the limit is 10000"),
        (_set("write_request", to="updates { entity { table_entry { table_id: -1 }}}"), "write_request"),
        (_set("packet", "port", to=512), "packet.port"),
        (_set("packet", "frame", to="0"), "packet.frame"),
        (_set("packet", "frame", to="00" * 66_001), "packet.frame"),
        (_set("expected", "dropped", to=["\n"]), "expected.dropped[0]"),
        (_set("choices", to=[1 << 63]), "choices[0]"),
        (_set("unsure", to=["who knows"]), "unsure[0]"),
        (_set("switch", "priority_queues", to=9), "switch.priority_queues"),
        (_set("program", "name", to="x" * 513), "program.name"),
        (_set("program", "p4info", to="tables"), "program.p4info: not P4Info"),
        (_set("program", "p4info", to=""), "program.p4info: not P4Info: it is empty"),
    ],
)
def test_one_line_that_names_the_key(
    good: list[dict[str, Any]], tmp_path: Path, change: Change, says: str
) -> None:
    made = json.loads(json.dumps(good[0]))
    change(made)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(made))
    with pytest.raises(FileError) as caught:
        document.read(path)
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.mark.filterwarnings("ignore:invalid .*escape sequence:DeprecationWarning")
def test_mutants(good: list[dict[str, Any]], tmp_path: Path) -> None:
    """What is taken runs, is exported, or is refused in a line. Programs stay as they are: mutants of these, which
    the compiler would take its time for, are its tests'.
    """
    rng, taken, path = random.Random(5), 0, tmp_path / "trace.json"
    programs = {f"program{number}": made["program"]["json"] for number, made in enumerate(good)}
    examples = []
    for name, made in zip(programs, good, strict=True):
        examples.append(json.dumps({**made, "program": {**made["program"], "json": name}}).encode())
    tries = times(2_000, 50)
    for number in range(tries):
        content = mutant(rng, examples) if number % 2 else _other_entities(rng, rng.choice(examples))
        for name, text in programs.items():
            content = content.replace(f'"{name}"'.encode(), json.dumps(text).encode())
        path.write_bytes(content)
        try:
            saved = document.read(path)
            taken += 1
            for use in (stf.test_source, ptf.test_source, runner.run):
                try:
                    use(saved)
                except SpecError as error:
                    assert str(error).isprintable()
        except FileError as error:
            assert str(error).isprintable()
    assert taken > tries // 5


_VALUES = (b"", b"\0", b"\xff", b"\xff" * 9, 0, 1, 2, 511, (1 << 31) - 1, "NoAction", True)


def _other_entities(rng: random.Random, content: bytes) -> bytes:
    """Updates of which one is twice there, or has another value."""
    made = json.loads(content)
    request = parse_write_request(made["write_request"])
    update = rng.choice(request.updates)
    if rng.random() < 0.2:
        request.updates.append(update)
    message: Any = update
    while True:
        field, value = rng.choice(message.ListFields())
        values = [value] if field.message_type is None else list(value) if field.is_repeated else [value]
        if not isinstance(values[0], Message):
            setattr(message, field.name, rng.choice([v for v in _VALUES if type(v) is type(value)]))
            break
        message = rng.choice(values)
        if not message.ListFields():
            break
    made["write_request"] = text_format.MessageToString(request)
    return json.dumps(made).encode()


def test_a_program_that_is_none(good: list[dict[str, Any]]) -> None:
    """The switch finds out."""
    made = msgspec.convert(good[0], document.TraceDocument)
    for text in ("", "{}", "[" * 100_000, "\ud800"):
        program = msgspec.structs.replace(made.program, json=text)
        saved = SavedTrace(msgspec.structs.replace(made, program=program, write_request=""))
        with pytest.raises(SpecError, match=r"^program: "):
            runner.run(saved)


def test_a_program_that_takes_too_long_to_compile(
    good: list[dict[str, Any]], slow_compiler: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in slow_compiler.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(program_compiler, "MOST_S", 2.0)
    saved = SavedTrace(msgspec.convert(good[0], document.TraceDocument))
    name = re.escape(saved.document.program.name)
    with pytest.raises(SpecError, match=rf"^program: {name}: .*the compiler ended or took longer than 2 s$"):
        runner.run(saved)
    assert not running("tailrace.switch.p4runtime.program_compiler", str(os.getpid()))


def test_a_field_without_text() -> None:
    """`group_action` is newer than P4Runtime's messages: a trace that reads one is not saved without it."""
    entity = p4r.Entity()
    entity.table_entry.action.action_profile_action_set.MergeFromString(bytes([5 << 3 | 2, 0]))
    with pytest.raises(SpecError, match="fields that the text format cannot express"):
        document._write_request([document.update_of(entity)], p4i.P4Info())


@pytest.mark.parametrize(
    "name", ['"""\nimport os\n"""', "a\nb", 'x" "y', "x#", "x\\", "a;b", "ä", "$(id)", " "]
)
def test_names_are_no_code(good: list[dict[str, Any]], name: str) -> None:
    """Whatever P4Info calls a table and an action: the code for PTF is the same but for literals, and STF has plain
    words only.
    """
    made = json.loads(json.dumps(good[2]))
    info = parse_p4info(made["program"]["p4info"].encode())
    things: list[p4i.Table | p4i.Action] = [*info.tables, *info.actions]
    for thing in things:
        thing.preamble.name = name + thing.preamble.name
    made["program"]["name"] = name
    made["program"]["p4info"] = text_format.MessageToString(info)
    saved = SavedTrace(msgspec.convert(made, document.TraceDocument))
    plain = SavedTrace(msgspec.convert(good[0], document.TraceDocument))
    assert _code(ptf.test_source(saved)) == _code(ptf.test_source(plain))
    with pytest.raises(SpecError, match=r"^updates.*: STF cannot express it: the name"):
        stf.test_source(saved)


def _code(text: str) -> str:
    """A test without the values of its constants, which are literals."""
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in _CONSTANTS:
            ast.literal_eval(node.value)
            node.value = ast.Constant(0)
    return ast.dump(tree)
