# SPDX-License-Identifier: Apache-2.0
"""Faults of the virtual network: slow links, dead links, frames that are lost."""

from __future__ import annotations

import pytest

from native.virtual import Network, NetworkError, Wire, WireEvent
from tests.native.virtual.l3 import Frame, ListNic, attach_all, network, packet, topology

SIZE = 66
"""Payload of a frame of 100 B, which takes 100 ns at 8 Gb/s."""


def stream(net: Network, count: int, gap_ns: int = 0) -> ListNic:
    """h1 sends to h3 over leaf1, spine1, leaf2; h3's NIC."""
    nics = attach_all(net)
    frame = packet(net.topology, "h1", "h3", bytes(SIZE))
    nics["h1"].script = [(i * gap_ns, Frame(frame)) for i in range(count)]
    return nics["h3"]


def times(nic: ListNic) -> list[int]:
    return [time for time, _, _ in nic.arrived]


def test_a_link_that_is_slowed_spaces_frames_by_its_new_rate() -> None:
    """At a tenth of the rate a frame takes 1000 ns on one of four links."""
    with network(topology()) as net:
        nic = stream(net, 3)
        net.link_rate("spine1", "leaf1", 0.1)
        net.run()
        assert times(nic) == [4000 + 3 * 100 + 1000 + i * 1000 for i in range(3)]


def test_a_link_is_slowed_and_restored_in_mid_run() -> None:
    """Frames leave leaf1 from 1100 ns on, one in 100 ns; from 1300 to 3000 ns one in 1000 ns."""
    with network(topology()) as net:
        nic = stream(net, 6)
        net.link_rate("leaf1", "spine1", 0.1, at_ns=1300)
        net.link_rate("leaf1", "spine1", 1, at_ns=3000)
        net.run()
        sent = [1200, 1300, 2300, 3300, 3400, 3500]
        assert times(nic) == [time + 1000 + 2 * 1100 for time in sent]


def test_a_hosts_link_can_be_slow_too() -> None:
    with network(topology()) as net:
        nic = stream(net, 3)
        net.link_rate("h1", "leaf1", 0.5)
        net.run()
        assert times(nic) == [4500 + i * 200 for i in range(3)]


def test_a_link_that_goes_down_loses_what_is_on_it_and_behind_it() -> None:
    """Down from 1650 to 3000 ns: frames that leave leaf1 after 550 ns, in flight or queued, are gone."""
    with network(topology()) as net:
        lost: list[int] = []

        def tap(wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
            if event is WireEvent.LOST:
                lost.append(now_ns)

        net.tap(tap)
        nic = stream(net, 40)
        net.link_down("leaf1", "spine1", at_ns=1650)
        net.link_up("spine1", "leaf1", at_ns=3000)
        net.run()
        # sent by leaf1 as soon as it has them: frame i at 1100 + 100 i, for a nanosecond less than 1650
        survivors = [i for i in range(40) if 1100 + 100 * (i + 1) + 1000 <= 1650 or 1100 + 100 * i >= 3000]
        assert len(nic.arrived) == len(survivors) == 21
        assert len(lost) + net.switch("leaf1").drops()["port_down"] == 19
        assert net.at_rest


def test_p4runtime_knows_of_ports_that_are_down() -> None:
    with network(topology()) as net:
        port = net.wires_between("leaf1", "spine1")[0].source.port
        ports = net.p4rt("leaf1").device.ports
        net.link_down("leaf1", "spine1")
        assert not ports.is_up(port)
        net.link_up("leaf1", "spine1")
        assert ports.is_up(port)


def test_a_share_of_frames_is_lost_by_the_links_own_numbers() -> None:
    """Another fault elsewhere changes nothing about which frames a link loses."""
    survivors = []
    for elsewhere in (False, True):
        with network(topology(), seed=5) as net:
            nic = stream(net, 1000)
            net.drop("leaf1", "spine1", 0.3)
            if elsewhere:
                net.drop("leaf2", "h4", 0.5)
            net.run()
            survivors.append(times(nic))
    assert survivors[0] == survivors[1]
    assert 640 <= len(survivors[0]) <= 760


def test_a_drop_takes_what_it_matches_where_and_when_it_is_asked_to() -> None:
    with network(topology()) as net:
        nic = stream(net, 100, gap_ns=100)
        net.drop("spine1", "leaf1", 1, one_way=True)
        net.drop("leaf1", "spine1", 1, matches=lambda frame: frame[23] == 6)
        net.drop("leaf1", "spine1", 1, from_ns=3000, until_ns=5000)
        net.run()
        assert len(nic.arrived) == 80
        assert net.traffic().lost == 20


def test_bad_faults_are_refused() -> None:
    with network(topology()) as net:
        with pytest.raises(NetworkError, match=r"drop rate 1\.5 is not between 0 and 1"):
            net.drop("leaf1", "spine1", 1.5)
        with pytest.raises(NetworkError, match="no link between leaf1 and h3"):
            net.link_down("leaf1", "h3")
        with pytest.raises(NetworkError, match="factor 0 leaves no rate"):
            net.link_rate("leaf1", "spine1", 0)
