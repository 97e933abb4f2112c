# SPDX-License-Identifier: Apache-2.0
"""Which compiler makes an object, for which processor, and what it may say."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from tailrace.cbuild import cc
from tailrace.cbuild.cache import open_folder
from tailrace.cbuild.errors import BuildError, RefusedSourceError
from tests.cbuild.test_cc import SOURCE, answer, leftovers, put, recipe, script


def test_a_warm_cache_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 42 == answer(tmp_path)
    monkeypatch.setenv("CC", "no-such-compiler")
    assert 42 == answer(tmp_path)
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert 42 == answer(tmp_path)
    with pytest.raises(BuildError, match="no C compiler: cc is not on PATH"):
        answer(tmp_path, SOURCE + "/* another */\n")
    put(recipe(tmp_path).path(), b"damaged")
    with pytest.raises(BuildError, match="no C compiler"):
        answer(tmp_path)


def prebuild(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a binary wheel has: the object for every processor, neither in a cache nor with the hash of one."""
    monkeypatch.setenv(cc.PORTABLE, "1")
    path = recipe(cache).path()
    monkeypatch.delenv(cc.PORTABLE)
    folder.mkdir()
    (folder / f"{path.stem.rpartition('-')[0]}.so").write_bytes(open_folder(cache).content(path.name) or b"")
    monkeypatch.setattr(cc, "PREBUILT", folder)


def test_without_a_compiler_the_wheels_object_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On any processor, and again from the cache; of other sources there is none."""
    prebuild(tmp_path / "prebuilt", tmp_path / "portable", monkeypatch)
    monkeypatch.setattr(cc, "processor", lambda: "another one")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert 42 == answer(tmp_path / "cache")
    (object_,) = (tmp_path / "cache").glob("*.so")
    monkeypatch.setattr(cc, "PREBUILT", tmp_path / "gone")
    assert 42 == answer(tmp_path / "cache")
    assert [object_] == list((tmp_path / "cache").glob("*.so"))
    with pytest.raises(BuildError, match="no C compiler: cc is not on PATH"):
        answer(tmp_path / "cache", SOURCE + "/* another */\n")


def test_with_a_compiler_the_object_is_made_for_this_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after one of the wheel was used."""
    prebuild(tmp_path / "prebuilt", tmp_path / "portable", monkeypatch)
    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path / "nothing"))
        theirs = recipe(tmp_path / "cache").path()
    ours = recipe(tmp_path / "cache").path()
    assert ours != theirs
    assert 42 == answer(tmp_path / "cache")


def test_a_missing_header_of_python_is_like_a_missing_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that names it; the wheel's object is taken if there is one."""
    needing = replace(recipe(tmp_path / "cache"), python=tmp_path / "Python.h")
    with pytest.raises(BuildError, match=r"Python\.h is missing \(Debian, Ubuntu: install python3-dev\)"):
        needing.path()
    prebuild(tmp_path / "prebuilt", tmp_path / "portable", monkeypatch)
    assert 42 == needing.load().answer()


def test_each_processor_has_its_own_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for one may not run on another: home directories are shared, and machines are copied."""
    ours = recipe(tmp_path).path()
    assert cc.processor()
    monkeypatch.setattr(cc, "processor", lambda: "another one")
    theirs = recipe(tmp_path).path()
    assert theirs != ours
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(cc, "processor", lambda: "a third one")
    with pytest.raises(BuildError, match="no C compiler"):
        recipe(tmp_path).path()


def test_each_compiler_has_its_own_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Going to and fro compiles nothing; arguments count."""
    first = recipe(tmp_path).path()
    wrapper = script(tmp_path / "wrapped", '#!/bin/sh\nexec cc "$@"\n')
    monkeypatch.setenv("CC", f"{wrapper} -DX")
    second = recipe(tmp_path).path()
    assert first != second and 42 == answer(tmp_path)
    monkeypatch.delenv("CC")
    assert first == recipe(tmp_path).path()


@pytest.mark.skipif(shutil.which("ccache") is None, reason="no ccache here")
@pytest.mark.parametrize("called", ["ccache cc", "link"])
def test_ccache_compiles(called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a command and under a compiler's name."""
    if called == "link":
        (tmp_path / "cc").symlink_to(shutil.which("ccache") or "")
        called = str(tmp_path / "cc")
    monkeypatch.setenv("CC", called)
    assert 42 == answer(tmp_path / "cache")


@pytest.mark.parametrize(
    "given", ["'", "cc\n", "\x1b[31m", "/", "/etc/passwd", "./cc", "no-such", "a" * 9999]
)
def test_a_mad_compiler_is_refused_in_a_line(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", given)
    with pytest.raises(BuildError) as caught:
        answer(tmp_path)
    assert str(caught.value).isprintable() and len(str(caught.value)) <= 300


def test_a_compiler_that_everybody_can_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", str(script(tmp_path / "cc", "#!/bin/sh\n")))
    (tmp_path / "cc").chmod(0o777)
    with pytest.raises(BuildError, match="everybody can write it"):
        answer(tmp_path / "cache")


def test_what_the_compiler_says_is_a_line_and_a_bounded_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = (
        "#!/bin/sh\nfor i in $(seq 200); do printf 'x.c:1: error: \\033[31m%01000d\\n' 1 >&2; done\nexit 1\n"
    )
    monkeypatch.setenv("CC", str(script(tmp_path / "cc", said)))
    with caplog.at_level(logging.WARNING), pytest.raises(RefusedSourceError) as caught:
        answer(tmp_path / "cache")
    assert str(caught.value).isprintable() and len(str(caught.value)) <= 300
    assert 0 < len(caplog.messages) <= 40
    assert all(line.isprintable() and len(line) < 400 for line in caplog.messages)
    assert [] == leftovers(tmp_path / "cache")
