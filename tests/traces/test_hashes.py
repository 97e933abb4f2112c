# SPDX-License-Identifier: Apache-2.0
"""Trace hashes of recorded runs in virtual time: all schemes, variants, transports, topologies, faults, PFC.

What moves code about and changes nothing leaves every hash as it is. What changes behaviour records the hashes
it means to change anew, and says why: TAILRACE_TRACES=record. `make test-all` runs all of them, `make test` a few.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from tailrace.cli.main import main
from tests.long import ALL

FILE = Path(__file__).with_name("hashes.json")
HASHES: dict[str, str] = json.loads(FILE.read_text("utf-8"))
CHOICE = os.environ.get("TAILRACE_TRACES", "some")
EACH = 1 if ALL or CHOICE in ("all", "record") else 6


@pytest.mark.parametrize("words", sorted(HASHES)[::EACH])
def test_a_run_leaves_the_same_trace(words: str, tmp_path: Path) -> None:
    """One seed, one hash, on every machine. Where a fault keeps flows from their end, the run says so by 1."""
    assert main(["run", *shlex.split(words), "--out", str(tmp_path), "--json"]) in (0, 1)
    sha256 = json.loads((tmp_path / "summary.json").read_text("utf-8"))["trace_sha256"]
    if CHOICE == "record":
        HASHES[words] = sha256
        FILE.write_text(json.dumps(HASHES, indent=1) + "\n", "utf-8")
    assert sha256 == HASHES[words]
