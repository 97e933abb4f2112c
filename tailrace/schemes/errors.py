# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a scheme for a network."""

from __future__ import annotations

from tailrace.spec import SpecError


class IntentError(SpecError):
    """Topology, scheme and target do not go together."""
