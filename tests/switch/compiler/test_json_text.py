# SPDX-License-Identifier: Apache-2.0
"""Text that is no program: whatever it is, the answer is one printable line, soon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.spec.text import LINE_CHARS
from tailrace.switch.compiler import CompilerError, load_program
from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json
from tests.switch.bmv2_builder import Builder, assign, field

GOOD = Builder([("a", 8)]).text()
NAME = b'"test.p4"'


def refused(text: bytes) -> str:
    with pytest.raises(CompilerError) as caught:
        read_bmv2_json(text, "x.json")
    message = str(caught.value)
    assert message.startswith("x.json: ")
    assert message.isprintable()
    assert len(message) <= LINE_CHARS
    message.encode()
    return message


def test_the_text_that_the_others_damage_is_good() -> None:
    assert NAME in GOOD
    assert read_bmv2_json(GOOD).name == "test.p4"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD.replace(NAME, rb'"\ud800"'), "surrogate"),
        (GOOD.replace(b'"program"', rb'"\udc00"'), "surrogate"),
        (GOOD.replace(b'"name": "in"', rb'"name": "\ud800"'), "surrogate"),
        (GOOD.replace(b"test.p4", b"\xff"), "is not UTF-8"),
        (GOOD.replace(b"test.p4", b"\xed\xa0\x80"), "is not UTF-8"),
        (GOOD.decode().encode("utf-16"), "is not UTF-8"),
        (GOOD.decode().encode("utf-16-be"), "JSON"),
        (GOOD.replace(NAME, b"NaN"), "NaN"),
        (GOOD.replace(NAME, b"-Infinity"), "-Infinity"),
        (GOOD.replace(b'"program"', b'"program": 1, "program"'), '"program" occurs twice'),
        (GOOD.replace(NAME, b"1" * 5000), "more than 20 digits"),
        (GOOD.replace(NAME, b"0." + b"1" * 100_000), "more than 64 digits"),
        (b"[" * 1_000_000, "too deeply"),
        (GOOD.replace(NAME, b"[" * 100_000 + b"]" * 100_000), "too deeply"),
        (GOOD.replace(b'["in", "out"]', b'["' + b"n" * 100_000 + b'"]'), "..."),
        (GOOD.replace(b'["in", "out"]', rb'["a\n\u0000\u2028\u001b[31m"]'), "a \\x00 \\x1b[31m"),
        (GOOD + b"}", "Extra data"),
        (b"\xef\xbb\xbf", "JSON"),
    ],
    ids=range(18),
)
def test_no_program(text: bytes, expected: str) -> None:
    assert expected in refused(text)


@pytest.mark.parametrize("name", [r"\ud83d\ude00", r"\\ud800", "\u00e9\U0001f600"])
def test_whole_characters_are_taken(name: str) -> None:
    text = GOOD.replace(NAME, b'"' + name.encode() + b'"')
    assert read_bmv2_json(text).name == json.loads(f'"{name}"')


@pytest.mark.parametrize("depth", [20, 150, 160, 170, 180, 190, 200, 5000])
def test_expressions_are_compiled_or_too_deep(depth: int, tmp_path: Path) -> None:
    """Wherever the reader or the emitter runs out of its stack."""
    expression = text = json.dumps(field("in", "a"))
    for _ in range(depth):
        expression = f'{{"type": "expression", "value": {{"op": "~", "left": null, "right": {expression}}}}}'
    b = Builder([("a", 8)])
    b.run([assign(field("in", "a"), field("in", "a"))])
    program = b.text().replace(b'"value": ' + text.encode(), b'"value": ' + expression.encode())
    try:
        load_program(program, source="x.json", cache_dir=tmp_path)
    except CompilerError as error:
        assert depth > 20
        assert "too deeply" in str(error)


def test_a_byte_order_mark_is_taken() -> None:
    assert read_bmv2_json(b"\xef\xbb\xbf" + GOOD).name == "test.p4"


def test_a_program_beyond_the_bound_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.switch.compiler.read.node.MAX_BYTES", len(GOOD))
    assert read_bmv2_json(GOOD).name == "test.p4"
    assert f"at most {len(GOOD)}" in refused(GOOD + b" ")


@given(st.data())
def test_damaged_bytes(data: st.DataObject) -> None:
    """A program with some bytes replaced is read or refused, nothing else."""
    text = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=6))
    try:
        read_bmv2_json(bytes(text), "x.json")
    except CompilerError:
        refused(bytes(text))


ANY_CHARACTER = st.characters(exclude_categories=())
"""Halves of surrogate pairs included."""

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(ANY_CHARACTER, max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(ANY_CHARACTER, max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def _places(value: object) -> list[tuple[object, object]]:
    """Every container with every key or index in it."""
    places: list[tuple[object, object]] = []
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in steps:
        places.append((value, key))
        places += _places(item)
    return places


@given(st.data())
def test_any_value_anywhere(data: st.DataObject) -> None:
    """A program with one value replaced by any other, lone surrogates included, is read or refused."""
    program = json.loads(GOOD)
    places = _places(program)
    container, key = places[data.draw(st.integers(0, len(places) - 1))]
    container[key] = data.draw(JSON_VALUES)  # type: ignore[index]
    text = json.dumps(program).encode()
    try:
        read_bmv2_json(text, "x.json")
    except CompilerError:
        refused(text)
