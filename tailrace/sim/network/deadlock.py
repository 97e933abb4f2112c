# SPDX-License-Identifier: Apache-2.0
"""Detects PFC deadlocks: cycles of pauses, in which no queue will ever be resumed.

A queue that a pause holds waits for its neighbour, which paused it because too much came in by their link and
waits in queues of its own:

    s1: queue of port 3, class 0  --paused by-->  s5: what came in by port 2, class 0
                                                      |  it waits in
                                                      v
                                                  s5: queue of port 1, class 0  --paused by--> ...

The neighbour lets go when no more than `xon` bytes of that are left. So a queue is stuck where more than that
is in queues that are stuck themselves: the largest set of queues for which this holds is what is looked for,
beginning with all that are held, and leaving out those of which enough can still move. What is in the set
stays there, whatever else moves: slow is not stuck. Only a storm of the watchdog, or a link that fails, could
end it, and both lose packets. Pauses of hosts are not waited for: hosts take in what comes.

Memory that all ports share makes switches pause with less than `xoff`; a circle that only this holds is not
found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from tailrace.sim.network.wire import NodePort
from tailrace.switch.core import PausedQueue


class Stuck(NamedTuple):
    """A queue that a deadlock blocks for ever."""

    switch: str
    port: int
    priority: int

    def __str__(self) -> str:
        """For people."""
        return f"{self.switch} port {self.port} class {self.priority}"


_Account = tuple[str, int, int]
"""Switch, port and priority of what came in."""


def deadlock(
    held: Mapping[str, Sequence[PausedQueue]], neighbour: Callable[[str, int], NodePort | None]
) -> tuple[Stuck, ...]:
    """A circle of queues of which each waits for the next one, and the last for the first; empty: there is
    none.

    Args:
        held: by switch, what is in the queues that pauses hold.
        neighbour: the port of a switch to which a port of a switch leads; None where that is none
            of a switch.
    """
    bytes_of: dict[Stuck, dict[_Account, int]] = {}
    xon: dict[_Account, int] = {}
    for switch in sorted(held):
        for item in held[switch]:
            account = (switch, item.from_port, item.from_priority)
            queue = Stuck(switch, item.port, item.priority)
            bytes_of.setdefault(queue, {})[account] = item.bytes
            if item.pausing:
                xon[account] = item.xon_bytes
    waits_for = {}
    for queue in bytes_of:
        end = neighbour(queue.switch, queue.port)
        if end is not None and (end.node, end.port, queue.priority) in xon:
            waits_for[queue] = (end.node, end.port, queue.priority)
    stuck = _stuck(waits_for, bytes_of, xon)
    # that a queue waits for another one makes it one of its predecessors
    graph = {behind: [queue for queue in stuck if waits_for[queue] in bytes_of[behind]] for behind in stuck}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[Stuck] = error.args[1]
        return tuple(cycle[:-1])
    return ()


def _stuck(
    waits_for: Mapping[Stuck, _Account],
    bytes_of: Mapping[Stuck, Mapping[_Account, int]],
    xon: Mapping[_Account, int],
) -> list[Stuck]:
    """The queues that never move again, in the order of `waits_for`."""
    stuck = list(waits_for)
    while True:
        stuck_bytes: defaultdict[_Account, int] = defaultdict(int)
        for queue in stuck:
            for account, size in bytes_of[queue].items():
                stuck_bytes[account] += size
        left = [queue for queue in stuck if stuck_bytes[waits_for[queue]] > xon[waits_for[queue]]]
        if len(left) == len(stuck):
            return stuck
        stuck = left
