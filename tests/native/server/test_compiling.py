# SPDX-License-Identifier: Apache-2.0
"""Which process makes a program of a client's JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.native.runtime import Switch, SwitchConfig
from tailrace.native.server.compiling import Compiler
from tests.native.bmv2_builder import Builder
from tests.processes import running


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path / "cache"))
    made = Compiler()
    yield made
    made.stop()


def children() -> int:
    return len(running("tailrace.native.server.compiling", str(os.getpid())))


def test_what_is_in_the_cache_needs_no_process(compiler: Compiler) -> None:
    """A program is compiled by a process of its own, once; a switch that starts anew finds it at once."""
    text = Builder([("a", 8)]).text()
    first = compiler(text)
    assert 1 == children()
    compiler.stop()
    again = Compiler()
    second = again(text)
    assert 0 == children()
    assert (first.sha256, first.library, first.model) == (second.sha256, second.library, second.model)
    Switch(second, SwitchConfig()).close()
    again(Builder([("b", 8)]).text())
    assert 1 == children()
    again.stop()


def test_what_the_cache_has_lost_is_made_again(compiler: Compiler) -> None:
    """The object is gone, the model is still there; or the reverse."""
    text = Builder([("a", 8)]).text()
    library = compiler(text).library
    for path in (library, *library.parent.glob("model-*")):
        path.unlink()
        assert library == compiler(text).library
        assert library.exists()
