# SPDX-License-Identifier: Apache-2.0
"""Virtual channels of PFC (p4src/common/channels.p4): which priorities a packet takes one after the other.

The queue of a link between switches that is the n-th of a path, from 0, has priority n, and so is the pause
that the switch behind it asks for. A path of as many links as there are channels ends with a queue to a host
that has one priority more, for which no switch waits. Control packets have the highest one, which is no
channel's.
"""

from __future__ import annotations

from collections.abc import Iterator

from finsy.p4entity import P4Entity

from tailrace.codec.numbers import TTL
from tailrace.schemes.blocks.entries import default_action
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import EntryPlan
from tailrace.spec.constants import PRIORITIES

TABLE = "channel_config"

MOST_CHANNELS = PRIORITIES - 2
"""Of the priorities one is for control packets, and one for queues to hosts behind the longest path."""


def entries(plan: EntryPlan) -> Iterator[P4Entity]:
    """What a program needs to have channels; nothing where there are none.

    Raises:
        IntentError: the program has none.
    """
    last = plan.target.channels
    if not last:
        return
    if not plan.program.has_table(TABLE):
        raise IntentError(
            f"scheme {plan.config.name}: channels={last}: the program {plan.program.name} has none"
        )
    yield default_action(TABLE, "set_channels", first_ttl=TTL, last=last)
