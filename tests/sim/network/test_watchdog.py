# SPDX-License-Identifier: Apache-2.0
"""What a host wins by pauses: a pair beside it loses no more than beside plain data of that host.

h1 ---+                            +--- h3, which pauses its port
      s1 ======= s2 ======= s3 ----+
h2 ---+    twice the hosts' rate   +--- h4
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import pytest
from msgspec import structs

from tailrace.codec.layers.pfc import pfc_frame
from tailrace.sim.network import SWITCH_CONFIG
from tailrace.sim.network.account import NetworkAccount
from tailrace.spec.watchdog import NO_WATCHDOG, Watchdog, of_host
from tailrace.switch.core import PfcConfig, PfcStats
from tailrace.topology import Topology
from tests.sim.network.chain import chain, host
from tests.sim.network.l3 import OVERHEAD_BYTES, Frame, network, packet
from tests.sim.network.obeying import ObeyingNic

RATE_BPS = 10**10
_SIZE = 1500
XOFF = 60_000
END_NS = 4_000_000
_LOSS = 0.10
"""What the issue allows."""

_MAC = "02:00:0a:00:00:03"
_ALL = dict.fromkeys(range(8), 0xFFFF)
_PFC = PfcConfig((0,), XOFF, XOFF // 2, 60_000)
_HOST = of_host(RATE_BPS, XOFF)

Script = list[tuple[int, Frame]]


def _topology() -> Topology:
    topo = chain(3, [RATE_BPS, 2 * RATE_BPS, 2 * RATE_BPS, RATE_BPS], [1000] * 4, sources=2)
    return replace(topo, hosts=(*topo.hosts, host(4, "s3", 4, RATE_BPS, 1000)))


@dataclass(frozen=True)
class Outcome:
    """What came of it: frames that the pair's receiver got, the paused port, all switches' accounts."""

    victim: int
    port: PfcStats
    drops: dict[str, int]
    account: NetworkAccount


def _run(pfc: PfcConfig, attack: Script) -> Outcome:
    topo = _topology()
    frames = END_NS * RATE_BPS // (8 * _SIZE * 10**9)
    with network(topo, config=structs.replace(SWITCH_CONFIG, pfc=pfc)) as net:
        nics = {h.name: ObeyingNic(rate_bps=h.rate_bps) for h in topo.hosts}
        for name, nic in nics.items():
            net.attach(name, nic)
        for source, target in (("h1", "h3"), ("h2", "h4")):
            data = Frame(packet(topo, source, target, b""), virtual_bytes=_SIZE - OVERHEAD_BYTES)
            nics[source].script = [(0, data)] * frames
        nics["h3"].script = list(attack)
        net.advance_to(END_NS)
        switch, port = net.switch("s3"), topo.host("h3").port
        outcome = Outcome(
            len(nics["h4"].arrived), switch.pfc_stats(port, 0, END_NS), switch.drops(), net.account()
        )
        assert outcome.account.balanced
        for item in topo.switches:
            assert net.switch(item.name).buffer().balanced
        return outcome


def _pause(quanta: dict[int, int], *, tag: bytes = b"", opcode: int | None = None) -> Frame:
    data = bytes(pfc_frame(_MAC, quanta)).ljust(60, b"\0")
    if opcode is not None:
        data = data[:14] + opcode.to_bytes(2, "big") + data[16:]
    return Frame(data[:12] + tag + data[12:])


_STOP, _GO = _pause({0: 0xFFFF}), _pause({0: 0})


def _every(period_ns: int, *frames: Frame) -> Script:
    return [(time, frame) for time in range(0, END_NS, period_ns) for frame in frames]


def _toggling(stop_ns: int, go_ns: int) -> Script:
    """Pauses of so long with breaks of so long."""
    script = []
    for time in range(0, END_NS, stop_ns + go_ns):
        script += [(time, _STOP), (time + stop_ns, _GO)]
    return script


def _short(quanta: int, every_ns: int) -> Script:
    return _every(every_ns, _pause({0: quanta}))


# The time that a frame needs at the host's port, in which one gets away.
_FRAME_NS = _SIZE * 8 * 10**9 // RATE_BPS
_DETECT = _HOST.detect_ns
ATTACKS: dict[str, Script] = {
    "once": [(0, _STOP)],
    "repeated": _every(END_NS // 40, _STOP),
    "at line rate": _every(500, *[_STOP] * 10),
    "all classes": _every(50_000, _pause(_ALL)),
    "just below detection": _toggling(_DETECT - 100, _FRAME_NS),
    "half of detection": _toggling(_DETECT // 2, _FRAME_NS),
    "a frame at a time": _toggling(3 * _FRAME_NS, _FRAME_NS),
    "half of the time": _toggling(_DETECT // 2, _DETECT // 2),
    "a tenth of the time": _toggling(_DETECT // 2, 9 * _DETECT // 2),
    "as much as it may": _toggling(_DETECT - 100, 19 * _DETECT),
    "short ones that run out": _short(100, 6000),
    "stop and go at line rate": _every(1000, *[_STOP, _GO] * 8),
    "storm, and again when it is over": [
        (at, frame)
        for begin in range(0, END_NS, _DETECT + 1000 + _HOST.restore_ns + 1000)
        for at, frame in ((begin, _STOP), (begin + _DETECT + 1000, _GO))
    ],
}
HARMLESS: dict[str, Script] = {
    "nothing": [],
    "no length": _every(2000, *[_GO] * 10),
    "the pause of all classes": _every(2000, *[_pause(_ALL, opcode=1)] * 10),
    "an opcode that nobody knows": _every(2000, *[_pause(_ALL, opcode=0x0102)] * 10),
    "cut short": _every(2000, *[Frame(_STOP.data[:20])] * 10),
    "to somebody else": _every(2000, *[Frame(bytes.fromhex("020000000002") + _STOP.data[6:])] * 10),
    "with a VLAN tag": _every(2000, *[_pause(_ALL, tag=bytes.fromhex("8100e000"))] * 10),
    "another class": _every(2000, *[_pause({3: 0xFFFF, 7: 0xFFFF})] * 10),
}


@functools.cache
def _beside_data() -> int:
    """What the pair gets while the host sends as much as it can to its own sender."""
    data = Frame(packet(_topology(), "h3", "h1", b""), virtual_bytes=_SIZE - OVERHEAD_BYTES)
    return _run(_PFC, [(0, data)] * (END_NS // _FRAME_NS)).victim


def test_without_a_watchdog_one_frame_starves_a_pair() -> None:
    """The fault: pauses spread from the port that was paused to all senders."""
    alone = _run(structs.replace(_PFC, watchdog=NO_WATCHDOG), [])
    starved = _run(structs.replace(_PFC, watchdog=NO_WATCHDOG), ATTACKS["once"])
    assert alone.victim >= 0.99 * _beside_data()
    assert starved.victim < 0.3 * alone.victim


@pytest.mark.parametrize("name", ATTACKS)
def test_a_pair_beside_it_goes_on(name: str) -> None:
    """Whatever the pattern."""
    outcome = _run(_PFC, ATTACKS[name])
    assert outcome.victim >= (1 - _LOSS) * _beside_data()
    assert outcome.port.storms <= 1 + END_NS // _HOST.restore_ns
    assert outcome.drops.get("pfc_storm", 0) == outcome.port.storm_dropped
    assert (outcome.port.storm_dropped > 0) == (outcome.port.storms > 0)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_pause_of_the_class_does_nothing(name: str) -> None:
    """It is ignored, and counted."""
    outcome = _run(_PFC, HARMLESS[name])
    assert outcome.victim >= 0.99 * _beside_data()
    assert (outcome.port.storms, outcome.port.paused_ns) == (0, 0)


@pytest.mark.parametrize("script", ["once", "just below detection"])
def test_pauses_may_be_ignored_instead(script: str) -> None:
    """Then what is sent to the host gets there all the same."""
    host_port = of_host(RATE_BPS, XOFF, "ignore")
    pfc = structs.replace(_PFC, watchdog=host_port)
    outcome = _run(pfc, ATTACKS[script])
    assert outcome.victim >= (1 - _LOSS) * _beside_data()
    assert outcome.port.storms > 0
    assert outcome.port.storm_dropped == outcome.drops.get("pfc_storm", 0) == 0


def test_a_network_trusts_switches_more_than_hosts() -> None:
    """Pauses between switches may last for as long as a switch that is shipped lets them."""
    topo = _topology()
    data = packet(topo, "h1", "h3", bytes(100))
    with network(topo, config=structs.replace(SWITCH_CONFIG, pfc=_PFC)) as net:
        for name, port, detect_ns in (("s3", 3, _DETECT), ("s1", 100, Watchdog().detect_ns)):
            switch = net.switch(name)
            for time_ns in range(0, detect_ns, 500_000):
                switch.inject(port, _STOP.data, time_ns)
                if time_ns == 0:
                    switch.inject(1 if name == "s1" else 101, data, 0)
            switch.run(detect_ns - 1)
            assert switch.pfc_stats(port, 0).storms == 0
            switch.run(detect_ns)
            assert (switch.pfc_stats(port, 0).storms, switch.drops()["pfc_storm"]) == (1, 1)
