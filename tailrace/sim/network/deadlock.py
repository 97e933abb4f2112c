# SPDX-License-Identifier: Apache-2.0
"""Detects PFC deadlocks: cycles of pauses, in which no queue will ever be resumed.

The switch at the other end of a link pauses a queue because too many bytes that arrived over this link still
wait in queues of that switch:

    s1: queue of port 3, class 0  --paused by-->  s5: bytes that entered by port 2, class 0
                                                      |  which wait in
                                                      v
                                                  s5: queue of port 1, class 0  --paused by--> ...

That switch resumes the queue when at most `xon` of these bytes are left. So a queue is stuck if more than
`xon` of these bytes are in queues that are stuck, too. The module computes the largest set of such queues: it
begins with all paused queues and removes each queue for which enough bytes can still move. A queue of the set
never moves, whatever other queues do: a slow network does not count as a deadlock. Only the PFC watchdog or a
failing link could end the deadlock, and both lose packets. A queue that a host paused does not count: the
host's pause depends on no queue.

With a shared buffer, switches pause at less than `xoff`; a cycle that depends on such pauses is not detected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from tailrace.sim.network.wire import NodePort
from tailrace.switch.core import PausedQueue


class QueueId(NamedTuple):
    """A queue of a port of a switch."""

    switch: str
    port: int
    priority: int

    def __str__(self) -> str:
        """The name of the queue in messages."""
        return f"{self.switch} port {self.port} class {self.priority}"


_Account = tuple[str, int, int]
"""(Switch, port, priority): the bytes that entered by a port, with a priority; many of them cause a pause."""


def deadlock(
    held: Mapping[str, Sequence[PausedQueue]], neighbour: Callable[[str, int], NodePort | None]
) -> tuple[QueueId, ...]:
    """A cycle of queues, each of which waits for the next one, and the last for the first; empty if there is
    no deadlock.

    Args:
        held: by switch, the bytes in its paused queues, by the port and priority by which they entered.
        neighbour: maps a port of a switch to the port at the other end of its link; None if that is not a
            port of a switch.
    """
    bytes_of: dict[QueueId, dict[_Account, int]] = {}
    xon: dict[_Account, int] = {}
    for switch in sorted(held):
        for item in held[switch]:
            account = (switch, item.from_port, item.from_priority)
            queue = QueueId(switch, item.port, item.priority)
            bytes_of.setdefault(queue, {})[account] = item.bytes
            if item.pausing:
                xon[account] = item.xon_bytes
    waits_for = {}
    for queue in bytes_of:
        end = neighbour(queue.switch, queue.port)
        if end is not None and (end.node, end.port, queue.priority) in xon:
            waits_for[queue] = (end.node, end.port, queue.priority)
    stuck = _stuck(waits_for, bytes_of, xon)
    # TopologicalSorter expects the predecessors of each node: here the queues that wait for it
    graph = {node: [queue for queue in stuck if waits_for[queue] in bytes_of[node]] for node in stuck}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[QueueId] = error.args[1]
        return tuple(cycle[:-1])
    return ()


def _stuck(
    waits_for: Mapping[QueueId, _Account],
    bytes_of: Mapping[QueueId, Mapping[_Account, int]],
    xon: Mapping[_Account, int],
) -> list[QueueId]:
    """The queues that will never send again, in the order of `waits_for`."""
    stuck = list(waits_for)
    while True:
        stuck_bytes: defaultdict[_Account, int] = defaultdict(int)
        for queue in stuck:
            for account, size in bytes_of[queue].items():
                stuck_bytes[account] += size
        remaining = [queue for queue in stuck if stuck_bytes[waits_for[queue]] > xon[waits_for[queue]]]
        if len(remaining) == len(stuck):
            return stuck
        stuck = remaining
