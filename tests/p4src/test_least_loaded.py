# SPDX-License-Identifier: Apache-2.0
"""The least loaded next hop (flowcut/least_loaded.p4), from two next hops to as many as an entry has room for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.p4src.frames import ack_of, newest_stamp, roce
from tests.p4src.rig import HOST_PORT, RTT_OFF, Rig

FIRST_PORT = 40
"""Of the next hops, one after the other: behind those of the rig, and on both sides of a multiple of 32."""

REMOTE, GROUP = "10.0.7.2", 9
MOST = 32
REMEMBERED = 32
"""Ports that are equal modulo this number share what a flow remembers of them (flow_history)."""

FRAME = roce(dst=REMOTE)


class Bed:
    """A switch with a group of next hops, and one flow."""

    def __init__(self, ports: tuple[int, ...], first_path: str = "LEAST_LOADED") -> None:
        self.ports = ports
        self.now = 1
        self.rig = Rig("flowcut", seed=3)
        self.rig.flowcut(first_path=first_path)
        self.rig.drain()
        for port in ports:
            self.rig.insert("port_role", (port,), "fabric_port")
        self.rig.group(REMOTE, GROUP, ports)

    def __enter__(self) -> Bed:
        return self

    def __exit__(self, *_: object) -> None:
        self.rig.switch.close()

    def data(self) -> tuple[int, tuple[int, int]]:
        """A packet of the flow: the port by which it leaves, and its stamp."""
        self.now += 1
        output = self.rig.forward(HOST_PORT, FRAME, self.now)
        return output.port, newest_stamp(output.data)

    def flowcut(self, *, congested: bool = False) -> int:
        """A flowcut of one packet, which ends by itself or in congestion; returns its port."""
        self.rig.drain(rtt_threshold=0 if congested else RTT_OFF)
        port, stamp = self.data()
        self.now += 1
        self.rig.send(port, ack_of(FRAME, 1, [stamp]), self.now)
        return port


def hops(count: int) -> tuple[int, ...]:
    return tuple(range(FIRST_PORT, FIRST_PORT + count))


LOADS = st.lists(st.integers(0, 5).map(lambda steps: 1000 * steps), min_size=2, max_size=MOST)


@settings(max_examples=150)
@given(LOADS)
def test_nobody_is_less_loaded(loads: list[int]) -> None:
    """Where the flow knows nothing of its next hops, it takes one of the least loaded: among them its ECMP choice."""
    with Bed(hops(len(loads)), "ECMP") as bed:
        ecmp, _ = bed.data()
    with Bed(hops(len(loads))) as bed:
        by_port = dict(zip(bed.ports, loads, strict=True))
        for port, load_bytes in by_port.items():
            bed.rig.set_load(port, load_bytes)
        out_port, _ = bed.data()
        assert by_port[out_port] == min(loads)
        assert out_port == ecmp or by_port[ecmp] > min(loads)


@pytest.mark.parametrize("count", [2, 8, 16, 17, 18, 31, MOST])
def test_each_next_hop_is_taken_and_kept(count: int) -> None:
    """Wherever in the list it stands, the only one that is idle is taken, and while the flow is in flight it stays
    there, whatever waits."""
    for idle in hops(count):
        with Bed(hops(count)) as bed:
            for port in bed.ports:
                bed.rig.set_load(port, 0 if port == idle else 1000)
            assert idle == bed.data()[0]
            bed.rig.set_load(idle, 5000)
            assert idle == bed.data()[0]
            assert bed.rig.count("flowcut_created") == 1
            assert bed.rig.count("flowcut_moved") == 0


@pytest.mark.parametrize("count", [2, 16, 17, 20, MOST])
def test_a_next_hop_that_is_withdrawn_is_left(count: int) -> None:
    """Also when it was the last of many."""
    with Bed(hops(count)) as bed:
        last = bed.ports[-1]
        bed.rig.flowcut(first_path="LEAST_LOADED", age_ticks=1000)
        for port in bed.ports[:-1]:
            bed.rig.set_load(port, 1000)
        assert last == bed.data()[0]
        bed.rig.candidates(GROUP, bed.ports[:-1])
        assert bed.data()[0] in bed.ports[:-1]
        assert bed.rig.count("flowcut_moved") == 1


@pytest.mark.parametrize("count", [2, 16, 17, 18, MOST])
def test_flowcuts_that_end_in_congestion_try_every_next_hop(count: int) -> None:
    """No next hop is taken twice before all have been, so none is taken for another one; and the order differs from
    flow to flow."""
    with Bed(hops(count)) as bed:
        tried = [bed.flowcut(congested=True) for _ in hops(count)]
        assert sorted(tried) == list(bed.ports)
        assert tried != list(bed.ports) or count == 2


def test_ports_that_share_what_is_remembered() -> None:
    """A port that ended in congestion speaks against those that are equal modulo 32: they come after all others, but
    before the port itself."""
    first, twin, other = FIRST_PORT, FIRST_PORT + REMEMBERED, FIRST_PORT + 1
    for ports, expected in (((first, twin, other), other), ((first, twin), twin)):
        with Bed(ports) as bed:
            for port in ports:
                bed.rig.set_load(port, 0 if port == first else 1000)
            assert first == bed.flowcut(congested=True)
            for port in ports:
                bed.rig.set_load(port, 1000 if port == other else 0)
            assert expected == bed.flowcut()
