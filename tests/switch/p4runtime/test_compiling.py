# SPDX-License-Identifier: Apache-2.0
"""Which process makes a program of a client's JSON."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.core import SwitchConfig, V1ModelSwitch
from tailrace.switch.p4runtime.program_compiler import ProgramCompiler, cancellable
from tests.eventually import LONG_S, eventually
from tests.processes import running
from tests.switch.bmv2_builder import Builder


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProgramCompiler]:
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path / "cache"))
    made = ProgramCompiler()
    yield made
    made.stop()


def children() -> int:
    return len(running("tailrace.switch.p4runtime.program_compiler", str(os.getpid())))


def test_what_is_in_the_cache_needs_no_process(
    compiler: ProgramCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program is compiled by a process of its own, which ends with it; a switch that starts anew finds it."""
    text = Builder([("a", 8)]).text()
    first = compiler(text)
    assert 0 == children()
    compiler.stop()
    again = ProgramCompiler()
    with monkeypatch.context() as patch:
        patch.setattr(ProgramCompiler, "_start", None)
        second = again(text)
    assert (first.sha256, first.library, first.model) == (second.sha256, second.library, second.model)
    V1ModelSwitch(second, SwitchConfig()).close()
    again(Builder([("b", 8)]).text())
    again.stop()
    with pytest.raises(CompilerError, match="the switch is stopping"):
        again(Builder([("c", 8)]).text())


@pytest.mark.parametrize("how", ["gone", "stop"])
def test_nobody_wants_it_any_more(
    how: str, slow_compiler: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process, which would take minutes, ends with all that it has started; the next program is made at once."""
    before = dict(os.environ)
    for name, value in slow_compiler.items():
        monkeypatch.setenv(name, value)
    compiler, gone = ProgramCompiler(), threading.Event()

    def compile_slowly() -> None:
        with pytest.raises(CompilerError, match="the compiler ended"):
            cancellable(gone, compiler, Builder([("slow", 8)]).text())

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    assert eventually(lambda: any((tmp_path / "cache").rglob("compiling")))
    gone.set() if how == "gone" else compiler.stop()
    thread.join(LONG_S)
    assert not thread.is_alive() and not children()
    assert eventually(lambda: not any((tmp_path / "cache").rglob("compiling")))
    monkeypatch.setenv("CC", before.get("CC", "cc"))
    assert ProgramCompiler()(Builder([("fast", 8)]).text()).library.exists()


def test_what_the_cache_has_lost_is_made_again(compiler: ProgramCompiler) -> None:
    """The object is gone, the model is still there; or the reverse."""
    text = Builder([("a", 8)]).text()
    library = compiler(text).library
    for path in (library, *library.parent.glob("model-*")):
        path.unlink()
        assert library == compiler(text).library
        assert library.exists()
