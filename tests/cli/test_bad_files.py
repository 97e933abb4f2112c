# SPDX-License-Identifier: Apache-2.0
"""Whatever file a subcommand is given, it says in one line what is wrong with it, and soon."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.cli.main import main

SOON_S = 60.0
"""Generous: what would block would do so for ever."""

DEEP = 3000
SMALL = ("--target", "virtual", "--workload", "permutation:size=1KiB")


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 33)  # it takes no room on the disk


def _nested(path: Path) -> None:
    opening, closing = ('{"a":', "}") if path.suffix == ".json" else ("[", "]")
    text = opening * DEEP + closing * DEEP
    path.write_text(text if path.suffix == ".json" else f"a = {text}")


KINDS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "folder": Path.mkdir,
    "empty": Path.touch,
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 64),
    "not UTF-8": lambda path: path.write_bytes(b"scheme = '\xff\xfe'\n"),
    "zeros": lambda path: path.write_bytes(bytes(4096)),
    "pipe": _fifo,
    "endless": _endless,
    "huge": _huge,
    "broken link": lambda path: path.symlink_to(path.with_name("nowhere")),
    "circular link": lambda path: path.symlink_to(path),
    "nested": _nested,
    "other JSON": lambda path: path.write_text('[1, "two", null, 1e999, -0.0]'),
    "wrong types": lambda path: path.write_text('{"topology": 1, "switches": [], "hosts": 7, "links": "x"}'),
    "large number": lambda path: path.write_text(f'{{"hosts": {"9" * 5000}}}'),
    "a number": lambda path: path.write_text(f"seed = {'9' * 5000}"),
    "one long line": lambda path: path.write_text("x" * (1 << 20)),
    "not a number": lambda path: path.write_text("scheme = 'ecmp'\ntime_scale = nan\n"),
}
READERS: dict[str, tuple[str, ...]] = {
    "experiment": ("run", "FILE.toml"),
    "topology": ("topology", "FILE.json"),
    "workload": ("run", "--scheme", "ecmp", "--workload", "FILE.csv", "--target", "virtual"),
    "cdf": ("run", "--scheme", "ecmp", "--workload", "random:cdf=FILE.toml", "--target", "virtual"),
    "results": ("report", "FILE"),
    "run file": ("tables", "--run", "FILE"),
    "p4info": ("tables", "--address", "s1=127.0.0.1:1", "--p4info", "FILE"),
    "certificate": ("tables", "--address", "s1=127.0.0.1:1", "--ca", "FILE"),
}
"""Commands that read each kind of file; all others read it by the same functions."""

OTHERS: dict[str, tuple[str, ...]] = {
    "run": ("run", "--scheme", "ecmp", "--topology", "FILE.json", *SMALL),
    "compare": ("compare", "FILE.toml"),
    "sweep": ("sweep", "FILE.toml", "--set", "seed=1,2"),
    "schemes": ("schemes", "--topology", "FILE.json"),
    **{name: (name, "--run", "FILE") for name in ("groups", "flows", "queues", "counters", "registers")},
    **{name: (name, "--run", "FILE") for name in ("diff", "paths")},
    "shell": ("shell", "leaf1", "--run", "FILE"),
    "paths of a scheme": ("paths", "--scheme", "spritz", "--topology", "FILE.json"),
    "tables by address": ("tables", "--address", "s1=127.0.0.1:1", "--topology", "FILE.json"),
}


def status_and_error(*words: str) -> tuple[int, str]:
    """Exit status and standard error of a command."""
    error = io.StringIO()
    began_s = time.monotonic()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
        status = main(words)
    assert time.monotonic() - began_s < SOON_S
    return status, error.getvalue()


def only_line(text: str) -> str:
    """The line about what is wrong; before it there may be one about the target."""
    lines = [line for line in text.splitlines() if not line.startswith("target ")]
    assert len(lines) == 1, text
    assert lines[0].startswith("tailrace: ")
    assert len(lines[0]) < 1100
    assert "internal error" not in text
    return lines[0]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        *((words, kind) for words in READERS.values() for kind in KINDS),
        *((words, "not UTF-8") for words in OTHERS.values()),
    ],
    ids=[
        *(f"{reader} {kind}" for reader in READERS for kind in KINDS),
        *OTHERS,
    ],
)
def test_bad_files(
    words: tuple[str, ...], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, exit status 2 (1 where a switch is asked that is not there), and nothing left behind."""
    monkeypatch.chdir(tmp_path)
    name = next(
        part for word in words for part in (word.rpartition("=")[2],) if part.partition(".")[0] == "FILE"
    )
    KINDS[kind](tmp_path / name)
    before = sorted(tmp_path.iterdir())
    status, text = status_and_error(*words)
    only_line(text)
    assert status in (1, 2)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text", "folder", "pipe"])
@pytest.mark.parametrize("name", ["summary.json", "flows.parquet"])
def test_damaged_results(name: str, damage: str, results: Path, tmp_path: Path) -> None:
    """A report of results that were damaged names the file."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for source in results.iterdir():
        (folder / source.name).write_bytes(source.read_bytes())
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "pipe":
        os.mkfifo(path)
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes(255 - byte for byte in content[middle : middle + 8])
        path.write_bytes(
            {
                "cut": content[:middle],
                "flipped": flipped + content[middle + 8 :],
                "empty": b"",
                "text": b"{}",
            }[damage]
        )
    status, text = status_and_error("report", str(folder))
    if status == 0 and damage == "flipped":
        # parquet has no checksums: other numbers are numbers
        return
    assert name in only_line(text)
    assert status == 2


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a run."""
    out = tmp_path_factory.mktemp("results") / "out"
    status, text = status_and_error("run", "--scheme", "ecmp", *SMALL, "--out", str(out))
    assert status == 0, text
    return out


def test_another_versions_summary(results: Path, tmp_path: Path) -> None:
    """Keys that this version does not know are left alone; a key that it needs is named."""
    summary = json.loads((results / "summary.json").read_text())
    for source in results.iterdir():
        (tmp_path / source.name).write_bytes(source.read_bytes())
    (tmp_path / "summary.json").write_text(json.dumps({**summary, "of_tomorrow": 1}))
    assert status_and_error("report", str(tmp_path)) == (0, "")
    older = {key: value for key, value in summary.items() if key != "format"}
    (tmp_path / "summary.json").write_text(json.dumps(older))
    status, text = status_and_error("report", str(tmp_path))
    assert status == 2
    assert "summary.json: format: expected" in only_line(text)
    assert "run it again" in text
    del summary["scheme"]
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    status, text = status_and_error("report", str(tmp_path))
    assert (status, "scheme" in only_line(text)) == (2, True)


def test_report_of_everything() -> None:
    """Folders that may not be read, that change meanwhile or lead elsewhere end in a line."""
    status, text = status_and_error("report", "/proc")
    only_line(text)
    assert status == 2


@pytest.mark.parametrize("command", ["run", "compare", "sweep", "paper"])
def test_out_that_cannot_be_written(command: str, tmp_path: Path) -> None:
    """A file instead of the folder for results, or of one above it, is refused and stays what it is."""
    file = tmp_path / "file"
    file.write_text("mine")
    words = {
        "run": ("run", "--scheme", "ecmp", *SMALL),
        "compare": ("compare", "--scheme", "ecmp", *SMALL),
        "sweep": ("sweep", "--set", "scheme=ecmp", *SMALL),
        "paper": ("paper", "flowcut_table3"),
    }[command]
    for out in (file, file / "below", tmp_path / ("x" * 300)):
        status, text = status_and_error(*words, "--out", str(out))
        assert status in (1, 2)
        assert "internal error" not in text
        assert "Traceback" not in text
    assert file.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
