# SPDX-License-Identifier: Apache-2.0
"""What a comparison proposes as the next command differs from what ran, and works as it stands."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tailrace.cli.errors import PROGRAM
from tailrace.cli.main import main
from tailrace.experiments.plan import experiment_file

SMALL = (
    *("--target", "virtual", "--topology", "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps"),
    *("--workload", "permutation:size=16KiB,peers=remote"),
)
PRESET = 'target = "virtual"\n[schemes]\necmp = "ecmp"\nspray = "spray"\n'


def proposals(output: str) -> list[list[str]]:
    """The words of each command after `next:`, but for the program's."""
    lines = output[output.index("next:\n") :].splitlines()[1:]
    words = [shlex.split(line) for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert all(Path(each[0]).name == PROGRAM for each in words)
    return [each[1:] for each in words]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, and a small preset `common`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "common.toml").write_text(PRESET, "utf-8")
    monkeypatch.setattr(experiment_file, "PRESETS", tmp_path)
    return tmp_path


@pytest.mark.parametrize("out", ["of two words", "-x"])
def test_what_is_proposed_works(here: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--scheme", "ecmp,letflow", *SMALL, f"--out={out}"]) == 0
    commands = proposals(capsys.readouterr().err)
    assert [words[0] for words in commands] == ["report", "compare", "schemes"]
    for words in commands:
        assert main(words) == 0
    assert (here / out / "report.html").exists()


@pytest.mark.parametrize("name", ["report", "schemes", "compare"])
def test_a_file_may_be_called_like_a_command(
    here: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / name).write_text(PRESET, "utf-8")
    assert main(["compare", name, *SMALL, "--out", "results"]) == 0
    assert [words[0] for words in proposals(capsys.readouterr().err)] == ["report", "compare", "schemes"]


def test_what_has_run_is_not_proposed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "common", *SMALL]) == 0
    assert [words[0] for words in proposals(capsys.readouterr().err)] == ["report", "schemes"]
