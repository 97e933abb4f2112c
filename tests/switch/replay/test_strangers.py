# SPDX-License-Identifier: Apache-2.0
"""Saved traces of strangers: checked key by key, in bounded time, and never code."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import random
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from finsy.proto import p4i

from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.switch.p4runtime import program_compiler
from tailrace.switch.replay import document, ptf, runner, stf
from tailrace.switch.replay.document import SavedTrace
from tests.bad_input.readers import mutant
from tests.long import times
from tests.processes import running
from tests.switch.replay.test_replay import traces

_CONSTANTS = {"P4INFO", "DEVICE_CONFIG", "UPDATES", "PACKET", "EXPECTED"}


@pytest.fixture(scope="module")
def good() -> list[dict[str, Any]]:
    """Documents with most kinds of entities."""
    names = ("action_profiles", "cloning", "match_kinds", "registers")
    made = [max((m for _, m in traces(name, 20)), key=lambda m: len(m.entities)) for name in names]
    return [json.loads(document.as_json(saved)) for saved in made]


Change = Callable[[dict[str, Any]], object]


def _set(*path: str | int, to: object) -> Change:
    def change(made: Any) -> None:
        for step in path[:-1]:
            made = made[step]
        made[path[-1]] = to

    return change


def _bomb(made: dict[str, Any]) -> None:
    packer = zlib.compressobj(1)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(65)) + packer.flush()
    made["program"]["json"] = base64.b64encode(packed).decode()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_set("version", to=2), "version: expected 1, found 2"),
        (_set("format", to="pcap"), "format: expected"),
        (_set("more", to=1), "unknown key"),
        (_set("entities", 0, "more", to=1), "entities[0].more"),
        (_set("entities", 0, "kind", to="thing"), "entities[0]"),
        (_set("entities", 0, to=[]), "entities[0]"),
        (_set("entities", to=[{"kind": "multicast", "group": 1, "replicas": []}] * 10_001), "entities"),
        (_set("entities", 0, "profile", to="Other"), "no action profile 'Other'"),
        (_set("entities", 0, "call", "action", to="\x1b[31m"), "entities[0]"),
        (_set("entities", 0, "call", "arguments", to={"port": "1"}), "entities[0].call.arguments.port"),
        (_set("entities", 0, "call", "arguments", to={"nothing": "0x01"}), "no parameter 'nothing'"),
        (_set("entities", 0, "call", "arguments", to={"port": "0x" + "00" * 513}), "at most 512"),
        (_set("entities", 0, "id", to=-1), "entities[0].id"),
        (_set("packet", "port", to=512), "packet.port"),
        (_set("packet", "frame", to="0"), "packet.frame"),
        (_set("packet", "frame", to="00" * 66_001), "packet.frame"),
        (_set("expected", "dropped", to=["\n"]), "expected.dropped[0]"),
        (_set("choices", to=[1 << 63]), "choices[0]"),
        (_set("unsure", to=["who knows"]), "unsure[0]"),
        (_set("switch", "priority_queues", to=9), "switch.priority_queues"),
        (_set("switch", "tick_ns", to=0), "switch.tick_ns"),
        (_set("program", "sha256", to="0" * 64), "program.sha256"),
        (_set("program", "name", to="\ud800"), "program.name"),
        (_set("program", "name", to="x" * 513), "program.name"),
        (_set("program", "json", to="%"), "program.json"),
        (_set("program", "json", to="AAAA"), "program.json"),
        (_set("program", "p4info", to="eJxLBAAAYgBi"), "program.p4info"),
        (_bomb, "larger than 64 MiB"),
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
    """What is taken runs, is exported, or is refused in a line."""
    rng, taken, path = random.Random(5), 0, tmp_path / "trace.json"
    examples = [json.dumps(made).encode() for made in good]
    for number in range(times(20_000, 50)):
        path.write_bytes(mutant(rng, examples) if number % 2 else _other_entities(rng, rng.choice(examples)))
        try:
            saved = document.read(path)
            taken += 1
            for use in (stf.test, ptf.test, runner.run):
                try:
                    use(saved)
                except SpecError as error:
                    assert str(error).isprintable()
        except FileError as error:
            assert str(error).isprintable()
    assert taken > 40


_VALUES = ("0x00", "0xff", "0xffffffffffffffffff", 0, 1, 2, 511, (1 << 31) - 1, "NoAction", True)


def _other_entities(rng: random.Random, content: bytes) -> bytes:
    """Entities of which one is twice there, or has something else that could stand there."""
    made = json.loads(content)
    entity: Any = rng.choice(made["entities"])
    if rng.random() < 0.2:
        made["entities"].append(entity)
    while True:
        keys = list(entity) if isinstance(entity, dict) else range(len(entity))
        if not keys:
            break
        key = rng.choice(keys)
        if not isinstance(entity[key], dict | list):
            entity[key] = rng.choice([value for value in _VALUES if type(value) is type(entity[key])])
            break
        entity = entity[key]
    return json.dumps(made).encode()


def test_a_program_that_is_none(good: list[dict[str, Any]]) -> None:
    """Its hash is right; what it is the switch finds."""
    made = msgspec.convert(good[0], document.TraceDocument)
    for text in (b"", b"{}", b"[" * 100_000, b"\xff"):
        program = document.SavedProgram("x", hashlib.sha256(text).hexdigest(), _packed(text), _packed(b""))
        saved = SavedTrace(msgspec.structs.replace(made, program=program, entities=()))
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


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


@pytest.mark.parametrize(
    "name", ['"""\nimport os\n"""', "a\nb", 'x" "y', "x#", "x\\", "a;b", "ä", "$(id)", " "]
)
def test_names_are_no_code(good: list[dict[str, Any]], name: str) -> None:
    """Whatever P4Info calls a table and an action: the code for PTF is the same but for literals, and STF has plain
    words only.
    """
    made = json.loads(json.dumps(good[2]))
    info = p4i.P4Info.FromString(zlib.decompress(base64.b64decode(made["program"]["p4info"])))
    changed = 0
    for entity in made["entities"]:
        things: list[p4i.Table | p4i.Action] = [*info.tables, *info.actions]
        for thing in things:
            for place, key in ((entity, "table"), (entity["call"], "action")):
                if place.get(key) == thing.preamble.name:
                    thing.preamble.name = place[key] = name + thing.preamble.name
                    changed += 1
    assert changed
    made["program"]["name"] = name
    made["program"]["p4info"] = _packed(info.SerializeToString())
    saved = SavedTrace(msgspec.convert(made, document.TraceDocument))
    plain = SavedTrace(msgspec.convert(good[0], document.TraceDocument))
    assert _code(ptf.test(saved)) == _code(ptf.test(plain))
    with pytest.raises(SpecError, match=r"^entities.*: STF cannot say it: the name"):
        stf.test(saved)


def _code(text: str) -> str:
    """A test without the values of its constants, which are literals."""
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in _CONSTANTS:
            ast.literal_eval(node.value)
            node.value = ast.Constant(0)
    return ast.dump(tree)
