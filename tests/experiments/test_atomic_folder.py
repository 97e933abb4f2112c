# SPDX-License-Identifier: Apache-2.0
"""Results appear whole or not at all, also when a signal comes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.results.atomic_folder import atomic_folder, check_place, refuse_links
from tailrace.spec import SpecError
from tailrace.study.signals import Interrupted, stoppable


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_new_folder(tmp_path: Path) -> None:
    """Nothing is there before the block ends, everything after it, and nothing else is left."""
    out = tmp_path / "deep" / "out"
    with atomic_folder(out) as folder:
        (folder / "a").mkdir()
        (folder / "a" / "x").write_text("1")
        assert not out.exists()
    assert tree(tmp_path) == {"deep/out/a/x": "1"}


def test_existing_folder(tmp_path: Path) -> None:
    """Files of the same name are replaced, others stay."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").write_text("old")
    (tmp_path / "out" / "mine").write_text("keep")
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "x").write_text("new")
        (folder / "sub").mkdir()
        (folder / "sub" / "y").write_text("more")
        assert tree(tmp_path / "out") == {"x": "old", "mine": "keep"}
    assert tree(tmp_path) == {"out/x": "new", "out/mine": "keep", "out/sub/y": "more"}


FILES = ("summary.json", "queues.parquet", "paths.parquet", "gaps.parquet", "events.jsonl")


def test_files_of_an_earlier_run_go(tmp_path: Path) -> None:
    """They would be taken for those of the run that replaced it; of other runs they stay."""
    for name in ("a", "b"):
        (tmp_path / "out" / name).mkdir(parents=True)
        for file in FILES:
            (tmp_path / "out" / name / file).write_text("old")
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "a").mkdir()
        (folder / "a" / "summary.json").write_text("new")
        (folder / "a" / "paths.parquet").write_text("new")
    assert tree(tmp_path / "out") == {
        "a/summary.json": "new",
        "a/paths.parquet": "new",
        **{f"b/{file}": "old" for file in FILES},
    }


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    """When the block raises, the place is as it was, and nothing lies beside it."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "out") as folder:
        (folder / "x").write_text("half")
        raise ZeroDivisionError
    assert tree(tmp_path) == {"out/x": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.fixture
def hung_up() -> Iterator[None]:
    """SIGHUP does what it does, also where tests run below nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_a_signal_that_is_ignored_stays_so(hung_up: None) -> None:
    """As below nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stoppable():
        os.kill(os.getpid(), signal.SIGHUP)


@pytest.mark.usefixtures("hung_up")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """A signal in the middle ends the block; the handlers are as before afterwards."""
    before = signal.getsignal(number)
    with pytest.raises(Interrupted), stoppable(), atomic_folder(tmp_path / "out") as folder:
        (folder / "x").write_text("half")
        os.kill(os.getpid(), number)
        raise AssertionError("the signal did not come")
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) == before


def test_second_signal_does_not_disturb_cleaning_up() -> None:
    """Only the first signal raises."""
    cleaned = False
    with pytest.raises(Interrupted), stoppable():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            cleaned = True
    assert cleaned


def test_place_that_is_no_folder(tmp_path: Path) -> None:
    """A file where the folder should be, or on the way to it: one line."""
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "out"):
        with pytest.raises(SpecError) as caught, atomic_folder(out):
            raise AssertionError("the block must not run")
        assert str(caught.value).startswith(str(out))


@pytest.mark.parametrize("name", ["link", "link/out"])
def test_place_that_is_a_link_to_nothing(tmp_path: Path, name: str) -> None:
    """It is told before anything is run, which could not be kept."""
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SpecError, match="a broken link; expected a folder"):
        check_place(tmp_path / name)
    with pytest.raises(SpecError), atomic_folder(tmp_path / name):
        raise AssertionError("the block must not run")


def test_links_are_replaced_and_never_followed(tmp_path: Path) -> None:
    """Those below the folder; it itself may be one."""
    for name in ("real", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "queues.parquet").write_text("old")
    (tmp_path / "out").symlink_to("real")
    (tmp_path / "real" / "a").symlink_to("../elsewhere")
    (tmp_path / "real" / "summary.json").symlink_to("../elsewhere/queues.parquet")
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "a" / "b").mkdir(parents=True)
        for place in ("summary.json", "a/summary.json", "a/b/x"):
            (folder / place).write_text("new")
    assert tree(tmp_path / "elsewhere") == {"queues.parquet": "old"}
    assert tree(tmp_path / "real") == dict.fromkeys(("summary.json", "a/summary.json", "a/b/x"), "new")


def test_folders_of_runs_that_are_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path)
    refuse_links(tmp_path / "a", [Path("b", "c")])
    with pytest.raises(SpecError, match="/a: a link, expected a folder"):
        refuse_links(tmp_path, [Path("b"), Path("a", "b")])
