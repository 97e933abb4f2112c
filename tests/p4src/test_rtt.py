# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of round-trip times in P4 (flowcut/rtt.p4) against exact fractions (Flowcut §II-B, §III-C1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.p4src.frames import Stamps, ack_of, roce, shimmed
from tests.p4src.rig import HOST_PORT, UPLINKS, Rig, enum

ONE = 256  # 1 in 8.8
MOST = 0x7FFF
TICKS_ONE = 1 << 16  # 1 in 16.16
HOP_COUNTS = 16
PLENTY_BYTES = 1 << 23
NOW = 1 << 40

rtts = st.one_of(st.integers(1, 1 << 10), st.integers(1, 1 << 20), st.integers(1, (1 << 32) - 1))
rates = st.one_of(st.just(0), st.integers(0, 4 * TICKS_ONE), st.integers(0, 1 << 22))
sizes = st.one_of(st.integers(0, 2000), st.integers(0, 9216))


@dataclass
class Source:
    """A flow with so much in flight that no ACK ends it; ACKs have whatever RTT they are given."""

    rig: Rig

    def reset(self, stamps_before: int = 0) -> None:
        """No history: no flow, no smallest RTT. The flow comes from a host, or over switches that stamped it."""
        self.rig.reset()
        self.frame = roce()
        if stamps_before:
            stack: Stamps = [(0, HOST_PORT)] * stamps_before
            self.rig.forward(UPLINKS[0], shimmed(self.frame, stamps_before, stack), NOW)
        else:
            self.rig.forward(HOST_PORT, self.frame, NOW)
        self.entry = next(i for i in range(4) if self.rig.register("flow_in_flight_bytes", i))
        self.rig.set_register("flow_in_flight_bytes", self.entry, PLENTY_BYTES)

    def ack(self, rtt: int, *, hops: int = 1, nbytes: int = 0, stamps: int = 1) -> None:
        """An ACK arrives `rtt` ticks after its data was stamped, over `hops` links from here."""
        stack: Stamps = [((NOW - rtt) % 2**32, HOST_PORT), *[(0, HOST_PORT)] * (stamps - 1)]
        ack = ack_of(self.frame, hops + stamps - 1, stack, bytes=nbytes)
        self.rig.send(UPLINKS[0], ack, NOW)

    def read(self, name: str) -> int:
        return self.rig.register(name, self.entry)

    def growth(self) -> int:
        growth = self.read("flow_rtt_growth")
        return growth - (1 << 16) if growth >> 15 else growth


@pytest.fixture(scope="module")
def source() -> Iterator[Source]:
    with Rig("flowcut") as rig:
        rig.flowcut()
        yield Source(rig)


@dataclass
class Least:
    """r_min(h), without transmission times."""

    by_hops: dict[int, int]

    def ratio(self, rtt: int, hops: int, nbytes: int, ticks_per_byte: int) -> int:
        """The normalised RTT in 8.8: the exact fraction, rounded down, at most what 15 bits hold."""
        transmission = nbytes * hops * ticks_per_byte // TICKS_ONE
        rest = max(rtt - transmission, 1)
        self.by_hops[hops] = min(rest, self.by_hops.get(hops, rest))
        exact = Fraction(rest + transmission, self.by_hops[hops] + transmission)
        assert exact >= 1
        return min(int(exact * ONE), MOST)


@settings(max_examples=60)
@given(
    rates,
    st.lists(st.tuples(rtts, st.integers(1, HOP_COUNTS - 1), sizes), min_size=1, max_size=8),
)
@example(0, [(1000, 1, 0), (1000, 1, 0), (127_996, 1, 0), (127_997, 1, 0), (128_000, 1, 0)])
@example(TICKS_ONE, [(2000, 3, 700), (2100, 3, 700), (2099, 3, 700), (9000, 3, 9000)])
@example(0, [((1 << 32) - 1, 2, 0), (1, 2, 0), ((1 << 32) - 1, 2, 0)])
def test_normalised_rtt_is_the_exact_ratio_rounded_down(source, ticks_per_byte, acks):
    """r / (r_min(h) + p*h*t) as 8.8: the floor of the exact fraction, for each hop count its own r_min."""
    source.reset()
    source.rig.drain(ticks_per_byte=ticks_per_byte)
    least = Least({})
    for rtt, hops, nbytes in acks:
        source.ack(rtt, hops=hops, nbytes=nbytes)
        assert source.read("flow_rtt_last") == least.ratio(rtt, hops, nbytes, ticks_per_byte)
    for hops in range(HOP_COUNTS):
        assert source.rig.register("rtt_min_ticks", hops) == least.by_hops.get(hops, 0)


@settings(max_examples=60)
@given(st.integers(0, 256), st.lists(st.integers(100, 1 << 16), min_size=1, max_size=12))
@example(256, [100, 12_700, 100, 12_700])
@example(1, [100, 12_799, 100, 100, 12_799])
def test_averages_are_exponential_and_rounded_to_the_nearest(source, alpha, values):
    """The average of the RTT and that of its growth, step by step, and near the real ones after all steps."""
    source.reset()
    source.rig.drain(alpha=alpha)
    least = Least({})
    average = last = growth = 0
    real_average = real_growth = Fraction(0)
    for i, rtt in enumerate(values):
        source.ack(rtt)
        ratio = least.ratio(rtt, 1, 0, 0)
        if i == 0:
            average, real_average = ratio, Fraction(ratio)
        else:
            average = (alpha * ratio + (256 - alpha) * average + 128) // 256
            growth = (alpha * (ratio - last) + (256 - alpha) * growth + 128) // 256
            real_average = (alpha * ratio + (256 - alpha) * real_average) / 256
            real_growth = (alpha * (ratio - last) + (256 - alpha) * real_growth) / 256
        last = ratio
        seen = source.read("flow_rtt_avg"), source.growth(), source.read("flow_samples")
        assert seen == (average, growth, i + 1)
    # Each step rounds by half a digit at most, and the next one keeps (256 - alpha) / 256 of that.
    error = Fraction(128, alpha) if alpha else Fraction(len(values), 2)
    assert abs(average - real_average) <= error
    assert abs(growth - real_growth) <= error


def test_samples_stop_at_255(source):
    """The number of samples says that there was one; it does not wrap to none."""
    source.reset()
    source.rig.drain(alpha=128)
    for _ in range(300):
        source.ack(1000)
    assert source.read("flow_samples") == 255
    source.ack(3000)
    assert source.read("flow_rtt_avg") == 2 * ONE


@pytest.mark.parametrize("stamps", range(1, 8))
def test_hops_are_those_behind_this_switch(source, stamps):
    """Of the links on the data's path, those before this switch do not count: each has its own r_min."""
    source.reset(stamps_before=min(stamps - 1, 6))
    source.rig.drain()
    source.ack(500, hops=3, stamps=stamps)
    assert [source.rig.register("rtt_min_ticks", hops) for hops in range(5)] == [0, 0, 0, 500, 0]


@settings(max_examples=60)
@given(
    st.integers(ONE, MOST),
    st.integers(100, 13_000),
    st.integers(-MOST, MOST),
    st.integers(0, 127),
    st.integers(0, 127),
)
@example(2 * ONE, 200, MOST, 0, 0)
@example(2 * ONE, 201, MOST, 0, 0)
@example(MOST, 12_900, ONE, 5, 5)
@example(MOST, 12_900, ONE, 6, 5)
@example(MOST, 12_900, ONE, 126, 126)
@example(MOST, 12_900, ONE, 127, 127)
def test_drain_starts_when_an_average_is_above_its_threshold(
    source, threshold, rtt, growth_threshold, left, min_left
):
    """Strictly above one of the two, and more packets left than pay; with alpha 1 the averages are the samples."""
    source.reset()
    rig = source.rig
    rig.set_register("flow_left", source.entry, left)
    rig.drain()
    source.ack(100)
    rig.drain(rtt_threshold=threshold, growth_threshold=growth_threshold % 2**16, min_left=min_left)
    source.ack(rtt)
    ratio = min(rtt * ONE // 100, MOST)
    above = ratio > threshold or ratio - ONE > growth_threshold
    expected = "DRAINING" if above and (left in (0, 127) or left > min_left) else "TRACKED"
    assert source.read("flow_state") == enum("FlowState_t", expected)
