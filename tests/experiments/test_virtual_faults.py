# SPDX-License-Identifier: Apache-2.0
"""Faults in virtual time: what the network is told, what the controller does, and what flows see of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailrace.codec.layers.dscp import TRIMMED
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.p4rt import programs
from tailrace.results.result import Result
from tailrace.schemes.watch import Watcher
from tailrace.sim.control import REACTION_RTTS
from tailrace.sim.faults import schedule_faults
from tailrace.sim.ideal_controller import IdealController
from tailrace.sim.link_faults import Blackhole, LinkDown, SwitchRestart
from tailrace.sim.network import Network, Wire, WireEvent
from tailrace.topology import parse_topology
from tailrace.topology.timing import FULL_FRAME_BYTES, base_rtt_ns
from tests.experiments.virtual import result_of

_TOS_BYTE = 15
"""The second byte of the IPv4 header, after 14 bytes of Ethernet."""

FABRIC = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us")
REACTION_NS = REACTION_RTTS * base_rtt_ns(FABRIC, FULL_FRAME_BYTES)


@pytest.mark.parametrize("only", ["flows", "data"])
def test_dead_directions_may_lose_data_and_no_acks(only: str) -> None:
    """The failures of Spritz's authors (their Fig. 9): ACKs and NACKs pass; otherwise some are lost, too."""
    words = {
        "scheme": "spritz:variant=spray",
        "topology": "dragonfly:p=2,a=4,h=2,rate=100Gbps",
        "workload": "permutation:size=64KiB,peers=group",
        "transport": "dctcp:rto=20us,timeout=size",
        "fault": f"drop:rate=1,fraction=0.1,only={only}",
        "mtu": "4KiB",
    }
    lost = {"data": 0, "ACK": 0}

    def tap(_wire: Wire, event: WireEvent, _now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        if event is WireEvent.LOST:
            is_data = virtual_bytes > 0 or frame[_TOS_BYTE] >> 2 in TRIMMED
            lost["data" if is_data else "ACK"] += 1

    result = result_of(words, lambda network: network.tap(tap))
    assert result.complete
    assert lost["data"] > 0
    assert (lost["ACK"] == 0) == (only == "data")


class Recorder:
    """A network that notes its faults, and calls back in the order of times when told to."""

    topology = FABRIC
    switches = ()  # none to be asked for digests
    now_ns = 0

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._later: list[tuple[int, int, Any]] = []

    def call_at(self, time_ns: int, callback: Any) -> None:
        self._later.append((time_ns, len(self._later), callback))

    def switch_restart(self, name: str, at_ns: int, down_ns: int, restore: Any) -> None:
        self.calls.append(("switch_restart", name, at_ns, down_ns))
        self.call_at(at_ns + down_ns, restore)

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))

    def play(self) -> None:
        for _, _, callback in sorted(self._later, key=lambda item: item[:2]):
            callback()


def written(*faults: Any, flows: Any = ()) -> tuple[Recorder, list[tuple[set[str], list[str]]]]:
    """What the network was told, and each writing of the controller: switches cut off, and who was written."""
    network, writes = Recorder(), []

    def configure(down: Any, names: Any) -> None:
        writes.append(({f"{switch}:{port}" for switch, port in down}, list(names)))

    stands_for: Any = network
    program = programs.load("ecmp")
    control = IdealController(
        stands_for, program, Watcher(FABRIC, lambda _event: None), configure, REACTION_NS
    )
    schedule_faults(stands_for, faults, flows, control)
    network.play()
    return network, writes


ALL = ["leaf1", "leaf2", "spine1", "spine2"]


def test_links_that_die_together_are_learnt_together() -> None:
    """One writing for both, and another one when the first comes back; the other stays dead."""
    _, writes = written(LinkDown("leaf1", "spine1", 5, 9), LinkDown("leaf1", "spine2", 5, None))
    assert writes == [({"leaf1:3", "leaf1:4"}, ALL), ({"leaf1:4"}, ALL)]


def test_a_link_that_two_faults_hold_dead() -> None:
    """It comes back, for the controller, when the second one is over."""
    _, writes = written(LinkDown("leaf1", "spine1", 5, 9), LinkDown("leaf1", "spine1", 7, 20))
    assert [down for down, _ in writes] == [{"leaf1:3"}, {"leaf1:3"}, {"leaf1:3"}, set()]


def test_restart_that_is_noticed() -> None:
    """First the other switches are written, without it; then it alone when it is back; then all of them."""
    down_ns = 2 * REACTION_NS
    network, writes = written(SwitchRestart("spine1", 100, down_ns))
    assert network.calls == [("switch_restart", "spine1", 100, down_ns)]
    cut = {"leaf1:3", "leaf2:3"}
    assert writes == [(cut, ["leaf1", "leaf2", "spine2"]), (cut, ["spine1"]), (set(), ALL)]


def test_restart_that_is_over_before_it_is_noticed() -> None:
    """The switch is written at once, with what the controller knows by then."""
    _, writes = written(SwitchRestart("spine1", 100, REACTION_NS // 2))
    assert writes == [(set(), ["spine1"]), ({"leaf1:3", "leaf2:3"}, ALL), (set(), ALL)]


def test_blackhole_takes_what_is_sent() -> None:
    """The network gets those of its address pairs that flows use, in both directions."""
    planned = plan(
        make({"scheme": "ecmp", "topology": FABRIC.spec, "workload": "incast:degree=1"}), "virtual"
    )
    [flow] = planned.job.flows
    every = frozenset((a.ip, b.ip) for a in FABRIC.hosts for b in FABRIC.hosts if a is not b)
    network, _ = written(Blackhole("spine1", every, 3, 4), flows=planned.job.flows)
    both = sorted([(flow.src, flow.dst), (flow.dst, flow.src)])
    assert network.calls == [("blackhole", "spine1", both, 3, 4)]


# ---- in a real network ----


def measure(tmp_path: Path, fault: object, flows: str, topology: str = FABRIC.spec, **more: object) -> Result:
    path = tmp_path / "flows.csv"
    path.write_text("src,dst,bytes,start\n" + flows)
    words = {"scheme": "ecmp", "topology": topology, "workload": str(path), "fault": fault}
    return result_of({**words, **more})


def dropped(result: Result) -> int:
    """Packets that did not arrive."""
    count = result.summary.packets.dropped
    assert isinstance(count, int)
    return count


def times(result: Result) -> list[int]:
    assert result.complete
    return [row.fct_ns or 0 for row in result.rows]


def test_link_is_slow_for_a_while(tmp_path: Path) -> None:
    """A tenth of the rate for 200 us costs a flow that would be sending nine tenths of that time."""
    chain = "leaf-spine:leaves=2,spines=1,hosts=1,rate=10Gbps,delay=1us"
    flows = "h1,h2,1MiB,0\n"
    slow = "link-slow:link=leaf1-spine1,factor=0.1,at=100us,until=300us"
    [clean_ns] = times(measure(tmp_path, "drop:rate=0.5,until=1ns", flows, chain, window="2MiB"))
    [slow_ns] = times(measure(tmp_path, slow, flows, chain, window="2MiB"))
    assert slow_ns - clean_ns == pytest.approx(180_000, rel=0.05)


def test_losses_begin_and_end(tmp_path: Path) -> None:
    """Nothing is lost before or after; in between everything on that link is, and sent again later."""
    flows = "h1,h3,100KiB,0\nh2,h4,100KiB,0\n"
    before = measure(tmp_path, "drop:rate=1,where=spine,at=100ms", flows)
    during = measure(tmp_path, "drop:rate=1,where=spine,at=20us,until=40us", flows)
    assert before.complete
    assert (dropped(before), before.summary.packets.retransmitted) == (0, 0)
    assert during.complete
    assert dropped(during) > 0
    assert during.summary.packets.retransmitted != 0


def test_losses_at_one_switch(tmp_path: Path) -> None:
    """Below that leaf nothing arrives; the other leaf's own traffic is untouched."""
    result = measure(tmp_path, "drop:rate=1,where=leaf1", "h1,h2,4KiB,0\nh3,h4,4KiB,0\n")
    assert [row.end_ns is not None for row in result.rows] == [False, True]


@pytest.mark.parametrize("scheme", ["ecmp", "flowcut", "rlb:variant=drill,probe=5us"])
def test_blackhole_in_the_only_spine(tmp_path: Path, scheme: str) -> None:
    """All pairs: nothing crosses it, what stays below the leaf does; when it is over everything arrives.

    Not even what carries a header of a switch (RLB's probes of a path) crosses it.
    """
    chain = "leaf-spine:leaves=2,spines=1,hosts=2,rate=10Gbps,delay=1us"
    flows = "h1,h2,4KiB,0\nh1,h3,4KiB,0\n"
    for_ever = measure(tmp_path, "blackhole:pairs=1,where=spine", flows, chain, scheme=scheme)
    assert [row.end_ns is not None for row in for_ever.rows] == [True, False]
    assert dropped(for_ever) > 0
    for_a_while = measure(tmp_path, "blackhole:pairs=1,where=spine,until=1ms", flows, chain, scheme=scheme)
    assert [row.end_ns is not None and row.end_ns > 1_000_000 for row in for_a_while.rows] == [False, True]


def test_blackhole_takes_its_pairs_only(tmp_path: Path) -> None:
    """Of two pairs on the same way one is drawn: what it sends is lost, what the other sends is not."""
    chain = "leaf-spine:leaves=2,spines=1,hosts=1,rate=10Gbps,delay=1us"
    words = "blackhole:pairs=0.5,where=spine,until=500us"
    result = measure(tmp_path, words, "h1,h2,4KiB,0\nh2,h1,4KiB,0\n", chain)
    # one direction is swallowed: the data of one flow, of which nothing arrives, and the ACKs of the other
    early = [row.end_ns is not None and row.end_ns < 500_000 for row in result.rows]
    assert result.complete
    assert sorted(early) == [False, True]


def test_the_only_spine_restarts(tmp_path: Path) -> None:
    """Nothing arrives while it is away; when it is back the controller has written it, and flows go on."""
    chain = "leaf-spine:leaves=2,spines=1,hosts=1,rate=10Gbps,delay=1us"
    [row] = measure(tmp_path, "switch-restart:switch=spine1,at=50us,for=2ms", "h1,h2,256KiB,0\n", chain).rows
    assert row.end_ns is not None
    assert row.end_ns > 2_050_000


@pytest.mark.parametrize(
    "fault",
    [
        "link-slow:fraction=0.3,factor=0.1,at=20us,until=100us",
        "link-down:link=leaf1-spine1,at=30us,until=90us",
        "drop:rate=0.05,at=10us,until=150us",
        "drop:rate=0.2,where=leaf2",
        "ack-loss:rate=0.3",
        "blackhole:pairs=0.5,where=spine,until=100us",
        "switch-restart:switch=spine1,at=40us,for=60us",
        "switch-restart:switch=leaf1,at=40us,for=60us",
    ],
)
@pytest.mark.parametrize("scheme", ["ecmp", "flowcut"])
def test_every_byte_is_accounted_for(fault: str, scheme: str) -> None:
    """At any time, whatever the fault, what was sent is delivered, counted as lost, or under way."""
    seen: list[bool] = []

    def look(network: Network) -> None:
        for time_ns in range(5000, 300_000, 5000):
            network.call_at(time_ns, lambda: seen.append(network.account().balanced))

    words = {"scheme": scheme, "topology": FABRIC.spec, "workload": "alltoall:size=64KiB,window=2"}
    result = result_of({**words, "fault": fault}, look)
    assert result.complete
    assert len(seen) > 20
    assert all(seen)


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_flows_leave_dead_links_under_pfc(seed: int) -> None:
    """Queues have room for all that can be under way, as the one of DCQCN without windows, and nothing waits for as
    long: flows that are bound to a dead link move as soon as the controller has led around it, in order.
    """
    words = {
        "scheme": "flowcut:queue=1GB",
        "topology": "fat-tree:k=4,rate=100Gbps,delay=1us",
        "workload": "poisson:cdf=websearch,load=0.5,duration=0.5ms",
        "fault": "link-down:fraction=0.06",
        "transport": "dcqcn:clamp=no",
        "pfc": "xoff=256KB,xon=254KB,buffer=9MB",
        "seed": seed,
    }
    result = result_of(words)
    assert result.complete
    assert result.summary.packets.out_of_order == 0
