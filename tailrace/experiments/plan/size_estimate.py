# SPDX-License-Identifier: Apache-2.0
"""Limits on the size of an experiment, checked before set-up: flows, packets, routes, queues.

A workload's pattern estimates its number of flows from its options and the topology before it draws any;
drawn flows are counted as well. The papers' largest runs have 24 thousand flows, 220 million packets, 100
thousand routes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tailrace.experiments.workloads.transfer import PatternError
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.schemes.resolved import Resolved
from tailrace.spec import SpecError
from tailrace.spec.limits import refuse_above
from tailrace.topology import Topology
from tailrace.topology.timing import full_frame_bytes

T = TypeVar("T")

MOST_FLOWS = 2_000_000
MOST_PACKETS = 20_000_000_000
MOST_ROUTES = 2_000_000
"""In all switches together; a route is an entry of a switch for a destination switch that has hosts."""


def check_flows(count: float) -> None:
    """Refuses too many flows; `count` may be an expected value.

    Raises:
        PatternError: `count` is above MOST_FLOWS.
    """
    try:
        refuse_above("flows", "flows", count, MOST_FLOWS)
    except SpecError as error:
        raise PatternError(str(error).removeprefix("flows: ")) from error


def counted(items: Iterable[T]) -> Iterator[T]:
    """Yields the items; raises PatternError at more than MOST_FLOWS of them."""
    for number, item in enumerate(items, start=1):
        if number > MOST_FLOWS:
            check_flows(number)
        yield item


def check_network(topology: Topology) -> None:
    """Refuses a network whose routes would fill the memory.

    Raises:
        SpecError: it has more than MOST_ROUTES.
    """
    routes = len(topology.switches) * len(topology.leaves)
    refuse_above(f"topology {topology.kind}", "routes", routes, MOST_ROUTES)


def check_packets(flows: Sequence[FlowSpec], mtu_bytes: int) -> None:
    """Refuses flows of more packets than a run can send within days.

    Raises:
        SpecError: they have more than MOST_PACKETS.
    """
    packets = sum(-(-flow.bytes // mtu_bytes) for flow in flows)
    refuse_above("workload", f"packets of {mtu_bytes} bytes", packets, MOST_PACKETS)


def check_queue(scheme: Resolved, flows: Sequence[FlowSpec], mtu_bytes: int) -> None:
    """Refuses queues that are too short for a packet of the flows, which would never arrive.

    Raises:
        SpecError: the scheme's queue limit is smaller than a frame.
    """
    limit = scheme.queue_limit_bytes
    frame = full_frame_bytes(min(mtu_bytes, max((flow.bytes for flow in flows), default=mtu_bytes)))
    if 0 < limit < frame:
        raise SpecError(
            f"scheme {scheme.name}: queue must hold a frame of {frame} bytes at least, found {limit} bytes"
        )
