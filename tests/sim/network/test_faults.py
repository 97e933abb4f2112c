# SPDX-License-Identifier: Apache-2.0
"""Faults of the virtual network: slow links, dead links, frames that are lost."""

from __future__ import annotations

import pytest

from tailrace.hosts.nic.nic import Nic
from tailrace.sim.network import Network, NetworkError, Wire, WireEvent
from tailrace.sim.network.prng import SplitMix64, threshold
from tests.sim.network.l3 import Frame, ListNic, attach_all, install, network, packet, program, topology
from tests.sim.network.roce import add_flows, fabric

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


def test_a_drop_of_data_lets_control_packets_pass() -> None:
    """Frames without virtual payload, which only data has, and that no switch has trimmed."""
    arrived = []
    for only_data in (False, True):
        with network(topology()) as net:
            nic = stream(net, 100, gap_ns=100)
            net.drop("leaf1", "spine1", 1, only_data=only_data)
            net.run()
            arrived.append(len(nic.arrived))
    assert arrived == [0, 100]


def test_frames_are_lost_by_the_numbers_of_the_generator() -> None:
    """The share is drawn in C; the generator in Python says which frames it must be."""
    rate, seed, count = 0.3, 9, 400
    with network(topology(), seed) as net:
        nic = stream(net, count)
        net.drop("h1", "leaf1", 0.5, one_way=True, from_ns=10**9)
        net.drop("h1", "leaf1", rate, one_way=True)
        (wire,) = net.wires_between("h1", "leaf1")
        net.run()
        numbers = SplitMix64(seed, wire.index, 2)
        kept = [number for number in range(count) if numbers.next() >= threshold(rate)]
        assert times(nic) == [4400 + 100 * number for number in kept]
        assert (net.account().sent.frames, net.traffic().dropped) == (count, count - len(kept))


def test_a_test_that_raises_ends_the_run() -> None:
    def broken(frame: bytes) -> bool:
        raise LookupError("broken")

    with network(topology()) as net:
        stream(net, 2)
        net.drop("leaf1", "spine1", 1, matches=broken)
        with pytest.raises(LookupError, match="broken"):
            net.run()


def test_a_blackhole_swallows_its_pairs_where_and_when_it_is_asked_to() -> None:
    """Frames for h3 and h4 reach leaf2 from 3300 ns on, one of each in 200 ns."""
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        frames = {name: Frame(packet(topo, "h1", name, bytes(SIZE))) for name in ("h3", "h4")}
        nics["h1"].script = [(0, frames[name]) for _ in range(20) for name in ("h3", "h4")]
        h1, h2, h3 = (topo.host(name).ip for name in ("h1", "h2", "h3"))
        net.blackhole("leaf2", [(h1, h3), (h2, h3)], from_ns=3500, until_ns=4500)
        net.blackhole("spine2", [(h1, h3)])
        assert net.run()
        assert times(nics["h4"]) == [4500 + 200 * number for number in range(20)]
        at_leaf2 = [3300 + 200 * number for number in range(20)]
        assert times(nics["h3"]) == [time + 1100 for time in at_leaf2 if not 3500 <= time < 4500]
        assert net.traffic().swallowed == net.traffic().lost == 5
        assert net.account().balanced


@pytest.mark.parametrize("scheme", ["ecmp", "flowcut:variant=full", "flowcut:variant=nic"])
def test_a_blackhole_in_the_core_finds_addresses_behind_shims(scheme: str) -> None:
    """The flow starves until the fault ends, the other one does not notice; both complete."""
    end_ns = 2_000_000
    net, nics = fabric("leaf-spine:leaves=2,spines=1,hosts=2,rate=10Gbps,delay=1us", scheme)
    with net:
        flows = add_flows(net, nics, [("h1", "h3", 20_000), ("h2", "h4", 20_000)])
        net.blackhole("spine1", [(flows[0].src, flows[0].dst)], until_ns=end_ns)
        assert net.run()
        records = Nic.merge(*nics.values())
        swallowed = net.traffic().swallowed
        assert net.account().balanced
    ends_ns = {record.id: record.end_ns for record in records}
    assert ends_ns[0] is not None and ends_ns[0] > end_ns
    assert ends_ns[1] is not None and ends_ns[1] < end_ns // 10
    assert swallowed > 0


def test_a_restart_loses_what_is_in_the_switch_and_on_its_links() -> None:
    """Frames of 100 ns, one after the other; spine1 is gone from 3050 to 5050 ns."""
    topo = topology()
    with network(topo) as net:
        nic = stream(net, 60)

        def restore() -> None:
            assert net.now_ns == 5050
            net.switch("spine1").load(program())
            install(net, "spine1")

        net.switch_restart("spine1", 3050, 2000, restore)
        net.run()
        account = net.account()
        # frame i leaves leaf1 at 1100 + 100 i and spine1 at 2200 + 100 i; each is 100 ns on its way out, then 1 us
        through = [i for i in range(60) if 2200 + 100 * (i + 1) + 1000 <= 3050 or 1100 + 100 * i >= 5050]
        assert times(nic) == [4400 + 100 * i for i in through]
        assert account.balanced
        assert account.cut.frames + account.dropped_in_switches.frames == 60 - len(through)
        assert net.at_rest


def test_a_link_that_is_down_for_two_reasons_comes_up_after_both() -> None:
    """spine1 is gone from 3050 to 5050 ns, its link to leaf1 is down from 4000 to 7000 ns."""
    with network(topology()) as net:
        nic = stream(net, 80)

        def restore() -> None:
            net.switch("spine1").load(program())
            install(net, "spine1")

        net.switch_restart("spine1", 3050, 2000, restore)
        net.link_down("leaf1", "spine1", at_ns=4000)
        net.link_down("spine1", "leaf1", at_ns=4500)
        net.link_up("leaf1", "spine1", at_ns=6000)
        net.link_up("leaf1", "spine1", at_ns=7000)
        net.run()
        # as with the restart alone, but that nothing leaves leaf1 before 7000 ns
        through = [i for i in range(80) if 2200 + 100 * (i + 1) + 1000 <= 3050 or 1100 + 100 * i >= 7000]
        assert times(nic) == [4400 + 100 * i for i in through]
        assert net.account().balanced
        assert net.at_rest


def test_a_restarted_switch_has_no_pipeline_until_one_is_set() -> None:
    """What its queues held is counted, as is what arrives before it has a program again."""
    topo = topology()
    with network(topo) as net:
        stream(net, 60)
        net.link_rate("spine1", "leaf2", 0.01)
        net.switch_restart("spine1", 3050, 1000, lambda: None)
        net.run()
        assert net.switch("spine1").program is None
        assert not net.p4rt("spine1").pipeline().HasField("config")
        reasons = net.account().reasons
        assert reasons["pipeline_replaced"] > 0
        assert reasons["no_pipeline"] > 0
        assert net.account().balanced


def test_a_nic_cannot_change_what_others_may_have_passed() -> None:
    class Meddler(ListNic):
        def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
            net.link_down("leaf1", "spine1")

    topo = topology()
    with network(topo) as net:
        stream(net, 1)
        net.attach("h3", Meddler())
        with pytest.raises(NetworkError, match="a NIC cannot change the network"):
            net.run()


def test_a_tap_may_change_the_network() -> None:
    """Taps see one instant after the other, so nobody is past it: the third frame's sending cuts the link."""
    with network(topology()) as net:
        nic = stream(net, 10)
        sent: list[int] = []

        def tap(wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
            if event is WireEvent.SENT:
                sent.append(now_ns)
                if len(sent) == 3:
                    net.link_down("leaf1", "spine1", now_ns + 1000)

        net.tap(tap, net.wires_between("leaf1", "spine1"))
        net.run()
        assert sent[:3] == [1100, 1200, 1300]
        # frame i arrives at 2200 + 100 i, and the link goes down at 2300 before what happens then
        assert len(nic.arrived) == 1


def test_bad_faults_are_refused() -> None:
    with network(topology()) as net:
        with pytest.raises(NetworkError, match="there is no switch h1"):
            net.blackhole("h1", [])
        with pytest.raises(NetworkError, match=r"blackhole at leaf1: .*'h1'"):
            net.blackhole("leaf1", [("h1", "h2")])
        with pytest.raises(NetworkError, match="there is no switch leaf9"):
            net.switch_restart("leaf9", 0, 0, lambda: None)
        with pytest.raises(NetworkError, match=r"drop rate 1\.5 is not between 0 and 1"):
            net.drop("leaf1", "spine1", 1.5)
        with pytest.raises(NetworkError, match="no link between leaf1 and h3"):
            net.link_down("leaf1", "h3")
        with pytest.raises(NetworkError, match="factor 0 leaves no rate"):
            net.link_rate("leaf1", "spine1", 0)
