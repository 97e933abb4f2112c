# SPDX-License-Identifier: Apache-2.0
"""What a workload generates: transfers between hosts, numbered from 1 in the order of their generation."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from tailrace.experiments.workloads.classes import NO_CLASS
from tailrace.spec import SpecError
from tailrace.topology import Host, Topology

ECMP = "ecmp"
"""Path choice by a hash of the flow's 5-tuple over all paths."""


class PatternError(SpecError):
    """A topology cannot carry a pattern. The caller adds the workload's name to the message."""


class Transfer(NamedTuple):
    """One message from a sender to a receiver.

    `after` contains the numbers of the transfers that must be complete first: of those that the sender
    sends, every byte is acknowledged; of those that it receives, every byte has arrived. If `after_count` is
    not 0, so many of them suffice. Even then the transfer does not start before `start_ns`, and, if
    `after_ns` is given, before this time has passed since the completion of each. If `sport` is None, the
    source port is random. `flow_class` is the flow's purpose (classes.py). `steering` names a NIC algorithm
    that chooses the paths of this transfer in place of the scheme; the scheme's P4 program must support this
    algorithm, too.
    """

    sender: Host
    receiver: Host
    size_bytes: int
    start_ns: int = 0
    after: tuple[int, ...] = ()
    sport: int | None = None
    flow_class: str = NO_CLASS
    steering: str = ""
    after_ns: tuple[int, ...] = ()
    after_count: int = 0


class Pattern(Protocol):
    """A traffic pattern: who sends how much to whom, and when."""

    def transfers(self, topology: Topology, rng: random.Random, /) -> Iterable[Transfer]:
        """The transfers; a generator is allowed, although the caller draws from `rng` between its items.

        Args:
            topology: the network at full speed. A real-time run may be slower by a factor, the time scale;
                it is applied to the transfers' times later.

        Raises:
            PatternError: the topology cannot carry the pattern.
        """
