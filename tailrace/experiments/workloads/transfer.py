# SPDX-License-Identifier: Apache-2.0
"""What a workload asks for: transfers between hosts, numbered from 1 in the order in which they are given."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from tailrace.experiments.workloads.classes import NO_CLASS
from tailrace.spec import SpecError
from tailrace.topology import Host, Topology

ECMP = "ecmp"
"""Steering by a hash of the flow's 5-tuple, over all paths."""


class PatternError(SpecError):
    """A topology cannot carry a pattern; the text does not name the workload: whoever knows it does."""


class Transfer(NamedTuple):
    """One message.

    `after` holds the numbers of transfers that must be complete at the sender first: those that it sent are
    acknowledged, those sent to it have arrived. `start_ns` is the earliest time all the same. `sport` None
    leaves the source port to chance. `flow_class` says what a flow is there for (classes.py). `steering` is
    an algorithm that chooses its paths instead of the scheme's, where the scheme's program can do both.
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
    """Who sends what to whom, and when."""

    def transfers(self, topology: Topology, rng: random.Random, /) -> Iterable[Transfer]:
        """The transfers; they may be made one by one while the caller draws from `rng`, too.

        Args:
            topology: at full speed: times and rates of what is returned are those of its links.

        Raises:
            PatternError: the topology cannot carry it.
        """
