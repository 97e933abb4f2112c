# SPDX-License-Identifier: Apache-2.0
"""Virtual channels of PFC (p4src/common/channels.p4): the priorities that a packet gets hop by hop.

On the n-th link between switches of its path, from 0, a packet has priority n in the egress queue, and the
next switch pauses that priority. On a path with as many such links as there are channels, the last queue, to
the host, has the next priority, on which no other queue depends. Control packets have the highest priority,
which is no channel.
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
"""All priorities but one for control packets, and one for queues to hosts at the end of the longest path."""


def entries(plan: EntryPlan) -> Iterator[P4Entity]:
    """The entries that configure a program's channels; none if the target uses no channels.

    Raises:
        IntentError: the program does not support channels.
    """
    last = plan.target.channels
    if not last:
        return
    if not plan.program.has_table(TABLE):
        raise IntentError(
            f"scheme {plan.config.name}: channels={last}: the program {plan.program.name} has none"
        )
    yield default_action(TABLE, "set_channels", first_ttl=TTL, last=last)
