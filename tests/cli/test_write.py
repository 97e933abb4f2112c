# SPDX-License-Identifier: Apache-2.0
"""`tailrace write` and `tailrace delete` on native switches over gRPC on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import text_format

from tailrace.controller.session import DEFAULT_ELECTION_ID
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.messages import p4r
from tests.cli.conftest import Command
from tests.controller.inspect.served import ServedSwitch, served
from tests.test_readme import ROOT

PROGRAM = ROOT / "tests" / "programs" / "build" / "basic_l3.json"
KEY = {"table": "route", "match": {"dst": ["10.0.9.0", 24]}}
FORWARD = {"action_name": "forward", "action_params": {"next_hop": "02:00:00:00:00:01", "port": 1}}


@pytest.fixture(name="switch")
def empty_switch() -> Iterator[ServedSwitch]:
    with served(1) as (switch,):
        yield switch


@pytest.fixture(name="on_switch")
def command_on_switch(command: Command, switch: ServedSwitch) -> Command:
    """`tailrace` on that switch, which runs basic_l3."""
    where = ("--address", f"s1={switch.address}@{switch.device_id}")
    assert command("push", "s1", str(PROGRAM), *where).status == 0
    return lambda *words: command(*words, *where)


def entries(on_switch: Command) -> list[dict]:
    return on_switch("tables", "--where", "entry == entry", "-o", "json").rows


def test_an_entry_is_inserted_modified_and_deleted(on_switch: Command) -> None:
    """--dry-run shows which of these it would be, and writes nothing; what it shows can be written."""
    entry = json.dumps({**KEY, **FORWARD})
    for kind in ("INSERT", "MODIFY"):
        before = entries(on_switch)
        shown = on_switch("write", "s1", entry, "--dry-run")
        (update,) = text_format.Parse(shown.out, p4r.WriteRequest()).updates
        assert p4r.Update.Type.Name(update.type) == kind
        assert shown.out.startswith("# dst=10.0.9.0/24 of table route\n")
        assert entries(on_switch) == before
        result = on_switch("write", "s1", entry)
        assert (result.status, result.out) == (0, "s1: 1 written\n"), result.err
    (row,) = entries(on_switch)
    assert (row["match"], row["params"]["port"]["port"]) == ({"dst": "10.0.9.0/24"}, 1)
    moved = {**FORWARD, "action_params": {"next_hop": "02:00:00:00:00:02", "port": 2}}
    assert on_switch("write", "s1", json.dumps({**KEY, **moved})).status == 0
    (row,) = entries(on_switch)
    assert row["params"]["port"]["port"] == 2
    shown = on_switch("delete", "s1", json.dumps(KEY), "--dry-run")
    (update,) = text_format.Parse(shown.out, p4r.WriteRequest()).updates
    assert update.type == p4r.Update.DELETE and not update.entity.table_entry.HasField("action")
    assert len(entries(on_switch)) == 1
    assert on_switch("delete", "s1", json.dumps(KEY)).out == "s1: 1 deleted\n"
    assert entries(on_switch) == []


def test_files_default_actions_and_groups(on_switch: Command, tmp_path: Path) -> None:
    """All that a file for push has; default actions go back to the program's; an update's text is a file, too."""
    assert on_switch("push", "s1", str(PROGRAM.with_name("match_kinds.json"))).status == 0
    file = tmp_path / "s1-runtime.json"
    replicas = [{"egress_port": 1, "instance": 1}]
    action = {"table": "exact_match", "action_name": "set_exact", "action_params": {"value": 3}}
    key = {"exact8": 5, "exact3": 2, "valid": 1}
    document = {
        "table_entries": [{**action, "match": key}, {**action, "default_action": True}],
        "multicast_group_entries": [{"multicast_group_id": 7, "replicas": replicas}],
        "clone_session_entries": [{"clone_session_id": 5, "replicas": replicas}],
    }
    file.write_text(json.dumps(document), "utf-8")
    before = on_switch("tables", "-o", "json").rows
    for _ in range(2):
        result = on_switch("write", "s1", str(file))
        assert (result.status, result.out) == (0, "s1: 4 written\n"), result.err
    assert len(on_switch("groups", "-o", "json").rows) == 2
    (row,) = on_switch("tables", "--where", "entry == default and table == exact_match", "-o", "json").rows
    assert row["action"] == "set_exact"
    updates = tmp_path / "updates.txtpb"
    updates.write_text(on_switch("write", "s1", str(file), "--dry-run").out, "utf-8")
    assert on_switch("write", "s1", str(updates)).out == "s1: 4 written\n"
    assert on_switch("delete", "s1", str(file)).out == "s1: 4 deleted\n"
    assert on_switch("tables", "-o", "json").rows == before
    assert on_switch("groups", "-o", "json").rows == []


@pytest.mark.parametrize(
    ("kind", "entry", "message"),
    [
        ("write", "{", "ENTRY: line 1: "),
        ("write", json.dumps(KEY), "table_entries[0].action_name: missing"),
        (
            "write",
            json.dumps({**KEY, **FORWARD, "table": "rout"}),
            "no table named 'rout'; did you mean route?",
        ),
        (
            "write",
            json.dumps({**KEY, **FORWARD, "match": {"dst": ["300.1.1.1", 8]}}),
            "'300.1.1.1' is not an IPv4",
        ),
        ("write", json.dumps({**KEY, **FORWARD, "action_name": "fly"}), "no action of table"),
        ("write", "nowhere.json", "nowhere.json: No such file"),
        ("write", '{"a":' * 100_000, "nested too deeply"),
        ("delete", json.dumps(KEY), "ENTRY: table_entries[0]: s1 has no dst=10.0.9.0/24 of table route"),
        ("delete", json.dumps({"table": "route"}), "s1 has no"),
    ],
)
def test_mistakes_are_told_in_one_line(on_switch: Command, kind: str, entry: str, message: str) -> None:
    result = on_switch(kind, "s1", entry)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err


def test_beside_a_controller(on_switch: Command, switch: ServedSwitch) -> None:
    """The command takes the election id of the primary, which stays primary; another id is refused."""
    controller = GrpcConnection("s1", switch.address, switch.device_id)
    run_at_once(controller.client.become_primary(DEFAULT_ELECTION_ID))
    entry = json.dumps({**KEY, **FORWARD})
    assert on_switch("write", "s1", entry).out == "s1: 1 written\n"
    refused = on_switch("delete", "s1", json.dumps(KEY), "--election-id", "5")
    assert (refused.status, refused.err.count("\n")) == (1, 1)
    assert "PERMISSION_DENIED" in refused.err
    (written,) = entries(on_switch)
    assert written["table"] == "route"
    deletion = p4r.Update(type=p4r.Update.DELETE)
    deletion.entity.table_entry.CopyFrom(_entry_of(controller))
    controller.write([deletion])
    assert entries(on_switch) == []
    controller.close()


def _entry_of(connection: GrpcConnection) -> p4r.TableEntry:
    tables = {table.preamble.alias: table.preamble.id for table in connection.p4info().tables}
    (entity,) = connection.read([p4r.Entity(table_entry=p4r.TableEntry(table_id=tables["route"]))])
    return entity.table_entry
