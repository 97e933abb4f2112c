# SPDX-License-Identifier: Apache-2.0
"""`tailrace push`: a program and entries onto a native switch over gRPC on loopback."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.cbuild import cache
from tailrace.cli.inspect import push
from tests.cli.conftest import Command
from tests.controller.inspect.served import ServedSwitch, served
from tests.test_readme import ROOT

PROGRAM = ROOT / "tests" / "programs" / "build" / "basic_l3.json"
ENTRIES = ROOT / "examples" / "router" / "entries.json"
WORDS = 'Ether()/IP(dst="10.0.2.2")'


@pytest.fixture(name="switch")
def empty_switch() -> Iterator[ServedSwitch]:
    with served(1) as (switch,):
        yield switch


@pytest.fixture(name="on_switch")
def command_on_switch(command: Command, switch: ServedSwitch) -> Command:
    """`tailrace` on that switch."""
    return lambda *words: command(*words, "--address", f"s1={switch.address}@{switch.device_id}")


def test_a_program_and_its_entries(on_switch: Command, tmp_path: Path) -> None:
    """The tables read back as the file says, and a packet takes the route; another program takes them away."""
    result = on_switch("push", "s1", str(PROGRAM), "--entries", str(ENTRIES))
    assert (result.status, result.out) == (0, "s1: basic_l3, 3 entries\n"), result.err
    rows = json.loads(on_switch("tables", "--where", "entry != default", "-o", "json").out)
    assert len(rows) == 3
    traced = on_switch("trace", "s1", "--port", "0", WORDS)
    assert "hit: dst=10.0.2.0/24 forward(" in traced.out
    assert "sent by port 1" in traced.out

    moved = tmp_path / "other.json"
    shutil.copy(PROGRAM, moved)
    refusal = on_switch("push", "s1", str(moved))
    assert refusal.status == 2
    assert refusal.err.count("\n") == 1 and "other.p4info.txtpb" in refusal.err
    info = str(PROGRAM.with_name("basic_l3.p4info.txtpb"))
    again = on_switch("push", "s1", str(moved), "--p4info", info)
    assert again.out == "s1: other, 0 entries\n", again.err
    assert json.loads(on_switch("tables", "--where", "entry != default", "-o", "json").out) == []


def test_mistakes_in_entries_are_told(on_switch: Command, tmp_path: Path) -> None:
    """One line with the file and the key, and the switch is left alone. Of all kinds: p4rt/test_entry_files.py."""
    document = json.loads(ENTRIES.read_text("utf-8"))
    document["table_entries"][0]["match"] = {"dst": ["300.1.1.1", 8]}
    (tmp_path / "x.json").write_text(json.dumps(document), "utf-8")
    result = on_switch("push", "s1", str(PROGRAM), "--entries", str(tmp_path / "x.json"))
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert (
        "x.json: key 'table_entries[0]" in result.err and "'300.1.1.1' is not an IPv4 address" in result.err
    )
    assert on_switch("tables").status != 0


def route(dst: str, port: int) -> dict[str, object]:
    params = {"next_hop": "02:00:00:00:00:01", "port": port}
    return {"table": "route", "match": {"dst": dst}, "action_name": "forward", "action_params": params}


def write(path: Path, *entries: dict[str, object]) -> str:
    path.write_text(json.dumps({"table_entries": entries}), "utf-8")
    return str(path)


def test_the_entry_that_is_refused_is_named(on_switch: Command, tmp_path: Path) -> None:
    """With its place and its key, and how many others are in: over several batches, too."""
    entries = [route(f"10.{at >> 8}.{at & 255}.0/24", 1) for at in range(600)]
    entries[1] = entries[0]
    entries[598] = route("10.0.0.7/24", 2)
    path = write(tmp_path / "x.json", *entries)
    result = on_switch("push", "s1", str(PROGRAM), "--entries", path)
    assert (result.status, result.out) == (1, "")
    assert result.err == (
        f"tailrace: s1: {path}: table_entries[1]: dst=10.0.0.0/24 of table route was refused: ALREADY_EXISTS: "
        "table 'L3Ingress.route' already has an entry with this key; refused too: table_entries[598]; "
        "598 of 600 entries are in the switch\n"
    )
    assert len(on_switch("tables", "--where", "entry == entry", "-o", "json").rows) == 598


def test_commands_of_simple_switch_cli(on_switch: Command, tmp_path: Path) -> None:
    """They become entries; what P4Runtime cannot express is named; a refused one is named by its line."""
    path = tmp_path / "s1-commands.txt"
    lines = [
        "table_add route forward 10.0.2.0/24 => 02:00:00:00:00:01 1",
        "set_queue_rate 100",
        "mc_mgrp_create 1",
        "mc_node_create 0 1 2",
        "mc_node_associate 1 0",
        "mirroring_add 5 2",
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    result = on_switch("push", "s1", str(PROGRAM), "--entries", str(path))
    assert (result.status, result.out) == (0, "s1: basic_l3, 3 entries\n")
    assert result.err.startswith(f"tailrace: {path}: line 2: set_queue_rate is left out")
    assert "sent by port 1" in on_switch("trace", "s1", "--port", "0", WORDS).out
    assert len(on_switch("groups", "-o", "json").rows) == 2
    path.write_text("\n".join([*lines, lines[0]]), "utf-8")
    again = on_switch("push", "s1", str(PROGRAM), "--entries", str(path))
    assert again.status == 1
    assert "s1-commands.txt: line 7: dst=10.0.2.0/24 of table route was refused" in again.err
    assert "3 of 4 entries are in" in again.err


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        (
            "action_profiles",
            (
                "act_prof_create_member next_hops set_port 1",
                "act_prof_create_group next_hops",
                "act_prof_add_member_to_group next_hops 0 0",
                "table_indirect_add_with_group route 10.0.0.0/8 => 0",
                "table_indirect_add route 11.0.0.0/8 => 0",
                "table_indirect_create_member rewrite set_tos 7",
                "table_indirect_add rewrite 6 => 0",
            ),
        ),
        (
            "match_kinds",
            (
                "table_add exact_match set_exact 0x05 2 1 => 3",
                "table_add ternary_match set_ternary 0x10&&&0x1f 0&&&0 => 6 10",
                "table_add range_match set_range 80->443 0->127 => 7 0",
                "table_add optional_match set_optional 5&&&0xffffff 0&&&0 => 8 5",
                "table_add lpm_match set_lpm 0.0.0.0/0 => 5",
                "table_set_default exact_match set_exact 9",
            ),
        ),
        (
            "registers",
            ("register_write packets_seen 3 5", "register_write wide_cells 1 0xffffffffffffffffffff"),
        ),
        (
            "meters",
            (
                "meter_array_set_rates port_meter 0.5:10 1:20",
                "meter_set_rates port_meter 2 0.1:1 0.5:2",
                "table_add flows metered 5 => 1",
                "meter_set_rates entry_meter 0 1:1 2:2",
            ),
        ),
        ("counters", ("counter_write both_by_port 1 2 3",)),
        ("value_sets", ("pvs_add tunnel_types 0x6558", "pvs_add tunnel_types 7")),
    ],
)
def test_commands_that_the_switch_takes(
    on_switch: Command, tmp_path: Path, program: str, lines: tuple[str, ...]
) -> None:
    (tmp_path / "commands.txt").write_text("\n".join(lines), "utf-8")
    json_path = PROGRAM.with_name(f"{program}.json")
    result = on_switch("push", "s1", str(json_path), "--entries", str(tmp_path / "commands.txt"))
    assert (result.status, result.err) == (0, "")


def test_fields_whose_last_names_are_the_same(on_switch: Command, tmp_path: Path) -> None:
    """Such a table loads, and shows its fields by their full names wherever they are shown."""
    program = PROGRAM.with_name("match_kinds.json")
    text = program.with_name("match_kinds.p4info.txtpb").read_text("utf-8")
    for old, new in (
        ("exact8", "hdr.eth.src"),
        ("exact3", "hdr.srcRoutes[0].src"),
        ("valid", "hdr.ip.$valid$"),
    ):
        text = text.replace(f'name: "{old}" bitwidth', f'name: "{new}" bitwidth')
    info = tmp_path / "x.p4info.txtpb"
    info.write_text("\ufeff" + text, "utf-8")
    entry: dict[str, object] = {
        "table": "exact_match",
        "match": {"hdr.eth.src": [5], "hdr.srcRoutes[0].src": 2, "hdr.ip.isValid()": True},
        "action_name": "set_exact",
        "action_params": {"value": 3},
    }
    path = write(tmp_path / "e.json", entry)
    result = on_switch("push", "s1", str(program), "--p4info", str(info), "--entries", path)
    assert (result.status, result.out) == (0, "s1: match_kinds, 1 entries\n"), result.err
    (row,) = on_switch("tables", "--where", "entry == entry", "-o", "json").rows
    assert row["match"] == {"hdr.eth.src": 5, "hdr.srcRoutes[0].src": 2, "hdr.ip.$valid$": 1}
    trace = tmp_path / "trace.json"
    traced = on_switch("trace", "s1", "--port", "1", "05" + "42" + "00" * 60, "--save", str(trace))
    assert "table MatchIngress.exact_match" in traced.out, traced.err
    entry["match"] = {"src": 5, "srcRoutes[0].src": 2, "$valid$": 1}
    twice = on_switch(
        "push", "s1", str(program), "--p4info", str(info), "--entries", write(tmp_path / "e.json", entry)
    )
    assert twice.status == 2
    assert "match field 'src' matches 2: hdr.eth.src, hdr.srcRoutes[0].src; give the full name" in twice.err


def test_nobody_there(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, in one line."""
    monkeypatch.setattr(push, "_STARTS_S", 0.2)
    result = command("push", "s1", str(PROGRAM), "--address", "s1=127.0.0.1:1")
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert "no P4Runtime server answers at 127.0.0.1:1" in result.err


class Starting:
    """A connection to a switch that listens when it has been waited for so often; `met` is called before each."""

    def __init__(self, waits: int, met: Callable[[int], None] = lambda _number: None) -> None:
        self.left, self.met, self.waits = waits, met, 0

    def wait(self, _most_s: float) -> bool:
        self.met(self.waits)
        self.waits += 1
        self.left -= 1
        return self.left < 0


def test_a_switch_that_compiles_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As long as something is made on this machine, and once more after that; it is told once."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    locks = contextlib.ExitStack()
    locks.enter_context(cache.open_folder().builder("libtailrace-" + "0" * 32))

    def end_third(number: int) -> None:
        if number == 3:
            locks.close()

    starting = Starting(4, end_third)
    push._wait(starting.wait)
    assert starting.left == -1
    assert (
        capsys.readouterr().err
        == "tailrace: waiting for a switch that compiles its core; this happens once\n"
    )


def test_a_switch_that_is_not_there_is_not_waited_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is made here, whatever a killed process has left; nor where there is no cache at all."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    folder = cache.open_folder()
    missing = Starting(100)
    with folder.builder("program-" + "0" * 32):
        (folder.path / f".building-libtailrace-{'0' * 32}").mkdir()
        push._wait(missing.wait)
    assert missing.waits == 1
    monkeypatch.setenv(cache.VARIABLE, "nowhere")
    push._wait(missing.wait)
    assert missing.waits == 2
    assert capsys.readouterr().err == ""
