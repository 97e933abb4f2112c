# SPDX-License-Identifier: Apache-2.0
"""The transport of an experiment: its words, what NICs and queues make of dcqcn, and the path tags of Hermes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.nic import NO_WINDOW, nic_config, transport_of
from tailrace.experiments.plan.plan import plan
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.options.dcqcn import DcqcnConfig, HermesNicConfig
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.options.tcp import TcpConfig
from tailrace.hosts.options.transport import TRANSPORTS
from tailrace.hosts.options.transports import Dcqcn, GoBackN, Tcp, parse_transport
from tailrace.hosts.transport import ENDS
from tailrace.p4rt.target import target
from tailrace.results.result import Result
from tailrace.schemes.base import resolve
from tailrace.schemes.hermes import TagTable
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.resolved import SchemeContext
from tailrace.sim.run import VirtualBackend
from tailrace.spec import SpecError
from tailrace.spec.schema import KeyProblemError
from tailrace.study.task import run
from tailrace.topology import Topology, parse_topology
from tailrace.topology.timing import base_rtt_ns, full_frame_bytes

FABRIC = "leaf-spine:leaves=3,spines=4,hosts=2,rate=10Gbps,delay=1us"
WORKLOAD = "permutation:size=64KiB"


def topology() -> Topology:
    return parse_topology(FABRIC)


def planned(**values: Any) -> NicConfig:
    experiment = make({"scheme": "ecmp", "topology": FABRIC, "workload": WORKLOAD, **values})
    return plan(experiment, "virtual").job.nic


def test_what_models_of_ns3_have() -> None:
    """A timeout of its own, NAKs again and again, and a CNP with each; without words the network decides."""
    words = "dcqcn:rto=4ms,nak=4us,nak_cnp=on,alpha=5us,cnp=4us,timer=300us,steps=1,ai=40Mbps,hai=100Mbps,clamp=no"
    config = planned(transport=words)
    assert (config.rto_ns, config.nak_every_ns, config.dcqcn.nak_cnp) == (4_000_000, 4_000, True)
    plain = planned(transport="dcqcn")
    assert (plain.nak_every_ns, plain.dcqcn.nak_cnp) == (0, False)
    assert planned(transport="sr:rto=1ms").rto_ns == 1_000_000 != planned(transport="sr").rto_ns
    assert planned(transport="sr:backoff=0").rto_backoff == 0 != planned(transport="sr").rto_backoff
    assert planned(transport="tcp:backoff=2").rto_backoff == 2 != planned(transport="tcp").rto_backoff
    with pytest.raises(SpecError, match="unknown key 'nak'"):
        parse_transport("sr:nak=4us")


def test_names_are_words() -> None:
    """Every transport by its name alone, with the published settings of dcqcn; NICs know all."""
    for entry in TRANSPORTS:
        assert parse_transport(entry.name) == entry.struct()
        assert NicConfig(transport=entry.name).kind is entry.struct
        assert entry.name in ENDS
    with pytest.raises(ConfigError, match=r"^NIC settings: transport 'rdma' is not known; did you mean "):
        NicConfig(transport="rdma")


def test_all_words_of_dcqcn() -> None:
    """Times, bytes, rates."""
    words = "dcqcn:cnp=40us,alpha=45us,timer=300us,counter=150KB,gain=0.5,steps=3,ai=5Mbps,hai=50Mbps,least=1Mbps,clamp=no"
    expected = DcqcnConfig(
        40_000, 45_000, 0.5, 300_000, 150_000, 3, 5_000_000, 50_000_000, 1_000_000, clamp=False
    )
    assert Dcqcn(dcqcn=expected) == parse_transport(words)


def test_all_words_of_tcp() -> None:
    """Packets, bytes, times."""
    config = TcpConfig(4, 9000, 5)
    expected = Tcp(tcp=config, ack_every=2, ack_delay_ns=3000, rto_ns=10_000_000, ecn=True)
    words = "tcp:iw=4,tso=9KB,ack_every=2,ack_delay=3us,dupacks=5,rto=10ms,ecn=yes"
    assert expected == parse_transport(words)


@pytest.mark.parametrize("name", ["gbn", "sr", "dctcp", "dcqcn", "tcp"])
def test_acks_for_several_packets_are_words_of_transports_that_can(name: str) -> None:
    """At full speed; the delay is the base RTT where none is given, but with tcp."""
    nic = planned(transport=f"{name}:ack_every=4,ack_delay=3us", time_scale=2)
    assert (name, 4, 6_000) == (nic.transport, nic.ack_every, nic.ack_delay_ns)
    nic = planned(transport=f"{name}:ack_every=4")
    base_ns = base_rtt_ns(topology(), full_frame_bytes(nic.mtu_bytes))
    assert (4, 16_000 if name == "tcp" else base_ns) == (nic.ack_every, nic.ack_delay_ns)


def test_who_cannot_share_acks_says_so() -> None:
    """MP-RDMA's paths and the times of Hermes are those of single packets."""
    assert 1 == planned(transport="mp-rdma:ack_every=1").ack_every
    with pytest.raises(KeyProblemError, match=r"^transport mp-rdma: ack_every must be 1: [^\n]*, found '2'$"):
        make({"scheme": "ecmp", "transport": "mp-rdma:ack_every=2"})
    assert 1 == planned(scheme="hermes", transport="dcqcn:ack_every=1").ack_every
    with pytest.raises(
        SpecError, match=r"^NIC settings: ack_every is 2, expected 1: hermes measures the RTT"
    ):
        planned(scheme="hermes", transport="dcqcn:ack_every=2")
    with pytest.raises(ConfigError, match=r"expected 1: transport mp-rdma acknowledges each packet$"):
        NicConfig(transport="mp-rdma", ack_every=2)


@pytest.mark.parametrize(
    "text",
    [
        "", "rdma", "gbn:timer=1us", "dcqcn:", "dcqcn:timer=0", "dcqcn:gain=0", "dcqcn:gain=2", "dcqcn:rate=1",
        "gbn:iw=3", "tcp:timer=1us", "tcp:iw=0", "tcp:iw=1e9", "tcp:ack_every=0", "tcp:ack_delay=0",
        "tcp:ack_delay=1s", "sr:ack_every=0", "sr:ack_every=65537",
        "tcp:tso=0", "tcp:tso=2MiB", "tcp:rto=0", "tcp:rto=2m", "tcp:rto=100s", "tcp:dupacks=0", "tcp:ecn=2",
        "tcp:backoff=17", "sr:backoff=-1", "dctcp:timeout=never", "sr:timeout=loss",
    ],
)  # fmt: skip
def test_bad_words(text: str) -> None:
    """One line that names the key."""
    with pytest.raises(KeyProblemError, match=r"^transport[ :][^\n]+$"):
        make({"scheme": "ecmp", "transport": text})


@pytest.mark.parametrize("scale", [1, 100])
def test_marks_of_dcqcn_grow_with_the_rate(scale: float) -> None:
    """Those of the paper's deployment at its 40 Gb/s; slower networks of real time keep them, as all sizes."""
    words = {"scheme": "ecmp", "workload": WORKLOAD, "transport": "dcqcn", "time_scale": scale}
    thresholds = {}
    for rate in ("40Gbps", "100Gbps"):
        fabric = f"leaf-spine:leaves=3,spines=4,hosts=2,rate={rate},delay=1us"
        red = plan(make({**words, "topology": fabric}), "virtual").job.scheme.red
        assert red is not None
        thresholds[rate] = (red.kmin_bytes, red.kmax_bytes)
    assert thresholds == {"40Gbps": (5_000, 200_000), "100Gbps": (12_500, 500_000)}


def test_dcqcn_has_no_window_and_marks_by_default() -> None:
    """As the paper's deployment marks, at a quarter of its rate; what is given stays."""
    experiment = make({"scheme": "ecmp", "topology": FABRIC, "workload": WORKLOAD, "transport": "dcqcn"})
    job = plan(experiment, "virtual").job
    assert ("dcqcn", NO_WINDOW, DcqcnConfig()) == (job.nic.transport, job.nic.window_bytes, job.nic.dcqcn)
    red = job.scheme.red
    assert red is not None
    assert (1_250, 50_000, 10) == (red.kmin_bytes, red.kmax_bytes, red.pmax_permille)
    explicit = plan(make({"scheme": "ecmp:kmax=30KB"}, experiment), "virtual").job
    assert parse_scheme("ecmp:kmax=30KB").red == explicit.scheme.red
    assert 4096 == planned(transport="dcqcn", window="4KiB").window_bytes


@pytest.mark.parametrize("scale", [1, 100])
def test_tcp_finds_its_window_in_a_bounded_queue(scale: float) -> None:
    """Two bandwidth-delay products, or two bursts, in any scale of time; room for all flows where PFC holds."""
    words = {"scheme": "ecmp", "topology": FABRIC, "workload": WORKLOAD, "transport": "tcp"}
    job = plan(make({**words, "time_scale": scale}), "virtual").job
    assert ("tcp", NO_WINDOW, False) == (job.nic.transport, job.nic.window_bytes, job.nic.ecn)
    assert (32, 16_000 * scale) == (job.nic.ack_every, job.nic.ack_delay_ns)
    assert 2 * 65_536 == job.scheme.queue_limit_bytes
    explicit = plan(make({**words, "scheme": "ecmp:queue=9KB", "transport": "tcp:rto=1ms"}), "virtual").job
    assert (9000, 1_000_000) == (explicit.scheme.queue_limit_bytes, explicit.nic.rto_ns)
    lossless = plan(make({**words, "pfc": "default"}), "virtual").job
    room = lossless.scheme.queue_limit_bytes
    assert room is not None
    assert room > sum(flow.bytes for flow in lossless.flows)


def ran(**words: str) -> Result:
    experiment = make(
        {"scheme": "ecmp", "topology": FABRIC, "workload": "incast:degree=4,size=256KiB", **words}
    )
    return run(plan(experiment, "virtual"), VirtualBackend(), lambda _progress: None, label="it")


def test_tcp_in_a_network() -> None:
    """An incast overflows the queue, and everything arrives all the same."""
    summary = ran(transport="tcp").summary
    assert ("tcp", UNSET, 4) == (summary.transport, summary.window_bytes, summary.completed)
    assert isinstance(summary.packets.dropped, int)
    assert isinstance(summary.packets.retransmitted, int)
    assert summary.packets.retransmitted >= summary.packets.dropped > 0
    assert 0 == summary.packets.out_of_order


def test_other_transports_are_as_they_were() -> None:
    """A window, and no marks."""
    experiment = make({"scheme": "ecmp", "topology": FABRIC, "workload": WORKLOAD})
    job = plan(experiment, "virtual").job
    assert "gbn" == job.nic.transport
    assert job.nic.window_bytes > 0
    assert job.scheme.red is None


def test_dcqcn_is_slowed_down_with_everything() -> None:
    """Times are longer and rates lower; bytes stay."""
    nic = planned(transport="dcqcn:ai=40Mbps,hai=400Mbps,timer=55us", time_scale=100)
    expected = DcqcnConfig(
        cnp_ns=5_000_000,
        alpha_ns=5_500_000,
        timer_ns=5_500_000,
        additive_bps=400_000,
        hyper_bps=4_000_000,
        least_bps=100_000,
    )
    assert expected == nic.dcqcn


def test_path_tags_name_next_hops() -> None:
    """As many ports in a row as the leaf has next hops, from a multiple of that on; hosts of a leaf share them."""
    network = topology()
    table = TagTable(network)
    hosts = {host.name: host.ip for host in network.hosts}
    paths = table.of(hosts["h1"], hosts["h3"])
    assert 4 == len(paths.evs)
    assert [0, 1, 2, 3] == [ev % 4 for ev in paths.evs]
    assert min(paths.evs) >= 49152
    assert paths is table.of(hosts["h2"], hosts["h4"])
    other = table.of(hosts["h1"], hosts["h5"])
    assert (paths.evs, False) == (other.evs, paths.place == other.place)
    assert 1 == len(table.of(hosts["h1"], hosts["h2"]).evs)


def test_hermes_brings_its_transport_and_its_settings() -> None:
    """dcqcn, and thresholds that follow from the network."""
    network = topology()
    scheme = parse_scheme("hermes:kmin=5KB,kmax=200KB,pmax=0.01")
    transport = transport_of(None, scheme, network)
    assert Dcqcn() == transport
    context = SchemeContext(mtu_bytes=1024, window_bytes=NO_WINDOW, transport=transport.name)
    resolved = resolve(scheme, network, context)
    assert isinstance(resolved.paths(network), TagTable)
    assert resolve(parse_scheme("ecmp"), network).paths(network) is None
    nic = nic_config(network, resolved, context, transport, reorder=None, switches=target("virtual"))
    assert nic.steering is not None
    assert "hermes" == nic.steering.algorithm
    expected = HermesNicConfig(base_rtt_ns=base_rtt_ns(network, full_frame_bytes(1024)), hop_ns=160_000)
    assert expected == nic.hermes
    with pytest.raises(SpecError, match="scheme hermes needs dcqcn, found 'gbn'"):
        transport_of(GoBackN(), scheme, network)


def test_dcqcn_in_a_network() -> None:
    """An incast marks, and everything arrives; without a window the summary names none."""
    result = ran(transport="dcqcn")
    summary = result.summary
    assert ("dcqcn", UNSET, 0) == (summary.transport, summary.window_bytes, summary.packets.retransmitted)
    assert summary.flows == summary.completed
    assert sum(row.ce_marked for row in result.rows) > 0


def test_hermes_in_a_network() -> None:
    """Flows of one NIC to one leaf begin on different next hops, and the summary tells how paths were chosen."""
    summary = ran(scheme="hermes", workload="alltoall:size=16KiB").summary
    assert ("dcqcn", summary.flows, 0) == (
        summary.transport,
        summary.completed,
        summary.packets.retransmitted,
    )
    assert isinstance(summary.hermes, dict)
    assert UNSET is summary.spritz
    assert summary.packets.sent == summary.hermes["explored"] + summary.hermes["reused"]
    assert summary.hermes["explored"] == summary.flows
