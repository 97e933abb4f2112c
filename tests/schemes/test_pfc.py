# SPDX-License-Identifier: Apache-2.0
"""PFC that the program stands in for: what the controller installs for it, and for whom not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailrace.p4rt import programs
from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.entities import P4CloneSessionEntry, P4TableEntry
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.target import EmulatedPfc, target
from tailrace.schemes.errors import IntentError
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.watch import storm_of
from tailrace.spec.constants import MAX_QUANTA
from tailrace.spec.watchdog import of_switch
from tailrace.topology import parse_topology
from tests.schemes.planned import default, intent, rows

_FAST = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2,rate=10Mbps")
TOPOLOGY = replace(_FAST, hosts=tuple(replace(host, rate_bps=5_000_000) for host in _FAST.hosts))
PFC = EmulatedPfc(30_000, 20_000)
LOSSLESS = ("ecmp", "presto", "letflow", "drill", "hermes", "rlb:pfc=30000,flows=1")


def held(scheme: str, pfc: EmulatedPfc | None) -> SwitchIntent:
    """What leaf1 holds."""
    return intent(TOPOLOGY, parse_scheme(scheme), target("bmv2", pfc=pfc))["leaf1"]


@pytest.mark.parametrize("scheme", LOSSLESS)
def test_thresholds_and_rates(scheme: str) -> None:
    """Each port gets the length of a quantum at its rate; the pause is renewed within that of the fastest."""
    intended = held(scheme, PFC)
    _, config = default(intended, "pfc_config")
    assert (config["xoff_bytes"], config["xon_bytes"]) == (30_000, 20_000)
    ticks_10, ticks_5 = 51.2, 102.4  # 512 bits, in microseconds
    assert abs(config["refresh_ticks"] - MAX_QUANTA * ticks_10 / 2) < 2
    assert config["room"] == (480 if scheme.startswith("rlb") else 992)
    units = {int(m["port"]): int(args["quantum"]) / (1 << 16) for m, _, args in rows(intended, "pfc_ports")}
    peers = TOPOLOGY.ports_of("leaf1")
    assert units.keys() == peers.keys()
    for port, peer in peers.items():
        assert units[port] == pytest.approx(ticks_10 if peer.kind == "switch" else ticks_5, abs=1e-4)


def test_clones_go_where_pause_frames_are_made() -> None:
    """One session, to a port without a link."""
    (session,) = [entity for entity in held("drill", PFC).entities if isinstance(entity, P4CloneSessionEntry)]
    assert session.session_id == 2
    assert list(session.replicas) == [508]


@pytest.mark.parametrize("scheme", LOSSLESS)
def test_nothing_where_the_traffic_manager_has_it(scheme: str) -> None:
    """The program's defaults stay: off."""
    intended = held(scheme, None)
    assert not any(isinstance(e, P4TableEntry) and e.table_id.startswith("pfc_") for e in intended.entities)


def test_a_program_that_cannot() -> None:
    """Refused by name."""
    with pytest.raises(IntentError, match="scheme flowcut: target bmv2 has no PFC, and the program flowcut"):
        held("flowcut", PFC)


def test_watchdogs() -> None:
    """Hosts' ports are watched closely, those of switches as switches do it; each by its own rate."""
    program = programs.load("ecmp")
    peers = TOPOLOGY.ports_of("leaf1")
    for words, action in (("drop", "DROP"), ("ignore", "IGNORE"), ("off", None)):
        pfc = EmulatedPfc(30_000, 20_000, of_switch(words).spec())
        for match, _, args in rows(held("ecmp", pfc), "pfc_ports"):
            peer = peers[int(match["port"])]
            if action is None:
                assert args["detect_ticks"] == 0
                continue
            assert args["storm"] == program.enum("Storm_t", action)
            if peer.kind == "switch":
                assert (args["detect_ticks"], args["restore_ticks"], args["leak"]) == (200_000, 200_000, 0)
            else:
                # 30 kB, and 65,535 quanta, at 5 Mbit/s
                assert (args["detect_ticks"], args["restore_ticks"]) == (48_000, 6_710_784)
                assert int(args["leak"]) / (1 << 16) == pytest.approx(0.05 / 0.95, rel=1e-3)


def test_storms_are_told() -> None:
    """With their port's neighbour; other digests are not taken for one."""
    storm = storm_of(DigestMessage("leaf1", "pfc_storm_t", {"port": 1, "priority": 0}, 7), TOPOLOGY, 9)
    assert storm is not None
    assert (storm.kind, storm.subject, storm.facts["time_ns"]) == ("pfc-storm", "leaf1-h1", 7)
    over = storm_of(DigestMessage("leaf1", "pfc_restored_t", {"port": 99, "priority": 0}), TOPOLOGY, 9)
    assert over is not None
    assert (over.kind, over.facts["neighbour"], over.facts["time_ns"]) == ("pfc-restored", "nobody", 9)
    assert storm_of(DigestMessage("leaf1", "failure_alert_t", {"port": 1}), TOPOLOGY, 9) is None
