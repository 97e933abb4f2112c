# SPDX-License-Identifier: Apache-2.0
"""Compiled NICs: how a set gets into the cache."""

from __future__ import annotations

import importlib.metadata
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tailrace.cbuild import cache
from tailrace.cbuild.errors import BuildError
from tailrace.hosts import build as hosts_build
from tailrace.hosts import compiled

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
ROOT = Path(hosts_build.__file__).parents[2]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package in place of `hosts`, with one module to be compiled."""
    folder = tmp_path / "tailrace" / "hosts"
    folder.mkdir(parents=True)
    module = folder / "tiny.py"
    module.write_text("def twice(x: int) -> int:\n    return x + x\n")
    monkeypatch.setattr(hosts_build, "ROOT", tmp_path)
    monkeypatch.setattr(compiled, "sources", lambda: [module])
    monkeypatch.setattr(compiled, "folder", lambda cache: cache / "set")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return module


@pytest.fixture
def made(package, monkeypatch):
    """Nothing is really compiled; how often it would have been."""
    count: list[Path] = []

    def compile_nothing(_: cache.Folder, scratch: Path) -> Path:
        count.append(scratch)
        folder = scratch / "lib"
        folder.mkdir()
        (folder / "module").write_text(str(len(count)))
        return folder

    monkeypatch.setattr(hosts_build, "_compile", compile_nothing)
    return count


def test_a_set_is_compiled(package, tmp_path):
    """The set holds the module and the library of its group, and nothing is left of the work."""
    place = tmp_path / "cache"
    folder = hosts_build.build(place)
    library = f"{compiled.GROUP.rpartition('.')[2]}__mypyc{SUFFIX}"
    made = {path.name for path in folder.iterdir()}
    assert {f"tiny{SUFFIX}", library, hosts_build.STAMP, cache.SEAL, "tailrace"} == made
    assert [folder] == list(place.iterdir())


def test_what_mypyc_cannot_compile_is_said(package, tmp_path, capsys):
    """One line, with the place in the source; the command ends with 1."""
    package.write_text("def twice(x: int) -> int:\n    return x + ''\n")
    assert 1 == hosts_build.main(["--cache", str(tmp_path / "cache")])
    assert "hosts/tiny.py:2: error" in capsys.readouterr().err
    assert [] == list((tmp_path / "cache").iterdir())


def test_a_set_is_made_once(made, tmp_path, capsys):
    """The second time it is there."""
    assert 0 == hosts_build.main(["--cache", str(tmp_path)])
    assert hosts_build.build(tmp_path) == Path(capsys.readouterr().out.strip())
    assert 1 == len(made)


def test_a_set_of_another_mypy_is_made_again(made, tmp_path, monkeypatch):
    """And takes the place of the old one, as does a set that is not whole."""
    folder = hosts_build.build(tmp_path)
    (folder / hosts_build.STAMP).write_text("mypy 0\n")
    assert "2" == (hosts_build.build(tmp_path) / "module").read_text()
    (folder / hosts_build.STAMP).unlink()
    assert "3" == (hosts_build.build(tmp_path) / "module").read_text()


def test_many_who_want_a_set_make_one(made, tmp_path):
    """The others wait and take it."""
    with ThreadPoolExecutor(6) as pool:
        folders = set(pool.map(lambda _: hosts_build.build(tmp_path), range(6)))
    assert ([tmp_path / "set"], 1) == (list(folders), len(made))
    assert [tmp_path / "set"] == [path for path in tmp_path.glob("*") if path.name != "tailrace"]


def damages():
    return {
        "another byte": lambda s: (s / "module").write_text("x"),
        "cut short": lambda s: (s / "module").write_text(""),
        "gone": lambda s: (s / "module").unlink(),
        "one more": lambda s: (s / "more.so").write_text(""),
        "another name": lambda s: (s / "module").rename(s / "other"),
        "a link": lambda s: (s / "more.so").symlink_to("/usr/lib"),
        "no seal": lambda s: (s / cache.SEAL).unlink(),
        "others write": lambda s: (s / "module").chmod(0o666),
        "a folder that others write": lambda s: s.chmod(0o777),
    }


@pytest.mark.parametrize("damage", list(damages()))
def test_a_set_that_is_not_what_was_made_is_made_again(made, tmp_path, damage):
    folder = hosts_build.build(tmp_path)
    damages()[damage](folder)
    assert not cache.open_folder(tmp_path).is_intact("set")
    assert "2" == (hosts_build.build(tmp_path) / "module").read_text()
    assert cache.open_folder(tmp_path).is_intact("set")


def test_missing_tools_are_named(made, tmp_path, monkeypatch):
    """Where mypy is not installed."""

    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(BuildError, match="mypy is missing"):
        hosts_build.build(tmp_path)


def test_a_cache_that_cannot_be_written_is_named(made, tmp_path):
    """The folder, and why."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="cannot write the cache"):
        hosts_build.build(tmp_path / "file")
