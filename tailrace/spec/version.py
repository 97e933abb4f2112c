# SPDX-License-Identifier: Apache-2.0
"""The version of Tailrace. Asking the installed package for it (importlib.metadata) would take as long as a
small network.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).resolve().parents[1] / "version.txt"
"""Installing or building writes this file from the tags in git."""

VERSION: Final = _FILE.read_text("utf-8").strip() if _FILE.exists() else "unknown"
"""Such as `0.1.0`, or `0.1.0.post1.dev3+g0123456` three commits after it; `unknown`: never installed."""
