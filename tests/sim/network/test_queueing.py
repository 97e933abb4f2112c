# SPDX-License-Identifier: Apache-2.0
"""Queues: two flows share a link, an M/D/1 queue has the wait that theory gives."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass, field

import pytest

from tests.frame_nic import FrameNic
from tests.sim.network.chain import chain
from tests.sim.network.l3 import OVERHEAD_BYTES, Frame, attach_all, network, packet

_GBPS = 10**9
_BATCHES = 50


def test_two_flows_that_send_all_the_time_share_a_link_frame_by_frame() -> None:
    rates_bps = [100 * _GBPS] * 3
    topo = chain(2, rates_bps, [500] * 3, sources=2)
    with network(topo) as net:
        nics = attach_all(net)
        for name in ("h1", "h2"):
            frame = Frame(packet(topo, name, "h3", name.encode()), virtual_bytes=1000)
            nics[name].script = [(0, frame)] * 500
        net.run()
        order = nics["h3"].payloads()
    ahead = 0
    for payload in order:
        ahead += 1 if payload == b"h1" else -1
        assert abs(ahead) <= 1
    assert (len(order), ahead) == (1000, 0)


@dataclass
class PoissonNic(FrameNic):
    """Sends equal frames whose gaps are exponential; notes when each was ready, and when it arrived."""

    frame: Frame
    ready_ns: list[int] = field(default_factory=list)
    arrived_ns: list[int] = field(default_factory=list)
    sent: int = 0

    @property
    def idle(self) -> bool:
        return self.sent == len(self.ready_ns)

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        self.arrived_ns.append(now_ns)

    def next_frame(self, now_ns: int) -> Frame | None:
        if self.idle or self.ready_ns[self.sent] > now_ns:
            return None
        self.sent += 1
        return self.frame

    def next_time_ns(self, now_ns: int) -> int | None:
        return None if self.idle else self.ready_ns[self.sent]


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_an_md1_queue_has_its_mean_wait(load: float) -> None:
    """Mean wait: load / (2 (1 - load)) of a service time (Pollaczek, Khinchine).

    A faster server in front (the source's link) changes nothing: in tandem with fixed service times the wait in
    both is that of the slower one alone. The tolerance is four standard errors, by means of batches.
    """
    count, nbytes, rates_bps = 60_000, 12_500, [400 * _GBPS, 100 * _GBPS]
    service_ns = nbytes * 8 * _GBPS // rates_bps[1]
    topo = chain(1, rates_bps, [1000, 1000])
    rng = random.Random(f"M/D/1 {load}")
    ready, time = [], 0.0
    for _ in range(count):
        time += rng.expovariate(load / service_ns)
        ready.append(round(time))
    frame = Frame(packet(topo, "h1", "h2", b""), virtual_bytes=nbytes - OVERHEAD_BYTES)
    source, sink = PoissonNic(frame, ready), PoissonNic(frame)
    with network(topo) as net:
        net.attach("h1", source)
        net.attach("h2", sink)
        assert net.run()
    least_ns = nbytes * 8 * _GBPS // rates_bps[0] + service_ns + 2 * 1000
    waits = [arrived - ready_ns - least_ns for ready_ns, arrived in zip(ready, sink.arrived_ns, strict=True)]
    assert min(waits) == 0
    size = count // _BATCHES
    means = [statistics.fmean(waits[i : i + size]) for i in range(0, count, size)]
    error_ns = statistics.stdev(means) / _BATCHES**0.5
    expected_ns = load / (2 * (1 - load)) * service_ns
    assert error_ns < 0.05 * expected_ns, "enough samples to tell"
    assert abs(statistics.fmean(waits) - expected_ns) < 4 * error_ns
