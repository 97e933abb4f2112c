# SPDX-License-Identifier: Apache-2.0
"""summary.json of one run: aggregated from its rows and its switches' counters, and from nothing else.

A key is absent where the thing was not observed: BMv2's traffic manager does not say what it dropped, real
time has no trace hash, a run in which no flow finished has no completion times.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from tailrace.hosts.measured import GapSummary
from tailrace.p4rt.counters import MOST_RECIRCULATIONS, RECIRCULATIONS
from tailrace.results.fair import Fair
from tailrace.results.queues import Queues
from tailrace.results.rows import FlowRow
from tailrace.results.sampled import Sampled
from tailrace.results.statistics import mean, percentile
from tailrace.sim.outcome import DataSeen

T = TypeVar("T")

FLOWLETS = "flowlets_"
FLOWLETS_AT_LEAVES = "flowlets_at_leaves"
"""What the names of counters of flowlets begin with."""


class Completion(msgspec.Struct, frozen=True):
    """Flow completion times of the finished flows, in ns."""

    mean: float
    p50: int
    p99: int
    max: int


class Slowdown(msgspec.Struct, frozen=True):
    """Completion time over the ideal one (tailrace/sim/ideal.py), of the finished flows."""

    mean: float
    p50: float
    p99: float


class Packets(msgspec.Struct, frozen=True):
    """Data packets. `sent` counts retransmissions, `delivered` what reached a receiving NIC, in any order,
    and `first_delivered` the first transmissions among that.

    `dropped` counts frames of every kind that switches dropped or faults took: `dropped_data` whole data
    packets, `dropped_trimmed` those whose payload a full queue had cut off before, `dropped_control` all
    others (ACKs, pauses). `trimmed` counts data packets whose payload was cut off, wherever they ended,
    `under_way` whole ones on wires and in switches when the run ended. So what is sent is somewhere:

        sent = delivered + trimmed + dropped_data + under_way

    `out_of_order` counts first transmissions that arrived with another PSN than expected, losses aside
    (tailrace/hosts/nic/order.py), and its share is of `first_delivered`. `out_of_order_raw` counts all
    arrivals with another PSN than the transport expected, of `delivered`: what Flowcut §III-C2 and Spritz
    Fig. 6 define, where go-back-N makes every packet behind a late one count, and every duplicate.
    `ood_p99` is over flows: each flow's largest out-of-order degree, in packets.
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
    """RLB's recirculations: all of them, for each data packet delivered, and of the packet with the most."""

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
"""Counts changes of what the numbers of a summary mean; those of another format are not read."""

OF_THE_RUN_ITSELF = frozenset(
    {"wall_s", "traffic_s", "cpu_s", "memory_bytes", "machine", "packet_hops_per_s", "ranks", "by_rank"}
)
"""Keys of a summary that may differ when the same specs run again."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `format` is FORMAT, and `option_string` has the options by which `tailrace run` repeats it.
    `overload_reasons`, `faults` and `time_scale` tell how to read the rest. `queues` says what bounded the
    queues of switches (queues.py).

    `task` is the key of the specs that it was made from (tailrace/study/task.py), where it
    belongs to a sweep. `path_changes` (in the order of sending), `drains`, `drained_ns` and `timeouts` (of
    retransmission) are sums over the flows, as their receivers and senders saw them. `nics` says whether
    NICs ran `compiled` or `interpreted`, which changes nothing but `wall_s`. `not_applied` says what the
    target did not apply of what was asked, or applied in another way. `flows`, `completed` and all times
    leave out flows of the background; `classes` has them, too. `traffic_s` is that part of `wall_s`, in
    seconds of real time, in which packets went; the rest is set-up and reading results. In virtual time
    `cpu_s` is what the process took of a processor, `memory_bytes` the most that it held, and `machine`
    where that was. `ranks` are the processes that ran the network, where there were several, and `by_rank`
    is what each of them did in the meantime: `cpu_s`, `waited_s` for others, `meetings`, and `frames` and
    `bytes` handed across. `sampled` is what samples of ports tell (tailrace/results/sampled.py);
    `fair` is what the same flows need under fluid max-min fairness (fair.py there). `metrics` are those from
    outside (metrics.py), `plugins` all that was loaded from there, with its SHA-256 or version. `deadlock` is
    there where the run was ended because switches paused each other in a circle: the queues, each of which
    waits for the next one, and the last for the first.
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
    task: str | UnsetType = UNSET


def completion(rows: Sequence[FlowRow]) -> Completion | UnsetType:
    """Completion times of the finished flows; unset where none finished."""
    times = [row.fct_ns for row in rows if row.fct_ns is not None]
    if not times:
        return UNSET
    return Completion(mean(times), percentile(times, 50), percentile(times, 99), max(times))


def slowdown(rows: Sequence[FlowRow]) -> Slowdown | UnsetType:
    """Slow-downs of the finished flows; unset where none finished."""
    factors = [row.slowdown for row in rows if row.slowdown is not None]
    if not factors:
        return UNSET
    return Slowdown(mean(factors), percentile(factors, 50), percentile(factors, 99))


def classes(rows: Sequence[FlowRow]) -> dict[str, Class] | UnsetType:
    """What became of each class; unset where no flow is of any."""
    by_class = {}
    for name in dict.fromkeys(row.flow_class for row in rows if row.flow_class):
        of_class = [row for row in rows if row.flow_class == name]
        done = sum(row.end_ns is not None for row in of_class)
        again = sum(row.retransmitted for row in of_class)
        by_class[name] = Class(len(of_class), done, completion(of_class), again)
    return by_class or UNSET


def column_sums(rows: Sequence[FlowRow], *columns: str) -> dict[str, int]:
    """The sum of each of some columns over the flows."""
    return {name: sum(getattr(row, name) for row in rows) for name in columns}


def packets(
    rows: Sequence[FlowRow],
    *,
    dropped: int | None = None,
    data: DataSeen | None = None,
    trimmed: int | None = None,
) -> Packets:
    """Sums over the rows, and what switches and the network counted; None is what nobody counted."""
    delivered, firsts = sum(row.received for row in rows), sum(row.first_received for row in rows)
    out_of_order, raw = sum(row.out_of_order for row in rows), sum(row.out_of_order_raw for row in rows)
    control = None if dropped is None or data is None else dropped - data.dropped - data.trimmed
    return Packets(
        sent=sum(row.packets for row in rows),
        delivered=delivered,
        first_delivered=firsts,
        retransmitted=sum(row.retransmitted for row in rows),
        dropped=known(dropped),
        dropped_data=UNSET if data is None else data.dropped,
        dropped_trimmed=UNSET if data is None else data.trimmed,
        dropped_control=known(control),
        trimmed=known(trimmed),
        under_way=UNSET if data is None else data.under_way,
        out_of_order=out_of_order,
        out_of_order_share=out_of_order / firsts if firsts else UNSET,
        out_of_order_raw=raw,
        out_of_order_raw_share=raw / delivered if delivered else UNSET,
        ood_p99=percentile([row.ood_max for row in rows], 99) if rows else UNSET,
    )


def known(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


def counters(
    switches: Mapping[str, Mapping[str, int]], prefixes: Sequence[str]
) -> dict[str, int] | UnsetType:
    """Sums over all switches of the counters whose names begin so; unset where no switch has any.

    Of what a packet does most often that of the switch where it is most.
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
    """Flowlets that switches began; unset where no switch's program has any.

    Each switch has its own; `flowlets_at_leaves` are those of the switches that hosts are at (HF2T §4.2).
    """
    sums = counters(switches, (FLOWLETS,))
    at_leaves = counters({name: switches[name] for name in leaves if name in switches}, (FLOWLETS,))
    if isinstance(sums, UnsetType) or isinstance(at_leaves, UnsetType):
        return sums
    return sums | {FLOWLETS_AT_LEAVES: at_leaves["flowlets_created"]}


def recirculations(switches: Mapping[str, Mapping[str, int]], delivered: int) -> Recirculations | UnsetType:
    """How often packets went round; unset where no switch's program lets them."""
    sums = counters(switches, (RECIRCULATIONS,))
    if isinstance(sums, UnsetType) or not delivered:
        return UNSET
    total = sums[RECIRCULATIONS]
    return Recirculations(total, total / delivered, sums[MOST_RECIRCULATIONS])


def installed_version() -> str | None:
    """The version of the installed package; None where it runs from a folder that is not installed."""
    try:
        return version("tailrace")
    except PackageNotFoundError:
        return None
