# SPDX-License-Identifier: Apache-2.0
"""What nothing is configured for beyond what all programs have: a hash, chance or the NIC chooses."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.p4entity import P4Entity

from tailrace.schemes.blocks.entries import usual
from tailrace.schemes.resolved import Plan, Resolved


class ResolvedPlain(Resolved, frozen=True, kw_only=True):
    """A scheme that is in its program, or in NICs."""

    def entities(self, plan: Plan) -> Iterator[P4Entity]:
        """See Resolved."""
        return usual(plan)
