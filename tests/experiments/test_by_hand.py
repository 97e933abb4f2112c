# SPDX-License-Identifier: Apache-2.0
"""Metrics of runs that are small enough to follow with a pencil."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from tailrace.results.result import Result
from tailrace.results.sampled import (
    flow_throughput,
    imbalance,
    queue_lengths,
    series_of,
    throughput,
    utilisation,
)
from tailrace.tables.arrow import values_of
from tailrace.topology import parse_topology
from tests.experiments.virtual import result_of

# a packet has 1024 bytes of payload and 58 of headers, and the first of a flow 16 more: at 1 Gb/s so many ns
FIRST_NS, NEXT_NS = 8 * (1024 + 58 + 16), 8 * (1024 + 58)
LINK_NS = 1000

STAR = {
    "hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {"ip": "10.0.2.2/24"}, "h3": {"ip": "10.0.3.3/24"}},
    "switches": {"s1": {}},
    "links": [["h1", "s1-p1"], ["h2", "s1-p2"], ["h3", "s1-p3"]],
}
TWO_PATHS = {
    "hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {"ip": "10.0.2.2/24"}},
    "switches": {"s1": {}, "s2": {}, "fast": {}, "slow": {}},
    "links": [
        ["h1", "s1-p1"],
        ["h2", "s2-p1"],
        ["s1-p2", "fast-p1"],
        ["s1-p3", "slow-p1", "25us"],
        ["s2-p2", "fast-p2"],
        ["s2-p3", "slow-p2"],
    ],
}


def measure(folder: Path, network: dict[str, object], flows: list[str], **values: object) -> Result:
    (folder / "network.json").write_text(json.dumps(network))
    (folder / "flows.csv").write_text("\n".join(["src,dst,bytes,start", *flows, ""]))
    words = {
        "scheme": "ecmp",
        "topology": f"{folder / 'network.json'}:rate=1Gbps,delay=1us",
        "workload": str(folder / "flows.csv"),
        "target": "virtual",
        "window": "64KiB",
        "transport": "sr",
    }
    return result_of(words | values)


def test_two_flows_and_one_link(tmp_path: Path) -> None:
    """h1 and h2 send four packets each to h3, from 0 on; the switch sends one of each in turn.

    The first two have arrived at 9784 ns, and after that there is always something to send to h3: the first
    two take 8784 ns each, the others 8656. So packets begin at 9784, 18568, 27352, 36008, ... 70632.
    """
    flows = ["h1,h3,4KiB,0", "h2,h3,4KiB,0"]
    result = measure(tmp_path, STAR, flows, sample="10us")
    summary = result.summary
    begins = [FIRST_NS + LINK_NS + number * FIRST_NS for number in range(3)]
    begins += [begins[2] + number * NEXT_NS for number in range(1, 6)]
    assert begins == [9784, 18568, 27352, 36008, 44664, 53320, 61976, 70632]
    ends = [begins[7] + LINK_NS, begins[7] + NEXT_NS + LINK_NS]
    assert [row.fct_ns for row in result.rows] == ends == [71632, 80288]
    # alone: four packets over a link, and the last one over another
    ideal_ns = FIRST_NS + 4 * NEXT_NS + 2 * LINK_NS
    assert [row.ideal_fct_ns for row in result.rows] == [ideal_ns] * 2 == [45408] * 2
    assert summary.slowdown
    assert summary.slowdown.mean == pytest.approx((71632 + 80288) / 2 / 45408)
    assert summary.slowdown.p99 == pytest.approx(80288 / 45408)
    # shared fairly, both end when all is sent
    assert summary.fair
    whole_ns = FIRST_NS + 3 * NEXT_NS
    assert summary.fair.fct_mean_ns == pytest.approx(2 * whole_ns + 2 * LINK_NS)
    packets = summary.packets
    assert (packets.sent, packets.delivered, packets.first_delivered, packets.retransmitted) == (8, 8, 8, 0)
    assert (packets.out_of_order, packets.out_of_order_raw) == (0, 0)
    assert (summary.path_changes, summary.timeouts) == (0, 0)
    assert (packets.dropped, packets.dropped_data, packets.dropped_control, packets.under_way) == (0,) * 4
    # one packet begins in each interval; those that wait at its end:
    waiting = [1098, 2 * 1082, 3 * 1082, 4 * 1082, 3 * 1082, 2 * 1082, 1082, 0]
    assert result.timelines.queues is not None
    series = series_of(result.timelines.queues)
    assert series is not None
    assert list(series.times_ns) == list(range(0, 90_000, 10_000)), "all is over before the next sample"
    ports = {port.number: port for port in series.ports}
    assert list(ports[3].queued) == [0, *waiting]
    assert list(ports[3].sent) == [0, 1098, 1098, *[1082] * 6]
    answers = [ports[1].sent[k] + ports[2].sent[k] for k in range(9)]
    topology = parse_topology(summary.topology)
    rates = throughput(series, topology)
    assert rates == [8 * (ports[3].sent[k] + answers[k]) * 1e9 / 10_000 for k in range(1, 9)]
    assert queue_lengths(series) == sorted([*waiting, *[0] * 16]), "nothing waits at the ports of h1 and h2"
    seen = summary.sampled
    assert seen
    assert (seen.period_ns, seen.intervals, seen.paused_share) == (10_000, 8, 0.0)
    assert seen.throughput_bps.mean == pytest.approx(sum(rates) / 8)
    assert seen.queue_bytes.mean == pytest.approx(sum(waiting) / 24)
    assert seen.queue_bytes.p50 == 0
    assert (seen.queue_bytes.p99, seen.queue_bytes.max) == (4328, 4328)


def test_cells_over_a_fast_and_a_slow_path(tmp_path: Path) -> None:
    """Presto sends packets in turn by one path and by another, which is 24 us longer; they are 8.7 us apart.

    With the fast path first they arrive as 0 2 1 4 3 6 5 7: of these 2, 4 and 6 are not the ones expected, but
    the next ones. With the slow path first as 1 0 3 2 5 4 7 6: then it is four. Either way the path changes with
    each of them, though what arrives changes it five times, or seven.
    """
    result = measure(tmp_path, TWO_PATHS, ["h1,h2,8KiB,0"], scheme="presto:cell=1KiB", follow=[1])
    assert result.timelines.paths is not None
    columns = values_of(result.timelines.paths)
    arrived = [
        (time_ns, psn, peer)
        for time_ns, psn, switch, peer in zip(
            *(columns[name] for name in ("time_ns", "psn", "switch", "peer")), strict=True
        )
        if switch == "s2"
    ]
    first = min(psn for _, psn, _ in arrived)
    order = [psn - first for _, psn, _ in sorted(arrived)]
    packets, [row] = result.summary.packets, result.rows
    expected = {
        (0, 2, 1, 4, 3, 6, 5, 7): (3, 5),
        (1, 0, 3, 2, 5, 4, 7, 6): (4, 7),
    }
    out_of_order, seen_changes = expected[tuple(order)]
    assert (row.out_of_order, row.ood_max, row.overtaken) == (out_of_order, 1, out_of_order)
    peers = [peer for _, _, peer in sorted(arrived)]
    assert sum(previous != other for previous, other in itertools.pairwise(peers)) == seen_changes
    assert packets.out_of_order_share == packets.out_of_order_raw_share == out_of_order / 8
    assert result.summary.path_changes == 7
    # all that was sent, each byte once
    mtu = result.summary.mtu_bytes
    assert isinstance(mtu, int)
    times, rates = flow_throughput(
        result.timelines, result.rows, parse_topology(result.summary.topology), mtu
    )
    took = [end - start for start, end in itertools.pairwise(times)]
    assert sum(rate * ns for rate, ns in zip(rates[1], took, strict=True)) == pytest.approx(8 * 8192 * 1e9)


def test_one_flow_and_two_uplinks(tmp_path: Path) -> None:
    """All data takes one uplink, and all answers another: of two uplinks max - min is twice the mean."""
    result = measure(tmp_path, TWO_PATHS, ["h1,h2,16KiB,0"], sample="20us")
    assert result.timelines.queues is not None
    series, topology = series_of(result.timelines.queues), parse_topology(result.summary.topology)
    assert series is not None
    used = utilisation(series, topology)
    assert {value for values in imbalance(used, topology) for value in values} == {2.0}
    seen = result.summary.sampled
    assert seen
    assert seen.imbalance
    assert (seen.imbalance.mean, seen.imbalance.p99) == (2.0, 2.0)
    # 16 packets and a RETH, over the time from the first to the last sample of the series
    data = max(sum(port.sent) for port in series.ports if port.switch == "s1" and port.number != 1)
    assert data == 16 * 1082 + 16
    share = data * 8 / (series.times_ns[-1] - series.times_ns[0])
    assert seen.utilisation.max == pytest.approx(share), "bits and ns: 1 Gb/s is one a ns"
    assert seen.utilisation.mean < seen.utilisation.max
