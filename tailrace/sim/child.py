# SPDX-License-Identifier: Apache-2.0
"""The environment of child processes."""

from __future__ import annotations

import os

from tailrace.cbuild.artifacts import ROOT


def environment() -> dict[str, str]:
    """Our environment, with this project's packages importable wherever the process is started."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
