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
    """A topology cannot carry a pattern; the message does not name the workload, the caller adds its name."""


class Transfer(NamedTuple):
    """One message from a sender to a receiver.

    `after` has the numbers of transfers that must be complete at the sender first: those that it sent are
    acknowledged, those sent to it have arrived. The transfer still does not start before `start_ns`. If
    `sport` is None, the source port is random. `flow_class` is the flow's purpose (classes.py). `steering` is
    an algorithm that chooses its paths instead of the scheme's, if the scheme's P4 program supports both.
    """

    sender: Host
    receiver: Host
    size_bytes: int
    start_ns: int = 0
    after: tuple[int, ...] = ()
    sport: int | None = None
    flow_class: str = NO_CLASS
    steering: str = ""


class Pattern(Protocol):
    """A traffic pattern: who sends how much to whom, and when."""

    def transfers(self, topology: Topology, rng: random.Random, /) -> Iterable[Transfer]:
        """The transfers; a generator is allowed, although the caller draws from `rng` between its items.

        Args:
            topology: at full speed, so the times of the transfers are at full speed, too.

        Raises:
            PatternError: the topology cannot carry the pattern.
        """
