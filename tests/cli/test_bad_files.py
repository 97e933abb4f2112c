# SPDX-License-Identifier: Apache-2.0
"""Results of other versions and places that cannot be written; other broken files: tests/bad_input."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from tailrace.cli.main import main

SMALL = ("--target", "virtual", "--workload", "permutation:size=1KiB")


def status_and_error(*words: str) -> tuple[int, str]:
    """Exit status and standard error of a command."""
    error = io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
        status = main(words)
    return status, error.getvalue()


def only_line(text: str) -> str:
    """The line about what is wrong; before it there may be one about the target."""
    lines = [line for line in text.splitlines() if not line.startswith("target ")]
    assert len(lines) == 1, text
    assert lines[0].startswith("tailrace: ")
    assert len(lines[0]) < 1100
    assert "internal error" not in text
    return lines[0]


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
