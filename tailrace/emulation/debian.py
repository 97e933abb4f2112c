# SPDX-License-Identifier: Apache-2.0
"""Makes Debian's Mininet importable in a virtual environment; Mininet from PyPI lacks mnexec."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

MININET = Path("/usr/lib/python3/dist-packages/mininet")
"""Debian's package, which is pure Python, so that it runs with any version of Python."""


def add_mininet_path() -> bool:
    """Makes `mininet` importable, but no other of Debian's Python packages; whether it is installed."""
    installed = importlib.util.find_spec("mininet")
    # find_spec also finds a plain folder `mininet` without __init__.py, such as this repository's
    if installed is not None and installed.origin is not None:
        return True
    spec = importlib.util.spec_from_file_location("mininet", MININET / "__init__.py")
    if spec is None or spec.loader is None or not MININET.is_dir():
        return False
    module = sys.modules["mininet"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return True
