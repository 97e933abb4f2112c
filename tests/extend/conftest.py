# SPDX-License-Identifier: Apache-2.0
"""The command as a user runs it, where nothing of the project is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forked import command

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 300

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def documented(folder: Path) -> Path:
    """The folder, with the files that docs/extend shows."""
    folder.mkdir()
    text = (ROOT / "docs" / "extend" / "nics.md").read_text("utf-8")
    for name, body in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(body, "utf-8")
    return folder


@pytest.fixture
def tailrace(tmp_path: Path) -> Run:
    """Runs the command in a folder of its own, as a user would."""
    environment = {key: value for key, value in os.environ.items() if key != "TAILRACE_PLUGINS"}
    environment["PYTHONPATH"] = str(ROOT)

    def run(*words: object, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tailrace.cli.main", *map(str, words)],
            cwd=tmp_path,
            env=environment | more,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    return run


@pytest.fixture
def forked_tailrace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """As `tailrace`, but in a forked process: enough for tests of messages, without a new interpreter."""
    monkeypatch.delenv("TAILRACE_PLUGINS", raising=False)
    return lambda *words: command(words, tmp_path)
