# SPDX-License-Identifier: Apache-2.0
"""Flows that come after other flows."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.dependencies import check_dependencies
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.flows.observation import SenderObservation
from tailrace.hosts.options.nic import NicConfig
from tests.codec.frames import Data
from tests.hosts.network import VirtualNetwork, flow, make_nic


def after(spec: FlowSpec, *numbers: int) -> FlowSpec:
    return replace(spec, after=numbers)


def run(flows: Sequence[FlowSpec], hosts: int = 3, loss: float = 0.0) -> VirtualNetwork:
    config = NicConfig(mtu_bytes=500, rto_ns=100_000, rto_backoff=1)
    network = VirtualNetwork([make_nic(number, config) for number in range(1, hosts + 1)])
    rng = random.Random(4)
    network.fate = lambda now_ns, frame, parsed: None if rng.random() < loss else 1000
    network.add(*flows)
    network.run()
    return network


def first_sent(network: VirtualNetwork) -> dict[int, int]:
    times: dict[int, int] = {}
    for arrival in network.sent:
        if isinstance(arrival.parsed, Data):
            times.setdefault(arrival.parsed.qpn - 100, arrival.now_ns)
    return times


def test_a_flow_starts_when_the_flow_before_it_is_acknowledged():
    """Both have the same source; the record has the real start."""
    network = run([flow(1, 5_000), after(flow(2, 5_000, dst=3), 1)])
    acknowledged = max(
        arrival.now_ns
        for arrival in network.arrivals
        if arrival.nic is network.nics[0] and getattr(arrival.parsed, "qpn", 0) == 101
    )
    assert acknowledged == first_sent(network)[2]
    assert [0, acknowledged] == [record.start_ns for record in network.records()]


def test_a_flow_starts_when_the_flow_before_it_has_arrived():
    """It is received where the other one is sent; so a chain goes round a ring."""
    flows = [flow(1, 5_000), after(flow(2, 5_000, src=2, dst=3), 1), after(flow(3, 5_000, src=3, dst=1), 2)]
    network = run(flows)
    first, second, third = network.records()
    assert (first.end_ns, second.end_ns) == (second.start_ns, third.start_ns)


def test_the_start_time_is_the_earliest_all_the_same():
    """A flow whose turn comes before its time waits for its time."""
    network = run([flow(1, 100), after(flow(2, 100, start_ns=900_000), 1)])
    assert 900_000 == first_sent(network)[2] == network.records()[1].start_ns


def test_a_flow_that_never_started_has_its_own_start_time():
    """And sent nothing."""
    nic = make_nic(1, NicConfig())
    nic.add_flow(after(flow(2, 100, start_ns=70), 1))
    assert nic.next_packet(10**12) is None
    (seen,) = nic.records()
    assert isinstance(seen, SenderObservation)
    assert (70, 0) == (seen.start_ns, seen.packets)


def test_a_flow_made_known_after_its_predecessor_s_end_starts_at_once():
    """Nothing waits for what is over."""
    network = run([flow(1, 100)])
    network.add(after(flow(2, 100), 1, 1))
    network.run()
    assert all(nic.idle for nic in network.nics)


@st.composite
def runs(draw):
    """Flows among four hosts, each after all or some of some earlier ones that have an end at its source."""
    flows: list[FlowSpec] = []
    for number in range(draw(st.integers(1, 25))):
        src, dst = draw(st.permutations([1, 2, 3, 4]))[:2]
        spec = flow(
            number, draw(st.integers(1, 3_000)), src=src, dst=dst, start_ns=draw(st.integers(0, 9_000))
        )
        visible = [earlier.id for earlier in flows if spec.src in (earlier.src, earlier.dst)]
        numbers = draw(st.lists(st.sampled_from(visible), max_size=4)) if visible else []
        count = draw(st.integers(0, len(set(numbers))))
        flows.append(replace(spec, after=tuple(numbers), after_count=count))
    return draw(st.permutations(flows))


@settings(max_examples=60)
@given(runs(), st.sampled_from([0.0, 0.1]))
def test_every_flow_waits_for_its_predecessors_and_all_complete(flows, loss):
    """In whatever order they are made known; what is sent must be acknowledged, what is received have arrived."""
    check_dependencies(flows)
    network = run(flows, hosts=4, loss=loss)
    assert all(nic.idle for nic in network.nics)
    records = {record.id: record for record in network.records()}
    sent = first_sent(network)
    for spec in flows:
        record = records[spec.id]
        assert spec.start_ns <= record.start_ns <= sent[spec.id]
        ends = sorted(records[number].end_ns or 0 for number in set(spec.after))
        assert record.start_ns >= (ends[(spec.after_count or len(ends)) - 1] if ends else 0)
        if not spec.after:
            assert spec.start_ns == record.start_ns


@pytest.mark.parametrize(
    ("flows", "message"),
    [
        ([after(flow(1, 9), 7)], "flow 1: it comes after flow 7, which does not exist"),
        ([flow(1, 9), after(flow(2, 9, src=3, dst=1), 1)], "flow 2: it comes after flow 1, which 10.0.0.3"),
        (
            [
                after(flow(1, 9), 3),
                after(flow(2, 9, src=2, dst=1), 1),
                after(flow(3, 9), 2),
                after(flow(4, 9), 3),
            ],
            "flow 1: it comes after itself, via other flows",
        ),
        (
            [flow(1, 9), *(replace(after(flow(each, 9), 1, 5 - each), after_count=2) for each in (2, 3))],
            "flow 2: it comes after itself, via other flows",
        ),
        ([flow(1, 9), flow(1, 9), after(flow(2, 9), 1)], "flow 1: there are two flows with this id"),
    ],
)
def test_runs_that_cannot_end_are_refused(flows, message):
    """One clear line."""
    with pytest.raises(ConfigError, match=f"^{message}"):
        check_dependencies(flows)


def test_a_cycle_that_a_count_opens():
    """Flows 2 and 3 each wait for the other or flow 1; the first of both that is complete suffices."""
    flows = [flow(1, 9), *(replace(after(flow(each, 9), 1, 5 - each), after_count=1) for each in (2, 3))]
    check_dependencies(flows)
    first, *others = run(flows).records()
    assert all((record.start_ns or 0) > (first.end_ns or 0) for record in others)


def test_a_flow_after_itself_is_refused_at_once():
    """It needs no look at others."""
    with pytest.raises(ConfigError, match="flow 1: it comes after itself"):
        after(flow(1, 9), 1)


def test_runs_without_order_need_no_check():
    """Numbers may even be given twice, as long as nobody refers to them."""
    check_dependencies([flow(1, 9), flow(1, 9)])
