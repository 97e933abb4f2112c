# SPDX-License-Identifier: Apache-2.0
"""Late is not dead: links are watched over switches that stall and wires that delay probes at will, by a
clock that counts rounds.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.controller.linkwatch import INDICES, LinkMonitor, Liveness, Probe, link_names
from tailrace.controller.timing import Timing
from tailrace.topology import Link, parse_topology

MISSED, SILENT = 3, 6
TOPOLOGY = parse_topology("leaf-spine:leaves=2,spines=2,hosts=1")
NAMES = [switch.name for switch in TOPOLOGY.switches]
PEERS = {
    end: other
    for link in TOPOLOGY.links
    for end, other in (
        ((link.a, link.a_port), (link.b, link.b_port)),
        ((link.b, link.b_port), (link.a, link.a_port)),
    )
}
Delay = Callable[[int, str, int], int]
Stalled = Callable[[int, str], bool]


class Watched:
    """Switches that take what the controller sends in order, unless they stand still, and wires that hold a
    probe up for so many rounds.
    """

    def __init__(self, delay: Delay, stalled: Stalled) -> None:
        self.monitor, self.answers = LinkMonitor(TOPOLOGY, MISSED), Liveness(SILENT)
        self.delay, self.stalled = delay, stalled
        self.dead: set[tuple[str, int]] = set()
        self.connected = set(NAMES)
        self.number = 0
        self.waiting: dict[str, list[Probe | int]] = {name: [] for name in NAMES}
        self.flying: list[tuple[int, tuple[str, int], bytes]] = []

    def round(self) -> list[str]:
        """One round; the links that are down at its end."""
        index, late = self.answers.round(self.connected)
        for probe in self.monitor.round(self.connected, late.keys()):
            self.waiting[probe.switch].append(probe)
        for name in self.connected:
            self.waiting[name].append(index)
        self.number += 1
        for name in self.connected:
            if self.stalled(self.number, name):
                continue
            for item in self.waiting[name]:
                if isinstance(item, int):
                    self.answers.response_received(name, item)
                elif (item.switch, item.port) not in self.dead:
                    due = self.number + self.delay(self.number, item.switch, item.port)
                    self.flying.append((due, PEERS[item.switch, item.port], item.frame))
            self.waiting[name].clear()
        landed = [
            flight for flight in self.flying if flight[0] <= self.number and not self._held(flight[1][0])
        ]
        self.flying = [flight for flight in self.flying if flight not in landed]
        for _, (switch, port), frame in landed:
            assert self.monitor.probe_received(switch, port, frame) is None
        return link_names(TOPOLOGY, self.monitor.down)

    def _held(self, switch: str) -> bool:
        """Whether what comes in at a switch is not told now."""
        return switch not in self.connected or self.stalled(self.number, switch)


def in_time(_round: int, _switch: str, _port: int = 0) -> int:
    return 0


def never(_round: int, _switch: str) -> bool:
    return False


stalls = st.dictionaries(st.sampled_from(NAMES), st.lists(st.integers(1, 60), max_size=40), max_size=4)


def at_most_in_a_row(rounds: list[int], most: int) -> set[int]:
    """The rounds without those that would make more than `most` in a row."""
    kept: set[int] = set()
    for number in sorted(set(rounds)):
        if not all(number - back in kept for back in range(1, most + 1)):
            kept.add(number)
    return kept


@settings(max_examples=200)
@given(seed=st.randoms(use_true_random=False), stalls=stalls)
def test_late_links_stay_up(seed: object, stalls: dict[str, list[int]]) -> None:
    """However probes are delayed by less than the limit, and switches stand still for less than `silent`
    rounds, no link is ever called down.
    """
    rng = seed
    still = {name: at_most_in_a_row(rounds, SILENT - MISSED) for name, rounds in stalls.items()}
    watched = Watched(
        lambda *_: rng.randint(0, MISSED - 1),  # type: ignore[attr-defined]
        lambda number, name: number in still.get(name, ()),
    )
    for _ in range(80):
        assert watched.round() == []


@settings(max_examples=200)
@given(
    link=st.sampled_from(TOPOLOGY.links),
    one_way=st.booleans(),
    at=st.integers(1, 20),
    stalls=stalls,
)
def test_a_dead_link_is_found(link: Link, one_way: bool, at: int, stalls: dict[str, list[int]]) -> None:
    """It is down within missed + 1 rounds in which both its switches answered, and no other one is; when it
    lives again it is up with the first probe.
    """
    still = {name: at_most_in_a_row(rounds, SILENT) for name, rounds in stalls.items()}
    watched = Watched(in_time, lambda number, name: number in still.get(name, ()))
    for _ in range(at):
        assert watched.round() == []
    watched.dead |= {(link.a, link.a_port)} | (set() if one_way else {(link.b, link.b_port)})
    fair = 0
    while fair < MISSED + 1:
        number = watched.number + 1
        fair += not any(number in still.get(name, ()) for name in (link.a, link.b))
        lost_links = watched.round()
        assert lost_links in ([], [f"{link.a}-{link.b}"])
    # what was late before makes the limit larger, and one round more ends the last one
    for _ in range(SILENT + 2):
        lost_links = watched.round()
    assert lost_links == [f"{link.a}-{link.b}"]
    watched.dead.clear()
    watched.stalled = never
    watched.round()
    assert watched.round() == []


def test_bound_without_lateness() -> None:
    """With switches that answer a link is down after exactly as many rounds as before."""
    watched = Watched(in_time, never)
    for _ in range(5):
        watched.round()
    watched.dead = {("leaf1", 2), ("spine1", 1)}
    assert [watched.round() for _ in range(MISSED)] == [[]] * MISSED
    assert watched.round() == ["leaf1-spine1"]


def test_all_stopped_at_once() -> None:
    """A machine that stands still for seconds, and the controller's process with it, loses no link."""
    watched = Watched(in_time, lambda number, _name: 5 <= number < 5 + SILENT)
    for _ in range(40):
        assert watched.round() == []


def test_a_hung_switch() -> None:
    """A switch that stays connected and does nothing has lost its links after silent + missed + 2 rounds, and
    not before it could be told from one that is late.
    """
    watched = Watched(in_time, lambda number, name: name == "spine2" and number > 5)
    by_round = [watched.round() for _ in range(5 + SILENT + MISSED + 2)]
    assert by_round[5 + SILENT] == []
    assert by_round[-1] == ["leaf1-spine2", "leaf2-spine2"]


def test_the_limit_is_learnt() -> None:
    """Probes that come later and later make the limit larger, and it shrinks again."""
    watched = Watched(lambda number, *_: min(number // 10, 7), never)
    for _ in range(100):
        assert watched.round() == []
    assert watched.monitor.limit == MISSED + 7
    watched.delay = in_time
    for _ in range(30):
        assert watched.round() == []
    assert watched.monitor.limit == MISSED


def test_old_answers() -> None:
    """An answer to a question of an earlier round does not make this one count."""
    answers = Liveness(SILENT)
    first, _ = answers.round({"a"})
    second, late = answers.round({"a"})
    assert (first, second, late) == (1, 2, {"a": 1})
    answers.response_received("a", first)
    answers.response_received("stranger", second)
    assert answers.round({"a"})[1] == {"a": 2}
    answers.response_received("a", 3)
    assert answers.round({"a"})[1] == {}
    for _ in range(INDICES):
        index, _ = answers.round(set())
        assert 0 <= index < INDICES


def test_a_switch_that_comes_back_is_noticed_soon() -> None:
    """Whenever it does: by an eighth of its absence later, or by the least or the longest wait."""
    timing = Timing()
    for back_s in [0.001 * 1.3**step for step in range(60)]:
        tried_s = 0.0
        while tried_s < back_s:
            tried_s += timing.retry_s(tried_s)
        limit_s = max(timing.first_retry_s, back_s / 8)
        assert tried_s - back_s <= min(limit_s, timing.longest_retry_s) + 1e-9
