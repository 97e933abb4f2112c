# SPDX-License-Identifier: Apache-2.0
"""Values against shapes: what fits is taken, and of what does not fit the key and what it takes are told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from tailrace.spec.errors import FileError
from tailrace.spec.schema import KeyProblemError, convert, read_json


@dataclass(frozen=True)
class Inner:
    size: int
    gain: float = 1.0

    def __post_init__(self) -> None:
        if self.size == 13:
            raise ValueError("size is 13")


class Circle(msgspec.Struct, tag="circle", tag_field="kind", forbid_unknown_fields=True):
    radius: Annotated[float, Meta(gt=0, description="a length above 0")]


class Square(msgspec.Struct, tag="square", tag_field="kind", forbid_unknown_fields=True):
    side: int


Name = Annotated[str, Meta(pattern="^[a-z]+$", description="a name")]


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    inner: Inner | None = None
    forms: tuple[Circle | Square, ...] = ()
    ends: list[tuple[str, int]] = []
    tables: dict[Name, Inner] = {}
    unit: Literal["bytes", "packets"] = "bytes"
    place: Path = Path()


GOOD: dict[str, Any] = {
    "title": "t",
    "inner": {"size": 1},
    "forms": [{"kind": "square", "side": 2}, {"kind": "circle", "radius": 1}],
    "ends": [["a", 1]],
    "tables": {"a": {"size": 3, "gain": 2}},
    "unit": "packets",
    "place": "x/y",
}


def test_what_fits() -> None:
    shape = convert(GOOD, Shape)
    assert (shape.inner, shape.place, shape.tables) == (Inner(1), Path("x/y"), {"a": Inner(3, 2.0)})
    assert shape.forms == (Square(2), Circle(1.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": 5}, "title: expected a string, found 5"),
        ({"colour": 5}, "colour: unknown key; expected title, inner, forms, ends, tables, unit, place"),
        ({"inner": 5}, "inner: expected a table or null, found 5"),
        ({"inner": {}}, "inner.size: missing; expected a whole number"),
        ({"inner": {"size": "1"}}, "inner.size: expected a whole number, found '1'"),
        ({"inner": {"size": 1, "sise": 1}}, "inner.sise: unknown key; did you mean size?"),
        ({"inner": {"size": 13}}, "inner: size is 13"),
        ({"inner": {"size": 13, "sise": 1}}, "inner.sise: unknown key; did you mean size?"),
        ({"forms": [{"kind": "square"}]}, "forms[0].side: missing; expected a whole number"),
        (
            {"forms": [{"kind": "circle", "radius": 0}]},
            "forms[0].radius: expected a length above 0, found 0",
        ),
        ({"forms": [{"kind": "circle", "side": 1}]}, "forms[0].side: unknown key; expected radius"),
        (
            {"forms": [{"kind": "star"}]},
            "forms[0]: expected a table with kind 'circle' or a table with kind 'square', found {'kind': 'star'}",
        ),
        ({"ends": [["a"]]}, "ends[0]: expected a list of 2 values, found ['a']"),
        ({"ends": [["a", 1], ["a", "b"]]}, "ends[1][1]: expected a whole number, found 'b'"),
        ({"tables": {"A": {"size": 1}}}, "tables: expected a name, found 'A'"),
        ({"tables": {"a": {}}}, "tables.a.size: missing; expected a whole number"),
        ({"tables": {"a": {"size": 1, "x": 1}}}, "tables.a.x: unknown key; expected size, gain"),
        ({"unit": "bits"}, "unit: expected 'bytes' or 'packets', found 'bits'"),
        ({"place": 1}, "place: expected a path, found 1"),
    ],
)
def test_what_does_not(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(KeyProblemError) as caught:
        convert({**GOOD, **changes}, Shape)
    assert str(caught.value) == message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*GOOD, "size", "kind", "x"]), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(list(GOOD)), JSON))
def test_anything_is_one_line(changes: dict[str, Any]) -> None:
    """Whatever stands in a file, it is taken or refused with the key, never passed over."""
    values = {**GOOD, **changes}
    try:
        shape = convert(values, Shape)
    except KeyProblemError as error:
        assert "\n" not in str(error)
        assert any(error.key.startswith(key) for key in changes)
    else:
        assert shape.title == values["title"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: Expecting value"),
        ('{"title":\n}', "line 2: Expecting value"),
        ('{"title": "a", "inner": {"size": 1, "gain": NaN}}', "inner.gain: expected a number, found 'NaN'"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "digits"),
        ("[]", "expected a table, found []"),
    ],
)
def test_json_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(GOOD))
    assert read_json(path, Shape) == convert(GOOD, Shape)
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        read_json(path, Shape)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    with pytest.raises(FileError, match="No such file"):
        read_json(tmp_path / "none.json", Shape)
    path.write_bytes(b"\xff")
    with pytest.raises(FileError, match="not UTF-8 text"):
        read_json(path, Shape)
