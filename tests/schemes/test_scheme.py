# SPDX-License-Identifier: Apache-2.0
"""Schemes from words, and the parameters that follow from the topology."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.p4rt import programs
from tailrace.p4rt.errors import P4ProgramError
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.drill import DrillConfig
from tailrace.schemes.ecmp import EcmpConfig
from tailrace.schemes.errors import IntentError
from tailrace.schemes.flowcut.declaration import (
    GROWTH_FRAMES,
    GROWTH_OFF,
    FlowcutConfig,
    ResolvedFlowcut,
    age_ns,
)
from tailrace.schemes.hermes import HermesConfig
from tailrace.schemes.letflow import LetflowConfig, ResolvedLetflow
from tailrace.schemes.presto import PrestoConfig
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.resolved import RedConfig, SchemeContext
from tailrace.schemes.rlb.app import VARIANTS
from tailrace.schemes.spray import SprayConfig
from tailrace.spec import SpecError
from tailrace.topology import parse_topology
from tailrace.topology.timing import FULL_FRAME_BYTES, base_rtt_ns, bdp_bytes, sending_ns, slowest_bps

TOPOLOGY = parse_topology("leaf-spine:leaves=2,spines=4,hosts=8,rate=10Gbps,delay=1us")
DRAGONFLY = parse_topology("dragonfly:p=1,a=3,h=2,groups=4")


def test_parse() -> None:
    """Words become a configuration; what is not given stays open or has the default of the paper."""
    assert EcmpConfig(hash_seed=7) == parse_scheme("ecmp:seed=7")
    assert SprayConfig(queue_limit_bytes=65536) == parse_scheme("spray:queue=64KiB")
    assert LetflowConfig(gap_ns=500_000) == parse_scheme("letflow:gap=500us")
    assert PrestoConfig(cell_bytes=32 * 1024, hash_seed=1) == parse_scheme("presto:cell=32KiB,seed=1")
    assert parse_scheme("presto") == parse_scheme("presto:cell=64KiB")
    assert DrillConfig(queue_limit_bytes=0) == parse_scheme("drill:queue=0")
    assert HermesConfig() == parse_scheme("hermes")
    red = RedConfig(kmin_bytes=1000, kmax_bytes=4000, pmax_permille=200)
    assert EcmpConfig(red=red) == parse_scheme("ecmp:kmin=1KB,kmax=4KB,pmax=0.2")
    flowcut = parse_scheme("flowcut:variant=ingress,buckets=64,rtt=3,growth=off,alpha=0.25,age=1ms,left=8")
    assert flowcut == FlowcutConfig(
        variant="ingress",
        buckets=64,
        rtt_threshold=3.0,
        growth_threshold=GROWTH_OFF,
        alpha=0.25,
        age_ns=1_000_000,
        min_left_packets=8,
    )
    default = parse_scheme("flowcut")
    assert isinstance(default, FlowcutConfig)
    assert ("full", 4.0, 0, 0) == (
        default.variant, default.rtt_threshold, default.resume_bytes, default.credit_bytes,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "elsewhere", "in_a_dragonfly"),
    [
        *((name, name, name) for name in ("ecmp", "spray", "presto", "drill", "hermes")),
        ("mp-rdma", "ecmp", "ecmp"),
        ("letflow", "letflow", "dragonfly"),
        ("letflow:path=shortest", "letflow", "letflow"),
        ("flowcut", "flowcut", "flowcut_dragonfly"),
        ("flowcut:variant=ingress", "flowcut", "flowcut_dragonfly"),
        ("flowcut:path=shortest", "flowcut", "flowcut"),
        ("flowcut:variant=nic", "ecmp", "dragonfly"),
        *((f"rlb:variant={name}", f"rlb_{name}", f"rlb_{name}") for name in VARIANTS),
    ],
)
def test_program(words: str, elsewhere: str, in_a_dragonfly: str) -> None:
    """A scheme runs the program of its name, Flowcut in NICs ECMP's; in a Dragonfly adaptive ones take its paths
    unless stated otherwise.
    """
    config = parse_scheme(words)
    assert [resolve(config, topology).program for topology in (TOPOLOGY, DRAGONFLY)] == [
        elsewhere,
        in_a_dragonfly,
    ]


BAD_WORDS = [
    ("ecmp:control=1.5", "control must be at most 1"),
    ("ecmp:guard=perhaps", "guard must be yes or no"),
    ("ugal-l:per=flow", "per=flow: did you mean flowlet?"),
    ("valiant:gap=1us", "gap may only be given together with per=flowlet"),
    ("flowcut:path=valiant,share=0.5", "share may only be given together with path=mixed"),
    ("letflow:share=2", "share must be at most 1"),
    ("letflow:gap=0us", "gap must be more than 0"),
    ("presto:cell=0", "cell must be "),
    ("presto:cell=big", "cell must be a size such as 64KiB"),
    ("flowcut:buckets=48", "buckets must be a power of two, found '48'"),
    ("flowcut:alpha=1.5", "alpha must be at most 1"),
    ("flowcut:alpha=0", "alpha must be at least"),
    ("flowcut:rtt=0.5", "rtt must be at least 1"),
    ("flowcut:slowest=0", "slowest must be more than 0"),
    ("flowcut:growth=fast", "growth must be a number"),
    ("ecmp:kmin=5KB,kmax=4KB", "kmin must be at most kmax"),
    ("ecmp:pmax=0.1", "kmin and pmax need kmax"),
    ("ecmp:seed=4294967296", "seed must be at most 4294967295"),
    ("spritz:weights=uniform,scale=2", "scale may only be given together with weights=latency"),
    ("ops:scale=2", "scale may only be given together with weights=latency"),
    ("flicr:scale=0", "scale must be more than 0"),
    ("spritz:buffer=0", "buffer must be at least 1"),
    ("spritz:explore=-1", "explore must be at least 0"),
    ("spritz:timer=0ns", "timer must be more than 0"),
    ("spritz:keep=61s", "keep"),
    ("ops:keep=1us", "keep"),
    ("spritz:bias=-1", "bias must be at least 0"),
    ("spritz:frame=63", "frame must be at least 64"),
    ("flicr:variant=scout", "scheme flicr: unknown key 'variant'"),
    ("ecmp:trim=on", "trim may only be given together with over=all"),
    ("valiant:draw=group,repair=on", "repair may only be given together with draw=hop"),
    ("valiant:draw=hop,per=flow", "per may only be given together with draw=group"),
    ("rlb:dt=0", "dt"),
    ("rlb:limit=none,most=3", "most"),
    ("rlb:most=256", "most"),
    ("rlb:flows=0", "flows"),
    ("rlb:variant=drill,cell=64KiB", "cell"),
    ("rlb:variant=presto,gap=1us", "gap"),
    ("rlb:threshold=3", "threshold"),
    ("rlb:hold=0", "hold"),
    ("rlb:fault=0,hold=1ms", "hold"),
    ("rlb:fault=0,interval=1ms", "interval"),
    ("rlb:warn=threshold,dt=1us", "dt"),
    ("rlb:warn=threshold,margin=1us", "margin"),
    ("rlb:variant=drill,tiers=tor", "tiers"),
    ("spritz:mode=coarse,paths=4", "paths may only be given together with mode=fine"),
]


def test_refusals() -> None:
    """Bounds, and keys that do not go together, are told in one line. Keys and names that are none: tests/bad_input."""
    for words, message in BAD_WORDS:
        with pytest.raises(SpecError) as caught:
            parse_scheme(words)
        assert message in str(caught.value), words
        assert "\n" not in str(caught.value)


def test_base_rtt() -> None:
    """Four links of 1 us there and back, and four times a frame of 1600 bytes at 10 Gb/s (1.28 us)."""
    assert 8_000 + 4 * 1_280 == base_rtt_ns(TOPOLOGY, FULL_FRAME_BYTES)
    assert 10_000_000_000 * 13_120 // 8_000_000_000 == bdp_bytes(TOPOLOGY, FULL_FRAME_BYTES)


def test_age() -> None:
    """The age by hand: three switches with full queues at a tenth of the rate, twice, and the ACK's way."""
    frame_ns, queue_ns = 12_800, 812_800  # 16,000 bits and 1,016,000 bits... at 1 Gb/s
    assert 2 * (3 * queue_ns + 3 * 2 * frame_ns + 2 * 4_000) == age_ns(
        TOPOLOGY, FULL_FRAME_BYTES, 100_000, 0.1
    )
    assert age_ns(TOPOLOGY, FULL_FRAME_BYTES, 100_000, 0.05) > 1.9 * age_ns(
        TOPOLOGY, FULL_FRAME_BYTES, 100_000, 0.1
    )
    config = resolve(FlowcutConfig(queue_limit_bytes=100_000), TOPOLOGY)
    assert isinstance(config, ResolvedFlowcut)
    assert config.age_ns == age_ns(TOPOLOGY, FULL_FRAME_BYTES, 100_000, 0.1)


def test_age_under_pfc_is_that_of_the_buffer() -> None:
    """A queue has room for all that can be under way; what waits is less, and lets stamps tell the order."""
    context = SchemeContext(room_bytes=1 << 30, lossless=True, held_bytes=9_000_000)
    config = resolve(FlowcutConfig(), TOPOLOGY, context)
    assert isinstance(config, ResolvedFlowcut)
    assert config.queue_limit_bytes == 1 << 30
    assert config.age_ns == age_ns(TOPOLOGY, FULL_FRAME_BYTES, 9_000_000, 0.1)
    assert config.at(TOPOLOGY, frozenset()).age_ns == config.age_ns
    small = resolve(FlowcutConfig(queue_limit_bytes=100_000), TOPOLOGY, context)
    assert isinstance(small, ResolvedFlowcut)
    assert small.age_ns == age_ns(TOPOLOGY, FULL_FRAME_BYTES, 100_000, 0.1)
    unbounded = resolve(FlowcutConfig(queue_limit_bytes=0), TOPOLOGY, context)
    assert isinstance(unbounded, ResolvedFlowcut)
    assert unbounded.age_ns == config.age_ns
    with pytest.raises(IntentError, match="queue=0"):
        resolve(FlowcutConfig(queue_limit_bytes=0), TOPOLOGY)


def test_age_covers_longer_paths_after_faults() -> None:
    """When a fault makes paths longer, as it can where there are no tiers, packets live longer."""
    topology = parse_topology("slim-fly:q=3,p=1,rate=10Gbps")
    # one switch keeps one link of its own
    ends = [(link.a, link.a_port) for link in topology.links if link.a == topology.switches[0].name]
    down = frozenset(ends[1:])
    config = resolve(FlowcutConfig(queue_limit_bytes=100_000, path="shortest"), topology)
    assert isinstance(config, ResolvedFlowcut)
    assert config.at(topology, down).age_ns > config.age_ns
    given = resolve(FlowcutConfig(queue_limit_bytes=100_000, age_ns=5), topology)
    assert given.at(topology, down) == given


def test_age_needs_a_queue_limit() -> None:
    """Without a limit nothing bounds a packet's life, so the user must say the age."""
    with pytest.raises(IntentError, match="age must be given with queue=0"):
        resolve(parse_scheme("flowcut:queue=0"), TOPOLOGY)
    resolved = resolve(parse_scheme("flowcut:queue=0,age=1s"), TOPOLOGY)
    assert isinstance(resolved, ResolvedFlowcut)
    assert resolved.age_ns == 1_000_000_000


def test_resolve() -> None:
    """Everything that was left open is filled in; what was given stays."""
    flowcut = resolve(FlowcutConfig(), TOPOLOGY)
    assert isinstance(flowcut, ResolvedFlowcut)
    assert max(2 * bdp_bytes(TOPOLOGY, FULL_FRAME_BYTES), 64 * FULL_FRAME_BYTES) == flowcut.queue_limit_bytes
    frames_ns = GROWTH_FRAMES * sending_ns(FULL_FRAME_BYTES, slowest_bps(TOPOLOGY))
    assert flowcut.growth_threshold == frames_ns / base_rtt_ns(TOPOLOGY, FULL_FRAME_BYTES)
    shaky = resolve(parse_scheme("flowcut"), TOPOLOGY, SchemeContext(steady=False))
    given = resolve(parse_scheme("flowcut:growth=0.3"), TOPOLOGY, SchemeContext(steady=False))
    assert isinstance(shaky, ResolvedFlowcut) and isinstance(given, ResolvedFlowcut)
    assert (shaky.growth_threshold, given.growth_threshold) == (GROWTH_OFF, 0.3)
    assert flowcut.min_left_packets == 11
    assert flowcut.age_ns == age_ns(TOPOLOGY, FULL_FRAME_BYTES, flowcut.queue_limit_bytes, 0.1)
    letflow = resolve(LetflowConfig(), TOPOLOGY)
    assert isinstance(letflow, ResolvedLetflow)
    assert letflow.gap_ns == base_rtt_ns(TOPOLOGY, FULL_FRAME_BYTES)
    ecmp = resolve(EcmpConfig(queue_limit_bytes=5), TOPOLOGY)
    assert (5, 0.07) == (ecmp.queue_limit_bytes, ecmp.control_share)
    bdp = bdp_bytes(TOPOLOGY, FULL_FRAME_BYTES)
    marks = RedConfig(kmin_bytes=bdp // 5, kmax_bytes=4 * bdp // 5, pmax_permille=1000)
    assert (marks, None) == (resolve(HermesConfig(), TOPOLOGY).red, resolve(DrillConfig(), TOPOLOGY).red)
    slow = resolve(FlowcutConfig(), parse_topology("leaf-spine:rate=1Mbps,hosts=1"))
    assert slow.queue_limit_bytes == 64 * 1600


def test_targets() -> None:
    """Ticks are those of the target's clock, and times are rounded up to them."""
    assert (1000, 1000, 1) == (target("bmv2").tick_ns, target("native").tick_ns, target("virtual").tick_ns)
    assert (3, 3, 2001) == (
        target("bmv2").ticks(2001),
        target("bmv2").ticks(3000),
        target("virtual").ticks(2001),
    )
    assert target("native", 50).ticks(101) == 3
    for bad in (("tofino", None), ("bmv2", 1), ("native", 0)):
        with pytest.raises(SpecError):
            target(*bad)


def test_programs() -> None:
    """P4Info tells names, enums, sizes and the numbers of the source; what is not there is an error."""
    flowcut = programs.load("flowcut")
    assert flowcut is programs.load("flowcut")
    assert flowcut.cookie != programs.load("ecmp").cookie
    assert (1, 2) == (flowcut.enum("FlowcutMode_t", "INGRESS"), flowcut.enum("FlowcutMode_t", "FULL"))
    assert ("FULL", "9") == (flowcut.enum_name("FlowcutMode_t", 2), flowcut.enum_name("FlowcutMode_t", 9))
    assert 510 == flowcut.constant("cpu_port")
    assert 0xFFFF == flowcut.largest("to_group", "group")
    for ask in (
        lambda: flowcut.enum("FlowcutMode_t", "HALF"),
        lambda: flowcut.constant("colour"),
        lambda: flowcut.table("none"),
        lambda: flowcut.largest("to_group", "none"),
        lambda: flowcut.register_size("none"),
        lambda: programs.load("none"),
    ):
        with pytest.raises(P4ProgramError, match="program "):
            ask()


def test_broken_program(tmp_path: Path) -> None:
    """A P4Info that is none is refused in one line with its name."""
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "x.p4info.txtpb").write_text("tables {\n nonsense")
    with pytest.raises(P4ProgramError) as caught:
        programs.load("x", tmp_path)
    assert "x.p4info.txtpb" in str(caught.value)
    assert "\n" not in str(caught.value)
