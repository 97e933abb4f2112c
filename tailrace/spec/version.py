# SPDX-License-Identifier: Apache-2.0
"""The version of Tailrace. Asking the installed package for it (importlib.metadata) would take as long as a
small network.
"""

from __future__ import annotations

VERSION = "0.1.0"
