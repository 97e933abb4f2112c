# SPDX-License-Identifier: Apache-2.0
"""Entries told to those who look at packets' ways, whatever names P4Info has."""

from __future__ import annotations

from finsy.proto import p4i, p4r

from tailrace.p4rt.status import Code
from tests.switch.p4runtime.conftest import Rig, RigMaker


def described_route(rig: Rig, spoil: p4i.P4Info) -> str:
    """What the device says of its first entry of a table, when its P4Info has this as well."""
    rig.primary()
    request = rig.config_request("basic_l3")
    request.config.p4info.MergeFrom(spoil)
    rig.stub.SetForwardingPipelineConfig(request)
    info = request.config.p4info
    table = next(t for t in info.tables if t.preamble.alias == "route")
    action = next(a for a in info.actions if a.preamble.alias == "forward")
    entry = p4r.TableEntry(table_id=table.preamble.id)
    entry.match.add(field_id=1).lpm.CopyFrom(p4r.FieldMatch.LPM(value=b"\x0a\0\0\0", prefix_len=8))
    entry.action.action.action_id = action.preamble.id
    for param in action.params:
        entry.action.action.params.add(param_id=param.id, value=b"\1")
    update = p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))
    assert rig.write(update) == [Code.OK]
    (hit,) = rig.in_server(lambda: list(rig.device.entries_hit(lambda *_: False)))
    return hit.written


def test_of_a_profile_that_no_table_has(make_rig: RigMaker) -> None:
    """As p4c writes it for one that nothing uses."""
    spoil = p4i.P4Info()
    spoil.action_profiles.add(size=4).preamble.CopyFrom(p4i.Preamble(id=287310000, name="in.p", alias="p"))
    assert described_route(make_rig(), spoil).startswith("dst=10.0.0.0/8 forward(")


def test_of_one_alias_for_two(make_rig: RigMaker) -> None:
    """They are called by their full names, the others as ever."""
    spoil = p4i.P4Info()
    for number, name in enumerate(("in.a", "out.a")):
        spoil.actions.add().preamble.CopyFrom(p4i.Preamble(id=16777300 + number, name=name, alias="a"))
    assert described_route(make_rig(), spoil).startswith("dst=10.0.0.0/8 forward(")
