# SPDX-License-Identifier: Apache-2.0
"""Debian's Mininet, which a Python environment of ours does not see: the one on PyPI brings no mnexec."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

MININET = Path("/usr/lib/python3/dist-packages/mininet")
"""A folder of pure Python, which runs with any version of it."""


def add_mininet_path() -> bool:
    """Makes `mininet` importable, and nothing else of Debian's Python packages; whether there is one."""
    installed = importlib.util.find_spec("mininet")
    # a folder of that name on the path, such as ours of scripts, is found, too, but has no __init__
    if installed is not None and installed.origin is not None:
        return True
    spec = importlib.util.spec_from_file_location("mininet", MININET / "__init__.py")
    if spec is None or spec.loader is None or not MININET.is_dir():
        return False
    module = sys.modules["mininet"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return True
