# SPDX-License-Identifier: Apache-2.0
"""`tailrace paths`, `queues` and `diff` over RLB: what the switches know and count now, on real servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.l2 import Ether

from tailrace.codec.layers.local import Cnm, LocalHeader
from tailrace.controller import runfile
from tailrace.controller.runfile import RunFile, RunSwitch
from tailrace.p4rt import programs
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.switch.core import PfcConfig
from tailrace.switch.p4runtime.context import DevicePorts
from tests.cli.conftest import Command, Outcome
from tests.controller.faulty_leaf import LEAF, SCHEME, TOPOLOGY, UPLINKS, FaultyLeaf
from tests.controller.inspect.served import ServedSwitch, install_scheme, served
from tests.schemes.planned import intent

WORDS = "leaf-spine:leaves=2,spines=3,hosts=1,rate=10Mbps,delay=1ms"
TICK_NS = 1_000
PORT = UPLINKS[1]
OUT_LEFT_NS = 5_000_000
Live = Callable[..., Outcome]


def write_run_file(path: Path, places: dict[str, ServedSwitch], **known: Any) -> None:
    switches = {name: RunSwitch(p.address, p.device_id, "rlb_hermes") for name, p in places.items()}
    runfile.write(path, RunFile(WORDS, SCHEME, "native", TICK_NS, None, switches, **known))


@pytest.fixture(scope="module")
def installed() -> Iterator[dict[str, ServedSwitch]]:
    """Two leaves and three spines with what they should hold."""
    with served(len(TOPOLOGY.switches)) as switches:
        by_name = {item.name: place for item, place in zip(TOPOLOGY.switches, switches, strict=True)}
        install_scheme(TOPOLOGY, SCHEME, by_name)
        yield by_name


@pytest.fixture
def places(installed: dict[str, ServedSwitch]) -> dict[str, ServedSwitch]:
    """The same, of which the first leaf, where everything happens, was just installed."""
    install_scheme(TOPOLOGY, SCHEME, {LEAF: installed[LEAF]})
    return installed


@pytest.fixture
def live(command: Command, places: dict[str, ServedSwitch], tmp_path: Path) -> Live:
    """Runs an inspection command on them; what the controller knows can be given."""

    def run(name: str, *words: str, **known: Any) -> Outcome:
        write_run_file(tmp_path / "run.json", places, **known)
        return command(name, *words, "--run", str(tmp_path / "run.json"))

    return run


def warning(valid_ticks: int, leaf: int) -> bytes:
    return bytes(Ether() / LocalHeader() / Cnm(port=9, leaf=leaf, hops=0, valid_ticks=valid_ticks))


def test_paths(live: Live, places: dict[str, ServedSwitch]) -> None:
    """Each port of each hop: idle at first; then what a CNM and a measured RTT have changed, as time passes."""
    done = live("paths", "h1", "h2", "-o", "json")
    assert (0, "") == (done.status, done.err)
    ways = [(row["hop"], row["switch"], row["port"]["peer"]) for row in done.rows]
    spines = ["spine1", "spine2", "spine3"]
    assert ways == [
        *((1, LEAF, spine) for spine in spines),
        *((2, spine, "leaf2") for spine in spines),
        (3, "leaf2", "h2"),
    ]
    idle = {"used": True, "warned": False, "warned_left_ns": None, "rtt_ns": None, "rtt_age_ns": None}
    idle |= {"suppressed": None, "suppressed_left_ns": None}
    for row in done.rows[:-1]:
        assert {key: row[key] for key in idle} == idle
    assert (done.rows[-1]["warned"], done.rows[-1]["note"]) == (None, "delivered")

    leaf = places[LEAF]
    leaf.receive(PORT, warning(700, TOPOLOGY.leaves.index("leaf2")))
    FaultyLeaf(leaf).measured(PORT, 40)
    leaf.advance(100 * TICK_NS)
    rows = live("paths", "h1", "h2", "-o", "json", "--where", f"switch == {LEAF}").rows
    warned = {row["port"]["port"]: row["warned_left_ns"] for row in rows if row["warned"]}
    assert warned == {PORT: 600 * TICK_NS}
    (measured,) = [row for row in rows if row["rtt_ns"] is not None]
    assert (measured["port"]["port"], measured["rtt_ns"]) == (PORT, 40 * TICK_NS)
    assert measured["rtt_age_ns"] == 100 * TICK_NS
    leaf.advance(600 * TICK_NS)
    assert live("paths", "h1", "h2", "-o", "json", "--where", "warned").rows == []


def test_paths_that_are_out(live: Live, places: dict[str, ServedSwitch]) -> None:
    """Ports that the entries leave out are shown all the same, with the reason and how long it lasts yet."""
    out, down = (LEAF, PORT), frozenset({(LEAF, UPLINKS[0]), ("spine1", 1)})
    scheme = parse_scheme(SCHEME)
    intended = intent(TOPOLOGY, scheme, target("native"), down, suppressed={out})[LEAF]
    places[LEAF].install(programs.load(intended.program), intended.entities)
    known = {"down": tuple(sorted(down)), "suppressed": ((*out, OUT_LEFT_NS),)}
    rows = live("paths", "h1", "h2", "-o", "json", "--where", f"switch == {LEAF}", **known).rows
    seen = [(row["port"]["port"], row["used"], row["suppressed"], row["suppressed_left_ns"]) for row in rows]
    assert seen == [
        (UPLINKS[0], False, "link down", None),
        (UPLINKS[1], False, "failure alert", OUT_LEFT_NS),
        (UPLINKS[2], True, None, None),
    ]
    assert live("diff", LEAF, "-o", "json", **known).status == 0
    assert live("diff", LEAF, "-o", "json").status == 1


def test_diff_knows_digests(live: Live, places: dict[str, ServedSwitch]) -> None:
    """A digest that is off is a difference, in words."""
    scheme = parse_scheme(SCHEME)
    intended = intent(TOPOLOGY, scheme, target("native"))[LEAF]
    entities = [e for e in intended.entities if type(e).__name__ != "P4DigestEntry"]
    places[LEAF].install(programs.load(intended.program), entities)
    rows = live("diff", LEAF, "-o", "json").rows
    assert {(LEAF, "missing", "digest")} == {(r["switch"], r["difference"], r["where"]) for r in rows}
    names = {"failure_alert_t", "pfc_storm_t", "pfc_restored_t"}
    assert names == {row["match"]["group"] for row in rows}
    assert all("max_list_size=1" in row["intended"] for row in rows)


def test_queues(live: Live, places: dict[str, ServedSwitch]) -> None:
    """Warnings received by port, recirculations and the CNM of a host by switch, beside the queues."""
    leaf, faulty = places[LEAF], FaultyLeaf(places[LEAF])
    columns = {row["switch"] for row in live("queues", "-o", "json").rows}
    assert columns == set(places)
    leaf.receive(PORT, warning(10, 1))
    leaf.receive(PORT, warning(0, 1))
    host_port = next(iter(set(TOPOLOGY.ports_of(LEAF)) - set(UPLINKS)))
    leaf.receive(host_port, warning(10, 1))
    leaf.advance(1_000_000)
    faulty.spoil(PORT)
    faulty.send(1)
    rows = live("queues", LEAF, "-o", "json").rows
    whole = next(row for row in rows if row["port"] is None)
    assert (whole["recirculations"], whole["control_from_host"]) == (9, 1)
    assert (whole["recirculating"], whole["egress_queue_bytes"]) == (0, None)
    ports = {row["port"]["port"]: row for row in rows if row["port"] is not None}
    assert {port: row["warnings_received"] for port, row in ports.items()} == {
        port: 2 * (port == PORT) for port in TOPOLOGY.ports_of(LEAF)
    }
    assert {(row["ingress_queue_bytes"], row["warns"], row["warnings_sent"]) for row in ports.values()} == {
        (0, False, 0)
    }


def test_pauses_of_the_traffic_manager(live: Live, places: dict[str, ServedSwitch]) -> None:
    """What the native switch counts of PFC, by port; a table for people has it, too."""
    frame = bytes.fromhex("0180c2000001" + "020000000001" + "8808" + "0101" + "0001" + "ffff" + "0000" * 7)
    places[LEAF].device.ports = DevicePorts(frozenset(TOPOLOGY.ports_of(LEAF)))
    places[LEAF].switch.port_pfc(PORT, PfcConfig((0,), 20_000, 10_000, 20_000))
    places[LEAF].receive(PORT, frame + bytes(26))
    rows = live("queues", LEAF, "-o", "json", "--where", "port == 3").rows
    (row,) = rows
    assert (row["pauses_sent"], row["pfc_received"]) == (0, 1)
    text = live("queues", LEAF).out.splitlines()
    assert "pfc_received" in text[0]
    assert len(text) == 1 + len(TOPOLOGY.ports_of(LEAF)) + 1


def test_watched(live: Live) -> None:
    """Readings again and again: a line of JSON each, with rates of the counts."""
    lines = live("queues", LEAF, "--watch", "0.01", "--rounds", "2", "-o", "json").out.splitlines()
    first, second = (json.loads(line) for line in lines)
    assert {row["warnings_sent_per_s"] for row in first["rows"]} == {None}
    assert {row["warnings_sent_per_s"] for row in second["rows"] if row["port"] is not None} == {0}
    assert (
        len(live("paths", "h1", "h2", "--watch", "0.01", "--rounds", "2", "-o", "json").out.splitlines()) == 2
    )


def test_without_a_run_file(command: Command, places: dict[str, ServedSwitch]) -> None:
    """By addresses and topology alone, without a controller: all but times, which need the length of a tick."""
    places[LEAF].receive(PORT, warning(700, TOPOLOGY.leaves.index("leaf2")))
    words = [f"--address={name}={place.address}@{place.device_id}" for name, place in places.items()]
    done = command("paths", "h1", "h2", *words, "--topology", WORDS, "-o", "json")
    assert (done.status, done.err) == (
        0,
        f"tailrace: {LEAF}: the length of a tick is not known, so no times are shown\n",
    )
    (row,) = [row for row in done.rows if row["warned"]]
    assert (row["port"]["port"], row["warned_left_ns"]) == (PORT, None)
