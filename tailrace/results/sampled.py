# SPDX-License-Identifier: Apache-2.0
"""Properties of a network over time, as papers plot them, from samples of its ports (run_files.py):
throughput, utilisation of links and its imbalance, queues, pauses.

Sample k contains b, the bytes that a port of rate r (bit/s) started to send in the t seconds since the
previous sample; the port's *utilisation* in interval k is 8 b / (r t). Since a frame counts when its
transmission starts, the utilisation may exceed 1 by a frame. Rates are those of the topology; a fault that
slows down a link shows as a lower utilisation.

* throughput: rate of all traffic from switches to hosts, including headers and ACKs.
* utilisation: of links between switches, separately for each direction.
* imbalance: (max - min) / mean of the utilisations of one switch's uplinks in one interval (CONGA, SIGCOMM
  2014, §5.2.3), for all intervals in which the uplinks carried traffic. Uplinks lead to switches that are
  not nearer to hosts: from leaves to spines, from edge to aggregation to core; in Dragonflies and Slim Flies
  all links between switches are uplinks.
* queues: the lengths of all ports that ever sent or queued anything, at every sample.
* paused: the share of all samples of these ports in which PFC paused the port.

All metrics cover the intervals from the first to the last in which any port sent.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from arro3.core import Table

from tailrace.results.rows import FlowRow
from tailrace.results.statistics import mean, percentile
from tailrace.sim.timelines import Timelines
from tailrace.spec.constants import NS_BITS, NS_PER_S
from tailrace.tables.arrow import rows_of, values_of
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import links_to_hosts

HOST = "host"
"""The value of Peer.kind for hosts."""

_INTERVALS = 100
"""Number of intervals if there are no samples that define them."""


class Rates(msgspec.Struct, frozen=True):
    """Throughput of the whole network in bit/s, over time."""

    mean: float
    max: float


class Used(msgspec.Struct, frozen=True):
    """Utilisation over time: the mean over all links, and the mean of the most used link."""

    mean: float
    max: float


class Imbalance(msgspec.Struct, frozen=True):
    """Imbalance over all switches with several uplinks and all intervals."""

    mean: float
    p99: float


class Lengths(msgspec.Struct, frozen=True):
    """Lengths of queues in bytes."""

    mean: float
    p50: int
    p99: int
    max: int


class Sampled(msgspec.Struct, frozen=True):
    """A summary of the samples; see above. `imbalance` is absent if no switch has several uplinks."""

    period_ns: int
    intervals: int
    throughput_bps: Rates
    utilisation: Used
    queue_bytes: Lengths
    paused_share: float
    imbalance: Imbalance | msgspec.UnsetType = msgspec.UNSET


class Port(msgspec.Struct, frozen=True):
    """A port of a switch; each sequence has one item per sample."""

    switch: str
    number: int
    queued: Sequence[int]
    sent: Sequence[int]
    paused: Sequence[bool]


class Series(msgspec.Struct, frozen=True):
    """Samples of ports while there was traffic; the first sample is the last one before the traffic.

    `times_ns` and each port have one item per sample.
    """

    times_ns: Sequence[int]
    ports: tuple[Port, ...]

    @property
    def intervals(self) -> list[int]:
        """The length of each interval in ns; the interval that ends at sample k has the index k - 1."""
        return [after - before for before, after in itertools.pairwise(self.times_ns)]


def series_of(queues: Table) -> Series | None:
    """The samples of queues.parquet; None if nothing was sent, or if there is only one sample."""
    columns = values_of(queues)
    rows: dict[tuple[str, int], list[int]] = {}
    for row, key in enumerate(zip(columns["switch"], columns["port"], strict=True)):
        rows.setdefault(key, []).append(row)
    times = sorted(set(columns["time_ns"]))
    sending = {columns["time_ns"][row] for row, sent in enumerate(columns["tx_bytes"]) if sent}
    if len(times) < 2 or not sending:
        return None
    first, last = times.index(min(sending)) - 1, times.index(max(sending))
    chosen = times[max(first, 0) : last + 1]
    if len(chosen) < 2:
        return None
    ports = []
    for (switch, number), rows_of_port in rows.items():
        inside = sorted(
            (row for row in rows_of_port if chosen[0] <= columns["time_ns"][row] <= chosen[-1]),
            key=columns["time_ns"].__getitem__,
        )
        cells = ([columns[name][row] for row in inside] for name in ("queue_bytes", "tx_bytes", "paused"))
        ports.append(Port(switch, number, *cells))
    return Series(chosen, tuple(ports))


def throughput(series: Series, topology: Topology) -> list[float]:
    """The total rate at which switches send to hosts, in bit/s, in each interval."""
    to_hosts = [port for port in series.ports if topology.ports_of(port.switch)[port.number].kind == HOST]
    return [
        # bytes * NS_BITS / ns is a rate in bit/s
        sum(port.sent[k] for port in to_hosts) * NS_BITS / interval_ns
        for k, interval_ns in enumerate(series.intervals, start=1)
    ]


def utilisation(series: Series, topology: Topology) -> dict[tuple[str, int], list[float]]:
    """The utilisation of each port to another switch in each interval, including ports that never sent."""
    values = {}
    sampled = {(port.switch, port.number): port for port in series.ports}
    zeros = [0.0] * len(series.intervals)
    for switch in topology.switches:
        for number, peer in topology.ports_of(switch.name).items():
            if peer.kind == HOST:
                continue
            port = sampled.get((switch.name, number))
            values[switch.name, number] = (
                zeros
                if port is None
                else [
                    port.sent[k] * NS_BITS / (interval_ns * peer.rate_bps)
                    for k, interval_ns in enumerate(series.intervals, start=1)
                ]
            )
    return values


def imbalance(used: Mapping[tuple[str, int], Sequence[float]], topology: Topology) -> list[list[float]]:
    """For each interval the imbalances of all switches with several uplinks in use, unordered."""
    groups = [[used[key] for key in ports] for ports in uplinks(topology) if len(ports) > 1]
    return [
        [
            (max(loads) - min(loads)) / mean(loads)
            for loads in ([values[k] for values in group] for group in groups)
            if any(loads)
        ]
        for k in range(len(next(iter(used.values()), ())))
    ]


def uplinks(topology: Topology) -> Iterator[list[tuple[str, int]]]:
    """The ports of each switch to switches that are not nearer to hosts."""
    distances = links_to_hosts(topology)
    for switch in topology.switches:
        yield [
            (switch.name, number)
            for number, peer in topology.ports_of(switch.name).items()
            if peer.kind != HOST and distances[peer.name] >= distances[switch.name]
        ]


def queue_lengths(series: Series) -> list[int]:
    """The queue lengths of every port at every sample except the first, sorted."""
    return sorted(length for port in series.ports for length in port.queued[1:])


def flow_throughput(
    timelines: Timelines, rows: Sequence[FlowRow], topology: Topology, mtu_bytes: int
) -> tuple[list[int], dict[int, list[float]]]:
    """For each flow in timelines.paths, the rate in bit/s at which its payload arrives at the last switch
    before the destination.

    Retransmissions count, too.

    Returns: the boundaries of intervals in ns (times of samples, or equally spaced if there are none), and
        for each flow the rate in each interval; there is one more boundary than rates.
    """
    last_switch = {row.id: topology.host(row.dst).switch for row in rows}
    sizes = {row.id: row.bytes for row in rows}
    arrivals: dict[int, list[tuple[int, int]]] = {}
    for flow, switch, time_ns, psn in rows_of(timelines.paths, ("flow", "switch", "time_ns", "psn")):
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
        lowest_psn = min(psn for _, psn in arrived)
        for time_ns, psn in arrived:
            # the last packet may be shorter than the others
            index = psn - lowest_psn
            payload = min(mtu_bytes, sizes[flow] - index * mtu_bytes) if index < packets else 0
            bits[bisect_right(times, time_ns)] += 8 * payload
        rates[flow] = [
            interval_bits * NS_PER_S / (end - start)
            for interval_bits, start, end in zip(bits[1:], times, times[1:], strict=False)
        ]
    return times, rates


def summary(queues: Table, topology: Topology) -> Sampled | msgspec.UnsetType:
    """The summary of samples; UNSET if nothing was sent."""
    series = series_of(queues)
    if series is None:
        return msgspec.UNSET
    intervals_ns = series.intervals
    rates, used, lengths = throughput(series, topology), utilisation(series, topology), queue_lengths(series)
    imbalances = [value for values in imbalance(used, topology) for value in values]
    paused = [is_paused for port in series.ports for is_paused in port.paused[1:]]
    link_means = [_time_mean(values, intervals_ns) for values in used.values()] or [0.0]
    return Sampled(
        period_ns=intervals_ns[0],
        intervals=len(intervals_ns),
        throughput_bps=Rates(_time_mean(rates, intervals_ns), max(rates)),
        utilisation=Used(mean(link_means), max(link_means)),
        queue_bytes=Lengths(mean(lengths), percentile(lengths, 50), percentile(lengths, 99), lengths[-1]),
        paused_share=sum(paused) / len(paused),
        imbalance=Imbalance(mean(imbalances), percentile(imbalances, 99)) if imbalances else msgspec.UNSET,
    )


def _time_mean(values: Sequence[float], intervals_ns: Sequence[int]) -> float:
    """The mean of values, weighted by the lengths of their intervals."""
    weighted = sum(value * length for value, length in zip(values, intervals_ns, strict=True))
    return weighted / sum(intervals_ns)
