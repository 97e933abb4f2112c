# SPDX-License-Identifier: Apache-2.0
"""Saved traces as tests for PTF, run by the harness of the packet tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tailrace.bmv2.process import available
from tailrace.cbuild.artifacts import ROOT
from tailrace.spec import SpecError
from tailrace.switch.replay import ptf
from tailrace.switch.replay.document import SavedTrace, TraceDocument
from tests.long import long
from tests.switch.replay.test_replay import kind_of, traces

_TARGETS = [
    "native",
    pytest.param(
        "bmv2", marks=pytest.mark.skipif(not available(), reason="simple_switch_grpc is not on PATH")
    ),
]


def _can_run() -> bool:
    """Whether there is PTF, and the right to make network namespaces."""
    if not (ROOT / ".venv-ptf" / "bin" / "ptf").exists() or shutil.which("ip") is None:
        return False
    probe = ["unshare", "--net", "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"]
    return os.geteuid() == 0 and subprocess.run(probe, capture_output=True, check=False).returncode == 0


def _exported(name: str, kind: str) -> tuple[TraceDocument, str]:
    """The first trace with such an entity that an interface can carry."""
    for _, made in traces(name):
        saved = SavedTrace(made)
        if made.expected.sent and any(kind_of(update) == kind for update in saved.updates):
            try:
                return made, ptf.test_source(saved)
            except SpecError as error:
                assert "for no interface" in str(error)
    raise AssertionError(f"{name}: no such trace")


@long
@pytest.mark.skipif(not _can_run(), reason="needs PTF (make ptf) and the right to make network namespaces")
@pytest.mark.parametrize("target", _TARGETS)
def test_the_harness_runs_it(target: str, tmp_path: Path) -> None:
    """Two that hold, and one that expects another frame, which fails."""
    folder = tmp_path / "ptf_tests"
    folder.mkdir()
    _, text = _exported("match_kinds", "table_entry")
    (folder / "saved_entry.py").write_text(text)
    made, text = _exported("action_profiles", "action_profile_group")
    (folder / "saved_group.py").write_text(text)
    frame = made.expected.sent[0].frame
    assert text.count(frame) >= 1
    head, _, tail = text.rpartition(frame)
    (folder / "saved_wrong.py").write_text(f"{head}{'f' * len(frame)}{tail}")
    command = [
        sys.executable,
        str(ROOT / "scripts" / "run_ptf.py"),
        "--target",
        target,
        "--plugin",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    said = f"{done.stdout}{done.stderr}"
    assert done.returncode == 1, said
    assert "Ran 3 tests" in said
    assert "FAILED (failures=1)" in said, said
    assert "FAIL: saved_wrong.SavedTrace" in said


def test_what_ptf_cannot_say() -> None:
    made, _ = _exported("match_kinds", "table_entry")
    settings = msgspec.structs.replace(made.switch, cpu_port=made.packet.port)
    with pytest.raises(SpecError, match="is the CPU port"):
        ptf.test_source(SavedTrace(msgspec.structs.replace(made, switch=settings)))
