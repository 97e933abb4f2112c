# SPDX-License-Identifier: Apache-2.0
"""What runs will cost, reckoned from what finished ones did: CPU time and memory of one process a run.

    same words       what they took
    another seed     the mean of what the same words took with other seeds
    reckoned         hops = packets of the flows × hops a packet          of the runs most like it
                     CPU  = hops × CPU time a hop, while packets went     of the scheme's longest runs
                            + entries × CPU time an entry                 set-up and reading of results
                     memory = that without a network + entries × memory an entry

Entries are next hops of all switches towards all switches with hosts, as plan/reckon.py counts them. Only
runs of one machine count, for times of several mean nothing together: of this one if there are any, else of
that of which there are most. Flows are drawn only where something must be reckoned, for that takes time.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeVar

from msgspec import UnsetType

from tailrace.experiments.plan import defaults
from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.plan.known import topology_of
from tailrace.experiments.plan.plan import on_target
from tailrace.experiments.run.machine import machine
from tailrace.experiments.run.task import Task, files_of, run_id, words_of
from tailrace.experiments.store.record import Record, without_seed
from tailrace.experiments.workloads.classes import PLAIN, measured
from tailrace.experiments.workloads.csv_file import Rows
from tailrace.experiments.workloads.transfer import Pattern, PatternError, Transfer
from tailrace.experiments.workloads.workload import Workload, parse_workload
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.topology import Topology
from tailrace.words import SpecError, parse
from tailrace.words.constants import NS_BITS

T = TypeVar("T")

SAME, SEED, RECKONED, UNKNOWN = "same words", "another seed", "reckoned", "unknown"

_MOST_LIKE = 3
_FACTORS = (2, 4, 8)
"""By what factor a run may be larger or smaller and still be more like one than a run of the same size with
another scheme, topology or workload."""

_MOST_FLOWS = 100_000
"""Of a run that others are reckoned from; the largest of the papers has 24 thousand."""

_LONGEST = 5
"""Runs of a scheme whose CPU time a hop counts: set-up and the caches of a small network tell little of a
large one."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a run, or of several: CPU time in s, most memory of a process in bytes; `how` they are known."""

    cpu_s: float = 0.0
    memory_bytes: float = 0.0
    how: str = UNKNOWN


@dataclass(frozen=True, slots=True)
class _Took:
    """What a run took: CPU time in s while packets went and besides, memory in bytes; and its size, of which
    `packets` are known where its flows have been drawn.
    """

    record: Record
    names: tuple[str, ...]
    traffic_s: float
    other_s: float
    memory_bytes: int
    hops: int
    entries: int
    packets: int = 0

    @property
    def cpu_s(self) -> float:
        return self.traffic_s + self.other_s


class Estimator:
    """Says what runs will cost."""

    def __init__(self, records: Iterable[Record]) -> None:
        """From finished runs."""
        self._every = list(records)
        machines = Counter(
            each.summary.machine for each in self._every if isinstance(each.summary.machine, str)
        )
        self.machine = (
            machine() if machine() in machines else next((n for n, _ in machines.most_common(1)), "")
        )
        """Whose times count; empty: there are none."""
        self._like: dict[tuple[tuple[str, ...], int], list[_Took]] = {}

    @cached_property
    def _took(self) -> list[_Took]:
        return [took for each in self._every if (took := _took(each, self.machine)) is not None]

    @cached_property
    def _same(self) -> dict[str, _Took]:
        return {took.record.run: took for took in self._took}

    @cached_property
    def _seeds(self) -> dict[bytes, list[_Took]]:
        return _by(self._took, lambda took: without_seed(took.record.words))

    @cached_property
    def _schemes(self) -> dict[str, list[_Took]]:
        return _by(self._took, lambda took: took.record.scheme)

    @cached_property
    def _sized(self) -> list[_Took]:
        """Those whose packets can be told."""
        found = []
        for took in self._took:
            summary = took.record.summary
            packets = _packets_of_run(summary.topology, summary.workload, summary.mtu_bytes)
            if packets is not None:
                found.append(replace(took, packets=packets))
        return found

    @cached_property
    def _other(self) -> Callable[[float], float]:
        return _line([(took.entries, took.other_s) for took in self._took])

    @cached_property
    def _memory(self) -> Callable[[float], float]:
        return _line([(took.entries, took.memory_bytes) for took in self._took])

    def cost(self, task: Task) -> Cost:
        """What a task will take."""
        words = words_of(task.experiment)
        same = self._same.get(run_id(words, files_of(task.experiment)))
        if same is not None:
            return Cost(same.cpu_s, same.memory_bytes, SAME)
        if others := self._seeds.get(without_seed(words)):
            count = len(others)
            return Cost(
                sum(took.cpu_s for took in others) / count,
                max(took.memory_bytes for took in others),
                SEED,
            )
        return self._reckoned(task.experiment) if self._took else Cost()

    def _reckoned(self, experiment: Experiment) -> Cost:
        experiment = on_target(experiment, "virtual")
        try:
            packets, entries = _size(experiment)
        except SpecError:
            # no seed of that workload need have a flow
            return Cost()
        names = _names(experiment.scheme, experiment.topology, experiment.workload or "")
        like = self._most_like(names, packets)
        hops = packets * sum(took.hops for took in like) / max(1, sum(took.packets for took in like))
        own = self._schemes.get(experiment.scheme.partition(":")[0], self._took)
        longest = sorted(own, key=lambda took: took.hops)[-_LONGEST:]
        hop_s = sum(took.traffic_s for took in longest) / max(1, sum(took.hops for took in longest))
        return Cost(hops * hop_s + self._other(entries), self._memory(entries), RECKONED)

    def _most_like(self, names: tuple[str, ...], packets: int) -> list[_Took]:
        """Of all runs those that are most like one; kept, for runs of one grid differ by options only."""
        if (names, packets) not in self._like:
            by_unlikeness = sorted(self._sized, key=lambda took: _unlikeness(took, names, packets))
            self._like[names, packets] = by_unlikeness[:_MOST_LIKE]
        return self._like[names, packets]


def _unlikeness(took: _Took, names: Sequence[str], packets: int) -> float:
    """How far a run is from another one with these names and so many packets."""
    far = abs(math.log(max(1, took.packets) / max(1, packets)))
    return far + sum(
        math.log(factor)
        for factor, one, other in zip(_FACTORS, took.names, names, strict=True)
        if one != other
    )


def _names(scheme: str, topology: str, workload: str) -> tuple[str, ...]:
    return tuple(parse(words).name for words in (scheme, topology, workload))


def _took(record: Record, wanted: str) -> _Took | None:
    """What a run took; None where nobody knows, or it was on another machine."""
    summary = record.summary
    cpu_s, traffic_s, hops = summary.cpu_s, summary.traffic_s, summary.packet_hops
    memory_bytes = summary.memory_bytes
    if (
        isinstance(cpu_s, UnsetType)
        or isinstance(traffic_s, UnsetType)
        or isinstance(hops, UnsetType)
        or isinstance(memory_bytes, UnsetType)
        or summary.machine != wanted
        or summary.wall_s <= 0
    ):
        return None
    try:
        entries = _entries(topology_of(summary.topology))
        _check_workload(summary.workload)
        names = _names(summary.scheme, summary.topology, summary.workload)
    except SpecError:
        # words of an earlier version, or of a plug-in that is not here
        return None
    in_traffic_s = cpu_s * min(1.0, traffic_s / summary.wall_s)
    return _Took(record, names, in_traffic_s, cpu_s - in_traffic_s, memory_bytes, hops, entries)


def _size(experiment: Experiment) -> tuple[int, int]:
    """Packets of the flows, and entries of the network."""
    assert experiment.workload is not None, "whoever asks has seen to that"
    packets = _packets(experiment.topology, experiment.workload, experiment.mtu_bytes)
    return packets, _entries(experiment.meant.topology)


def _entries(topology: Topology) -> int:
    return len(topology.switches) * len(topology.leaves)


@lru_cache(maxsize=4096)
def _check_workload(words: str) -> None:
    """Raises SpecError where words are no workload."""
    parse_workload(words)


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A pattern that is refused where it draws more flows than _MOST_FLOWS."""

    pattern: Pattern

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        for number, transfer in enumerate(self.pattern.transfers(topology, rng)):
            if number == _MOST_FLOWS:
                raise PatternError(f"more than {_MOST_FLOWS} flows")
            yield transfer


@lru_cache(maxsize=4096)
def _packets_of_run(topology: str, workload: str, mtu_bytes: int | UnsetType) -> int | None:
    """As `_packets`; None where the flows are too many, or the network cannot carry them."""
    found = parse_workload(workload)
    if not isinstance(found.pattern, Rows):
        found = replace(found, pattern=_Bounded(found.pattern))
    try:
        return _counted(topology, found, mtu_bytes)
    except SpecError:
        return None


@lru_cache(maxsize=4096)
def _packets(topology: str, workload: str, mtu_bytes: int | UnsetType) -> int:
    return _counted(topology, parse_workload(workload), mtu_bytes)


def _counted(topology: str, workload: Workload, mtu_bytes: int | UnsetType) -> int:
    """Full packets that the flows of some words need, with one seed as with any other.

    Of flows in the background no more counts than their senders can send while the others are sent, for
    nobody waits for their end.
    """
    network = topology_of(topology)
    traffic = workload.traffic(network, random.Random(0))
    waited_for = [flow for flow in traffic.flows if measured(traffic.classes.get(flow.id, PLAIN))]
    sent, beside = _by_sender(waited_for), _by_sender(set(traffic.flows) - set(waited_for))
    rates_bps = {host.ip: host.rate_bps for host in network.hosts}
    lasts_ns = max((flow.start_ns for flow in waited_for), default=0)
    lasts_ns += max((size * NS_BITS // rates_bps[src] for src, size in sent.items()), default=0)
    background = sum(min(size, lasts_ns * rates_bps[src] // NS_BITS) for src, size in beside.items())
    mtu_bytes = mtu_bytes or defaults.MTU_BYTES
    return sum(-(-flow.bytes // mtu_bytes) for flow in waited_for) + background // mtu_bytes


def _by_sender(flows: Iterable[FlowSpec]) -> Counter[str]:
    """Bytes by address."""
    found: Counter[str] = Counter()
    for flow in flows:
        found[flow.src] += flow.bytes
    return found


def _by(items: Iterable[_Took], key: Callable[[_Took], T]) -> dict[T, list[_Took]]:
    found: dict[T, list[_Took]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found


def _line(points: Sequence[tuple[float, float]]) -> Callable[[float], float]:
    """The straight line through points that leaves the least squares, nowhere below 0 and never falling."""
    count = len(points) or 1
    middle_x, middle_y = (
        sum(values) / count for values in (zip(*points, strict=True) if points else ((), ()))
    )
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    slope = max(0.0, sum((x - middle_x) * (y - middle_y) for x, y in points) / spread) if spread else 0.0
    return lambda x: max(0.0, middle_y + slope * (x - middle_x))
