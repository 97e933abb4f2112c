# SPDX-License-Identifier: Apache-2.0
"""`tailrace push`: a program and entries onto a native switch over gRPC on loopback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    found = on_switch("push", "s1", str(PROGRAM), "--entries", str(ENTRIES))
    assert (found.status, found.out) == (0, "s1: basic_l3, 3 entries\n"), found.err
    rows = json.loads(on_switch("tables", "--where", "entry != default", "-o", "json").out)
    assert len(rows) == 3
    traced = on_switch("trace", "s1", "--port", "0", WORDS)
    assert "hit: dst=0xa000200/24 forward(" in traced.out
    assert "sent by port 1" in traced.out

    moved = tmp_path / "other.json"
    shutil.copy(PROGRAM, moved)
    told = on_switch("push", "s1", str(moved))
    assert told.status == 2
    assert told.err.count("\n") == 1 and "other.p4info.txtpb" in told.err
    info = str(PROGRAM.with_name("basic_l3.p4info.txtpb"))
    again = on_switch("push", "s1", str(moved), "--p4info", info)
    assert again.out == "s1: other, 0 entries\n", again.err
    assert json.loads(on_switch("tables", "--where", "entry != default", "-o", "json").out) == []


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("table", "nope", "key 'table_entries[0]': no P4Table named 'nope'"),
        ("action_name", "nope", "no table action named 'nope'"),
        ("match", {"dst": ["300.1.1.1", 8]}, "Match field 'dst'"),
        ("match", {"nodst": 1}, "no match field named 'nodst'"),
        ("action_params", {"port": 512, "next_hop": 1}, "invalid value for bitwidth 9: 512"),
        ("action_params", {"port": 1}, "missing parameters"),
        ("matches", {}, "unknown key"),
        ("priority", "high", "priority"),
    ],
)
def test_mistakes_in_entries_are_told(
    on_switch: Command, tmp_path: Path, key: str, value: object, said: str
) -> None:
    """One line with the file and the key, and the switch is left alone."""
    document = json.loads(ENTRIES.read_text("utf-8"))
    document["table_entries"][0][key] = value
    (tmp_path / "x.json").write_text(json.dumps(document), "utf-8")
    found = on_switch("push", "s1", str(PROGRAM), "--entries", str(tmp_path / "x.json"))
    assert found.status == 2
    assert found.err.count("\n") == 1 and "x.json" in found.err and said in found.err
    assert on_switch("tables").status != 0


def test_nobody_there(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, in one line."""
    monkeypatch.setattr(push, "_STARTS_S", 0.2)
    found = command("push", "s1", str(PROGRAM), "--address", "s1=127.0.0.1:1")
    assert (found.status, found.err.count("\n")) == (1, 1)
    assert "no P4Runtime server answers at 127.0.0.1:1" in found.err
