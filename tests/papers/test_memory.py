# SPDX-License-Identifier: Apache-2.0
"""The memory model of Flowcut §III-A against numbers worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.p4rt.programs import load
from tailrace.papers.measure.memory import (
    COSTS,
    MTU_BYTES,
    active_flows,
    memory_bytes,
    tailrace_cost,
)

GBPS = 10**9
US_NS = 1000


def test_table_3() -> None:
    """20 bytes a packet; 11 and 10 bytes a flow."""
    assert [(cost.packet_bytes, cost.flow_bytes) for cost in COSTS.values()] == [
        (0, 2),
        (0, 5),
        (20, 11),
        (20, 10),
        (20, 10),
    ]


@pytest.mark.parametrize(
    ("algorithm", "hosts", "rate", "rtt_us", "exact"),
    [
        # 200 Gb/s x 50 us = 1.25 MB in flight = 610.35 packets of 2 KiB
        ("full", 1024, 200, 50, 1024 * Fraction(1_250_000, 2048) * 11),
        ("ingress", 65536, 800, 5, 64 * Fraction(500_000, 2048) * 10),
        ("nic", 65536, 800, 5, Fraction(500_000, 2048) * 10),
        ("flowlet", 1024, 200, 5, 1024 * 10_000 * 5),
        ("flowcell", 1024, 200, 5, 1024 * 10_000 * 2),
    ],
)
def test_memory(algorithm: str, hosts: int, rate: int, rtt_us: int, exact: Fraction) -> None:
    """Figures 4 and 5, exactly."""
    assert memory_bytes(algorithm, hosts, 10_000, rate * GBPS, rtt_us * US_NS) == exact


def test_derived_numbers() -> None:
    """Those of the paper that follow, and those that do not: 6.6 MiB; 153 and 2.4 KiB."""
    assert round(memory_bytes("full", 1024, 10_000, 200 * GBPS, 50 * US_NS) / 2**20, 1) == Fraction("6.6")
    assert round(memory_bytes("ingress", 65536, 10_000, 800 * GBPS, 5 * US_NS) / 2**10) == 153
    assert round(memory_bytes("nic", 65536, 10_000, 800 * GBPS, 5 * US_NS) / 2**10, 1) == Fraction("2.4")


@given(st.integers(1, 10**5), st.integers(1, 1600), st.integers(1, 100))
def test_equation_1(flows: int, rate: int, rtt_us: int) -> None:
    """Never more flows than there are, nor than packets in flight; more flows never need less."""
    active = active_flows(flows, rate * GBPS, rtt_us * US_NS)
    in_flight = Fraction(rate * GBPS * rtt_us * US_NS, 8 * GBPS * MTU_BYTES)
    assert active == min(flows, in_flight)
    assert active_flows(flows + 1, rate * GBPS, rtt_us * US_NS) >= active


def test_our_own_packets() -> None:
    """A stamp more on the way there and back costs twice its bytes."""
    first, second, third = (tailrace_cost(stamps).packet_bytes for stamps in (1, 2, 3))
    assert second - first == third - second > 0
    assert first > COSTS["ingress"].packet_bytes


def test_our_own_state() -> None:
    """Registers as P4Info has them: nothing that a switch of ECMP keeps, too, and an entry with its 5-tuple."""
    cost = tailrace_cost(1)
    entries = load("flowcut").register_size("flow_key")
    key_bytes = 13
    assert cost.flow_bytes is not None and cost.state_bytes is not None
    paper = COSTS["full"].flow_bytes
    assert paper is not None and cost.flow_bytes > paper + key_bytes
    assert cost.state_bytes > entries * cost.flow_bytes
    assert "flow_key" not in load("ecmp").register_bits()
