# SPDX-License-Identifier: Apache-2.0
"""The virtual network: times to the nanosecond, order, rest, and the same trace for the same run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.sim.network import Network, NetworkError, WireEvent, fabric
from tailrace.switch.core import ActionCall
from tests.sim.network.l3 import Frame, ListNic, attach_all, network, packet, topology

ROOT_RUN = """
from tests.sim.network.test_network import busy_run
print(busy_run(3))
"""


def busy_run(seed: int) -> str:
    """Every host sends to every other one at once, over links that lose; the trace hash."""
    topo = topology("leaf-spine:leaves=3,spines=2,hosts=2,rate=1Gbps,delay=300ns")
    with network(topo, seed) as net:
        net.drop("leaf1", "spine1", 0.1)
        nics = attach_all(net)
        for source, nic in nics.items():
            frames = [packet(topo, source, target, bytes([i]) * 100) for i in range(5) for target in nics]
            nic.script = [(i * 50, Frame(f)) for i, f in enumerate(frames)]
        assert net.run()
        assert 0 < net.traffic().lost < net.traffic().delivered
        return net.trace_sha256


def test_a_frame_takes_serialisation_and_propagation_on_every_link() -> None:
    """66 + 34 B at 8 Gb/s are 100 ns, four links of 1 us: the store and forward of three switches."""
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        nics["h1"].script = [(5000, Frame(packet(topo, "h1", "h3", bytes(66))))]
        assert net.run()
        assert [time for time, _, _ in nics["h3"].arrived] == [5000 + 4 * (100 + 1000)]
        assert net.now_ns == 9400
        assert net.traffic().packet_hops == 3


def test_one_path_keeps_the_order_and_loses_nothing() -> None:
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        sent = [i.to_bytes(2, "big") * (20 + i % 7) for i in range(300)]
        nics["h1"].script = [(i, Frame(packet(topo, "h1", "h4", p))) for i, p in enumerate(sent)]
        nics["h2"].script = [(i, Frame(packet(topo, "h2", "h4", b"other" * 20))) for i in range(300)]
        net.run()
        assert [p for p in nics["h4"].payloads() if not p.startswith(b"other")] == sent


def test_the_same_run_has_the_same_trace_in_one_process_and_in_two() -> None:
    first = busy_run(3)
    assert busy_run(3) == first
    assert busy_run(4) != first, "another seed loses other frames"
    other = subprocess.run(
        [sys.executable, "-c", ROOT_RUN],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert other.stdout.strip() == first


def test_a_run_until_a_time_stops_there_and_goes_on() -> None:
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h3", bytes(66))))]
        assert not net.run(2500)
        assert net.now_ns == 2500
        assert not nics["h3"].arrived
        assert net.run(10_000), "at rest before the time is up"
        assert net.now_ns == 4400
        net.advance_to(10_000)
        assert net.now_ns == 10_000


def test_hosts_that_wait_for_what_never_comes_end_the_run() -> None:
    class Waiting(ListNic):
        @property
        def idle(self) -> bool:
            return False

    with network(topology()) as net:
        net.attach("h1", Waiting())
        assert not net.run()


def test_timers_of_idle_hosts_do_not_keep_the_network_busy() -> None:
    class Ticking(ListNic):
        def next_time_ns(self, now_ns: int) -> int:
            return now_ns + 10

    with network(topology()) as net:
        net.attach("h1", Ticking())
        assert net.run()
        net.advance_to(1000)
        assert net.events >= 100


def test_a_timer_that_fires_while_the_wire_is_busy_loses_no_turn() -> None:
    """A timer is set for 5000 ns; a frame that is being sent then must still be followed by the next one."""

    class Answering(ListNic):
        def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
            self.script = [(now_ns, answer), (now_ns, answer)]

    topo = topology()
    answer = Frame(packet(topo, "h2", "h1", bytes(66)), virtual_bytes=9900)
    with network(topo) as net:
        nics = attach_all(net)
        net.attach("h2", Answering([(4000, Frame(packet(topo, "h2", "h3", bytes(66))))]))
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h2", bytes(66))))]
        assert net.run()
        assert len(nics["h1"].arrived) == 2


def test_an_error_of_a_nic_ends_the_run_which_can_go_on() -> None:
    class Failing(ListNic):
        def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
            super().on_frame(now_ns, frame, virtual_bytes)
            if len(self.arrived) == 3:
                raise LookupError("the third frame")

    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        failing = Failing()
        net.attach("h3", failing)
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h3", bytes(66)))) for _ in range(9)]
        with pytest.raises(LookupError, match="the third frame"):
            net.run()
        assert net.account().balanced
        assert net.run()
        assert [time for time, _, _ in failing.arrived] == [4400 + 100 * number for number in range(9)]
        assert net.account().balanced


def test_a_network_does_not_run_within_its_own_run() -> None:
    class Running(ListNic):
        def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
            net.run()

    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        net.attach("h3", Running())
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h3", bytes(66))))]
        with pytest.raises(NetworkError, match="the network is running"):
            net.run()


def test_callbacks_come_at_their_time_before_anything_else() -> None:
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h3", bytes(66))))]
        seen: list[tuple[int, int]] = []
        for time_ns in (4400, 4401, 4399):
            net.call_at(time_ns, lambda: seen.append((net.now_ns, len(nics["h3"].arrived))))
        net.advance_to(5000)
        assert seen == [(4399, 0), (4400, 0), (4401, 1)]


def test_progress_tells_time_and_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "PROGRESS_EVENTS", 50)
    reports: list[tuple[int, int]] = []
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h3", bytes(66)))) for _ in range(100)]
        net.run(progress=lambda now_ns, events: reports.append((now_ns, events)))
        assert [events for _, events in reports] == list(range(50, net.events + 1, 50))
        assert [time for time, _ in reports] == sorted(time for time, _ in reports)


def test_taps_see_sending_and_arrival_of_every_frame() -> None:
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        seen: list[tuple[str, WireEvent, int]] = []
        up, down = net.wires_between("h1", "leaf1"), net.wires_between("leaf2", "h3")
        net.tap(
            lambda wire, event, now, frame, virtual: seen.append((wire.source.node, event, now)), up + down
        )
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h3", bytes(66))))]
        net.run()
        assert seen == [
            ("h1", WireEvent.SENT, 0),
            ("h1", WireEvent.RECEIVED, 1100),
            ("leaf2", WireEvent.SENT, 3300),
            ("leaf2", WireEvent.RECEIVED, 4400),
        ]


def test_frames_without_a_wire_are_counted() -> None:
    """Nothing is at port 300."""
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        switch = net.switch("leaf1")
        forward = next(i for i, a in enumerate(switch.model.actions) if a.name == "L3Ingress.forward")
        route = switch.model.table("L3Ingress.route").index
        for handle in range(len(topo.hosts)):
            switch.table_modify(route, handle, ActionCall(forward, (0, 300)))
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h4", bytes(66))))]
        assert net.run()
        assert net.traffic().unwired == 1
        assert not nics["h4"].arrived


def test_what_does_not_exist_is_refused_by_name() -> None:
    topo = topology()
    with network(topo) as net:
        with pytest.raises(NetworkError, match="there is no host h9"):
            net.attach("h9", ListNic())
        with pytest.raises(NetworkError, match="there is no link between leaf1 and leaf2"):
            net.wires_between("leaf1", "leaf2")


def test_a_network_without_programs_drops_everything() -> None:
    topo = topology()
    with Network(topo) as net:
        nics = attach_all(net)
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h4", bytes(66))))]
        assert net.run()
        assert net.switch("leaf1").drops() == {"no_pipeline": 1}
