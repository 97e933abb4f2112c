# SPDX-License-Identifier: Apache-2.0
"""Errors of schemes in networks."""

from __future__ import annotations

from tailrace.spec import SpecError


class IntentError(SpecError):
    """Topology, scheme and target are incompatible."""
