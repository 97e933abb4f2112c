# SPDX-License-Identifier: Apache-2.0
"""Meters by P4Runtime: colours of packets, what is counted by colour, types of meters, default entries
(specification 9.1.3, 9.1.7, 9.4).

The program `meters` writes three colours behind its first byte: of a meter by flow (packets), of one by the
source's last bits (bytes), and of the entry's own (packets); the last one is 3 before the table.
"""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tailrace.p4rt.status import Code
from tests.switch.p4runtime.conftest import BUILD, Rig, RigMaker, details_of, refusal

INSERT, MODIFY, DELETE = 1, 2, 3
OK, INVALID = Code.OK, Code.INVALID_ARGUMENT
GREEN, YELLOW, RED = range(3)
RECONCILE = 5
SIZE = 60
NOTHING = (0,) * 6
ENDLESS = p4r.MeterConfig(cir=1 << 40, cburst=1 << 40, pir=1 << 40, pburst=1 << 40)


def of(types: dict[str, int], folder: Path, *, open_default: bool = False) -> Path:
    """A folder with the program `meters`, its meters of other types, and its default action not constant."""
    info = text_format.Parse((BUILD / "meters.p4info.txtpb").read_text(), p4i.P4Info())
    for meter in (*info.meters, *info.direct_meters):
        meter.spec.type = types.get(meter.preamble.alias, 0)
    program = json.loads((BUILD / "meters.json").read_text())
    if open_default:
        info.tables[0].const_default_action_id = 0
        for table in program["pipelines"][0]["tables"]:
            if table["name"] == "MeterIngress.flows":
                table["default_entry"].update(action_const=False, action_entry_const=False)
    (folder / "meters.json").write_text(json.dumps(program))
    (folder / "meters.p4info.txtpb").write_text(text_format.MessageToString(info))
    return folder


@pytest.fixture
def metered(make_rig: RigMaker) -> Rig:
    """A server with the program as it is, flow 5 forwarded."""
    rig = make_rig(pushed="meters")
    assert rig.write(flow(rig, 5)) == [OK]
    return rig


def flow(rig: Rig, number: int, kind: int = INSERT, **fields: object) -> p4r.Update:
    """An update of a flow's entry."""
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.table_entry
    entry.table_id = rig.names.id("tables", "flows")
    entry.match.add(field_id=1).exact.value = bytes([number])
    if kind != DELETE:
        entry.action.action.CopyFrom(rig.names.action("metered", 3))
    entry.MergeFrom(p4r.TableEntry(**fields))
    return update


def default(rig: Rig, action: p4r.Action | None = None, **fields: object) -> p4r.Update:
    """A MODIFY of the default entry."""
    update = p4r.Update(type=p4r.Update.MODIFY)
    entry = update.entity.table_entry
    entry.table_id, entry.is_default_action = rig.names.id("tables", "flows"), True
    if action is not None:
        entry.action.action.CopyFrom(action)
    entry.MergeFrom(p4r.TableEntry(**fields))
    return update


def cell(rig: Rig, name: str, index: int | None, **fields: object) -> p4r.Entity:
    entity = p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=rig.names.id("meters", name), **fields))
    if index is not None:
        entity.meter_entry.index.index = index
    return entity


def direct(entry: p4r.TableEntry, **fields: object) -> p4r.Entity:
    """The meter of an entry, by its key."""
    key = p4r.TableEntry(
        table_id=entry.table_id, match=entry.match, is_default_action=entry.is_default_action
    )
    return p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=key, **fields))


def modify(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.MODIFY, entity=entity)


def colours(rig: Rig, number: int = 5, source: int = 1, size: int = SIZE) -> tuple[int, int, int] | None:
    """The colours of a frame: by flow, by source, of the entry; None: it was dropped."""
    frame = bytes(6) + source.to_bytes(6, "big") + b"\x88\xb5" + bytes([number])
    sent = rig.receive(1, frame + bytes(size - len(frame)))
    if not sent:
        return None
    ((_, data),) = sent
    return data[15], data[16], data[17]


def numbers(data: p4r.MeterCounterData) -> tuple[int, ...]:
    """Bytes and packets of the three colours, all of which must be set."""
    assert all(data.HasField(colour) for colour in ("green", "yellow", "red"))
    return tuple(
        number
        for count in (data.green, data.yellow, data.red)
        for number in (count.byte_count, count.packet_count)
    )


def by_flow(rig: Rig, index: int = 5) -> tuple[int, ...]:
    (entity,) = rig.read(cell(rig, "flow_meter", index, counter_data=p4r.MeterCounterData()))
    return numbers(entity.meter_entry.counter_data)


def of_entry(rig: Rig, entry: p4r.TableEntry) -> tuple[int, ...]:
    """What an entry's meter has counted, which both ways of asking must tell alike."""
    (answer,) = rig.read(direct(entry, counter_data=p4r.MeterCounterData()))
    asked = p4r.TableEntry(
        table_id=entry.table_id, match=entry.match, is_default_action=entry.is_default_action
    )
    asked.meter_counter_data.SetInParent()
    (other,) = rig.read(p4r.Entity(table_entry=asked))
    assert answer.direct_meter_entry.counter_data == other.table_entry.meter_counter_data
    return numbers(answer.direct_meter_entry.counter_data)


# ---- what is counted by colour ----


def test_packets_and_bytes_are_counted_by_colour(metered: Rig) -> None:
    """Of cells and entries, with the frame's whole length; cells of other flows count nothing."""
    entry = flow(metered, 5).entity.table_entry
    config = p4r.MeterConfig(cir=0, cburst=2, pir=0, pburst=3)
    meter_cell = cell(metered, "flow_meter", 5, config=config)
    assert metered.write(modify(meter_cell), modify(direct(entry, config=config))) == [OK, OK]
    sizes = (60, 70, 80, 90, 100)
    seen = [colours(metered, size=size) for size in sizes]
    assert [(c, GREEN, c) for c in (GREEN, GREEN, YELLOW, RED, RED)] == seen
    assert (130, 2, 80, 1, 190, 2) == by_flow(metered) == of_entry(metered, entry)
    assert NOTHING == by_flow(metered, 4)
    (bytes_,) = metered.read(cell(metered, "port_meter", 1, counter_data=p4r.MeterCounterData()))
    assert (400, 5, 0, 0, 0, 0) == numbers(bytes_.meter_entry.counter_data), "without rates all is green"


def test_counts_are_told_where_they_are_asked_for(metered: Rig) -> None:
    """Read: counter_data unset in the request is unset in the answer, of one and of all."""
    entry = flow(metered, 5).entity.table_entry
    colours(metered)
    for request in (cell(metered, "flow_meter", 5), direct(entry), p4r.Entity(table_entry=entry)):
        (got,) = metered.read(request)
        assert got == request
    every = cell(metered, "flow_meter", None, counter_data=p4r.MeterCounterData())
    assert [
        NOTHING if e.meter_entry.index.index != 5 else (60, 1, 0, 0, 0, 0) for e in metered.read(every)
    ] == [numbers(e.meter_entry.counter_data) for e in metered.read(every)]
    everything = p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(counter_data=p4r.MeterCounterData()))
    assert [(60, 1, 0, 0, 0, 0)] == [
        numbers(e.direct_meter_entry.counter_data) for e in metered.read(everything)
    ]


def test_writes_reset_counts_or_leave_them(metered: Rig) -> None:
    """Unset: unchanged, new rates or not; set: zero, of one cell, of all, of an entry."""
    entry = flow(metered, 5).entity.table_entry
    colours(metered)
    counted = (60, 1, 0, 0, 0, 0)
    config = p4r.MeterConfig(pir=9, pburst=9)
    assert metered.write(
        modify(cell(metered, "flow_meter", 5, config=config)), modify(direct(entry, config=config)),
        flow(metered, 5, MODIFY, meter_config=config), flow(metered, 5, MODIFY),
    ) == [OK] * 4  # fmt: skip
    assert counted == by_flow(metered) == of_entry(metered, entry)
    reset = p4r.MeterCounterData(green=p4r.CounterData())
    assert metered.write(modify(cell(metered, "flow_meter", 5, config=config, counter_data=reset))) == [OK]
    assert NOTHING == by_flow(metered)
    (got,) = metered.read(cell(metered, "flow_meter", 5))
    assert got.meter_entry.config == config, "the rates are those of the same message"
    for again in (
        modify(direct(entry, counter_data=reset)),
        flow(metered, 5, MODIFY, meter_counter_data=reset),
    ):
        colours(metered)
        assert NOTHING != of_entry(metered, entry)
        assert metered.write(again) == [OK]
        assert NOTHING == of_entry(metered, entry)
    colours(metered, 6)
    assert metered.write(modify(cell(metered, "flow_meter", None, counter_data=reset))) == [OK]
    assert NOTHING == by_flow(metered) == by_flow(metered, 6)


def test_counts_cannot_be_set_to_anything_else(metered: Rig) -> None:
    """INVALID_ARGUMENT, with what was sent and what is allowed; nothing has changed, rates neither."""
    entry = flow(metered, 5).entity.table_entry
    colours(metered)
    wrong = p4r.MeterCounterData(yellow=p4r.CounterData(packet_count=7))
    for update, name in (
        (
            modify(cell(metered, "flow_meter", 5, config=ENDLESS, counter_data=wrong)),
            "MeterIngress.flow_meter",
        ),
        (modify(direct(entry, config=ENDLESS, counter_data=wrong)), "MeterIngress.entry_meter"),
        (flow(metered, 5, MODIFY, meter_config=ENDLESS, meter_counter_data=wrong), "MeterIngress.flows"),
        (flow(metered, 6, meter_counter_data=wrong), "MeterIngress.flows"),
    ):
        code, said = refusal(metered, update)
        assert code == INVALID
        assert name in said and "yellow.packet_count is 7" in said and "only be set to 0" in said
    negative = p4r.MeterCounterData(red=p4r.CounterData(byte_count=-1))
    assert INVALID == refusal(metered, modify(direct(entry, counter_data=negative)))[0]
    assert (60, 1, 0, 0, 0, 0) == by_flow(metered) == of_entry(metered, entry)
    assert metered.read(direct(entry)) == [direct(entry)]


def test_a_table_without_a_direct_meter_has_no_counts(rig: Rig) -> None:
    """Reads leave it out, writes are INVALID_ARGUMENT."""
    entry = p4r.TableEntry(table_id=rig.names.id("tables", "route"))
    entry.action.action.CopyFrom(rig.names.action("send", 1))
    assert rig.write(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))) == [OK]
    asked = p4r.TableEntry(table_id=entry.table_id, meter_counter_data=p4r.MeterCounterData())
    assert rig.read(p4r.Entity(table_entry=asked)) == [p4r.Entity(table_entry=entry)]
    entry.meter_counter_data.SetInParent()
    code, said = refusal(rig, modify(p4r.Entity(table_entry=entry)))
    assert code == INVALID and "has no direct meter" in said


def test_a_new_entry_has_counted_nothing(metered: Rig) -> None:
    """Also where there was one of the same key."""
    entry = flow(metered, 5).entity.table_entry
    colours(metered)
    reset = p4r.MeterCounterData()
    assert metered.write(flow(metered, 5, DELETE), flow(metered, 5, meter_counter_data=reset)) == [OK, OK]
    assert NOTHING == of_entry(metered, entry)


def test_a_rollback_brings_counts_back(metered: Rig) -> None:
    """Of cells that were reset, of entries that were reset or deleted."""
    entry, reset = flow(metered, 5).entity.table_entry, p4r.MeterCounterData()
    assert metered.write(flow(metered, 6)) == [OK]
    config = p4r.MeterConfig(cburst=1, pburst=1)
    assert metered.write(modify(cell(metered, "flow_meter", 5, config=config))) == [OK]
    for number in (5, 5, 6):
        colours(metered, number)
    codes = metered.write(
        modify(cell(metered, "flow_meter", None, counter_data=reset)), modify(direct(entry, counter_data=reset)),
        flow(metered, 6, DELETE), flow(metered, 5), atomicity=1,
    )  # fmt: skip
    assert [Code.ABORTED] * 3 + [Code.ALREADY_EXISTS] == codes
    assert (60, 1, 0, 0, 60, 1) == by_flow(metered)
    assert (60, 1, 0, 0, 0, 0) == by_flow(metered, 6)
    assert (120, 2, 0, 0, 0, 0) == of_entry(metered, entry)
    assert (60, 1, 0, 0, 0, 0) == of_entry(metered, flow(metered, 6).entity.table_entry)
    (got,) = metered.read(cell(metered, "flow_meter", 5))
    assert got.meter_entry.config == config


def test_a_push_forgets_counts_and_a_reconciliation_keeps_them(metered: Rig) -> None:
    """Of cells and of entries, with the rates."""
    entry = flow(metered, 5).entity.table_entry
    config = p4r.MeterConfig(cburst=1, pburst=1)
    assert metered.write(modify(direct(entry, config=config))) == [OK]
    for _ in range(2):
        colours(metered)
    metered.push("meters", RECONCILE)
    assert (120, 2, 0, 0, 0, 0) == by_flow(metered)
    assert (60, 1, 0, 0, 60, 1) == of_entry(metered, entry)
    metered.push("meters")
    assert metered.write(flow(metered, 5)) == [OK]
    assert NOTHING == by_flow(metered) == of_entry(metered, entry)


# ---- types of meters ----


def test_an_excess_burst_makes_three_colours_of_one_rate(make_rig: RigMaker, tmp_path: Path) -> None:
    """RFC 2697; what P4Info says of a meter's type holds, and rates are read back as they were written."""
    rig = make_rig()
    rig.primary()
    three = p4i.MeterSpec.SINGLE_RATE_THREE_COLOR
    rig.push("meters", build=of({"flow_meter": three, "entry_meter": three}, tmp_path))
    config = p4r.MeterConfig(cir=1, cburst=2, pir=1, pburst=2, eburst=1)
    meter_cell = cell(rig, "flow_meter", 5, config=config)
    assert rig.write(modify(meter_cell), flow(rig, 5, meter_config=config)) == [OK, OK]
    assert rig.read(meter_cell) == [meter_cell]
    (got,) = rig.read(direct(flow(rig, 5).entity.table_entry))
    assert got.direct_meter_entry.config == config
    expected = [GREEN, GREEN, YELLOW, RED]
    assert [(c, GREEN, c) for c in expected] == [colours(rig) for _ in expected]
    rig.advance(10**9)
    assert [(c, GREEN, c) for c in (GREEN, RED)] == [colours(rig) for _ in range(2)]
    rig.advance(3 * 10**9)
    assert [(c, GREEN, c) for c in expected] == [colours(rig) for _ in expected]
    rig.push("meters", RECONCILE, build=tmp_path)
    assert rig.read(meter_cell) == [meter_cell]


@pytest.mark.parametrize(
    ("kind", "config", "said"),
    [
        ("TWO_RATE_THREE_COLOR", {"eburst": 4}, "eburst is 4"),
        ("TWO_RATE_THREE_COLOR", {"cir": 4, "pir": 3}, "below the committed rate"),
        ("SINGLE_RATE_THREE_COLOR", {"cir": 4, "pir": 5, "eburst": 1}, "pir 5"),
        ("SINGLE_RATE_THREE_COLOR", {"cburst": 4, "eburst": 1}, "pburst 0"),
        ("SINGLE_RATE_THREE_COLOR", {"eburst": -1}, "negative"),
        ("SINGLE_RATE_TWO_COLOR", {"eburst": 4}, "eburst is 4"),
        ("SINGLE_RATE_TWO_COLOR", {"pir": 1}, "must equal"),
    ],
)
def test_rates_that_a_type_does_not_have(
    make_rig: RigMaker, tmp_path: Path, kind: str, config: dict[str, int], said: str
) -> None:
    """INVALID_ARGUMENT, whichever way they are written."""
    rig = make_rig()
    rig.primary()
    number = p4i.MeterSpec.Type.Value(kind)
    rig.push("meters", build=of({"flow_meter": number, "entry_meter": number}, tmp_path))
    assert rig.write(flow(rig, 5)) == [OK]
    rates = p4r.MeterConfig(**config)
    for update in (
        modify(cell(rig, "flow_meter", 1, config=rates)),
        modify(direct(flow(rig, 5).entity.table_entry, config=rates)),
        flow(rig, 6, meter_config=rates),
        default(rig, meter_config=rates),
    ):
        if update.entity.table_entry.is_default_action:
            assert refusal(rig, update)[0] == Code.PERMISSION_DENIED
            continue
        code, text = refusal(rig, update)
        assert code == INVALID and said in text


@pytest.mark.parametrize("kind", p4i.MeterSpec.Type.values())
def test_one_rate_of_two_colours_marks_alike_in_all_types(
    make_rig: RigMaker, tmp_path: Path, kind: int
) -> None:
    """Specification 9.4: what such a meter takes the others take, and mark as it does."""
    rig = make_rig(pushed="meters", build=of({"port_meter": kind}, tmp_path))
    config = p4r.MeterConfig(cir=100, cburst=150, pir=100, pburst=150)
    assert rig.write(flow(rig, 5), modify(cell(rig, "port_meter", 1, config=config))) == [OK, OK]
    assert [GREEN, GREEN, RED] == [seen[1] for seen in (colours(rig) for _ in range(3)) if seen]
    rig.advance(300_000_000)  # thirty bytes
    assert [GREEN, RED] == [seen[1] for seen in (colours(rig) for _ in range(2)) if seen]


# ---- default entries ----


@pytest.fixture
def missing(make_rig: RigMaker, tmp_path: Path) -> Rig:
    """A server with a table in which nothing is, whose default action forwards."""
    rig = make_rig(pushed="meters", build=of({}, tmp_path, open_default=True))
    assert rig.write(default(rig, rig.names.action("metered", 4))) == [OK]
    return rig


def test_misses_are_metered_by_the_default_entry(missing: Rig) -> None:
    """Specification 9.1.3: it is as any entry, direct resources included; hits do not touch it."""
    forward = missing.names.action("metered", 4)
    config = p4r.MeterConfig(cburst=1, pburst=2)
    entry = default(missing, forward).entity.table_entry
    assert colours(missing, 7) == (GREEN, GREEN, 3), "without rates a miss leaves the field, as in BMv2"
    assert (60, 1, 0, 0, 0, 0) == of_entry(missing, entry), "and counts as green"
    assert missing.write(default(missing, forward, meter_config=config), flow(missing, 5)) == [OK, OK]
    (got,) = missing.read(p4r.Entity(table_entry=default(missing, meter_config=ENDLESS).entity.table_entry))
    assert got.table_entry.meter_config == config
    seen = [colours(missing, number) for number in (7, 5, 8, 9)]
    assert [(GREEN, GREEN, c) for c in (GREEN, GREEN, YELLOW, RED)] == seen
    assert (120, 2, 60, 1, 60, 1) == of_entry(missing, entry)
    assert missing.write(modify(direct(entry, counter_data=p4r.MeterCounterData()))) == [OK]
    assert NOTHING == of_entry(missing, entry)
    assert colours(missing, 9) == (GREEN, GREEN, 3), "DirectMeterEntry without config takes the rates away"


def test_a_reset_default_entry_has_neither_rates_nor_counts(missing: Rig, tmp_path: Path) -> None:
    """Specification 9.1.3; a rollback brings both back, a reconciliation keeps them."""
    forward = missing.names.action("metered", 4)
    entry = default(missing, forward).entity.table_entry
    config = p4r.MeterConfig(cburst=1, pburst=2)
    assert missing.write(default(missing, forward, meter_config=config)) == [OK]
    colours(missing, 7)
    codes = missing.write(default(missing), flow(missing, 5), flow(missing, 5), atomicity=1)
    assert codes == [Code.ABORTED, Code.ABORTED, Code.ALREADY_EXISTS]
    asked = p4r.Entity(table_entry=entry)
    asked.table_entry.meter_config.SetInParent()
    for _ in range(2):
        (got,) = missing.read(asked)
        assert (got.table_entry.meter_config, got.table_entry.action) == (config, entry.action)
        assert (60, 1, 0, 0, 0, 0) == of_entry(missing, entry)
        missing.stub.SetForwardingPipelineConfig(missing.config_request("meters", RECONCILE, build=tmp_path))
    assert missing.write(default(missing)) == [OK]
    asked.table_entry.ClearField("action")
    (got,) = missing.read(asked)
    assert not got.table_entry.HasField("meter_config")
    assert NOTHING == of_entry(missing, entry)
    assert colours(missing, 7) is None


def test_a_constant_default_entry(metered: Rig) -> None:
    """Its action cannot change, nor what a TableEntry says of it; its meter can, by itself, and drops as told."""
    entry = default(metered).entity.table_entry
    code, said = refusal(metered, default(metered, meter_config=ENDLESS))
    assert code == Code.PERMISSION_DENIED and "constant" in said
    assert metered.write(modify(direct(entry, config=ENDLESS))) == [OK]
    assert colours(metered, 9) is None
    assert (60, 1, 0, 0, 0, 0) == of_entry(metered, entry)


def test_misses_of_indirect_tables_are_not_counted(make_rig: RigMaker, tmp_path: Path) -> None:
    """Their default entry is NoAction for good, which the program does not even have: UNIMPLEMENTED."""
    info = text_format.Parse((BUILD / "p4rt_all.p4info.txtpb").read_text(), p4i.P4Info())
    program = json.loads((BUILD / "p4rt_all.json").read_text())
    for table in program["pipelines"][0]["tables"]:
        if table["name"] == "AllIngress.mark":
            table["with_counters"] = True
    mark = next(table for table in info.tables if table.preamble.alias == "mark")
    hits = info.direct_counters.add(direct_table_id=mark.preamble.id)
    hits.preamble.id, hits.preamble.name = 0x13000001 | 1 << 16, "AllIngress.mark_hits"
    mark.direct_resource_ids.append(hits.preamble.id)
    (tmp_path / "p4rt_all.json").write_text(json.dumps(program))
    (tmp_path / "p4rt_all.p4info.txtpb").write_text(text_format.MessageToString(info))
    rig = make_rig(pushed="p4rt_all", build=tmp_path)
    entry = p4r.TableEntry(table_id=mark.preamble.id, is_default_action=True)
    written = p4r.Entity(
        direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry, data=p4r.CounterData())
    )
    reset = p4r.Entity(table_entry=entry)
    reset.table_entry.counter_data.packet_count = 1
    for entity in (written, reset):
        code, said = refusal(rig, modify(entity))
        assert code == Code.UNIMPLEMENTED and "AllIngress.mark" in said and "a miss runs no action" in said
    with pytest.raises(grpc.RpcError) as caught:
        rig.read(written)
    assert [Code.UNIMPLEMENTED] == [Code(detail.canonical_code) for detail in details_of(caught.value)]
    asked = p4r.Entity(table_entry=p4r.TableEntry(is_default_action=True, counter_data=p4r.CounterData()))
    has_counts = {e.table_entry.table_id: e.table_entry.HasField("counter_data") for e in rig.read(asked)}
    assert not has_counts[mark.preamble.id] and has_counts[rig.names.id("tables", "mac")]
    assert rig.write(modify(p4r.Entity(table_entry=entry))) == [OK]
