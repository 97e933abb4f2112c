# SPDX-License-Identifier: Apache-2.0
"""What others wrote is shown as text, and does nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.spec.text import json_text, one_line, printable

ANY_TEXT = st.text(st.characters())
"""With control characters, lone surrogates, marks of direction."""


@given(text=ANY_TEXT)
def test_printable_shows_everything(text: str) -> None:
    """No character is left that is not to be seen, and what can be seen stays."""
    shown = printable(text)
    assert shown.isprintable()
    assert all(c in shown for c in text if c.isprintable())
    assert printable(shown) == shown
    shown.encode()


@given(text=ANY_TEXT, most=st.integers(10, 400), times=st.integers(1, 50))
def test_one_line_is_one_line(text: str, most: int, times: int) -> None:
    """Of that length at most; what fits is not cut."""
    line = one_line(text * times, most)
    assert len(line) <= most and line.isprintable()
    whole = printable(" ".join((text * times).split()))
    if len(text * times) <= 4 * most:
        assert line == whole or (len(whole) > most and line.endswith("..."))


@given(value=st.dictionaries(ANY_TEXT, ANY_TEXT | st.integers() | st.lists(ANY_TEXT)))
def test_json_text_is_the_same_json(value: dict[str, object]) -> None:
    """It says the same, without a character that a terminal obeys."""
    for indent in (None, 2):
        text = json_text(value, indent)
        assert text.replace("\n", "").isprintable()
        assert json.loads(text) == value


@pytest.mark.parametrize("text", ["x" * 10_000_000, "\n" * 10_000_000, "\x1b[31m" * 3_000_000])
def test_a_text_of_any_length_is_a_line(text: str) -> None:
    """Of 300 characters where nothing else is said, and what is cut off costs nothing."""
    assert len(one_line(text)) <= 300
