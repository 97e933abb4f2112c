# SPDX-License-Identifier: Apache-2.0
"""The README tells the truth: its example runs and prints what it says, its folders and targets exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from native.switchd.options import make_parser

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def block_after(text: str, opening: str) -> str:
    """The code block of `text` that starts with the line `opening`."""
    match = re.search(re.escape(opening) + r"\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert match is not None, f"README has no block that starts with {opening!r}"
    return match.group(1)


def test_python_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The example, run from the root of the checkout, prints the lines shown under it."""
    monkeypatch.chdir(ROOT)
    exec(compile(block_after(README, "```python"), "README.md", "exec"), {})
    expected = block_after(README.partition("It prints")[2], "```")
    assert expected == capsys.readouterr().out


def test_switch_options() -> None:
    """Every option that the README names is one of the switch's, ours are all in the README."""
    option = re.compile(r"--[a-z][a-z0-9-]+")
    named = set(option.findall(README.partition("## Options")[2].partition("## From Python")[0]))
    known = make_parser().format_help()
    own = re.findall(r"^  (--[a-z][a-z0-9-]+)", known.partition("does not have")[2], re.MULTILINE)
    assert named - set(option.findall(known)) - {"--help"} == set()
    assert own
    assert set(own) <= named


def test_folders_exist() -> None:
    """Every folder in the table is there."""
    folders = re.findall(r"^\| `([\w/]+/)` \|", README, re.MULTILINE)
    assert folders
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []


def test_make_targets_exist() -> None:
    """Every `make TARGET` in a code block is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^make ([a-z0-9-]+)", README, re.MULTILINE)) - {"run"}  # the tutorials' own
    assert {"setup", "test"} <= targets
    assert {target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)} == set()
