# SPDX-License-Identifier: Apache-2.0
"""@entry_restriction and @action_restriction through the server: what is refused, and what is said."""

from __future__ import annotations

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tailrace.p4rt.status import Code
from tailrace.switch.compiler import load_program
from tailrace.switch.p4runtime.context import QUANTUM, TOKENS_PER_WORK, Undo, in_quanta
from tailrace.switch.p4runtime.entities.schema import build_schema
from tailrace.switch.p4runtime.pins import restrictions
from tailrace.switch.p4runtime.pins.restrictions import MAX_BYTES, MAX_TOKENS
from tests.switch.p4runtime import states
from tests.switch.p4runtime.conftest import BUILD
from tests.switch.p4runtime.pins import ACTION, ENTRY, annotate, find, message_of, push, refused
from tests.switch.p4runtime.test_profiles import hop, member
from tests.switch.p4runtime.test_slices import entry as mac_entry
from tests.switch.p4runtime.test_tables import acl, default, mac, read, route
from tests.switch.p4runtime.test_translation import string_entry, translate

INSERT, MODIFY, DELETE = 1, 2, 3
OK, INVALID = Code.OK, Code.INVALID_ARGUMENT

ACL = """@entry_restriction("
    // Only TCP and UDP have ports.
    dst_port::low != 0 -> (protocol == 6 || protocol == 17);
    src::mask != 0 -> src::mask == -1;
    ::priority < 0x7fff;
  ")"""


def test_entries_that_satisfy_and_that_violate(rig):
    push(rig, {"tables/acl": ACL})
    tcp, ports = b"\x06", (b"\x01", b"\x02")
    assert (
        rig.write(acl(rig, protocol=tcp, ports=ports), acl(rig), acl(rig, src=(b"\1", b"\xff" * 4)))
        == [OK] * 3
    )
    assert (
        rig.write(acl(rig, 9, ports=ports), acl(rig, 9, src=(b"\0", b"\xf0")), acl(rig, 0x7FFF))
        == [INVALID] * 3
    )
    assert len(read(rig, "acl")) == 3
    assert message_of(rig, acl(rig, 9, protocol=b"\x01", ports=ports)) == (
        "table 'AllIngress.acl': @entry_restriction 'dst_port::low != 0 -> (protocol == 6 || protocol == 17)' "
        "does not hold: dst_port is 0x01..0x02, protocol is 0x01"
    )
    assert message_of(rig, acl(rig, 9, src=(b"\x10", b"\xf0"))).endswith("src is 0x10 &&& 0xf0")
    assert message_of(rig, acl(rig, 9, ports=ports)).endswith("protocol is omitted")
    assert message_of(rig, acl(rig, 0x7FFF)).endswith("::priority is 32767")


def test_modify_is_checked_and_delete_is_not(rig):
    """A pipeline's own entries were never asked, so that they may violate it; they can be deleted."""
    push(rig, {"tables/initial": '@entry_restriction("src_port == 7")'})
    initial = read(rig, "initial")
    assert initial
    for entry in initial:
        again = p4r.Update(type=p4r.Update.MODIFY)
        again.entity.table_entry.CopyFrom(entry)
        assert rig.write(again) == [INVALID]
        again.type = p4r.Update.DELETE
        assert rig.write(again) == [OK]


def test_prefixes(rig):
    push(rig, {"tables/route": '@entry_restriction("dst::prefix_length >= 8")'})
    assert rig.write(route(rig, b"\x0a\0\0\0", 8), route(rig, b"\x0a\0\0\0", 7), route(rig, b"", -1)) == [
        OK,
        INVALID,
        INVALID,
    ]
    assert message_of(rig, route(rig, b"\x0a\0\0\0", 7)).endswith("dst is 0x0a000000/7")


def test_actions_of_entries_defaults_members_and_one_shots(rig):
    push(rig, {"actions/send": f'{ACTION}("port != 0; port < 8;")'})
    for port, code in ((1, OK), (0, INVALID), (8, INVALID)):
        assert (
            rig.write(
                route(rig, b"\x0a\0\0\0", 8 + port, ("send", port)),
                default(rig, "route", ("send", port)),
                member(rig, port + 1, port),
            )
            == [code] * 3
        )
    assert rig.write(
        route(rig, b"\x0a\0\0\0", 9, ("send", 8), MODIFY),
        member(rig, 2, 0, MODIFY),
        member(rig, 2, 2, MODIFY),
        member(rig, 2, 0, DELETE),
        route(rig, b"\x0a\0\0\0", 9, ("send", 8), DELETE),
    ) == [INVALID, INVALID, OK, OK, OK]
    assert rig.write(
        hop(rig, one_shot=[(1, 1, 0), (8, 1, 0)]), hop(rig, one_shot=[(1, 1, 0), (7, 1, 0)])
    ) == [
        INVALID,
        OK,
    ]
    assert message_of(rig, route(rig, b"\x0a\0\0\0", 8, ("send", 9))) == (
        "action 'AllIngress.send': @action_restriction 'port < 8' does not hold: port is 0x09"
    )


def test_an_action_without_parameters(rig):
    push(rig, {"actions/drop": f'{ACTION}("false")'})
    assert rig.write(mac(rig, 1, ("drop",)), mac(rig, 1)) == [INVALID, OK]


def test_what_was_refused_is_refused_again(rig):
    """Messages that were met before are not parsed again: only good ones may be remembered."""
    push(rig, {"tables/mac": f'{ENTRY}("dst != 1")', "actions/forward": f'{ACTION}("port != 9")'})
    for _ in range(3):
        assert rig.write(mac(rig, 1), mac(rig, 2, ("forward", 9)), mac(rig, 3)) == [INVALID, INVALID, OK]
        assert rig.write(mac(rig, 3, kind=DELETE)) == [OK]


def test_a_batch_is_taken_back(rig):
    push(rig, {"tables/mac": f'{ENTRY}("dst != 1")'})
    assert rig.write(mac(rig, 2), mac(rig, 1), atomicity=1) == [Code.ABORTED, INVALID]
    assert read(rig, "mac") == []


@pytest.mark.parametrize(
    "annotation",
    [
        '@entry_restriction("dst != 1")',
        '@entry_restriction("dst !=" "1")',
        '@entry_restriction( "dst" \n "!= 1" )',
        '@entry_restriction ("// x\\n dst != 1")',
        '@entry_restriction("dst != 1; // \\"quoted\\"\n")',
    ],
)
def test_how_p4c_writes_it(rig, annotation):
    push(rig, {"tables/mac": annotation})
    assert rig.write(mac(rig, 1), mac(rig, 2)) == [INVALID, OK]


def test_structured_annotations_and_several(rig):
    request = rig.config_request("p4rt_all")
    annotation = find(request.config.p4info, "tables/mac").structured_annotations.add(
        name="entry_restriction"
    )
    annotation.expression_list.expressions.add(string_value="dst != 1")
    annotate(
        request.config.p4info, {"tables/mac": ['@entry_restriction("dst != 2")', "@entry_restrictions(1)"]}
    )
    rig.set_pipeline(request)
    assert rig.write(mac(rig, 1), mac(rig, 2), mac(rig, 3)) == [INVALID, INVALID, OK]


@pytest.mark.parametrize(
    ("where", "annotation", "said"),
    [
        (
            "tables/mac",
            f'{ENTRY}("src == 1")',
            "table 'AllIngress.mac', @entry_restriction, line 1, column 1",
        ),
        ("tables/mac", f'{ENTRY}("dst == 1;\n dst ==")', "line 2, column 8: expected a key"),
        ("tables/mac", f'{ENTRY}("dst::mask == 1")', "exact<48> has value, not 'mask'"),
        ("tables/mac", f"{ENTRY}(dst == 1)", "strings in double quotes"),
        ("tables/mac", f'{ENTRY}("dst == 1" && "true")', "strings in double quotes"),
        ("tables/mac", ENTRY, "strings in double quotes"),
        ("tables/mac", f'{ENTRY}("")', "expected a key"),
        ("tables/mac", f'{ENTRY}("' + "(" * 1000 + '")', "nested parentheses"),
        ("tables/mac", f'{ENTRY}("' + " " * MAX_BYTES + ' true")', f"more than {MAX_BYTES} bytes"),
        ("actions/send", f'{ACTION}("dst == 1")', "action 'AllIngress.send', @action_restriction, line 1"),
        ("actions/send", f'{ACTION}("::priority == 1")', "no attribute 'priority': there is no attribute"),
        ("actions/send", f'{ACTION}("port::value == 1")', "bit<9> has no parts, not 'value'"),
    ],
)
@pytest.mark.parametrize("action", [1, 3, 5])
def test_bad_constraints_are_refused_with_the_pipeline(rig, where, annotation, said, action):
    assert said in refused(rig, {where: annotation}, action)


def test_carried_entries_satisfy_the_new_constraints(rig):
    push(rig, {})
    assert rig.write(mac(rig, 1), mac(rig, 2)) == [OK, OK]
    assert "cannot be kept: table 'AllIngress.mac': @entry_restriction 'dst > 1'" in refused(
        rig, {"tables/mac": f'{ENTRY}("dst > 1")'}, 5
    )
    assert len(read(rig, "mac")) == 2
    push(rig, {"tables/mac": f'{ENTRY}("dst > 0")'}, 5)
    assert len(read(rig, "mac")) == 2
    assert rig.write(mac(rig, 0), mac(rig, 3)) == [INVALID, OK]


def test_strings_are_empty_or_not(rig):
    """As SAI's vrf_table has it: `vrf_id != 0`, for a type that is translated to strings."""
    request = rig.config_request("match_kinds")
    info = request.config.p4info
    translate(info, "name_t", None)
    for path in ("tables/optional_match/optional24", "actions/set_optional/value"):
        find(info, path).type_name.name = "name_t" if path.startswith("t") else "value_t"
        find(info, path).bitwidth = 0
    translate(info, "value_t", None)
    annotate(
        info,
        {
            "tables/optional_match": f'{ENTRY}("optional24 != 0")',
            "actions/set_optional": f'{ACTION}("value != 0")',
        },
    )
    rig.set_pipeline(request)
    # "0" has the number 0, and is not empty
    for key, value, code in (
        (b"0", b"0", OK),
        (b"", b"x", INVALID),
        (b"x", b"", INVALID),
        (b"x", b"x", OK),
    ):
        assert rig.write(string_entry(rig, 1, key, value)) == [code]
    assert message_of(rig, string_entry(rig, 1, b"", b"x")).endswith(
        "'optional24 != 0' does not hold: optional24 is ''"
    )


def test_the_tokens_of_a_pipeline_are_bounded(rig):
    """However many constraints they stand in: all of them could be asked of each entry."""
    clause = "(dst != 1) && " * 500 + "true"
    fits = MAX_TOKENS // (6 * 500 + 2)
    push(rig, {"tables/mac": [f'{ENTRY}("{clause}")'] * fits})
    said = refused(rig, {"tables/mac": [f'{ENTRY}("{clause}")'] * (fits + 1)})
    assert f"tokens; the limit is {MAX_TOKENS}" in said


def test_an_update_asks_a_bounded_number_of_tokens(rig, monkeypatch):
    """Of a one-shot each action asks its own; a batch that may be taken back has a bound of its own."""
    push(rig, {"actions/send": f'{ACTION}("{"port != 500 && " * 30}true")'})
    monkeypatch.setattr(restrictions, "MAX_EVALUATED", 1000)
    shots = [hop(rig, one_shot=[(1, 1, 0)] * count, prefix=count) for count in (8, 9)]
    assert rig.write(*shots) == [OK, Code.RESOURCE_EXHAUSTED]
    assert message_of(rig, shots[1]) == (
        "an update may evaluate at most 1000 tokens of constraints, over all actions of a one-shot"
    )
    monkeypatch.setattr(Undo, "MOST_TOKENS", 2000)
    assert rig.write(hop(rig, prefix=8, kind=DELETE)) == [OK]
    members = [member(rig, number) for number in range(1, 30)]
    results = rig.write(*members, atomicity=1)
    assert Code.RESOURCE_EXHAUSTED in results and OK not in results
    assert set(rig.write(*members[:10], atomicity=1)) == {OK}


def test_a_write_asks_a_bounded_number_of_tokens(rig, monkeypatch):
    """Whoever wants the same table waits for all of it; what is refused can be sent again."""
    push(rig, {"tables/mac": f'{ENTRY}("{"dst != 0 && " * 30}true")'})
    monkeypatch.setattr(restrictions, "MAX_EVALUATED_IN_WRITE", 1000)
    entries = [mac_entry(number) for number in range(1, 21)]
    results = rig.write(*entries)
    written = results.count(OK)
    assert 0 < written < 20 and results == [OK] * written + [Code.RESOURCE_EXHAUSTED] * (20 - written)
    assert set(rig.write(*entries[written:][:written])) == {OK}


def test_constraints_are_work():
    """So that others have their turn between entries that ask much."""
    info = text_format.Parse((BUILD / "p4rt_all.p4info.txtpb").read_text(), p4i.P4Info())
    annotate(info, {"tables/mac": f'{ENTRY}("{"dst != 0 && " * 1000}true")'})
    loaded = load_program((BUILD / "p4rt_all.json").read_bytes())
    made = states.new_state(loaded, build_schema(info, loaded.model))
    try:
        works = list(made.write([mac_entry(number) for number in range(1, 20)], []))
        assert min(works) >= 4000 // TOKENS_PER_WORK
        assert max(in_quanta(made.write([mac_entry(number) for number in range(20, 60)], []))) < 2 * QUANTUM
    finally:
        made.context.switch.close()
