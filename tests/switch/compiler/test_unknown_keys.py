# SPDX-License-Identifier: Apache-2.0
"""Keys of a program's JSON that the switch does not know are named to the user, and change nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.spec.text import LINE_CHARS
from tailrace.switch.compiler.emit import emit
from tailrace.switch.compiler.model import Model
from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted([*(ROOT / "p4src/build").rglob("*.json"), *(ROOT / "tests/programs/build").rglob("*.json")])
BY_NAME = ("next_tables",)
"""Objects whose keys are names of the program: another one is a mistake in these."""


def read(value: object) -> Model:
    return read_bmv2_json(json.dumps(value).encode(), "x.json")


def objects(value: Any, home: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All objects, each with the key under which it or its array stands."""
    if isinstance(value, dict):
        yield home, value
        for key, inner in value.items():
            yield from objects(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner, home)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_our_programs_have_none(path: Path) -> None:
    assert "" == read_bmv2_json(path.read_bytes(), path.name).unread


@pytest.mark.parametrize("name", ["p4rt_all", "header_unions", "header_stacks", "checksums", "const_entries"])
def test_one_in_any_kind_of_object_is_named(name: str) -> None:
    """In the last object of each kind, and of each kind of expression; the C code stays as it is."""
    (path,) = (path for path in PROGRAMS if path.stem == name)
    program = json.loads(path.read_text())
    code = emit(read(program))
    places = {(home, *sorted(json_object)): (home, json_object) for home, json_object in objects(program)}
    tried = 0
    for home, json_object in places.values():
        if home in BY_NAME or home in ("source_info", "pragmas"):
            continue
        json_object["odd key"] = {"inner": 1}
        model = read(program)
        assert "keys that the switch does not know were not read: " in model.unread, home
        assert model.unread.endswith("odd key")
        assert code == emit(model), home
        del json_object["odd key"]
        tried += 1
    assert tried > 20
    assert "" == read(program).unread


def test_many_and_long_ones_make_one_short_line() -> None:
    program = json.loads(next(path for path in PROGRAMS if path.stem == "p4rt_all").read_text())
    for number in range(10_000):
        program[f"{number} */ \x1b[31m\n" + "x" * 1000] = number
    model = read(program)
    assert model.unread.isprintable()
    assert model.unread.endswith(" and 9996 more")
    assert len(model.unread) <= LINE_CHARS + 100
    assert "x" * 61 not in model.unread
    assert "*/" not in emit(model).replace(" */", "")


def test_a_null_is_as_good_as_nothing() -> None:
    program = json.loads(next(path for path in PROGRAMS if path.stem == "p4rt_all").read_text())
    program["odd"] = None
    assert "" == read(program).unread
