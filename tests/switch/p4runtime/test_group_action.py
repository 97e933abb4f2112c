# SPDX-License-Identifier: Apache-2.0
"""group_action of one-shots (P4Runtime specification after 1.5.0, 9.2.3), which the messages of 1.5.0 lack.

Here it is `rewrite` (port and destination), and members `send`: what they write last is the port.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tailrace.p4rt.status import Code
from tests.switch.p4runtime.conftest import BUILD, Rig, RigMaker, refusal
from tests.switch.p4runtime.test_profiles import hop, member, ports_used

INSERT, MODIFY, DELETE = 1, 2, 3
OK, INVALID, DENIED = Code.OK, Code.INVALID_ARGUMENT, Code.PERMISSION_DENIED
GROUP_ACTION = 3
RECONCILE = 5
TAG = b"\x2a"
"""Field 5, a message."""


def build(folder: Path, *, annotated: bool = False, more: dict[str, object] | None = None) -> Path:
    """A folder with `p4rt_all`, of which `rewrite` in the table `hop` is for groups, and does one thing more."""
    info = text_format.Parse((BUILD / "p4rt_all.p4info.txtpb").read_text(), p4i.P4Info())
    rewrite = next(action.preamble.id for action in info.actions if action.preamble.alias == "rewrite")
    (hops,) = (table for table in info.tables if table.preamble.alias == "hop")
    (ref,) = (ref for ref in hops.action_refs if ref.id == rewrite)
    if annotated:
        ref.annotations.append("@groupaction")
    else:
        ref.scope = p4i.ActionRef.Scope.ValueType(GROUP_ACTION)
    program = json.loads((BUILD / "p4rt_all.json").read_text())
    for action in program["actions"]:
        if action["name"] == "AllIngress.rewrite" and more is not None:
            action["primitives"].append(more)
    (folder / "p4rt_all.json").write_text(json.dumps(program))
    (folder / "p4rt_all.p4info.txtpb").write_text(text_format.MessageToString(info))
    return folder


@pytest.fixture
def grouped(make_rig: RigMaker, tmp_path: Path) -> Rig:
    return make_rig(pushed="p4rt_all", build=build(tmp_path))


def with_group_action(update: p4r.Update, action: p4r.Action | bytes, tag: bytes = TAG) -> p4r.Update:
    """The update, with a field that its classes do not know, as a newer client sends it."""
    octets = action if isinstance(action, bytes) else action.SerializeToString()
    assert len(octets) < 128
    shot = update.entity.table_entry.action.action_profile_action_set
    shot.MergeFromString(tag + bytes([len(octets)]) + octets)
    return update


def rewriting(rig: Rig, dst: int = 0x0A0B, port: int = 7, kind: int = INSERT, shots=((1, 1, 0), (3, 1, 4))):
    return with_group_action(hop(rig, one_shot=shots, kind=kind), rig.names.action("rewrite", port, dst))


def frame(dst: bytes = bytes(6)) -> bytes:
    ip = bytes.fromhex("4500001c0000000040110000") + bytes(4) + b"\x0a\x01\x02\x03"
    return dst + bytes(6) + b"\x08\x00" + ip + bytes.fromhex("0035123400080000")


def destinations(rig: Rig) -> list[tuple[int, int]]:
    """Port and destination of what becomes of a frame."""
    return [(port, int.from_bytes(data[:6], "big")) for port, data in rig.receive(1, frame())]


def entries(rig: Rig) -> list[p4r.Entity]:
    return rig.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=rig.names.id("tables", "hop"))))


def test_it_runs_before_the_action_of_every_member(grouped: Rig) -> None:
    """Packets get both: the group's destination, the member's port."""
    assert grouped.write(rewriting(grouped)) == [OK]
    assert set(ports_used(grouped)) == {1, 3}
    ((port, dst),) = destinations(grouped)
    assert port in (1, 3) and dst == 0x0A0B
    assert grouped.write(rewriting(grouped, dst=0x0C, kind=MODIFY)) == [OK]
    assert [0x0C] == [dst for _, dst in destinations(grouped)]
    assert grouped.write(hop(grouped, one_shot=((3, 1, 0),), kind=MODIFY)) == [OK]
    assert [(3, 0)] == destinations(grouped), "a one-shot without one"


def test_it_runs_when_no_member_is_up(grouped: Rig) -> None:
    """It belongs to the group, whichever member is selected: here none, and its own port stands."""
    assert grouped.write(rewriting(grouped, shots=((3, 1, 4),))) == [OK]
    grouped.in_server(lambda: grouped.device.port_changed(4, up=False))
    assert [(7, 0x0A0B)] == destinations(grouped)
    grouped.in_server(lambda: grouped.device.port_changed(4, up=True))
    assert [(3, 0x0A0B)] == destinations(grouped)


def test_the_member_is_chosen_by_what_the_packet_was(make_rig: RigMaker, tmp_path: Path) -> None:
    """A group_action that writes what the selector looks at changes no flow's member."""
    source, shots = {"type": "field", "value": ["ipv4", "src"]}, ((1, 3, 0), (3, 1, 0))
    write = {"op": "assign", "parameters": [source, {"type": "hexstr", "value": "0x01020304"}]}
    rig = make_rig(pushed="p4rt_all", build=build(tmp_path, more=write))
    assert rig.write(hop(rig, one_shot=shots)) == [OK]
    before = ports_used(rig)
    assert rig.write(rewriting(rig, kind=MODIFY, shots=shots)) == [OK]
    assert before == ports_used(rig)
    ((_, data),) = rig.receive(1, frame())
    assert data[26:30] == b"\1\2\3\4"


def test_exit_ends_the_pipeline_before_the_member(make_rig: RigMaker, tmp_path: Path) -> None:
    """As between any two actions."""
    rig = make_rig(pushed="p4rt_all", build=build(tmp_path, more={"op": "exit", "parameters": []}))
    assert rig.write(rewriting(rig)) == [OK]
    assert [(7, 0x0A0B)] == destinations(rig)


def test_it_is_read_back_as_it_was_written(grouped: Rig) -> None:
    """Octet by octet, over a reconciliation, too; in canonical form where it was not in that."""
    update = rewriting(grouped)
    assert grouped.write(update) == [OK]
    (got,) = entries(grouped)
    assert got.SerializeToString(deterministic=True) == update.entity.SerializeToString(deterministic=True)
    request = grouped.config_request("p4rt_all", RECONCILE)
    request.config.p4info.CopyFrom(grouped.names.info)
    grouped.stub.SetForwardingPipelineConfig(request)
    assert entries(grouped) == [got]
    assert [0x0A0B] == [dst for _, dst in destinations(grouped)]
    padded = grouped.names.action("rewrite", 7, 0x0A0B)
    padded.params[1].value = bytes(4) + b"\x0a\x0b"
    assert grouped.write(
        with_group_action(hop(grouped, one_shot=((1, 1, 0), (3, 1, 4)), kind=MODIFY), padded)
    ) == [OK]
    assert entries(grouped) == [got]


def test_a_field_that_comes_in_parts_is_one_message(grouped: Rig) -> None:
    """Protobuf merges what comes twice of a message."""
    whole = grouped.names.action("rewrite", 7, 0x0A0B)
    parts = [
        p4r.Action(action_id=whole.action_id, params=whole.params[:1]),
        p4r.Action(params=whole.params[1:]),
    ]
    update = hop(grouped, one_shot=((1, 1, 0),))
    for part in parts:
        with_group_action(update, part)
    assert grouped.write(update) == [OK]
    assert entries(grouped) == [rewriting(grouped, shots=((1, 1, 0),)).entity]


def test_an_annotation_says_it_as_well(make_rig: RigMaker, tmp_path: Path) -> None:
    """p4c does not know the scope yet: it hands the annotation of the action on."""
    rig = make_rig(pushed="p4rt_all", build=build(tmp_path, annotated=True))
    assert rig.write(rewriting(rig)) == [OK]
    assert [0x0A0B] == [dst for _, dst in destinations(rig)]


def test_scopes(grouped: Rig, rig: Rig) -> None:
    """PERMISSION_DENIED for an action of another scope, and for this one anywhere else."""
    other = with_group_action(hop(grouped, one_shot=((1, 1, 0),)), grouped.names.action("send", 2))
    code, said = refusal(grouped, other)
    assert code == DENIED and "AllIngress.send" in said and "as group_action" in said and "scope is 0" in said
    inside = hop(grouped, one_shot=((1, 1, 0),))
    (item,) = inside.entity.table_entry.action.action_profile_action_set.action_profile_actions
    item.action.CopyFrom(grouped.names.action("rewrite", 1, 2))
    alone = member(grouped, 1)
    alone.entity.action_profile_member.action.CopyFrom(item.action)
    for update in (inside, alone):
        code, said = refusal(grouped, update)
        assert code == DENIED and "AllIngress.rewrite" in said and "in entries" in said
    assert refusal(rig, rewriting(rig))[0] == DENIED, "P4Info as p4c writes it has no such action"
    assert not entries(grouped) and not entries(rig)


@pytest.mark.parametrize(
    ("octets", "tag", "expected", "said"),
    [
        (b"", TAG, INVALID, "no action with id 0"),
        (b"\x08\x63", TAG, INVALID, "no action with id 99"),
        (b"\xff\xff", TAG, INVALID, "not an Action"),
        (b"", b"\x28", INVALID, "not a message"),
    ],
)
def test_what_is_no_action_of_the_table(
    grouped: Rig, octets: bytes, tag: bytes, expected: Code, said: str
) -> None:
    """Nothing is ignored, of whatever kind the field is."""
    code, text = refusal(grouped, with_group_action(hop(grouped, one_shot=((1, 1, 0),)), octets, tag))
    assert code == expected and said in text
    assert not entries(grouped)


def test_parameters_are_checked(grouped: Rig) -> None:
    """As of any action."""
    short, wide = grouped.names.action("rewrite", 7), grouped.names.action("rewrite", 1 << 9, 1)
    shot = ((1, 1, 0),)
    updates = [with_group_action(hop(grouped, one_shot=shot), action) for action in (short, wide)]
    assert grouped.write(*updates) == [INVALID, Code.OUT_OF_RANGE]
    assert not entries(grouped)


def test_a_rollback_brings_it_back(grouped: Rig) -> None:
    """Changed or deleted; and what is refused leaves nothing behind."""
    update = rewriting(grouped)
    assert grouped.write(update) == [OK]
    used = grouped.in_server(lambda: grouped.device.memory.used)
    for change in (rewriting(grouped, dst=1, kind=MODIFY), hop(grouped, kind=DELETE)):
        bad = with_group_action(
            hop(grouped, one_shot=((1, 1, 0),), prefix=9), grouped.names.action("send", 1)
        )
        assert grouped.write(change, bad, atomicity=1) == [Code.ABORTED, DENIED]
        assert entries(grouped) == [update.entity]
        assert [0x0A0B] == [dst for _, dst in destinations(grouped)]
        assert used == grouped.in_server(lambda: grouped.device.memory.used)
    assert grouped.write(hop(grouped, kind=DELETE)) == [OK]
    assert used > grouped.in_server(lambda: grouped.device.memory.used)
