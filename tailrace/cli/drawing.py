# SPDX-License-Identifier: Apache-2.0
"""What commands that draw share. Matplotlib is isolated from user configuration: the same results give the
same figure file.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from pathlib import Path

_FILE = "matplotlibrc"
"""The configuration file that matplotlib reads first, from the current folder when it is imported."""


def draw_alone() -> None:
    """Keeps matplotlib from reading the user's configuration and from logging; call this before matplotlib
    is imported.
    """
    os.environ.pop("MPLBACKEND", None)
    os.environ["MATPLOTLIBRC"] = os.devnull
    logging.getLogger("matplotlib").setLevel(logging.CRITICAL)
    if Path(_FILE).exists():
        _import_elsewhere()


def _import_elsewhere() -> None:
    """Imports matplotlib in the folder of its defaults: no variable stops it from reading ./matplotlibrc."""
    spec = importlib.util.find_spec("matplotlib")
    assert spec is not None
    assert spec.origin is not None
    here = Path.cwd()
    os.chdir(Path(spec.origin).parent / "mpl-data")
    try:
        import matplotlib  # noqa: F401
    finally:
        os.chdir(here)


def file_for(folder: Path, out: Path | None, name: str) -> Path:
    """The file to write: `out`, or `name` in a folder of results, which may be from another person."""
    path = folder / name if out is None else out
    # a link in the folder is never followed: its creator could choose which file is overwritten
    if out is None and path.is_symlink():
        path.unlink()
    return path
