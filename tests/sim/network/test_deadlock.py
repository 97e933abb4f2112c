# SPDX-License-Identifier: Apache-2.0
"""Which queues never move again: by hand, and against a simulation that lets move whatever can."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.sim.network.deadlock import QueueId, deadlock
from tailrace.sim.network.wire import NodePort
from tailrace.switch.core import PausedQueue

XON = 1000


def ring(switches: int) -> dict[str, list[PausedQueue]]:
    """Each switch has a queue of port 1 to the next one, full of what came in by port 2 from the one before."""
    return {f"s{number}": [PausedQueue(1, 0, 2, 0, 2 * XON, XON, 1)] for number in range(switches)}


def onward(switches: int, switch: str, port: int) -> NodePort | None:
    """The wires of the ring."""
    return NodePort(f"s{(int(switch[1:]) + 1) % switches}", 2) if port == 1 else None


def stuck_queues(held: dict[str, list[PausedQueue]], switches: int = 3) -> tuple[QueueId, ...]:
    return deadlock(held, lambda switch, port: onward(switches, switch, port))


def test_a_ring() -> None:
    """Each waits for the next one, in this order."""
    circle = stuck_queues(ring(3))
    assert len(circle) == 3
    for queue, behind in zip(circle, [*circle[1:], circle[0]], strict=True):
        end = onward(3, queue.switch, 1)
        assert end is not None and behind == QueueId(end.node, 1, 0)
    assert str(circle[0]) == f"{circle[0].switch} port 1 class 0"


def test_a_pause_of_a_host_ends() -> None:
    """Hosts take in what comes."""
    held = ring(2)
    assert deadlock(held, lambda s, p: None if s == "s0" else onward(2, s, p)) == ()


@st.composite
def networks(draw: st.DrawFn) -> tuple[int, dict[str, list[PausedQueue]]]:
    """Switches that are all joined: port n leads to switch n, which has this one at the port of its number."""
    count = draw(st.integers(2, 5))
    numbers = st.integers(0, count - 1)
    held: dict[str, list[PausedQueue]] = {}
    for me in range(count):
        items = {}
        pausing: dict[tuple[int, int], bool] = {}
        for _ in range(draw(st.integers(0, 6))):
            port, priority, source, channel = (
                draw(numbers),
                draw(st.integers(0, 1)),
                draw(numbers),
                draw(st.integers(0, 1)),
            )
            if me not in (port, source):
                pausing.setdefault((source, channel), draw(st.integers(0, 3)) > 0)
                size = draw(st.integers(1, 3)) * XON // 2
                items[port, priority, source, channel] = size
        held[f"s{me}"] = [PausedQueue(*key, size, XON, int(pausing[key[2:]])) for key, size in items.items()]
    return count, held


def moves(held: dict[str, list[PausedQueue]]) -> set[QueueId]:
    """What is left when every queue sends as long as it may: what is sent vanishes, and nothing new comes."""
    left: dict[QueueId, dict[tuple[int, int], int]] = {
        QueueId(switch, item.port, item.priority): {} for switch, items in held.items() for item in items
    }
    paused = set()
    for switch, items in held.items():
        for item in items:
            left[QueueId(switch, item.port, item.priority)][item.from_port, item.from_priority] = item.bytes
            if item.pausing:
                paused.add((switch, item.from_port, item.from_priority))
    while True:
        sums: defaultdict[tuple[str, int, int], int] = defaultdict(int)
        for queue, accounts in left.items():
            for account, size in accounts.items():
                sums[queue.switch, account[0], account[1]] += size
        paused = {account for account in paused if sums[account] > XON}
        free = [q for q in left if (f"s{q.port}", int(q.switch[1:]), q.priority) not in paused]
        if not free:
            return set(left)
        del left[free[0]]


@settings(max_examples=300)
@given(networks())
def test_what_cannot_move_is_found(network: tuple[int, dict[str, list[PausedQueue]]]) -> None:
    """There is a circle just where something is left, it is of what is left, and each waits for the next one."""
    _, held = network
    left = moves(held)
    circle = deadlock(held, lambda switch, port: NodePort(f"s{port}", int(switch[1:])))
    assert bool(circle) == bool(left)
    assert set(circle) <= left
    for queue, behind in zip(circle, [*circle[1:], *circle[:1]], strict=True):
        assert behind.switch == f"s{queue.port}"
        accounts = {
            (item.from_port, item.from_priority) for item in held[behind.switch] if item[:2] == behind[1:]
        }
        assert (int(queue.switch[1:]), queue.priority) in accounts
