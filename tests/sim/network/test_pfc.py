# SPDX-License-Identifier: Apache-2.0
"""PFC in a network: no loss with enough headroom, loss that is told with too little, and what pauses do to others."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tailrace.experiments.plan.pfc import Pfc
from tailrace.sim.network import SWITCH_CONFIG, Network
from tailrace.sim.network.account import NetworkAccount
from tailrace.switch.core import BufferConfig, PfcConfig
from tailrace.topology import Topology
from tests.sim.network.chain import chain, host
from tests.sim.network.l3 import OVERHEAD_BYTES, Frame, network, packet
from tests.sim.network.obeying import ObeyingNic

_GBPS = 10**9


def _attach(net: Network) -> dict[str, ObeyingNic]:
    nics = {h.name: ObeyingNic(rate_bps=h.rate_bps) for h in net.topology.hosts}
    for name, nic in nics.items():
        net.attach(name, nic)
    return nics


def _frames(
    topo: Topology, source: str, target: str, count: int, frame_bytes: int
) -> list[tuple[int, Frame]]:
    frame = Frame(packet(topo, source, target, b""), virtual_bytes=frame_bytes - OVERHEAD_BYTES)
    return [(0, frame)] * count


@dataclass(frozen=True)
class Incast:
    """What came of an incast."""

    account: NetworkAccount
    arrived: int
    paused: int
    headroom_most_bytes: int
    buffer_bytes: int


def _incast(topo: Topology, pfc: PfcConfig, frames: int, frame_bytes: int, room: int | None) -> Incast:
    """All hosts but the last send so many frames to it at once; `room` is what the shared buffer has for all."""
    buffer = None
    if room is not None:
        # both ends of a switch's links are ports of switches or hosts
        ports = max(len(topo.ports_of(switch.name)) for switch in topo.switches)
        buffer = BufferConfig(room + ports * pfc.headroom_bytes)
    config = structs.replace(SWITCH_CONFIG, pfc=pfc, buffer=buffer)
    *sources, sink = topo.hosts
    with network(topo, config=config) as net:
        nics = _attach(net)
        for source in sources:
            nics[source.name].script = _frames(topo, source.name, sink.name, frames, frame_bytes)
        assert net.run()
        switches = [net.switch(switch.name) for switch in topo.switches]
        stats = [switch.pfc_stats(port, 0) for switch in switches for port in range(110)]
        looks = [switch.buffer() for switch in switches]
        assert all(look.held_bytes == look.shared_bytes == look.headroom_bytes == 0 for look in looks)
        return Incast(
            net.account(),
            len(nics[sink.name].arrived),
            sum(port_stats.xoff_sent for port_stats in stats),
            max(port_stats.headroom_most_bytes for port_stats in stats),
            max(look.shared_most_bytes + look.headroom_most_bytes for look in looks),
        )


@settings(max_examples=40)
@given(
    degree=st.integers(2, 24),
    switches=st.integers(1, 2),
    rate_gbps=st.sampled_from([1, 10, 40, 100, 400]),
    delay_ns=st.sampled_from([0, 1, 500, 2000, 20_000]),
    xoff_frames=st.integers(1, 30),
    frame_bytes=st.sampled_from([64, 1000, 1500, 9000]),
    room_frames=st.none() | st.integers(0, 40),
)
def test_nothing_is_lost_with_enough_headroom(
    degree: int,
    switches: int,
    rate_gbps: int,
    delay_ns: int,
    xoff_frames: int,
    frame_bytes: int,
    room_frames: int | None,
) -> None:
    """Whatever the degree, the links, the thresholds, and the memory beside the headrooms, even if it is none."""
    hops = switches + 1
    topo = chain(switches, [rate_gbps * _GBPS] * hops, [delay_ns] * hops, sources=degree)
    xoff = xoff_frames * frame_bytes
    limits = Pfc(xoff, xoff // 2).of(topo, frame_bytes)
    # enough that pauses are needed, at any length of the links
    bdp_bytes = rate_gbps * delay_ns // 8
    frames = 2 * xoff_frames + 10 + 2 * bdp_bytes // frame_bytes if frame_bytes > 64 else 60
    pfc = PfcConfig((0,), limits.xoff_bytes, limits.xon_bytes, limits.headroom_bytes)
    room = None if room_frames is None else room_frames * frame_bytes
    incast = _incast(topo, pfc, min(frames, 400), frame_bytes, room)
    assert set(incast.account.reasons) <= {"pfc_frame"}
    assert incast.arrived == degree * min(frames, 400)
    assert incast.account.balanced
    assert incast.headroom_most_bytes <= limits.headroom_bytes


def test_headroom_is_needed_and_too_little_of_it_loses() -> None:
    """As much as was used at most is enough; a frame less is not, and the loss has its name."""
    topo = chain(1, [100 * _GBPS] * 2, [5000] * 2, sources=4)
    plenty = PfcConfig((0,), 30_000, 15_000, 1_000_000)
    whole = _incast(topo, plenty, 300, 1500, None)
    assert (whole.arrived, whole.paused > 0) == (1200, True)
    # in two times 5 us 12.5 bytes a ns come in, of which a quarter leaves meanwhile; and frames that had begun
    assert 93_750 - 1500 <= whole.headroom_most_bytes <= 93_750 + 4 * 1500
    just = _incast(topo, structs.replace(plenty, headroom_bytes=whole.headroom_most_bytes), 300, 1500, None)
    assert (just.account.reasons, just.arrived) == ({}, 1200)
    small = _incast(
        topo, structs.replace(plenty, headroom_bytes=whole.headroom_most_bytes - 1500), 300, 1500, None
    )
    assert small.account.reasons["pfc_headroom"] == 1200 - small.arrived > 0
    assert small.account.balanced


def test_a_shared_buffer_without_pfc_loses_by_its_name() -> None:
    """All ports together have no more than it."""
    topo = chain(1, [100 * _GBPS] * 2, [500] * 2, sources=4)
    incast = _incast(topo, PfcConfig((), 0, 0, 0), 50, 1500, 30_000)
    assert incast.account.reasons == {"buffer_full": 200 - incast.arrived}
    assert incast.buffer_bytes == 30_000


# ---- what pauses do to others ----

_FRAMES = 200
_SIZE = 1500


def _row() -> Topology:
    """h1 and h2 at s1, then s2, and at s3 h3 behind a slow link, and h4."""
    topo = chain(3, [40 * _GBPS, 100 * _GBPS, 100 * _GBPS, 10 * _GBPS], [1000] * 4, sources=2)
    return replace(topo, hosts=(*topo.hosts, host(4, "s3", 4, 40 * _GBPS, 1000)))


def _victim(pfc: PfcConfig | None, *, congested: bool) -> tuple[int, dict[str, int], int]:
    """When h4 has all that h2 sent, XOFFs by switch and neighbour, frames that got lost.

    h2 and h4 share with h1 and h3 the links between the switches, whose rate is enough for both.
    """
    topo = _row()
    # the queue of the slow link has room for 40 frames, where nothing pauses
    config = structs.replace(SWITCH_CONFIG, pfc=pfc, queue_depth_bytes=0 if pfc else 40 * _SIZE)
    with network(topo, config=config) as net:
        nics = _attach(net)
        nics["h2"].script = _frames(topo, "h2", "h4", _FRAMES, _SIZE)
        if congested:
            nics["h1"].script = _frames(topo, "h1", "h3", _FRAMES, _SIZE)
        assert net.run()
        assert len(nics["h4"].arrived) == _FRAMES
        xoffs = {
            f"{switch.name}-{peer.name}": net.switch(switch.name).pfc_stats(port, 0).xoff_sent
            for switch in topo.switches
            for port, peer in topo.ports_of(switch.name).items()
        }
        assert bool(nics["h2"].pauses) == bool(xoffs["s1-h2"])
        lost = 0 if not congested else _FRAMES - len(nics["h3"].arrived)
        return nics["h4"].arrived[-1][0], xoffs, lost


def test_pauses_block_others_and_spread_to_the_senders() -> None:
    """Without PFC the flow beside the congested one does not notice it. With PFC it waits for it at every hop:
    s3 pauses s2 for what goes to h3, s2 pauses s1, s1 pauses both hosts, also h2 whose way is free.
    """
    alone_ns, quiet, _ = _victim(None, congested=False)
    beside_ns, quiet_too, lost = _victim(None, congested=True)
    assert lost > 0
    assert not any(quiet.values()) and not any(quiet_too.values())
    assert beside_ns - alone_ns < 1000, "a frame of the other flow before one's own, at each hop"
    pfc = PfcConfig((0,), 20_000, 10_000, 40_000)
    blocked_ns, xoffs, lost = _victim(pfc, congested=True)
    assert lost == 0
    assert {name for name, count in xoffs.items() if count} == {"s3-s2", "s2-s1", "s1-h1", "s1-h2"}
    # it moves with the congested flow, of which three quarters waited for a link of a quarter of the rate
    assert blocked_ns - alone_ns > 100_000
    unshared_ns, xoffs, _ = _victim(pfc, congested=False)
    assert (unshared_ns, sum(xoffs.values())) == (alone_ns, 0)
