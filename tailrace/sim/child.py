# SPDX-License-Identifier: Apache-2.0
"""The environment of child processes."""

from __future__ import annotations

import os

from tailrace.cbuild.artifacts import ROOT


def environment() -> dict[str, str]:
    """The environment of this process, with this project's folder added to PYTHONPATH."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
