# SPDX-License-Identifier: Apache-2.0
"""Files of entries as users have them: p4lang's tutorials', simple_switch_CLI's, and WriteRequests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4r

from tailrace.p4rt import programs
from tailrace.p4rt.entry_files import Updates, read_updates
from tailrace.p4rt.programs import P4Program
from tailrace.spec.errors import FileError

BUILD = Path(__file__).parents[1] / "programs" / "build"
EXACT = {"exact8": 5, "exact3": 2, "valid": 1}
ENTRY = {
    "table": "MatchIngress.exact_match",
    "match": EXACT,
    "action_name": "MatchIngress.set_exact",
    "action_params": {"value": 3},
}


@pytest.fixture(name="program", scope="module")
def match_kinds() -> P4Program:
    return programs.read(BUILD / "match_kinds.json")


def updates(tmp_path: Path, program: P4Program, document: Any, name: str = "x.json") -> Updates:
    path = tmp_path / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    return read_updates(path, program)


def table_entry(tmp_path: Path, program: P4Program, **changes: Any) -> p4r.TableEntry:
    """The table entry that a file with ENTRY gives after these changes to its keys; `...` removes a key."""
    entry = {key: value for key, value in {**ENTRY, **changes}.items() if value is not ...}
    (update,) = updates(tmp_path, program, {"table_entries": [entry]})
    return update.entity.table_entry


@pytest.mark.parametrize(
    "changes",
    [
        {"match": {"exact8": [5], "exact3": ["2"], "valid": True}},
        {"match": {"exact8": "0x05", "exact3": "2", "valid": ["0b1"]}},
        {"comment": "first"},
        {"comments": ["a"], "_note": {"x": 1}, "id": 7, "description": None},
        {"table": "exact_match", "action_name": "set_exact"},
        {"action_params": {"value": "3"}},
        {"action_params": {"value": [3]}},
        {"priority": None, "default_action": False},
        {"priority": 0, "default_action": None},
    ],
)
def test_one_entry_in_many_forms(tmp_path: Path, program: P4Program, changes: dict[str, Any]) -> None:
    """As in users' files, of which utils/p4runtime_lib of the tutorials takes all."""
    assert table_entry(tmp_path, program, **changes) == table_entry(tmp_path, program)


def test_negative_numbers_are_twos_complement(tmp_path: Path, program: P4Program) -> None:
    assert (
        table_entry(tmp_path, program, action_params={"value": -1}).action.action.params[0].value == b"\xff"
    )


def test_default_actions(tmp_path: Path, program: P4Program) -> None:
    bare = {key: value for key, value in ENTRY.items() if key != "match"}
    matches: list[dict[str, Any]] = [{}, {"match": None}, {"match": {}}]
    for more in matches:
        entry = {**bare, "default_action": True, **more}
        (update,) = updates(tmp_path, program, {"table_entries": [entry]})
        assert update.type == p4r.Update.MODIFY
        assert update.entity.table_entry.is_default_action and not update.entity.table_entry.match


def test_groups_and_sessions(tmp_path: Path, program: P4Program) -> None:
    document = {
        "target": "bmv2",
        "p4info": "build/x.p4.p4info.txtpb",
        "bmv2_json": "build/x.json",
        "multicast_group_entries": [
            {
                "multicast_group_id": "1",
                "replicas": [{"egress_port": 1, "instance": 1}, {"egress_port": 2, "comment": ""}],
            }
        ],
        "clone_session_entries": [
            {
                "clone_session_id": 5,
                "replicas": [{"egress_port": 3, "instance": 1}],
                "packet_length_bytes": 128,
                "class_of_service": 2,
            }
        ],
    }
    group, session = (u.entity.packet_replication_engine_entry for u in updates(tmp_path, program, document))
    assert [(r.egress_port, r.instance) for r in group.multicast_group_entry.replicas] == [(1, 1), (2, 0)]
    clone = session.clone_session_entry
    assert (clone.session_id, clone.packet_length_bytes, clone.class_of_service) == (5, 128, 2)


def test_keys_that_nobody_reads_are_told_where_they_look_like_one(tmp_path: Path, program: P4Program) -> None:
    document = {
        "table_entries": [{**ENTRY, "prioritty": 1, "comment": ""}],
        "register_entries": [],
        "clone_session_entries": [{"clone_session_id": 1, "replicas": [{"egress_port": 1, "instances": 2}]}],
    }
    parsed = updates(tmp_path, program, document)
    assert len(parsed) == 2
    assert [note.removeprefix(f"{tmp_path / 'x.json'}: ") for note in parsed.notes] == [
        "register_entries: this key is not read",
        "table_entries[0].prioritty: this key is not read; did you mean priority?",
        "clone_session_entries[0].replicas[0].instances: this key is not read; did you mean instance?",
    ]
    many = updates(tmp_path, program, {"table_entries": [], **{f"key{number}": 1 for number in range(100)}})
    assert len(many.notes) == 11 and many.notes[-1].endswith("90 more keys are not read")


TERNARY = {"table": "ternary_match", "match": {}, "action_name": "set_ternary", "action_params": {"value": 1}}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"table": "nope"}, "key 'table_entries[1]': no table named 'nope'"),
        ({"action_name": "drop"}, "table_entries[1]': no action of table"),
        ({"match": {"exact8": 5}}, "match field exact3 is missing"),
        ({"match": {**EXACT, "x": 1}}, "no match field named 'x'"),
        ({"match": {**EXACT, "exact3": 8}}, "exact3: 8 does not fit bit<3>"),
        ({"action_params": {}}, "missing parameters: value"),
        ({"action_params": {"value": 1, "x": 2}}, "no parameter of action"),
        ({"priority": -1}, "table_entries[1].priority"),
        ({"action_name": None}, "table_entries[1].action_name"),
        (TERNARY, "needs a priority above 0"),
    ],
)
def test_a_mistake_in_an_entry_is_told(
    tmp_path: Path, program: P4Program, entry: dict[str, Any], said: str
) -> None:
    mistake_is_told(tmp_path, program, {"table_entries": [ENTRY, {**ENTRY, **entry}]}, said)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"table_entries": [{"table": "exact_match"}]}, "table_entries[0].action_name: missing"),
        ({"table_entries": [5]}, "table_entries[0]"),
        ({"table_entries": 5}, "table_entries"),
        ({"multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{}]}]}, "egress_port: missing"),
        (
            {"multicast_group_entries": [{"multicast_group_id": 1 << 32, "replicas": []}]},
            "multicast_group_id",
        ),
        ({"pipelines": [], "tables": []}, "expected a key such as table_entries"),
        ([], "expected an object"),
        ('{"table_entries": [}', "line 1"),
    ],
)
def test_a_mistake_in_a_file_is_told(tmp_path: Path, program: P4Program, document: Any, said: str) -> None:
    mistake_is_told(tmp_path, program, document, said)


def mistake_is_told(tmp_path: Path, program: P4Program, document: Any, said: str) -> None:
    with pytest.raises(FileError) as caught:
        updates(tmp_path, program, document)
    assert said in str(caught.value) and str(tmp_path / "x.json") in str(caught.value)
    assert "\n" not in str(caught.value)


COMMAND = "table_add exact_match set_exact 5 2 1 => 3\n"
REQUEST = "updates { type: INSERT entity { table_entry { table_id: 7 } } }\n"


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ("\ufeff" + json.dumps({"table_entries": [ENTRY]}), "x.json", "table_entries[0]"),
        (COMMAND, "s1-commands.txt", "line 1"),
        ("\r\n# rules\r\n" + COMMAND, "s1", "line 3"),
        ("\ufeff" + COMMAND, "x.txt", "line 1"),
        (REQUEST, "x.txtpb", "updates[0]"),
        ("# proto-file: p4/v1/p4runtime.proto\n" + REQUEST, "x", "updates[0]"),
        ("device_id: 1\n" + REQUEST, "commands.txt", "updates[0]"),
    ],
)
def test_formats_are_told_apart(tmp_path: Path, program: P4Program, text: str, name: str, place: str) -> None:
    parsed = updates(tmp_path, program, text, name)
    assert (len(parsed), parsed.places) == (1, [place])


def test_a_file_of_no_format(tmp_path: Path, program: P4Program) -> None:
    with pytest.raises(FileError, match=r"x.txt: expected a p4.v1.WriteRequest as text"):
        updates(tmp_path, program, "hello world\n", "x.txt")
    (tmp_path / "y.txt").write_bytes(COMMAND.encode("utf-16"))
    with pytest.raises(FileError, match=r"y.txt: not UTF-8 text but UTF-16$"):
        read_updates(tmp_path / "y.txt", program)
