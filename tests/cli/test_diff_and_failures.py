# SPDX-License-Identifier: Apache-2.0
"""`tailrace diff`, and what the command says when something is wrong: one line, and the right status."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tailrace.controller.inband.relay import RelayServer
from tailrace.p4rt import programs
from tailrace.p4rt.entities import P4TableAction, P4TableEntry, P4TableMatch
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.spec.scale import scaled
from tests.cli.conftest import SCHEME, Command, Fabric, write_run_file
from tests.cli.frames import data_frame
from tests.controller.inspect.served import Primary
from tests.schemes.planned import intent
from tests.switch.p4runtime.conftest import TIMEOUT_S

ROOT = Path(__file__).resolve().parents[2]


def test_no_difference_is_status_0(fabric: Fabric, tailrace: Command) -> None:
    fabric.install()
    result = tailrace("diff")
    assert (result.status, result.out) == (0, "")
    assert result.err == "no differences: 4 switches have the intended state\n"


def test_every_kind_of_difference_is_listed(fabric: Fabric, tailrace: Command) -> None:
    fabric.install("leaf1")
    route = P4TableEntry(
        "ipv4_routes",
        match=P4TableMatch(dst="192.168.7.0/24"),
        action=P4TableAction("to_host", port=2, dst_mac=0x020000000007),
    )
    changed = P4TableEntry(
        "ipv4_routes",
        match=P4TableMatch(dst="10.0.1.2/32"),
        action=P4TableAction("to_host", port=2, dst_mac=0x02000A000102),
    )
    intended = intent(fabric.topology, parse_scheme(SCHEME), target("native"))["leaf1"]
    program = programs.load(intended.program)

    def is_route(entity: object, dst: str) -> bool:
        match = entity.match if isinstance(entity, P4TableEntry) else None
        return match is not None and match.get("dst") == dst

    kept = [
        entity
        for entity in intended.entities
        if not is_route(entity, "10.0.1.2/32") and not is_route(entity, "10.0.2.0/24")
    ]
    assert len(kept) == len(intended.entities) - 2
    fabric.switches["leaf1"].install(program, (*kept, route, changed))
    result = tailrace("diff", "-o", "json")
    assert result.status == 1
    assert result.err == "tailrace: 3 differences on 1 of the switches\n"
    assert [(row["difference"], row["match"], row["intended"], row["actual"]) for row in result.rows] == [
        (
            "changed",
            {"dst": "10.0.1.2/32"},
            "to_host port=1:h1 dst_mac=02:00:0a:00:01:02",
            "to_host port=2:h2 dst_mac=02:00:0a:00:01:02",
        ),
        ("missing", {"dst": "10.0.2.0/24"}, "to_group group=1 size=2", None),
        ("unexpected", {"dst": "192.168.7.0/24"}, None, "to_host port=2:h2 dst_mac=02:00:00:00:00:07"),
    ]
    fabric.install("leaf1")


def test_what_runs_slower_is_meant_slower(fabric: Fabric, command: Command, tmp_path: Path) -> None:
    """The age of flow table entries follows from rates and delays, so it tells the scales apart."""
    fabric.install("leaf1")
    run = tmp_path / "run.json"
    write_run_file(run, fabric.switches, time_scale=10.0)
    result = command("diff", "leaf1", "--run", str(run), "-o", "json")
    assert result.status == 1
    assert "flowcut_config" in {row["where"] for row in result.rows}
    slowed = scaled(fabric.topology, 10.0)
    entities = intent(slowed, scaled(parse_scheme(SCHEME), 10.0), target("native"))["leaf1"].entities
    fabric.switches["leaf1"].install(programs.load("flowcut"), entities)
    assert command("diff", "leaf1", "--run", str(run)).status == 0
    fabric.install("leaf1")


def test_another_program_is_one_difference(fabric: Fabric, tailrace: Command) -> None:
    fabric.switches["spine1"].install(programs.load("ecmp"), ())
    result = tailrace("diff", "spine1", "-o", "json")
    assert result.status == 1
    assert [(row["difference"], row["where"]) for row in result.rows] == [("program", "pipeline")]
    fabric.install("spine1")


def test_a_path_that_ends_early_is_status_1(fabric: Fabric, tailrace: Command) -> None:
    intended = intent(fabric.topology, parse_scheme(SCHEME), target("native"))["spine2"]
    kept = [entity for entity in intended.entities if getattr(entity, "table_id", "") != "ipv4_routes"]
    fabric.switches["spine2"].install(programs.load(intended.program), kept)
    result = tailrace("paths", "h1", "h3", "-o", "json")
    assert result.status == 1
    assert result.err == "tailrace: h1 to h3: spine2: discard sends to no port\n"
    assert [row["note"] for row in result.rows if row["switch"] == "spine2"] == ["discard sends to no port"]
    fabric.install("spine2")


def test_a_loop_is_status_1(fabric: Fabric, tailrace: Command) -> None:
    intended = intent(fabric.topology, parse_scheme(SCHEME), target("native"))["spine1"]
    kept = [entity for entity in intended.entities if getattr(entity, "table_id", "") != "ipv4_routes"]
    back = P4TableEntry(
        "ipv4_routes",
        match=P4TableMatch(dst="10.0.2.0/24"),
        action=P4TableAction("to_group", group=1, size=1),
    )
    fabric.switches["spine1"].install(programs.load(intended.program), (*kept, back))
    result = tailrace("paths", "h1", "h3")
    assert result.status == 1
    assert result.err == "tailrace: h1 to h3: loop leaf1 spine1 leaf1\n"
    fabric.install("spine1")


# ---- who may send packets ----


def test_a_controller_without_relay_keeps_flows_to_itself(fabric: Fabric, tailrace: Command) -> None:
    fabric.install("leaf1")
    with Primary(fabric.switches["leaf1"]) as primary:
        result = tailrace("flows", "leaf1")
        assert result.status == 1
        assert f"another controller is primary (election id {primary.election_id})" in result.err
        assert len(result.err.splitlines()) == 1
        assert tailrace("tables", "leaf1").status == 0


def test_after_a_controller_has_gone_flows_can_be_read(fabric: Fabric, tailrace: Command) -> None:
    """The native server remembers the highest election id, as P4Runtime §5.3 says."""
    fabric.install("leaf1")
    with Primary(fabric.switches["leaf1"]):
        pass
    assert tailrace("flows", "leaf1").status == 0


def test_lost_questions_are_asked_again(fabric: Fabric, tailrace: Command) -> None:
    fabric.install("leaf1")
    fabric.switches["leaf1"].plane.loses_packet_outs = 2
    assert len(tailrace("queues", "leaf1", "-o", "json").rows) == 4


@contextmanager
def relay(path: Path, ask, down=frozenset) -> Iterator[None]:
    """A relay in an event loop of its own, as a controller would run it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = RelayServer(path, ask, down)
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(TIMEOUT_S)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(TIMEOUT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TIMEOUT_S)
        loop.close()


def test_the_controllers_relay_is_used_where_there_is_one(
    fabric: Fabric, command: Command, tmp_path: Path
) -> None:
    asked = []

    async def ask(switch: str, op: str, index: int) -> bytes:
        asked.append((switch, op, index))
        return (1000 * index).to_bytes(4, "big") + (7).to_bytes(4, "big")

    path, run = tmp_path / "r.sock", tmp_path / "run.json"
    write_run_file(run, fabric.switches, path)
    with relay(path, ask), Primary(fabric.switches["leaf1"]):
        rows = command("queues", "leaf1", "--run", str(run), "-o", "json").rows
    assert [row["egress_queue_bytes"] for row in rows] == [1000, 2000, 3000, 4000]
    assert sorted(asked) == [("leaf1", "READ_PORT", port) for port in (1, 2, 3, 4)]
    result = command("queues", "leaf1", "--run", str(run), "-o", "json")
    assert result.status == 0, "the relay is gone, and no controller keeps us from asking ourselves"


def test_diff_knows_the_links_that_the_controller_sees_down(
    fabric: Fabric, command: Command, tmp_path: Path
) -> None:
    async def ask(switch: str, op: str, index: int) -> bytes:
        raise AssertionError("nothing is asked")

    down = frozenset({("leaf1", 3), ("spine1", 1)})
    intents = intent(fabric.topology, parse_scheme(SCHEME), target("native"), down)
    for name, switch in fabric.switches.items():
        switch.install(programs.load(intents[name].program), intents[name].entities)
    path, run = tmp_path / "r.sock", tmp_path / "run.json"
    write_run_file(run, fabric.switches, path)
    assert command("diff", "--run", str(run)).status == 1
    with relay(path, ask, lambda: down):
        assert command("diff", "--run", str(run)).status == 0
    fabric.install()


# ---- errors in one line ----


def is_error_line(text: str) -> bool:
    return bool(re.fullmatch(r"tailrace( [a-z]+)?: .*\n", text))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["tables", "--where", "dst =="], "column 7"),
        (["tables", "--where", "dts == 1"], "did you mean dst?"),
        (["tables", "--where", "dst == 10.0.0.999"], "column 8"),
        (["tables", "--rounds", "2"], "--rounds goes with --watch"),
        (["tables", "--address", "127.0.0.1:1"], "give one"),
        (["paths", "h9", "h1"], "no host 'h9'; expected h1, h2, h3, h4"),
        (["paths", "h1", "h1"], "the same host"),
    ],
)
def test_bad_input_is_status_2(tailrace: Command, words: list[str], part: str) -> None:
    result = tailrace(*words)
    assert (result.status, result.out) == (2, "")
    assert part in result.err
    assert is_error_line(result.err)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["shell"], "tailrace shell: the following arguments are required: SWITCH (see --help)"),
        (["shell", "s1", "--election-id", "0"], "--election-id: expected a number from 1 to"),
        (["report", "--titel", "x"], "unrecognized arguments: --titel; did you mean --title? (see --help)"),
        (["report", "a", "b"], "tailrace report: unrecognized arguments: b (see --help)"),
        (["run", "--json=1"], "--json: ignored explicit argument '1'"),
        (["tabels"], "tailrace: command 'tabels' is not known; did you mean tables?"),
    ],
)
def test_bad_words_are_status_2(command: Command, words: list[str], part: str) -> None:
    result = command(*words)
    assert (result.status, result.out) == (2, "")
    assert part in result.err
    assert is_error_line(result.err)


def test_no_server_is_status_1(command: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: nobody else can answer there
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = command("tables", "--address", f"s1={address}")
    assert (result.status, result.err) == (1, f"tailrace: s1: no P4Runtime server answers at {address}\n")


def test_a_switch_without_a_program_is_status_1(command: Command, bare_address: str) -> None:
    result = command("tables", "--address", f"s1={bare_address}", "--device-id", "1")
    assert result.status == 1
    assert "s1: no program is loaded" in result.err
    assert is_error_line(result.err)


def test_p4info_without_a_program_on_the_switch(command: Command, bare_address: str) -> None:
    """P4Info alone is not enough: the line says what is, and asks for nothing that was given."""
    info = str(ROOT / "tests" / "programs" / "build" / "basic_l3.p4info.txtpb")
    for words in (["tables", "--p4info", info], ["groups", "--p4info", info], ["shell", "s1"]):
        result = command(*words, "--address", f"s1={bare_address}", "--device-id", "1")
        assert result.status == 1
        assert "tailrace push" in result.err and "tailrace_switch_grpc" in result.err
        assert is_error_line(result.err)


def test_an_unknown_device_is_status_1(command: Command, bare_address: str) -> None:
    result = command("tables", "--address", f"s1={bare_address}@77")
    assert result.status == 1
    assert "NOT_FOUND" in result.err
    assert is_error_line(result.err)


def test_a_program_without_flow_table_says_so(fabric: Fabric, tailrace: Command) -> None:
    fabric.switches["leaf1"].install(programs.load("ecmp"), ())
    result = tailrace("flows", "leaf1")
    assert result.status == 1
    assert "has no flow table" in result.err
    fabric.install("leaf1")


# ---- as a process ----


def process(*words: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tailrace.cli.main", *words]
    started: subprocess.Popen[str] = subprocess.Popen(
        command, cwd=ROOT, text=True, stderr=subprocess.PIPE, **options
    )
    return started


def test_a_reader_that_goes_away_is_no_error_message(fabric: Fabric) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        started = process("tables", "--run", str(fabric.run_file), stdout=out)
        assert started.communicate(timeout=TIMEOUT_S)[1] == ""


def test_ctrl_c_ends_a_watch_with_status_0(fabric: Fabric) -> None:
    started = process(
        "groups",
        "--watch",
        "0.05",
        "--run",
        str(fabric.run_file),
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert started.stdout is not None
    for _ in range(3):
        assert started.stdout.readline()
    started.send_signal(2)
    _, err = started.communicate(timeout=TIMEOUT_S)
    assert (started.returncode, err) == (0, "")


def test_flows_by_address_without_run_file(fabric: Fabric, command: Command) -> None:
    fabric.install("leaf1")
    leaf = fabric.switches["leaf1"]
    leaf.receive(2, data_frame("10.0.1.3", "10.0.2.3", sport=5, dport=6))
    result = command("flows", "--address", f"{leaf.address}@1", "-o", "json")
    (row,) = result.rows
    assert (row["src"], row["in_port"], row["idle_ns"]) == ("10.0.1.3", {"port": 2, "peer": None}, None)
    assert row["idle_ticks"] == 0
