# SPDX-License-Identifier: Apache-2.0
"""summary.json of one run, and the parts of it that follow from the run's rows and its switches' counters.

A key is absent if its value was not observed: BMv2's traffic manager does not report what it dropped, runs in
real time have no trace hash (a hash over all frames delivered and their times), a run in which no flow
finished has no completion times.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from tailrace.hosts.measured import GapSummary
from tailrace.p4rt.counters import MOST_RECIRCULATIONS, RECIRCULATIONS
from tailrace.results.fair import Fair
from tailrace.results.frames import HostCount, PingSummary
from tailrace.results.queues import Queues
from tailrace.results.rows import FlowRow
from tailrace.results.sampled import Sampled
from tailrace.results.statistics import mean, percentile
from tailrace.results.steady import Steady
from tailrace.sim.outcome import DataSeen

T = TypeVar("T")

FLOWLETS = "flowlets_"
FLOWLETS_AT_LEAVES = "flowlets_at_leaves"
"""The prefix of counters of flowlets, and the summary's key for flowlets that switches with hosts started."""


class Completion(msgspec.Struct, frozen=True):
    """Flow completion times of the finished flows, in ns."""

    mean: float
    p50: int
    p99: int
    max: int


class Slowdown(msgspec.Struct, frozen=True):
    """Completion time divided by the ideal one (tailrace/sim/ideal.py), of the finished flows."""

    mean: float
    p50: float
    p99: float


class Packets(msgspec.Struct, frozen=True):
    """Data packets. `sent` includes retransmissions, `delivered` counts those that reached the receiving NIC,
    in any order, and `first_delivered` the first transmissions among these.

    `dropped` counts frames of all kinds that switches or faults dropped: `dropped_data` full data packets,
    `dropped_trimmed` data packets that had been trimmed (a full queue removed the payload), `dropped_control`
    all others (ACKs, pauses). `trimmed` counts data packets that were trimmed, whether they arrived or not,
    `under_way` full data packets on links and in switches when the run ended. So every packet is counted:

        sent = delivered + trimmed + dropped_data + under_way

    `out_of_order` counts first transmissions that arrived with another PSN than expected, not counting gaps
    that losses left (tailrace/hosts/nic/order.py); `out_of_order_share` is its ratio to `first_delivered`.
    `out_of_order_raw` counts all arrivals with another PSN than the transport expected;
    `out_of_order_raw_share` is its ratio to `delivered`, as in Flowcut §III-C2 and Spritz Fig. 6: with
    go-back-N every packet after a late one counts, and so does every duplicate. `ood_p99` is the 99th
    percentile of `ood_max` over the flows: a flow's largest out-of-order degree, the distance between the PSN
    that arrived and the expected PSN, in packets.
    """

    sent: int
    delivered: int | UnsetType = UNSET
    first_delivered: int | UnsetType = UNSET
    retransmitted: int | UnsetType = UNSET
    dropped: int | UnsetType = UNSET
    dropped_data: int | UnsetType = UNSET
    dropped_trimmed: int | UnsetType = UNSET
    dropped_control: int | UnsetType = UNSET
    trimmed: int | UnsetType = UNSET
    under_way: int | UnsetType = UNSET
    out_of_order: int | UnsetType = UNSET
    out_of_order_share: float | UnsetType = UNSET
    out_of_order_raw: int | UnsetType = UNSET
    out_of_order_raw_share: float | UnsetType = UNSET
    ood_p99: int | UnsetType = UNSET


class Recirculations(msgspec.Struct, frozen=True):
    """RLB's recirculations of waiting packets: total, mean per delivered data packet, most of any packet."""

    total: int
    mean: float
    most: int


class Class(msgspec.Struct, frozen=True):
    """The flows of one class (classes.py)."""

    flows: int
    completed: int
    fct_ns: Completion | UnsetType = UNSET
    retransmitted: int = 0


FORMAT = 4
"""Version of the meaning of a summary's numbers; summaries of another format are not read."""

OF_THE_RUN_ITSELF = frozenset(
    {"wall_s", "traffic_s", "cpu_s", "memory_bytes", "machine", "packet_hops_per_s", "ranks", "by_rank"}
)
"""Keys of a summary that may differ when the same specs are run again."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `format` is the version of the summary's format, and `option_string` (in JSON `words`) has the
    options of `tailrace run` that repeat the run. `variant` is the scheme's. `time_scale` is the factor by
    which the network is slower than stated. `overload_reasons`, `faults` and `time_scale` must be considered
    when reading the other keys. `queues` has the bounds of switches' queues (queues.py).

    `task` is a hash of everything that determines the result (tailrace/study/task.py). `path_changes`
    (between packets sent one after the other), `drains` (pauses of a flow for a change of path), `drained_ns`
    (their duration) and `timeouts` (of retransmission) are sums over the flows, as NICs counted them. `nics`:
    whether the NICs' code was `compiled` or `interpreted`; this affects `wall_s` only. `not_applied` lists
    settings that the target did not apply, or applied in another way. `flows`, `completed` and all times
    exclude background flows, the class of flows that only load the network; `classes` has the results of each
    class, `background` included. `traffic_s` is the part of `wall_s`, in seconds of real time, in which
    packets were sent; the rest is set-up and reading results. In virtual time `cpu_s` is the CPU time of the
    process, `memory_bytes` its peak of resident memory, and `machine` the machine. `ranks` is the number of
    processes that simulated the network, if there were several, and `by_rank` has for each of them `cpu_s`,
    `waited_s` (time spent waiting for other processes), `meetings` (synchronisations), and the `frames` and
    `bytes` passed to other processes. `sampled` summarises samples of ports (tailrace/results/sampled.py);
    `steady` says whether the load of a measuring interval was steady (tailrace/results/steady.py); `fair` has
    the times of the same flows under fluid max-min fairness (tailrace/results/fair.py). `metrics` has the
    metrics of plug-ins (metrics.py), `plugins` all loaded plug-ins, each with its SHA-256 or version.
    With a user's program (scheme `program`) `counters` has the sum of each counter by switch, and its drops
    by reason. `pings` and `hosts` have what hosts sent and received besides flows
    (tailrace/results/frames.py).
    `deadlock` is present if switches paused each other in a cycle, which ends the run. It lists the queues:
    each waits for the next, and the last for the first.
    `changes` lists changes by a user's commands or P4Runtime client during the run, which `option_string`
    does not repeat.
    """

    format: int = FORMAT
    scheme: str
    variant: str | UnsetType = UNSET
    topology: str
    workload: str
    target: str
    seed: int
    faults: tuple[str, ...] = ()
    option_string: str = msgspec.field(default="", name="words")
    time_scale: float
    transport: str | UnsetType = UNSET
    window_bytes: int | UnsetType = UNSET
    queues: Queues | UnsetType = UNSET
    mtu_bytes: int | UnsetType = UNSET
    version: str | UnsetType = UNSET
    p4_sha256: str | UnsetType = UNSET
    flows: int
    completed: int
    fct_ns: Completion | UnsetType = UNSET
    slowdown: Slowdown | UnsetType = UNSET
    classes: dict[str, Class] | UnsetType = UNSET
    packets: Packets
    path_changes: int | UnsetType = UNSET
    drains: int | UnsetType = UNSET
    drained_ns: int | UnsetType = UNSET
    timeouts: int | UnsetType = UNSET
    sampled: Sampled | UnsetType = UNSET
    steady: Steady | UnsetType = UNSET
    fair: Fair | UnsetType = UNSET
    flowcut: dict[str, int] | UnsetType = UNSET
    flowlets: dict[str, int] | UnsetType = UNSET
    gaps: GapSummary | UnsetType = UNSET
    spritz: dict[str, int] | UnsetType = UNSET
    hermes: dict[str, int] | UnsetType = UNSET
    pfc: dict[str, int | float] | UnsetType = UNSET
    deadlock: tuple[str, ...] | UnsetType = UNSET
    hf2t: dict[str, int] | UnsetType = UNSET
    rlb: dict[str, int] | UnsetType = UNSET
    counters: dict[str, dict[str, int]] | UnsetType = UNSET
    recirculations: Recirculations | UnsetType = UNSET
    dcqcn: dict[str, int] | UnsetType = UNSET
    pings: PingSummary | UnsetType = UNSET
    hosts: dict[str, HostCount] | UnsetType = UNSET
    metrics: dict[str, float] | UnsetType = UNSET
    plugins: dict[str, str] | UnsetType = UNSET
    virtual_ns: int | UnsetType = UNSET
    nics: str | UnsetType = UNSET
    wall_s: float
    traffic_s: float | UnsetType = UNSET
    cpu_s: float | UnsetType = UNSET
    memory_bytes: int | UnsetType = UNSET
    machine: str | UnsetType = UNSET
    ranks: int | UnsetType = UNSET
    by_rank: tuple[dict[str, int | float], ...] | UnsetType = UNSET
    packet_hops: int | UnsetType = UNSET
    packet_hops_per_s: float | UnsetType = UNSET
    trace_sha256: str | UnsetType = UNSET
    overloaded: bool
    overload_reasons: tuple[str, ...] = ()
    not_applied: tuple[str, ...] | UnsetType = UNSET
    changes: tuple[str, ...] | UnsetType = UNSET
    task: str | UnsetType = UNSET


def completion(rows: Sequence[FlowRow]) -> Completion | UnsetType:
    """Completion times of the finished flows; unset if no flow finished."""
    times = [row.fct_ns for row in rows if row.fct_ns is not None]
    if not times:
        return UNSET
    return Completion(mean(times), percentile(times, 50), percentile(times, 99), max(times))


def slowdown(rows: Sequence[FlowRow]) -> Slowdown | UnsetType:
    """Slowdowns of the finished flows; unset if no flow finished."""
    factors = [row.slowdown for row in rows if row.slowdown is not None]
    if not factors:
        return UNSET
    return Slowdown(mean(factors), percentile(factors, 50), percentile(factors, 99))


def classes(rows: Sequence[FlowRow]) -> dict[str, Class] | UnsetType:
    """The results of each class of flows; unset if no flow has a class."""
    by_class = {}
    for name in dict.fromkeys(row.flow_class for row in rows if row.flow_class):
        of_class = [row for row in rows if row.flow_class == name]
        done = sum(row.end_ns is not None for row in of_class)
        retransmitted = sum(row.retransmitted for row in of_class)
        by_class[name] = Class(len(of_class), done, completion(of_class), retransmitted)
    return by_class or UNSET


def column_sums(rows: Sequence[FlowRow], *columns: str) -> dict[str, int]:
    """The sum over the flows of each of these columns, by column."""
    return {name: sum(getattr(row, name) for row in rows) for name in columns}


def packets(
    rows: Sequence[FlowRow],
    *,
    dropped: int | None = None,
    data: DataSeen | None = None,
    trimmed: int | None = None,
) -> Packets:
    """Counts of packets: sums over the rows, and counts by switches and the network (None: not counted)."""
    delivered, first_delivered = sum(row.received for row in rows), sum(row.first_received for row in rows)
    out_of_order, raw = sum(row.out_of_order for row in rows), sum(row.out_of_order_raw for row in rows)
    control = None if dropped is None or data is None else dropped - data.dropped - data.trimmed
    return Packets(
        sent=sum(row.packets for row in rows),
        delivered=delivered,
        first_delivered=first_delivered,
        retransmitted=sum(row.retransmitted for row in rows),
        dropped=known(dropped),
        dropped_data=UNSET if data is None else data.dropped,
        dropped_trimmed=UNSET if data is None else data.trimmed,
        dropped_control=known(control),
        trimmed=known(trimmed),
        under_way=UNSET if data is None else data.under_way,
        out_of_order=out_of_order,
        out_of_order_share=out_of_order / first_delivered if first_delivered else UNSET,
        out_of_order_raw=raw,
        out_of_order_raw_share=raw / delivered if delivered else UNSET,
        ood_p99=percentile([row.ood_max for row in rows], 99) if rows else UNSET,
    )


def known(value: T | None) -> T | UnsetType:
    """The value; for None UNSET, which omits the key from the summary."""
    return UNSET if value is None else value


def counters(
    switches: Mapping[str, Mapping[str, int]], prefixes: Sequence[str]
) -> dict[str, int] | UnsetType:
    """Sums over all switches of the counters with these prefixes; unset if no switch has such a counter.

    MOST_RECIRCULATIONS, the largest number of any packet, is the maximum over the switches instead.
    """
    sums: dict[str, int] = {}
    for values in switches.values():
        for name, value in values.items():
            if name.startswith(tuple(prefixes)):
                before = sums.get(name, 0)
                sums[name] = max(before, value) if name == MOST_RECIRCULATIONS else before + value
    return dict(sorted(sums.items())) if sums else UNSET


def flowlets(
    switches: Mapping[str, Mapping[str, int]], leaves: Collection[str]
) -> dict[str, int] | UnsetType:
    """Flowlets that switches started; unset if the switches' program has no flowlets.

    Each switch detects flowlets by itself; `flowlets_at_leaves` counts those at switches with hosts (as the
    paper on HF2T does, §4.2).
    """
    sums = counters(switches, (FLOWLETS,))
    at_leaves = counters({name: switches[name] for name in leaves if name in switches}, (FLOWLETS,))
    if isinstance(sums, UnsetType) or isinstance(at_leaves, UnsetType):
        return sums
    return sums | {FLOWLETS_AT_LEAVES: at_leaves["flowlets_created"]}


def recirculations(switches: Mapping[str, Mapping[str, int]], delivered: int) -> Recirculations | UnsetType:
    """Counts of recirculations; unset if the switches' program does not count any."""
    sums = counters(switches, (RECIRCULATIONS,))
    if isinstance(sums, UnsetType) or not delivered:
        return UNSET
    total = sums[RECIRCULATIONS]
    return Recirculations(total, total / delivered, sums[MOST_RECIRCULATIONS])
