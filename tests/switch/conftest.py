# SPDX-License-Identifier: Apache-2.0
"""What tests of several parts of the native switch need."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def slow_compiler(tmp_path: Path) -> dict[str, str]:
    """An environment with an empty cache, in which programs - and they alone - take minutes to compile."""
    script = tmp_path / "cc"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *-lpthread*) exec {shutil.which("cc")} "$@";; esac\n'
        "touch compiling\nexec sleep 300\n"  # in its scratch folder: it can write no other
    )
    script.chmod(0o755)
    return {"CC": str(script), "TAILRACE_CACHE": str(tmp_path / "cache")}
