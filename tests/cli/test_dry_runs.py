# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace` and `tailrace paths` on programs of others, and on switches that make no dry runs, as BMv2 does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from finsy.proto import p4r

from tailrace.cli.inspect.dry_run_paths import DryRunPaths
from tailrace.cli.inspect.packet_walk import walk
from tailrace.p4rt import requests
from tailrace.p4rt.client import Client
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.entities import P4TableAction, P4TableEntry, P4TableMatch
from tailrace.p4rt.errors import ReadError
from tailrace.p4rt.programs import P4Program, read
from tailrace.spec import SpecError
from tailrace.switch.trace.events import CopyEvent, DropEvent, Event, SentEvent, Trace
from tailrace.topology import GATEWAY_MAC, Topology, parse_topology
from tests.cli.conftest import Command
from tests.controller.inspect.served import Primary, ServedSwitch, served
from tests.test_readme import ROOT

BUILD = ROOT / "tests" / "programs" / "build"
MACS = {name: f"08:00:00:00:0{name[1]}:{name[1]}{name[1]}" for name in ("h1", "h2", "h3", "h4")}
TOPOLOGY = {
    "hosts": {
        "h1": {"ip": "10.0.1.1/24", "mac": MACS["h1"], "commands": ["route add default gw 10.0.1.10", "arp -s 10.0.1.10 08:00:00:00:01:00"]},
        "h2": {"ip": "10.0.2.2/24", "mac": MACS["h2"]},
        "h3": {"ip": "10.0.2.3/24", "mac": MACS["h3"]},
    },
    "switches": {"s1": {"cpu_port": "255"}, "s2": {}},
    "links": [["h1", "s1-p1"], ["h2", "s2-p1"], ["h3", "s2-p3"], ["s1-p2", "s2-p2"]],
}  # fmt: skip


def by_source(folder: Path) -> P4Program:
    """tests/programs/basic_l3.p4 with a table that looks at the source, under a name that does not say it."""
    program = read(BUILD / "basic_l3.json")
    document = json.loads(program.json)
    (table,) = (t for p in document["pipelines"] for t in p["tables"] if t["name"] == "L3Ingress.route")
    table["key"][0]["target"][1] = "src"
    (folder / "by_source.json").write_text(json.dumps(document))
    shutil.copy(BUILD / "basic_l3.p4info.txtpb", folder / "by_source.p4info.txtpb")
    return read(folder / "by_source.json")


def routes(program: P4Program, ports: Mapping[str, int]) -> list[p4r.Update]:
    updates = []
    for prefix, port in ports.items():
        action = P4TableAction("forward", next_hop=0x080000000000 + port, port=port)
        entry = P4TableEntry("route", match=P4TableMatch(dst=prefix), action=action)
        updates.append(p4r.Update(type=p4r.Update.INSERT, entity=encode(program, [entry])[0]))
    return updates


def install(switch: ServedSwitch, program: P4Program, ports: Mapping[str, int]) -> None:
    with Primary(switch) as primary:
        run_at_once(primary.push(program))
        run_at_once(primary.write(routes(program, ports)))


@pytest.fixture(scope="module", name="switches")
def two_switches() -> Iterator[list[ServedSwitch]]:
    with served(2) as switches:
        yield switches


@pytest.fixture(name="on_both")
def command_on_both(command: Command, switches: list[ServedSwitch], tmp_path: Path) -> Command:
    """`tailrace` on two switches with a topology."""
    (tmp_path / "topology.json").write_text(json.dumps(TOPOLOGY))
    places = [
        word for n, s in enumerate(switches, 1) for word in ("--address", f"s{n}={s.address}@{s.device_id}")
    ]
    return lambda *words: command(*words, *places, "--topology", str(tmp_path / "topology.json"))


@pytest.fixture
def no_dry_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switches that serve P4Runtime alone, without registers and value sets."""
    monkeypatch.setattr(requests, "TRACE", ("tailrace.Nothing", "Try"))
    whole = Client.read

    async def without(client: Client, entities: Any) -> list[p4r.Entity]:
        if any(entity.WhichOneof("entity") in ("register_entry", "value_set_entry") for entity in entities):
            raise ReadError(client.name, "no registers", "UNIMPLEMENTED")
        return await whole(client, entities)

    monkeypatch.setattr(Client, "read", without)


def notes(rows: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(row["switch"], row["note"]) for row in rows]


@pytest.mark.parametrize("copies", [False, True])
def test_paths_by_the_source(
    on_both: Command,
    switches: list[ServedSwitch],
    request: pytest.FixtureRequest,
    copies: bool,
    tmp_path: Path,
) -> None:
    """What a table is keyed by does not matter: packets are tried, on the switches or on copies of them."""
    if copies:
        request.getfixturevalue("no_dry_runs")
    install(switches[0], by_source(tmp_path), {"10.0.1.1/32": 2, "10.0.2.0/24": 1})
    install(switches[1], by_source(tmp_path), {"10.0.1.1/32": 3, "10.0.2.2/32": 2})
    result = on_both("paths", "h1", "-o", "json")
    assert result.status == 1
    assert [("s1", None), ("s2", "delivered to h3, not h2"), ("s1", None), ("s2", "delivered")] == notes(
        result.rows
    )
    assert [["s2"], ["h3"]] * 2 == [[port["peer"] for port in row["ports"]] for row in result.rows]
    assert [1, 2, 1, 2] == [row["hop"] for row in result.rows]
    assert result.err.splitlines()[-1] == "tailrace: h1 to h2: s2: delivered to h3, not h2"
    result = on_both("paths", "h3", "h1", "-o", "json")
    assert (1, [("s2", "dropped: ingress_drop")]) == (result.status, notes(result.rows))
    assert (0, [("s2", None), ("s1", "delivered")]) == (
        (result := on_both("paths", "h2", "h1", "-o", "json")).status,
        notes(result.rows),
    )
    assert copies == ("s1 makes no dry runs: its program and entries were read over P4Runtime" in result.err)


def test_a_loop_and_a_port_without_link(on_both: Command, switches: list[ServedSwitch]) -> None:
    """Each is a problem, and the walk ends."""
    program = read(BUILD / "basic_l3.json")
    install(switches[0], program, {"10.0.2.2/32": 2, "10.0.2.3/32": 9, "10.0.1.0/24": 255})
    install(switches[1], program, {"10.0.2.2/32": 2, "10.0.1.0/24": 2})
    result = on_both("paths", "h1", "h2")
    assert (1, "tailrace: h1 to h2: loop s2 s1 s2") == (result.status, result.err.strip())
    result = on_both("paths", "h1", "h3")
    assert (1, "tailrace: h1 to h3: s1: port 9 leads nowhere") == (result.status, result.err.strip())
    result = on_both("paths", "h2", "h1")
    assert (1, "tailrace: h2 to h1: s1: sent to the controller") == (result.status, result.err.strip())
    assert "arrives at CPU" in on_both("trace", "h2", "h1").out


@pytest.mark.usefixtures("no_dry_runs")
def test_trace_on_switches_that_make_no_dry_runs(
    on_both: Command, command: Command, switches: list[ServedSwitch], tmp_path: Path
) -> None:
    """From host to host, of one switch, all outcomes, and saved; it is said, with what could not be read."""
    install(switches[0], read(BUILD / "registers.json"), {})
    address = ("--address", f"s1={switches[0].address}@{switches[0].device_id}")
    result = command("trace", "s1", "--port", "1", "00" * 60, *address)
    assert result.status == 0, result.err
    first, second = result.err.splitlines()
    assert first.startswith(
        "tailrace: s1 makes no dry runs: its program and entries were read over P4Runtime"
    )
    assert second.startswith("tailrace: s1: not read, and assumed to be as after a start: register ")
    program = read(BUILD / "basic_l3.json")
    install(switches[0], program, {"10.0.2.0/24": 2})
    install(switches[1], program, {"10.0.2.0/24": 1})
    result = on_both("trace", "h1", "h2")
    assert (0, "arrives at h2") == (result.status, result.out.splitlines()[-1])
    assert ["tailrace: s1 makes", "tailrace: s2 makes"] == [line[:18] for line in result.err.splitlines()]
    (enter, *_), *_ = (
        step["trace"]["steps"] for step in json.loads(on_both("trace", "h1", "h2", "--json").out)[:2]
    )
    assert enter["frame"].startswith("080000000100"), "the gateway's MAC address"
    saved = tmp_path / "trace.json"
    frame = enter["frame"]
    assert command("trace", "s1", "--port", "1", frame, "--save", str(saved), *address).status == 0
    assert command("trace", "--replay", str(saved)).err == "tailrace: as saved\n"
    result = command("trace", "s1", "--port", "1", frame, "--all", "--json", *address)
    assert 1 == len(json.loads(result.out))
    result = command("trace", "s1", "--port", "1", frame, "--send", *address)
    assert (2, 1) == (result.status, result.err.count("\n"))
    assert "--send: s1 cannot trace packets" in result.err


def test_hosts_of_one_subnet_address_each_other(on_both: Command, switches: list[ServedSwitch]) -> None:
    """Without a switch of a network of ours between them; what nothing tells goes to our gateway's address."""
    install(switches[1], read(BUILD / "basic_l3.json"), {"10.0.2.0/24": 1})
    for src, dst, mac in (("h3", "h2", MACS["h2"]), ("h3", "h1", GATEWAY_MAC)):
        step, *_ = json.loads(on_both("trace", src, dst, "--json").out)
        assert step["trace"]["steps"][0]["frame"].startswith(mac.replace(":", ""))


# ---- outcomes of switches, as given ----

LINE = {
    "hosts": {name: {"ip": f"10.0.{name[1]}.1/24", "mac": mac} for name, mac in MACS.items()},
    "switches": {"s1": {}, "s2": {}},
    "links": [["h1", "s1-p1"], ["h2", "s2-p1"], ["h3", "s1-p3"], ["h4", "s2-p3"], ["s1-p2", "s2-p2"]],
}


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Topology:
    path = tmp_path_factory.mktemp("line") / "line.json"
    path.write_text(json.dumps(LINE))
    return parse_topology(str(path))


def sent(port: int) -> SentEvent:
    return SentEvent(port, "00")


def copies(*steps: Event) -> CopyEvent:
    return CopyEvent(1, None, 0, steps)


Outcomes = list[list[Event]]


@pytest.mark.parametrize(
    ("s1", "s2", "notes_", "problems"),
    [
        ([[sent(2)]], [[sent(1)]], [None, "delivered"], []),
        ([[sent(2)], [DropEvent("full")]], [[sent(1)]], ["dropped: full", "delivered"], ["s1: dropped: full"]),
        ([[sent(3), copies(sent(2), DropEvent("x"))]], [[sent(1)]], ["delivered to h3, not h2", "delivered"], []),
        ([[sent(2)]], [[sent(1)], [sent(3)]], [None, "delivered, delivered to h4, not h2"], ["s2: delivered to h4, not h2"]),
        ([[sent(2)]], [[sent(1), sent(3)]], [None, "delivered, delivered to h4, not h2"], []),
        ([[sent(7)]], [], ["port 7 leads nowhere"], ["s1: port 7 leads nowhere"]),
        ([[]], [], ["nothing is sent"], ["s1: nothing is sent"]),
        ([[sent(2), sent(3)]], [[DropEvent("y")]], ["delivered to h3, not h2", "dropped: y"], ["s1: delivered to h3, not h2", "s2: dropped: y"]),
        ([[sent(2)]], [[sent(2)]], [None, None, None, "loop s2 s1 s2"], ["loop s2 s1 s2"]),
    ],
)  # fmt: skip
def test_outcomes(
    line: Topology, s1: Outcomes, s2: Outcomes, notes_: list[str | None], problems: list[str]
) -> None:
    """A frame arrives if every outcome at every switch sends a copy that arrives."""
    steps_of = {"s1": s1, "s2": s2}

    def ask(switch: str, _port: int, frame: bytes) -> list[Trace]:
        def shorter(steps: Sequence[Event]) -> tuple[Event, ...]:
            # as a TTL does, so that frames of a loop are not the same ones
            return tuple(
                msgspec.structs.replace(step, frame=f"{frame[0] - 1:02x}")
                if isinstance(step, SentEvent)
                else msgspec.structs.replace(step, steps=shorter(step.steps))
                if isinstance(step, CopyEvent)
                else step
                for step in steps
            )

        return [Trace(program="p", steps=shorter(steps)) for steps in steps_of[switch]]

    tried = DryRunPaths(line, line.host("h1"), line.host("h2"), ask).walk(b"\x40")
    assert problems == [problem.removeprefix("h1 to h2: ") for problem in tried.problems]
    assert notes_ == [row["note"] for row in tried.rows]


def test_a_loop_of_one_frame(line: Topology) -> None:
    """As in an L2 network, whose switches change nothing in a frame."""
    walks = {}
    for name, ports in {"both": (2,), "one_outcome": (2, 1)}.items():

        def ask(switch: str, _port: int, frame: bytes, ports: tuple[int, ...] = ports) -> list[Trace]:
            outcomes = ports if switch == "s2" else (2,)
            return [Trace(program="p", steps=(SentEvent(port, frame.hex()),)) for port in outcomes]

        walks[name] = DryRunPaths(line, line.host("h1"), line.host("h2"), ask).walk(b"\x40")
    for walk_ in walks.values():
        assert walk_.problems == ("h1 to h2: loop s2 s1 s2",)
        assert [row["note"] for row in walk_.rows][-1] == "loop s2 s1 s2"


def test_a_loop_of_two_copies(tmp_path: Path) -> None:
    """Each copy comes to places where the other one has been: neither way repeats a place by itself."""
    ends = {("s1", 2): "s2-p2", ("s1", 3): "s3-p3", ("s2", 3): "s3-p2"}
    links = [["h1", "s1-p1"], ["h2", "s2-p1"], *([f"{a}-p{port}", b] for (a, port), b in ends.items())]
    hosts = {name: {"ip": f"10.0.{name[1]}.1/24", "mac": MACS[name]} for name in ("h1", "h2")}
    path = tmp_path / "triangle.json"
    path.write_text(json.dumps({"hosts": hosts, "switches": {"s1": {}, "s2": {}, "s3": {}}, "links": links}))
    triangle = parse_topology(str(path))
    ports = {"s1": (2, 3), "s2": (3,), "s3": (2,)}

    def ask(switch: str, _port: int, frame: bytes) -> list[Trace]:
        return [Trace(program="p", steps=tuple(SentEvent(port, frame.hex()) for port in ports[switch]))]

    walked = DryRunPaths(triangle, triangle.host("h1"), triangle.host("h2"), ask).walk(b"\x40")
    assert walked.problems == ("h1 to h2: loop among s1 s2 s3",)


def test_no_frames(line: Topology) -> None:
    """What a switch answers is checked."""
    answer = [Trace(program="p", steps=(SentEvent(2, "no frame"),))]
    with pytest.raises(SpecError, match="the switch returned an invalid frame: 'no frame'"):
        DryRunPaths(line, line.host("h1"), line.host("h2"), lambda *_: answer).walk(b"\x40")
    with pytest.raises(SpecError, match="the switch returned an invalid frame: 'no frame'"):
        list(walk(line, "h1", b"", lambda *_: answer[0]))


def test_what_is_not_told(line: Topology) -> None:
    """A trace that was cut, and frames without end, are said and no way is claimed to be whole."""

    def cut(*_: object) -> list[Trace]:
        return [Trace(program="p", steps=(sent(2),), cut=True)]

    tried = DryRunPaths(line, line.host("h1"), line.host("h3"), cut).walk(b"\x40")
    assert "h1 to h3: s1: more outcomes or steps than the switch lists" in tried.problems

    def flood(switch: str, _port: int, frame: bytes) -> list[Trace]:
        more = (
            [SentEvent(2, (frame + bytes([n])).hex()) for n in range(250)]
            if switch == "s1"
            else [SentEvent(9, "00")]
        )
        return [Trace(program="p", steps=tuple(more)) for _ in range(5)]

    tried = DryRunPaths(line, line.host("h1"), line.host("h3"), flood).walk(b"\x40")
    assert "h1 to h3: s2: port 9 leads nowhere" in tried.problems
