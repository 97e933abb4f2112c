# SPDX-License-Identifier: Apache-2.0
"""The maximum number of queue samples in a run in virtual time."""

from __future__ import annotations

from tailrace.spec.limits import refuse_above
from tailrace.topology import Topology

MOST_SAMPLES = 10_000_000
"""Of all ports together: each takes some 330 bytes until the table is written, all of them 3.3 GB."""


def check_samples(topology: Topology, period_ns: int | None, least_ns: int) -> None:
    """Refuses samples of queues that would fill the memory; `least_ns` is what the run takes at least, or has
    taken until now.

    Raises:
        SpecError: they would.
    """
    if period_ns is not None:
        ports = len(topology.hosts) + 2 * len(topology.links)
        refuse_above("sample", "samples", ports * (least_ns // period_ns), MOST_SAMPLES)
