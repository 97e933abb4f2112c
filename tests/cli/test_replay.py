# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace --save` and `--replay`: through files, on a switch of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.bmv2.process import available
from tests.cli.conftest import Command
from tests.cli.test_trace import WORDS


@pytest.fixture
def saved(tailrace: Command, tmp_path: Path) -> Path:
    """A packet through a leaf with Flowcut."""
    path = tmp_path / "trace.json"
    found = tailrace("trace", "leaf1", "--port", "1", WORDS, "--save", str(path))
    assert found.status == 0, found.err
    assert "sent by port " in found.out
    return path


def test_saved_and_repeated(command: Command, saved: Path, tmp_path: Path) -> None:
    """The same comes of it on a switch with what was saved alone; and not where an entry is missing."""
    found = command("trace", "--replay", str(saved))
    assert found.status == 0, found.err
    assert found.err == "tailrace: as saved\n"
    document = json.loads(saved.read_text())
    frame = document["expected"]["sent"][0]["frame"]
    assert f"sent by port {document['expected']['sent'][0]['port']}: {frame[:100]}" in found.out
    routes = [e for e in document["entities"] if e.get("table", "").endswith("ipv4_routes")]
    assert [list(e["key"].values()) for e in routes] == [[{"value": "0x0a000200", "prefix": 24}]]
    document["entities"].remove(routes[0])
    other = tmp_path / "other.json"
    other.write_text(json.dumps(document))
    found = command("trace", "--replay", str(other))
    assert found.status == 1
    assert "missing: port" in found.err
    assert found.err.splitlines()[-1].startswith("tailrace: not as saved: ")
