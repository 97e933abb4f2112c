# SPDX-License-Identifier: Apache-2.0
"""Isolates matplotlib from user configuration: the same results give the same figure file."""

from __future__ import annotations

import importlib.util
import logging
import os
from pathlib import Path

_FILE = "matplotlibrc"
"""Where matplotlib looks first: in the folder in which it is imported."""


def draw_alone() -> None:
    """Has matplotlib read no configuration of the user's, and write no lines of its own; call it before
    matplotlib is imported.
    """
    os.environ.pop("MPLBACKEND", None)
    os.environ["MATPLOTLIBRC"] = os.devnull
    logging.getLogger("matplotlib").setLevel(logging.CRITICAL)
    if Path(_FILE).exists():
        _import_elsewhere()


def _import_elsewhere() -> None:
    """Imports matplotlib where its own defaults lie: no variable keeps it from reading a file here."""
    spec = importlib.util.find_spec("matplotlib")
    assert spec is not None
    assert spec.origin is not None
    here = Path.cwd()
    os.chdir(Path(spec.origin).parent / "mpl-data")
    try:
        import matplotlib  # noqa: F401
    finally:
        os.chdir(here)
