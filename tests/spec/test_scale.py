# SPDX-License-Identifier: Apache-2.0
"""Scaling: times and rates move together, sizes stay."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.options.nic import FlowcutNicConfig, NicConfig
from tailrace.sim.ideal import Ideal
from tailrace.sim.link_faults import LinkDown, LinkSlow
from tailrace.spec.scale import scaled
from tailrace.topology import parse_topology

FABRIC = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us")


def test_topology() -> None:
    """Rates are divided, delays multiplied, on hosts' links and between switches; the rest stays."""
    slow = scaled(FABRIC, 2500)
    assert {host.rate_bps for host in slow.hosts} == {link.rate_bps for link in slow.links} == {4_000_000}
    assert {host.delay_ns for host in slow.hosts} == {link.delay_ns for link in slow.links} == {2_500_000}
    assert [host.ip for host in slow.hosts] == [host.ip for host in FABRIC.hosts]
    assert slow.spec == FABRIC.spec
    assert slow.ports_of("leaf1")[1].rate_bps == 4_000_000


def test_flows_and_faults() -> None:
    """Starts and fault times are stretched; sizes, factors and None are not."""
    flow = FlowSpec(1, "10.0.0.2", "10.0.1.2", 1000, 50, 7, 9)
    assert scaled(flow, 10) == FlowSpec(1, "10.0.0.2", "10.0.1.2", 1000, 500, 7, 9)
    assert scaled(LinkDown("a", "b", 5, None), 10) == LinkDown("a", "b", 50, None)
    assert scaled(LinkSlow("a", "b", 0.1), 10) == LinkSlow("a", "b", 0.1)


def test_nested_settings() -> None:
    """A NIC's timeouts, and those of the Flowcut settings within; ns per byte too; window and thresholds stay."""
    config = NicConfig(flowcut_nic=FlowcutNicConfig(ns_per_byte=0.8, age_ns=1000))
    slow = scaled(config, 100)
    assert slow.rto_ns == config.rto_ns * 100
    assert slow.link_rate_bps == config.link_rate_bps // 100
    assert (slow.window_bytes, slow.mtu_bytes) == (config.window_bytes, config.mtu_bytes)
    assert slow.flowcut_nic is not None and config.flowcut_nic is not None
    assert slow.flowcut_nic.ns_per_byte == pytest.approx(80)
    assert slow.flowcut_nic.age_ns == 100_000
    assert slow.flowcut_nic.rtt_threshold == config.flowcut_nic.rtt_threshold


def test_rate_never_zero_and_one_is_identity() -> None:
    """A rate stays at least 1 bit/s, and scale 1 gives back the very same object."""

    @dataclass(frozen=True)
    class Port:
        rate_bps: int

    assert scaled(Port(10), 1000) == Port(1)
    assert scaled(FABRIC, 1) is FABRIC


@pytest.mark.parametrize("scale", [2, 1000, 2500])
def test_ideal_time_scales_with_the_network(scale: float) -> None:
    """The same flow takes exactly so many times as long: slow-downs can be compared between scales."""
    flow = FlowSpec(1, FABRIC.hosts[0].ip, FABRIC.hosts[-1].ip, 1 << 20, 0, 7, 9)
    fast, slow = (Ideal(topology, 1024).fct_ns(flow) for topology in (FABRIC, scaled(FABRIC, scale)))
    assert slow == pytest.approx(fast * scale, rel=1e-5)


class Inner(msgspec.Struct, frozen=True):
    """A struct in a struct."""

    rate_bps: int = 1000


class Outer(msgspec.Struct, frozen=True, kw_only=True):
    """Times, and what has none."""

    gap_ns: int | None = None
    ns_per_byte: float = 0.5
    times_ns: tuple[int, ...] = ()
    size_bytes: int = 7
    inner: Inner = Inner()


def test_structs_scale_as_dataclasses_do() -> None:
    """Also inside each other, and in tuples."""
    slow = scaled(Outer(gap_ns=100, times_ns=(1, 2)), 10)
    assert slow == Outer(gap_ns=1000, ns_per_byte=5.0, times_ns=(10, 20), inner=Inner(100))
    assert scaled(Outer(), 10).gap_ns is None


@pytest.mark.parametrize("scale", [1, 10])
@pytest.mark.parametrize("value", [5, "5us", [1, 2], Outer])
def test_what_cannot_be_scaled_is_refused_at_every_scale(value: object, scale: float) -> None:
    """Else a time would stay as it is, and nothing would tell."""
    with pytest.raises(TypeError):
        scaled(value, scale)


def test_what_nobody_can_scale_inside_is_refused() -> None:
    """A field of another kind."""

    @dataclass(frozen=True)
    class Times:
        by_name_ns: dict[str, int]

    with pytest.raises(TypeError, match="by_name_ns"):
        scaled(Times({"a": 1}), 10)
