# SPDX-License-Identifier: Apache-2.0
"""Every reader with its good examples, and with mutants of them; `make fuzz` tries many more."""

from __future__ import annotations

import codecs
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.spec import units
from tailrace.spec.errors import MOST_CHARACTERS, Error, SpecError
from tailrace.spec.watchdog import parse_watchdog
from tests.bad_input.readers import READERS, check, examples_of, mutant
from tests.long import times


@pytest.mark.parametrize("name", READERS)
def test_good_ones_are_taken(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    for content in examples_of(name):
        assert check(reader, content, tmp_path), content[:200]


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.name])
def test_byte_order_marks(name: str, tmp_path: Path) -> None:
    """Text in UTF-8 with a mark is as without; of UTF-16 and UTF-32 one line says so."""
    reader = READERS[name]
    texts = [content for content in examples_of(name) if content.isascii()]
    assert texts or name in ("flow-table", "kept-runs")  # which is Parquet
    for content in texts:
        assert check(reader, codecs.BOM_UTF8 + content, tmp_path), content[:200]
        for encoding in ("utf-16", "utf-32"):
            assert not check(reader, content.decode().encode(encoding), tmp_path)


@pytest.mark.filterwarnings("ignore:invalid .*escape sequence:DeprecationWarning")  # of protobuf's
@pytest.mark.parametrize("name", READERS)
@settings(max_examples=times(2000, 20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32))
def test_mutants_are_taken_or_refused_in_a_line(name: str, seed: int, tmp_path: Path) -> None:
    reader = READERS[name]
    check(reader, mutant(random.Random(seed), examples_of(name)), tmp_path)


@given(st.text())
def test_an_error_is_one_line_whatever_it_repeats(text: str) -> None:
    for error in (Error(text), SpecError(f"x{text * 100}")):
        assert str(error).isprintable()
        assert len(str(error)) <= MOST_CHARACTERS


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (units.parse_alpha, "1e999999999"),
        (parse_watchdog, "share=1e999999999"),
        (parse_watchdog, f"share={'9' * 300}e999999%"),
    ],
)
def test_a_number_of_a_great_exponent_is_refused_at_once(read: Callable[[str], object], text: str) -> None:
    """Found by fuzzing: the first was computed for ever, the others overflowed."""
    with pytest.raises(SpecError):
        read(text)
