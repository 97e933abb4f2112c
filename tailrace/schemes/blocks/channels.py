# SPDX-License-Identifier: Apache-2.0
"""Virtual channels of PFC (p4src/common/channels.p4): the priorities that a packet gets hop by hop.

A packet has priority n in the egress queue of the n-th link between switches on its path (from 0), and the
next switch pauses that priority. If a path has as many such links as there are channels, the queue to the
host at its end has the next priority, and no other queue depends on this priority. Control packets have the
highest priority, which is no channel.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.codec.numbers import TTL
from tailrace.p4rt.entities import P4Entity
from tailrace.schemes.blocks.entries import default_action
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import EntryPlan
from tailrace.spec.constants import PRIORITIES

TABLE = "channel_config"

MOST_CHANNELS = PRIORITIES - 2
"""All priorities except two: one for control packets, one for queues to hosts at the end of longest paths."""


def entries(plan: EntryPlan) -> Iterator[P4Entity]:
    """The entries that configure a program's channels; none if the target uses no channels.

    Raises:
        IntentError: the program does not support channels.
    """
    count = plan.target.channels
    if not count:
        return
    if not plan.program.has_table(TABLE):
        raise IntentError(
            f"scheme {plan.config.name}: channels={count}: the program {plan.program.name} has none"
        )
    # first_ttl: the TTL that the first switch sets, from which the program computes a packet's n.
    # The channels are 0 to count - 1; priority `count` is that of queues to hosts at the end of longest paths
    yield default_action(TABLE, "set_channels", first_ttl=TTL, last=count)
