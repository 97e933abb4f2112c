# SPDX-License-Identifier: Apache-2.0
"""What papers draw of a network over time, from samples of its ports (run_files.py): throughput, how links
are used and how evenly, queues, pauses.

A sample k tells what a port has begun to send since the one before, at rate r over the time t between the
two: the port's *utilisation* in interval k is 8 bytes / (r t). It may exceed 1 by a frame, which counts
when it begins. Rates are those of the topology; a fault that slows a link shows as a lower utilisation.

* throughput: what switches send to hosts, with headers and answers, over the time.
* utilisation: of links between switches, both ways apart.
* imbalance: (max - min) / mean of the utilisations of one switch's uplinks in one interval (CONGA, SIGCOMM
  2014, §5.2.3), wherever they carried anything. Uplinks lead to switches that are no nearer to hosts: from
  leaves to spines, from edge to aggregation to core; in Dragonflies and Slim Flies all links between
  switches.
* queues: of every port that ever sent or queued anything, at every sample.
* paused: the share of those ports and samples at which PFC stopped the port.

All are of the intervals from the first to the last in which any port sent.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from arro3.core import Table

from tailrace.results.rows import FlowRow
from tailrace.results.statistics import mean, percentile
from tailrace.sim.timelines import Timelines
from tailrace.spec.constants import NS_BITS, NS_PER_S
from tailrace.tables.arrow import values_of
from tailrace.topology import Topology

HOST = "host"
"""Of Peer.kind."""

_INTERVALS = 100
"""Where no samples say how long one is."""


class Rates(msgspec.Struct, frozen=True):
    """Bits per second, of the whole network."""

    mean: float
    max: float


class Used(msgspec.Struct, frozen=True):
    """Shares of rates, over time: the mean of all links, and of the one that is used most."""

    mean: float
    max: float


class Imbalance(msgspec.Struct, frozen=True):
    """Over the switches with several uplinks, and intervals."""

    mean: float
    p99: float


class Lengths(msgspec.Struct, frozen=True):
    """Of queues, in bytes."""

    mean: float
    p50: int
    p99: int
    max: int


class Sampled(msgspec.Struct, frozen=True):
    """What `--sample` saw; see above. `imbalance` is absent where no switch has several uplinks."""

    period_ns: int
    intervals: int
    throughput_bps: Rates
    utilisation: Used
    queue_bytes: Lengths
    paused_share: float
    imbalance: Imbalance | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a switch, with an item a sample."""

    switch: str
    number: int
    queued: Sequence[int]
    sent: Sequence[int]
    paused: Sequence[bool]


@dataclass(frozen=True, slots=True)
class Series:
    """Ports over the time in which there was traffic; the first sample is when it began.

    `times_ns` has an item for each sample, and so has each port.
    """

    times_ns: Sequence[int]
    ports: tuple[Port, ...]

    @property
    def intervals(self) -> list[int]:
        """How long each is, in ns; the one that ends at a sample has its number less one."""
        return [after - before for before, after in itertools.pairwise(self.times_ns)]


def series_of(queues: Table) -> Series | None:
    """The samples of queues.parquet; None where nothing was ever sent, or looked at once only."""
    columns = values_of(queues)
    places: dict[tuple[str, int], list[int]] = {}
    for place, key in enumerate(zip(columns["switch"], columns["port"], strict=True)):
        places.setdefault(key, []).append(place)
    times = sorted(set(columns["time_ns"]))
    sending = {columns["time_ns"][place] for place, sent in enumerate(columns["tx_bytes"]) if sent}
    if len(times) < 2 or not sending:
        return None
    first, last = times.index(min(sending)) - 1, times.index(max(sending))
    chosen = times[max(first, 0) : last + 1]
    if len(chosen) < 2:
        return None
    ports = []
    for (switch, number), places_of_port in places.items():
        inside = sorted(
            (place for place in places_of_port if chosen[0] <= columns["time_ns"][place] <= chosen[-1]),
            key=columns["time_ns"].__getitem__,
        )
        cells = ([columns[name][place] for place in inside] for name in ("queue_bytes", "tx_bytes", "paused"))
        ports.append(Port(switch, number, *cells))
    return Series(chosen, tuple(ports))


def throughput(series: Series, topology: Topology) -> list[float]:
    """Of all that switches send to hosts, in bit/s, in each interval."""
    towards = [port for port in series.ports if topology.ports_of(port.switch)[port.number].kind == HOST]
    return [
        sum(port.sent[k] for port in towards) * NS_BITS / took_ns
        for k, took_ns in enumerate(series.intervals, start=1)
    ]


def utilisation(series: Series, topology: Topology) -> dict[tuple[str, int], list[float]]:
    """Of each port between switches, in each interval; those that never sent anything are there, too."""
    rates = {}
    seen = {(port.switch, port.number): port for port in series.ports}
    nothing = [0.0] * len(series.intervals)
    for switch in topology.switches:
        for number, peer in topology.ports_of(switch.name).items():
            if peer.kind == HOST:
                continue
            port = seen.get((switch.name, number))
            rates[switch.name, number] = (
                nothing
                if port is None
                else [
                    port.sent[k] * NS_BITS / (took_ns * peer.rate_bps)
                    for k, took_ns in enumerate(series.intervals, start=1)
                ]
            )
    return rates


def imbalance(used: Mapping[tuple[str, int], Sequence[float]], topology: Topology) -> list[list[float]]:
    """For each interval that of every switch with several uplinks that carried anything, in no order."""
    groups = [[used[key] for key in ports] for ports in uplinks(topology) if len(ports) > 1]
    return [
        [
            (max(each) - min(each)) / mean(each)
            for each in ([values[k] for values in group] for group in groups)
            if any(each)
        ]
        for k in range(len(next(iter(used.values()), ())))
    ]


def uplinks(topology: Topology) -> Iterator[list[tuple[str, int]]]:
    """The ports of each switch to switches that are no nearer to hosts."""
    far = links_to_hosts(topology)
    for switch in topology.switches:
        yield [
            (switch.name, number)
            for number, peer in topology.ports_of(switch.name).items()
            if peer.kind != HOST and far[peer.name] >= far[switch.name]
        ]


def links_to_hosts(topology: Topology) -> dict[str, int]:
    """How many links each switch is from the nearest switch that has hosts."""
    far = dict.fromkeys(topology.leaves, 0)
    waiting = deque(far)
    while waiting:
        name = waiting.popleft()
        for peer in topology.ports_of(name).values():
            if peer.kind != HOST and peer.name not in far:
                far[peer.name] = far[name] + 1
                waiting.append(peer.name)
    return far


def queue_lengths(series: Series) -> list[int]:
    """At every port and sample but the first, in order of size."""
    return sorted(length for port in series.ports for length in port.queued[1:])


def flow_throughput(
    timelines: Timelines, rows: Sequence[FlowRow], topology: Topology, mtu_bytes: int
) -> tuple[list[int], dict[int, list[float]]]:
    """Payload of watched flows that arrives at the last switch before their destination, in bit/s.

    Retransmissions count, too. A flow's last packet counts for what the flow's size leaves for it.

    Returns:
        the ends of intervals, in ns: those of the samples, or some of one length where there are none; and
        for each flow a rate for each interval, of which there is one less.
    """
    if timelines.paths is None:
        return [], {}
    columns = values_of(timelines.paths)
    last_switch = {row.id: topology.host(row.dst).switch for row in rows}
    sizes = {row.id: row.bytes for row in rows}
    arrivals: dict[int, list[tuple[int, int]]] = {}
    for flow, switch, time_ns, psn in zip(
        *(columns[name] for name in ("flow", "switch", "time_ns", "psn")), strict=True
    ):
        if last_switch[flow] == switch:
            arrivals.setdefault(flow, []).append((time_ns, psn))
    if not arrivals:
        return [], {}
    series = None if timelines.queues is None else series_of(timelines.queues)
    until_ns = 1 + max(time_ns for packets in arrivals.values() for time_ns, _ in packets)
    if series is None:
        times = [until_ns * number // _INTERVALS for number in range(_INTERVALS + 1)]
    else:
        times = list(series.times_ns)
        times[0], times[-1] = 0, max(times[-1], until_ns)
    rates = {}
    for flow, arrived in arrivals.items():
        bits = [0] * len(times)
        packets = -(-sizes[flow] // mtu_bytes)
        first = min(psn for _, psn in arrived)
        for time_ns, psn in arrived:
            payload = min(mtu_bytes, sizes[flow] - (psn - first) * mtu_bytes) if psn - first < packets else 0
            bits[bisect_right(times, time_ns)] += 8 * payload
        rates[flow] = [
            own_bits * NS_PER_S / (end - start)
            for own_bits, start, end in zip(bits[1:], times, times[1:], strict=False)
        ]
    return times, rates


def summary(queues: Table, topology: Topology) -> Sampled | msgspec.UnsetType:
    """What samples say, in few numbers; unset where nothing was sent."""
    series = series_of(queues)
    if series is None:
        return msgspec.UNSET
    took_ns = series.intervals
    rates, used, lengths = throughput(series, topology), utilisation(series, topology), queue_lengths(series)
    uneven = [value for values in imbalance(used, topology) for value in values]
    paused = [stopped for port in series.ports for stopped in port.paused[1:]]
    over_time = [_over_time(values, took_ns) for values in used.values()] or [0.0]
    return Sampled(
        period_ns=took_ns[0],
        intervals=len(took_ns),
        throughput_bps=Rates(_over_time(rates, took_ns), max(rates)),
        utilisation=Used(mean(over_time), max(over_time)),
        queue_bytes=Lengths(mean(lengths), percentile(lengths, 50), percentile(lengths, 99), lengths[-1]),
        paused_share=sum(paused) / len(paused),
        imbalance=Imbalance(mean(uneven), percentile(uneven, 99)) if uneven else msgspec.UNSET,
    )


def _over_time(values: Sequence[float], took_ns: Sequence[int]) -> float:
    return sum(value * took for value, took in zip(values, took_ns, strict=True)) / sum(took_ns)
