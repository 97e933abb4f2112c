# SPDX-License-Identifier: Apache-2.0
"""Compiled NICs: which set is loaded, and that they do exactly what interpreted ones do."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cbuild import cache
from tailrace.cbuild.artifacts import PACKAGE, ROOT
from tailrace.hosts import compiled
from tests.hosts.same_story import CASES


def test_what_is_compiled_is_compiled_whole():
    """A new algorithm is not forgotten: Python would look for it in the set, and nowhere else."""
    for folder in compiled.FOLDERS:
        modules = sorted((PACKAGE / "hosts" / folder).rglob("*.py"))
        assert modules
        assert set(modules) <= set(compiled.sources())
    tops = {path.relative_to(PACKAGE / "hosts").parts[0] for path in compiled.sources()}
    assert tops == set(compiled.FOLDERS)


def test_a_set_is_found_by_the_sources_only(monkeypatch, tmp_path):
    """Another text of any module is another set; the driver does not count."""
    names = ("hosts/nic.py", "codec/calls.py", "spec/constants.py", "hosts/driver/loop.py")
    files = {name: tmp_path / name for name in names}
    for file in files.values():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path)
    monkeypatch.setattr(compiled, "_PACKAGE", tmp_path / "hosts")
    monkeypatch.setattr(compiled, "_CODEC", tmp_path / "codec")
    monkeypatch.setattr(compiled, "_CONSTANTS", tmp_path / "spec" / "constants.py")
    digests = [compiled.digest()]
    for file in files.values():
        file.write_text("2")
        digests.append(compiled.digest())
    assert len(set(digests)) == 4
    assert digests[-1] == digests[-2]


def seal_set(folder: Path) -> None:
    """A set with nothing in it, as hosts_build would put it there."""
    opened, name = cache.open_folder(folder), compiled.folder(folder).name
    with opened.builder(name) as scratch:
        (scratch / "set").mkdir(mode=0o700)
        opened.put(name, scratch / "set")


def test_sets_lie_where_all_compiled_things_lie(monkeypatch, tmp_path):
    """One rule for both: a set is found in the cache that the variables name."""
    for name in ("XDG_CACHE_HOME", "TAILRACE_CACHE", "TAILRACE_HOSTS"):
        monkeypatch.delenv(name, raising=False)
    for variable in ("XDG_CACHE_HOME", "TAILRACE_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
        assert compiled.find() is None
        seal_set(cache.root())
        assert compiled.find() == compiled.folder(cache.root())


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o000])
def test_a_set_is_sound_whatever_the_umask(umask, monkeypatch, tmp_path):
    """Ubuntu's users make files that their group may write, which a cache does not trust."""
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path / "cache"))
    before = os.umask(umask)
    try:
        opened = cache.open_folder()
        with opened.builder("set") as scratch:
            (scratch / "set" / "inner").mkdir(parents=True)
            (scratch / "set" / "inner" / "nic.so").write_text("nic")
            opened.put("set", scratch / "set")
    finally:
        os.umask(before)
    assert opened.is_intact("set")


def test_a_set_of_the_wheel_comes_first(monkeypatch, tmp_path):
    """It needs no cache; a set of other sources is none."""
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TAILRACE_HOSTS", raising=False)
    monkeypatch.setattr(compiled, "PREBUILT", tmp_path / "prebuilt")
    prebuilt = compiled.folder(tmp_path / "prebuilt")
    (tmp_path / "prebuilt" / "hosts-of-other-sources").mkdir(parents=True)
    assert compiled.find() is None
    prebuilt.mkdir()
    assert compiled.find() == prebuilt
    assert compiled.why_interpreted() == ""


def test_without_a_compiler_the_line_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path))
    monkeypatch.delenv("TAILRACE_HOSTS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install gcc and python3-dev (Debian, Ubuntu), then make setup" in compiled.why_interpreted()


def test_why_nics_run_interpreted_is_told(monkeypatch, tmp_path):
    """In one line that says what compiles them, and whether they were; not where they are, or should not be."""
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path))
    monkeypatch.delenv("TAILRACE_HOSTS", raising=False)
    monkeypatch.setattr(compiled, "digest", lambda: "1" * 32)
    never = compiled.why_interpreted()
    assert compiled.HOW in never
    assert "\n" not in never
    seal_set(tmp_path)
    assert compiled.why_interpreted() == ""
    monkeypatch.setattr(compiled, "digest", lambda: "2" * 32)
    changed = compiled.why_interpreted()
    assert "sources have changed" in changed
    assert changed.endswith(compiled.BUILD_COMMAND)
    monkeypatch.setenv("TAILRACE_HOSTS", "interpreted")
    assert compiled.why_interpreted() == ""


def test_a_cache_that_cannot_be_used_is_told(monkeypatch):
    """Why, in the same line."""
    monkeypatch.setenv("TAILRACE_CACHE", "not/absolute")
    monkeypatch.delenv("TAILRACE_HOSTS", raising=False)
    assert "'not/absolute', expected an absolute path" in compiled.why_interpreted()


def test_a_set_that_is_damaged_or_of_others_is_not_loaded(monkeypatch, tmp_path):
    """Its modules run when they are imported, so an unsound set is none."""
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path))
    monkeypatch.delenv("TAILRACE_HOSTS", raising=False)
    seal_set(tmp_path)
    sealed = compiled.folder(tmp_path)
    assert sealed == compiled.find()
    (sealed / "nic.so").write_text("evil")
    assert compiled.find() is None
    (sealed / "nic.so").unlink()
    tmp_path.chmod(0o777)
    assert compiled.find() is None
    monkeypatch.setenv("TAILRACE_HOSTS", "compiled")
    with pytest.raises(ImportError, match=r"is compiled, but the cache .* is not trusted: others can write"):
        compiled.find()


def test_the_variable_decides(monkeypatch, tmp_path):
    """A set is taken if there is one, must be there, or is not looked for."""
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path))
    monkeypatch.delenv("TAILRACE_HOSTS", raising=False)
    assert compiled.find() is None
    monkeypatch.setenv("TAILRACE_HOSTS", "compiled")
    with pytest.raises(
        ImportError, match=r"these sources are not compiled: python -m tailrace\.hosts\.build"
    ):
        compiled.find()
    compiled.folder(tmp_path).mkdir()
    with pytest.raises(ImportError, match="these sources are not compiled"):
        compiled.find()
    seal_set(tmp_path)
    assert compiled.folder(tmp_path) == compiled.find()
    monkeypatch.setenv("TAILRACE_HOSTS", "auto")
    assert compiled.folder(tmp_path) == compiled.find()
    monkeypatch.setenv("TAILRACE_HOSTS", "interpreted")
    assert compiled.find() is None
    monkeypatch.setenv("TAILRACE_HOSTS", "fast")
    with pytest.raises(ImportError, match="TAILRACE_HOSTS is 'fast', expected auto, compiled or interpreted"):
        compiled.find()


def story(implementation: str) -> str:
    """What tests.hosts.same_story prints."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.hosts.same_story"],
        cwd=ROOT,
        env={**os.environ, "TAILRACE_HOSTS": implementation},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (run.returncode, run.stderr)
    return run.stdout


def test_compiled_nics_send_the_same_frames_and_tell_the_same():
    """Every frame with its time, every record, in lossy networks with every transport; and it is compiled."""
    try:
        importlib.metadata.version("mypy")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("mypy, which compiles, is not installed")
    build = subprocess.run(
        [sys.executable, "-m", "tailrace.hosts.build"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == build.returncode, build.stderr
    alone = subprocess.run(
        [sys.executable, "-c", "import tailrace.hosts.transport.dcqcn.cnp"],
        cwd=ROOT,
        env={**os.environ, "TAILRACE_HOSTS": "compiled"},
        check=False,
    )
    assert 0 == alone.returncode, "a module of a package is found whichever is imported first"
    fast, slow = json.loads(story("compiled")), json.loads(story("interpreted"))
    assert ("compiled", "interpreted") == (fast.pop("implementation"), slow.pop("implementation"))
    assert ("nic.py", True) == (slow.pop("file"), fast.pop("file").endswith(".so"))
    assert slow == fast
    assert len(CASES) == len(slow["runs"])
