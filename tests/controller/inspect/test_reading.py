# SPDX-License-Identifier: Apache-2.0
"""Reading a program of somebody else's, with all kinds of tables, groups, counters and registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from finsy import (
    P4ActionProfileGroup,
    P4ActionProfileMember,
    P4CloneSessionEntry,
    P4IndirectAction,
    P4Member,
    P4MulticastGroupEntry,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from finsy.p4entity import P4Entity
from finsy.proto import p4d, p4i, p4r, p4t
from google.protobuf import text_format

from tailrace.controller.inband import query
from tailrace.controller.inspect.counters import read_counters
from tailrace.controller.inspect.groups import read_groups
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.registers import data_value, read_registers
from tailrace.controller.inspect.tables import read_tables
from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.connection import GrpcConnection, load_p4info
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import ElectionError, RefusedError, UnsupportedError
from tailrace.p4rt.fields import FieldKind
from tailrace.p4rt.values import json_of, text_of
from tailrace.spec import SpecError
from tailrace.tables.listing import Listing, Row
from tests.controller.inspect.served import Primary, ServedSwitch, read_program, served

BUILD = Path(__file__).parents[2] / "programs" / "build"
PEERS = {1: "h1", 2: "s2", 3: "s3"}


@pytest.fixture(scope="module")
def switch() -> Iterator[ServedSwitch]:
    with served() as (served_switch,):
        yield served_switch


@pytest.fixture
def node(switch: ServedSwitch) -> Iterator[InspectedSwitch]:
    """A switch with tests/programs/p4rt/p4rt_all.p4 and some of everything written."""
    program = read_program(BUILD, "p4rt_all")
    with Primary(switch) as primary:
        run_at_once(primary.push(program))

        schema = P4Schema(program.p4info)

        def insert(*entities: P4Entity) -> None:
            updates = [p4r.Update(type=p4r.Update.INSERT, entity=e.encode(schema)) for e in entities]
            run_at_once(primary.write(updates))

        insert(
            P4ActionProfileMember(
                action_profile_id="hops", member_id=1, action=P4TableAction("send", port=2)
            ),
            P4ActionProfileMember(
                action_profile_id="hops", member_id=2, action=P4TableAction("rewrite", port=3, dst=5)
            ),
        )
        insert(
            P4ActionProfileGroup(
                action_profile_id="hops",
                group_id=7,
                max_size=8,
                members=(P4Member(member_id=2, weight=3), P4Member(member_id=1, weight=1)),
            )
        )
        insert(
            P4TableEntry("mac", match=P4TableMatch(dst=0x02AA), action=P4TableAction("forward", port=1)),
            P4TableEntry("route", match=P4TableMatch(dst="10.0.0.0/8"), action=P4TableAction("send", port=3)),
            P4TableEntry("route", match=P4TableMatch(dst="10.2.0.0/16"), action=P4TableAction("drop")),
            P4TableEntry(
                "acl",
                match=P4TableMatch(src=(0x0A000000, 0xFF000000), dst_port=(80, 443), port=2),
                action=P4TableAction("drop"),
                priority=5,
            ),
            P4TableEntry(
                "acl", match=P4TableMatch(port=3, protocol=17), action=P4TableAction("drop"), priority=50
            ),
            P4TableEntry("hop", match=P4TableMatch(dst="10.9.0.0/16"), action=P4IndirectAction(group_id=7)),
            P4TableEntry("hop", match=P4TableMatch(dst="10.8.0.0/16"), action=P4IndirectAction(member_id=1)),
            P4MulticastGroupEntry(4, replicas=[3, 1]),
            P4CloneSessionEntry(9, replicas=[2]),
        )
    connection = GrpcConnection("s1", switch.address, switch.device_id)
    yield InspectedSwitch("s1", connection, PEERS)
    connection.close()


def texts(listing: Listing, *columns: str, **wanted: object) -> list[tuple[str, ...]]:
    rows: list[Row] = [r for r in listing.rows if all(r[key] == value for key, value in wanted.items())]
    return [tuple(text_of(row[column]) for column in columns) for row in rows]


def test_entries_of_every_match_kind(node: InspectedSwitch) -> None:
    listing = read_tables(node)
    assert texts(listing, "match", "action", "params", table="route", entry="entry") == [
        ("dst=10.0.0.0/8", "send", "port=3:s3"),
        ("dst=10.2.0.0/16", "drop", "-"),
    ]
    assert texts(listing, "priority", "match", table="acl", entry="entry") == [
        ("5", "src=10.0.0.0/8 protocol=* dst_port=80..443 port=2:s2"),
        ("50", "src=* protocol=17 dst_port=* port=3:s3"),
    ]
    assert texts(listing, "match", "packets", "bytes", table="mac", entry="entry") == [
        ("dst=00:00:00:00:02:aa", "0", "0")
    ]


def test_const_and_default_entries_are_told_apart(node: InspectedSwitch) -> None:
    listing = read_tables(node)
    assert {text for (text,) in texts(listing, "entry", table="fixed")} == {"const", "default"}
    assert texts(listing, "action", table="config") == [("NoAction",)]
    assert texts(listing, "entry", table="acl")[0] == ("default",)


def test_indirect_actions(node: InspectedSwitch) -> None:
    listing = read_tables(node, frozenset({"hop"}))
    assert {row["table"] for row in listing.rows} == {"hop"}
    assert texts(listing, "match", "action", "params", entry="entry") == [
        ("dst=10.8.0.0/16", "member", "member=1"),
        ("dst=10.9.0.0/16", "group", "group=7"),
    ]


def test_groups_of_every_kind(node: InspectedSwitch) -> None:
    assert texts(read_groups(node), "kind", "name", "group", "ports") == [
        ("clone", "-", "9", "2:s2"),
        ("member", "hops", "1", "2:s2"),
        ("member", "hops", "2", "3:s3"),
        ("multicast", "-", "4", "1:h1 3:s3"),
        ("selector", "hops", "7", "2:s2 3:s3"),
    ]
    (selector,) = [row for row in read_groups(node).rows if row["kind"] == "selector"]
    assert json_of(selector["members"]) == [
        {"member": 1, "action": "send", "port": {"port": 2, "peer": "s2"}, "weight": 1},
        {"member": 2, "action": "rewrite", "port": {"port": 3, "peer": "s3"}, "dst": "00:00:00:00:00:05", "weight": 3},
    ]  # fmt: skip


def test_counters_with_and_without_index(node: InspectedSwitch) -> None:
    rows = read_counters(node, zeros=True).rows
    assert [text_of(row["index"]) for row in rows if row["counter"] == "by_port"] == [
        *("0", "1:h1", "2:s2", "3:s3", "4", "5", "6", "7")
    ]
    (direct,) = [row for row in rows if row["counter"] == "mac_hits" and row["match"] != {"default": True}]
    assert (text_of(direct["match"]), direct["packets"]) == ("dst=00:00:00:00:02:aa", 0)
    assert all(row["bytes"] is None for row in rows if row["counter"] == "fixed_hits")
    assert read_counters(node).rows == ()


def test_registers_narrow_and_wide(node: InspectedSwitch) -> None:
    listing = read_registers(node, zeros=True)
    assert texts(listing, "index", "value", register="wide") == [("0", "0x0"), ("1", "0x0")]
    assert texts(listing, "value", register="words") == [("0",)] * 16
    assert read_registers(node).rows == ()


def test_a_table_by_its_short_or_long_name(node: InspectedSwitch) -> None:
    assert node.program.table("AllIngress.route") is node.program.table("route")
    assert node.program.has_table("route") and not node.program.has_table("nothing")


class Refusing:
    """A connection to a target such as BMv2, which refuses what ours serves."""

    name = "b1"

    def __init__(self, info: p4i.P4Info, refused: str, code: str) -> None:
        self._info, self._refused, self._code = info, refused, code

    def p4info(self) -> p4i.P4Info:
        return self._info

    def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        if entities[0].WhichOneof("entity") == self._refused:
            raise RefusedError("b1", "refused", self._code)
        return []


def test_what_a_target_does_not_offer() -> None:
    """Registers are asked for, so it is an error; what else BMv2 lacks is as none. No other refusal is taken so."""
    info = load_p4info(BUILD / "p4rt_all.p4info.txtpb")

    def refusing(entity: str, code: str = "UNIMPLEMENTED") -> InspectedSwitch:
        return InspectedSwitch("b1", Refusing(info, entity, code))

    with pytest.raises(UnsupportedError, match="shows no registers"):
        read_registers(refusing("register_entry"))
    assert read_groups(refusing("packet_replication_engine_entry")).rows == ()
    assert read_counters(refusing("direct_counter_entry")).rows == ()
    for read, entity in ((read_registers, "register_entry"), (read_tables, "table_entry")):
        with pytest.raises(RefusedError):
            read(refusing(entity, "INTERNAL"))


def test_structured_register_values() -> None:
    program = load_p4info(BUILD / "p4rt_all.p4info.txtpb")
    node = InspectedSwitch("s1", Refusing(program, "", ""), PEERS)
    types = program.type_info
    spec = program.digests[0].type_spec  # a struct of a MAC address and a port
    data = p4r.DigestList().data.add()
    data.struct.members.add(bitstring=b"\2")
    data.struct.members.add(bitstring=b"\3")
    assert text_of(data_value(node, "learned", spec, data, types)) == "src=00:00:00:00:00:02 port=3:s3"


TYPES = """
structs { key: "S" value {
  members { name: "delta" type_spec { bitstring { int { bitwidth: 16 } } } }
  members { name: "name" type_spec { new_type { name: "Name" } } }
  members { name: "wide" type_spec { new_type { name: "Wide" } } }
  members { name: "again" type_spec { new_type { name: "Again" } } }
  members { name: "head" type_spec { header { name: "h_t" } } }
} }
headers { key: "h_t" value { members { name: "x" type_spec { int { bitwidth: 8 } } } members { name: "dst" type_spec { bit { bitwidth: 32 } } } } }
new_types { key: "Name" value { translated_type { uri: "u" sdn_string {} } } }
new_types { key: "Wide" value { translated_type { uri: "u" sdn_bitwidth: 32 } } }
new_types { key: "Again" value { original_type { new_type { name: "Signed" } } } }
new_types { key: "Signed" value { original_type { bitstring { int { bitwidth: 8 } } } } }
new_types { key: "Loop" value { original_type { new_type { name: "Loop" } } } }
"""


def test_signed_and_translated_values() -> None:
    """Each as its type says (P4Runtime 8.3, 8.4.6), within structs and headers, too."""
    types = text_format.Parse(TYPES, p4t.P4TypeInfo())
    node = InspectedSwitch("s1", Refusing(p4i.P4Info(), "", ""), PEERS)
    data = p4d.P4Data()
    for octets in (b"\xfb", b"eth0", b"\1\0", b"\x80"):
        data.struct.members.add(bitstring=octets)
    data.struct.members.add().header.bitstrings.extend((b"\xff", b"\x0a\0\0\1"))
    spec = p4t.P4DataTypeSpec(struct=p4t.P4NamedType(name="S"))
    assert text_of(data_value(node, "", spec, data, types)) == (
        "delta=-5 name=eth0 wide=256 again=-128 head=x=-1 dst=10.0.0.1"
    )
    loop = p4t.P4DataTypeSpec(new_type=p4t.P4NamedType(name="Loop"))
    assert data_value(node, "", loop, p4d.P4Data(bitstring=b"a"), types) == "a"


def test_index_of_a_counter_of_ports() -> None:
    view = ProgramNames(p4i.P4Info())
    assert view.index_field("port_rx").kind is FieldKind.PORT
    # RLB counts what leaves twice, so its aliases say which
    assert view.index_field("count_out.port_tx").kind is FieldKind.PORT
    assert view.index_field("port.report").kind is FieldKind.NUMBER
    assert view.index_field("report").kind is FieldKind.NUMBER


def test_p4info_files(tmp_path: Path) -> None:
    info = load_p4info(BUILD / "basic_l3.p4info.txtpb")
    binary = tmp_path / "info.bin"
    binary.write_bytes(info.SerializeToString())
    assert load_p4info(binary) == info


@pytest.mark.parametrize(("content", "part"), [(b"tables { nonsense }", "not P4Info"), (b"", "it is empty")])
def test_bad_p4info_files(tmp_path: Path, content: bytes, part: str) -> None:
    path = tmp_path / "info.txt"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=part) as caught:
        load_p4info(path)
    assert str(path) in str(caught.value)


def test_two_commands_at_a_time_without_controller() -> None:
    program = ProgramNames(p4i.P4Info())
    with served() as (fresh,):
        first, second = (GrpcConnection("s1", fresh.address, fresh.device_id) for _ in range(2))
        taken = pytest.raises(ElectionError, match="another client has the election id 1")
        with query.PrimaryQueryClient(first, program), taken:
            query.PrimaryQueryClient(second, program)
        with query.PrimaryQueryClient(second, program):
            pass  # the first has gone
        first.close()
        second.close()
