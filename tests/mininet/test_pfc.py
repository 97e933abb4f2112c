"""Priority flow control under Mininet: switches and hosts that are programs pause each other."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import fabric_pfc
import pytest
from fabric_bmv2 import WAITING_FACTOR, WAITING_PPS, recirculation_rates
from fabric_plan import command, make_plan

from tailrace.p4rt import programs
from tailrace.p4rt.target import EmulatedPfc, target
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.job import Job, check_real_time
from tailrace.sim.pfc import pfc_seen
from tailrace.spec import SpecError
from tailrace.spec.watchdog import Watchdog
from tailrace.switch.daemon.command_line import make_parser, parse_options
from tailrace.switch.daemon.lossless import WatchdogSpec, pfc_configs
from tailrace.topology import parse_topology
from tailrace.topology.pfc import Thresholds
from tests.mininet.conftest import Harness
from tests.mininet.test_runs import flow, result

TOPOLOGY = parse_topology("leaf-spine:leaves=2,spines=1,hosts=2,rate=10Mbps")
LIMITS: dict[str, Any] = {"xoff_bytes": 6000, "xon_bytes": 3000, "headroom_bytes": 200_000}


def test_what_the_native_switch_is_told(tmp_path: Path) -> None:
    """Its own parser reads it; queues have no limit but the buffer."""
    plan = make_plan(TOPOLOGY, "native", tmp_path, tmp_path).switches[0]
    more = fabric_pfc.options(
        Thresholds(**LIMITS, buffer_bytes=9_000_000, alpha=Fraction(1, 8)), 0, plan.statistics, [1, 2], [3]
    )
    words = command(plan, target("native"), "0B", more)
    _, options = parse_options(make_parser(), words[3:])
    ((port, spec),) = options.pfc
    assert (port, spec.priorities) == (None, (0,))
    assert (spec.xoff_bytes, spec.xon_bytes, spec.headroom_bytes) == tuple(LIMITS.values())
    assert options.buffer is not None
    assert (options.buffer.bytes, str(options.buffer.alpha)) == (9_000_000, "1/8")
    assert options.pfc_watchdog == [
        WatchdogSpec(None, Watchdog()),
        WatchdogSpec((1, 2), Watchdog(), host=True),
    ]
    assert (options.queue_depth, options.statistics) == ((0, 0), tmp_path / "leaf1.json")


def test_channels_are_of_links_between_switches(tmp_path: Path) -> None:
    """Their ports count what comes in with the class below its queue's; hosts' know one class."""
    plan = make_plan(TOPOLOGY, "native", tmp_path, tmp_path).switches[0]
    more = fabric_pfc.options(Thresholds(**LIMITS, channels=3), 0, plan.statistics, [1, 2], [3])
    _, options = parse_options(make_parser(), command(plan, target("native"), "0B", more)[3:])
    configs = pfc_configs(options.pfc)
    assert {port: (config.priorities, config.rise) for port, config in configs.items()} == {
        None: ((0,), 0),
        3: ((0, 1, 2), 1),
    }


def job_with(target: str, **thresholds: int) -> Job:
    """A job with PFC and no flows."""
    scheme = resolve(parse_scheme("ecmp"), TOPOLOGY)
    return Job(topology=TOPOLOGY, scheme=scheme, target=target, pfc=Thresholds(**{**LIMITS, **thresholds}))


def test_bmv2_has_no_shared_memory() -> None:
    """Refused in one line, before anything is started; thresholds alone are the program's affair."""
    check_real_time(job_with("bmv2"))
    with pytest.raises(SpecError, match=r"^pfc: buffer: bmv2 has no shared buffer; [^\n]+$"):
        check_real_time(job_with("bmv2", buffer_bytes=9_000_000))


def test_pauses_are_no_lost_frames(tmp_path: Path) -> None:
    """No program counts them, but the switch took them."""
    plan = make_plan(TOPOLOGY, "native", tmp_path, tmp_path)
    ports = {
        str(port.number): {"pfc_received": port.number, "pfc_ignored": 10} for port in plan.switches[0].ports
    }
    totals = fabric_pfc.received(
        {"leaf1-eth3": 5, "leaf2-eth1": 7}, {"leaf1": {"ports": ports}}, plan.switches
    )
    assert totals == {"leaf1-eth3": 5 + 3 + 10, "leaf2-eth1": 7}
    assert fabric_pfc.received({"leaf1-eth3": 5}, {}, plan.switches) == {"leaf1-eth3": 5}


def test_what_goes_round_in_a_bmv2_switch_has_a_rate(tmp_path: Path) -> None:
    """Recirculation that of a link; what waits for paused ports several times that, but never very little."""
    program = programs.load("rlb_drill")
    mirror, waiting = (program.constant(name) for name in ("mirror_port", "waiting_port"))
    (slow,) = make_plan(TOPOLOGY, "bmv2", tmp_path, tmp_path).switches[:1]
    fast = replace(slow, ports=tuple(replace(port, rate_bps=80_000_000) for port in slow.ports))
    assert recirculation_rates(slow, program, 1000, None, waits=False) == {}
    assert recirculation_rates(slow, program, 1000, 8_000_000, waits=False) == {mirror: 1000}
    assert recirculation_rates(slow, program, 100_000, None, waits=True) == {waiting: WAITING_PPS}
    assert recirculation_rates(fast, program, 1000, None, waits=True) == {waiting: WAITING_FACTOR * 10_000}


def test_what_the_controller_is_told() -> None:
    """Thresholds alone, where the program is to do it; there is nothing else that it could keep."""
    assert job_with("bmv2").switches.pfc == EmulatedPfc(LIMITS["xoff_bytes"], LIMITS["xon_bytes"])
    assert job_with("native").switches.pfc is None


def test_counts_of_the_program_read_as_those_of_a_traffic_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames, pauses, times and what was lost, from counters and registers by port."""
    program = programs.load("presto")
    plan = make_plan(TOPOLOGY, "bmv2", tmp_path, tmp_path).switches[0]
    first, second = (port.number for port in plan.ports[:2])
    closed, most = [0] * 512, [0] * 512
    closed[first], most[first], most[second] = 250, 9000, 4000
    monkeypatch.setattr(
        fabric_pfc, "pfc_registers", lambda _plan: {"closed_ticks": closed, "most_bytes": most}
    )
    lost = program.enum("DropReason_t", "NO_WAITING_ROOM")
    cells = {"pfc_sent": {first: 5}, "pfc_pauses_sent": {first: 3}, "pfc_received": {second: 4}}
    cells |= {"pfc_storms": {second: 2}, "pfc_storm_drops": {second: 9}}
    reading = {plan.name: {**cells, "drops": {lost: 7}}}
    counted = fabric_pfc.emulated_counts([plan], program, reading, xoff_bytes=6000)
    seen = pfc_seen(list(counted.values()), [0], 1_000_000)
    assert (seen.frames, seen.pauses, seen.received, seen.lost, seen.ignored) == (5, 3, 4, 7, 0)
    assert seen.paused_ns == 250_000
    assert (seen.storms, seen.storm_dropped) == (2, 9)
    assert seen.headroom_most_bytes == 3000
    assert seen.buffer_most_bytes == 13_000


def test_an_incast_pauses_hosts_and_loses_nothing(harness: Harness) -> None:
    """Three hosts send to one. What came of it was counted by the switches, read from them while they ran."""
    pairs = enumerate(((1, 3), (2, 2), (2, 3)))
    flows = [flow(number, f"10.0.{leaf}.{host}", "10.0.1.2", 200_000) for number, (leaf, host) in pairs]
    # windows that no headroom can run over with, however late somebody obeys
    nic = {"window_bytes": 65536, "rto_ns": 5_000_000_000}
    done = harness.run(harness.job(scheme="ecmp:queue=0", flows=flows, nic=nic, pfc=LIMITS))
    assert (done.returncode, done.stderr) == (0, "")
    outcome = result(harness)
    assert all(record["end_ns"] is not None for record in outcome["flows"])
    assert set(outcome["pfc"]["switches"]) == {"leaf1", "leaf2", "spine1", "spine2"}
    seen = pfc_seen(list(outcome["pfc"]["switches"].values()), [0], outcome["pfc"]["traffic_ns"])
    assert seen.frames > 0
    assert (seen.lost, seen.ignored) == (0, 0)
    assert 0 < seen.buffer_most_bytes
    assert harness.left_behind() == []
