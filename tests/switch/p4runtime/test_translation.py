# SPDX-License-Identifier: Apache-2.0
"""Types with @p4runtime_translation: what controllers write, and what the data plane gets (8.4.6, 18)."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4i, p4r
from hypothesis import given
from hypothesis import strategies as st

from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.p4runtime.entities.match import MatchField, MatchKind, key_plan
from tailrace.switch.p4runtime.entities.translation import Translations
from tailrace.switch.p4runtime.pins.strings import MAX_BITS, MAX_NAME, SdnStrings
from tests.switch.p4runtime.test_tables import read

FRAME = bytes.fromhex("0000000000050000000000019999") + b"data"
TO_CPU = bytes.fromhex("00000000000500000000000188B5") + b"data"


def translate(info: p4i.P4Info, name: str, bits: int | None) -> None:
    """Adds a type to P4Info as p4c writes it; None: strings."""
    type_ = info.type_info.new_types[name].translated_type
    type_.uri = f"test/{name}"
    if bits is None:
        type_.sdn_string.SetInParent()
    else:
        type_.sdn_bitwidth = bits


def types(name: str, bits: int | None) -> Translations:
    info = p4i.P4Info()
    translate(info, name, bits)
    return Translations(info.type_info)


def ports_as(rig, bits: int | None, program: str = "packet_io"):
    """Sets a pipeline in whose P4Info the ports of packet-in and packet-out have a translated type."""
    request = rig.config_request(program)
    info = request.config.p4info
    translate(info, "PortId_t", bits)
    for header in info.controller_packet_metadata:
        header.metadata[0].type_name.name = "PortId_t"
        header.metadata[0].bitwidth = bits or 0
    rig.set_pipeline(request)


def send(rig, port: bytes) -> p4r.StreamMessageRequest:
    message = p4r.StreamMessageRequest()
    message.packet.payload = FRAME
    for number, value in ((1, port), (2, b"\0"), (3, b"\0")):
        message.packet.metadata.add(metadata_id=number, value=value)
    rig.sessions[0].send(message)
    return message


@pytest.mark.parametrize(
    ("bits", "port"), [(32, b"\x01\x2c"), (8, b"\x2c"), (None, b"300"), (9, b"\x01\x2c")]
)
def test_packet_metadata_has_the_width_of_the_wire(make_rig, bits, port):
    """Neither header nor payload is cut by the width that controllers have."""
    rig = make_rig()
    stream = rig.primary()
    ports_as(rig, bits)
    send(rig, port)
    stream.arbitrate(1)
    assert stream.status() == Code.OK
    assert rig.in_server(rig.plane.take) == [(0x2C if bits == 8 else 300, FRAME)]
    rig.receive(300, TO_CPU)
    packet = stream.next().packet
    assert packet.payload == TO_CPU
    assert {m.metadata_id: m.value for m in packet.metadata} == {
        1: b"\x01\x2c" if bits is not None else b"300",
        2: b"\x2a",
    }


@pytest.mark.parametrize(
    ("bits", "port"), [(32, b"\x02\0"), (8, b"\x01\x2c"), (None, b"\xff"), (None, b"x" * 300)]
)
def test_a_port_that_does_not_fit_is_refused(make_rig, bits, port):
    rig = make_rig()
    stream = rig.primary()
    ports_as(rig, bits)
    send(rig, port)
    expected = Code.INVALID_ARGUMENT if bits is None else Code.OUT_OF_RANGE
    assert stream.next().error.canonical_code == expected


def string_keys(rig, action: int = 3) -> None:
    """Keys, optional keys and parameters of strings."""
    request = rig.config_request("match_kinds", action)
    info = request.config.p4info
    translate(info, "name_t", None)
    translate(info, "value_t", None)
    table = next(t for t in info.tables if t.preamble.alias == "optional_match")
    table.match_fields[0].type_name.name = "name_t"
    table.match_fields[0].bitwidth = 0
    action = next(a for a in info.actions if a.preamble.id == table.action_refs[0].id)
    action.params[0].type_name.name = "value_t"
    action.params[0].bitwidth = 0
    rig.set_pipeline(request)


@pytest.fixture
def strings(make_rig):
    """A rig whose pipeline has them."""
    rig = make_rig()
    rig.primary()
    string_keys(rig)
    return rig


def string_entry(rig, kind: int, key: bytes, value: bytes) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.table_entry
    entry.table_id = rig.names.id("tables", "optional_match")
    entry.priority = 1
    entry.match.add(field_id=1).optional.value = key
    action = entry.action.action
    action.action_id = next(
        a.preamble.id for a in rig.names.info.actions if a.preamble.alias == "set_optional"
    )
    action.params.add(param_id=1, value=value)
    return update


def test_string_keys_and_parameters(strings):
    """They are read as they were written, name the same entry again, and differ from each other."""
    rig = strings
    names = [b"Ethernet0", b"Ethernet1", b"", b"7", "größe".encode()]
    for name in names:
        assert rig.write(string_entry(rig, 1, name, b"red")) == [Code.OK]
        assert rig.write(string_entry(rig, 1, name, b"red")) == [Code.ALREADY_EXISTS]
    entries = read(rig, "optional_match")
    assert sorted(entry.match[0].optional.value for entry in entries) == sorted(names)
    assert {entry.action.action.params[0].value for entry in entries} == {b"red"}
    assert rig.write(string_entry(rig, 2, b"7", b"green")) == [Code.OK]
    assert rig.write(string_entry(rig, 3, b"Ethernet9", b"red")) == [Code.NOT_FOUND]


def test_all_values_of_a_type_are_taken(strings):
    """value_t has 8 bits: with the 257th string there is no number left."""
    rig = strings
    for number in range(256):
        assert rig.write(string_entry(rig, 1, b"%d" % number, b"v%d" % number)) == [Code.OK]
    assert rig.write(string_entry(rig, 1, b"256", b"v256")) == [Code.RESOURCE_EXHAUSTED]
    assert rig.write(string_entry(rig, 1, b"256", b"v255")) == [Code.OK]


def test_what_only_asks_takes_no_number(strings):
    """Reads, deletions and packet-outs with strings that nobody wrote: a reader must not use them up."""
    rig, stream = strings, strings.sessions[0]
    for name in (b"nobody", b"", b"7", b"x" * 300, b"\xff"):
        assert (
            rig.write(string_entry(rig, 3, name, b"red"), string_entry(rig, 2, name, b"red"))
            == [Code.NOT_FOUND] * 2
        )
        for priority in (0, 1):
            wanted = string_entry(rig, 1, name, b"red").entity
            wanted.table_entry.ClearField("action")
            wanted.table_entry.priority = priority
            assert rig.read(wanted) == []
    names = rig.device._live.state.schema.types.sdn("name_t", 24).names
    assert names.to_wire(b"somebody", "x") == 1
    ports_as(rig, None)
    send(rig, b"nobody")
    assert stream.next().error.canonical_code == Code.INVALID_ARGUMENT
    assert rig.device._live.state.schema.types.sdn("PortId_t", 9).names.to_wire(b"eth0", "x") == 1


def asking(rig, name: bytes) -> list[p4r.Entity]:
    """Requests for what has this key."""
    with_priority = string_entry(rig, 1, name, b"red").entity
    with_priority.table_entry.ClearField("action")
    all_of_it = p4r.Entity()
    all_of_it.CopyFrom(with_priority)
    all_of_it.table_entry.priority = 0
    return [with_priority, all_of_it]


def room(rig) -> tuple[int, ...]:
    """Strings that there are, of keys and of parameters."""
    types = rig.device._live.state.schema.types
    return tuple(types.sdn(name, bits).names.count for name, bits in (("name_t", 24), ("value_t", 8)))


def test_who_only_asks_for_decimal_numbers_uses_up_no_strings(strings):
    """Each has a number of its own already, and keeps no place by being asked for."""
    rig = strings
    assert rig.write(string_entry(rig, 1, b"Ethernet0", b"red")) == [Code.OK]
    before = room(rig)
    assert before == (1, 1)
    numbers = [b"%d" % number for number in range(1000, 1400)]
    assert rig.read(*(request for number in numbers for request in asking(rig, number))) == []
    for kind in (2, 3):
        updates = [string_entry(rig, kind, number, b"nobody's") for number in numbers]
        assert set(rig.write(*updates)) == {Code.NOT_FOUND}
    assert room(rig) == before
    assert rig.write(string_entry(rig, 1, b"1000", b"green")) == [Code.OK]
    assert len(rig.read(*asking(rig, b"1000"))) == 2


def test_what_comes_to_nothing_takes_no_number(strings):
    """Updates that fail, and batches that are taken back; what was cached of them does not come back wrong."""
    rig = strings
    bad = string_entry(rig, 1, b"second", b"blue")
    bad.entity.table_entry.priority = 0
    unknown = string_entry(rig, 1, b"third", b"blue")
    unknown.entity.table_entry.idle_timeout_ns = 5
    assert rig.write(string_entry(rig, 1, b"first", b"red"), bad, unknown) == [
        Code.OK,
        Code.INVALID_ARGUMENT,
        Code.INVALID_ARGUMENT,
    ]
    assert room(rig) == (1, 1)
    batch = [string_entry(rig, 1, b"a%d" % number, b"b%d" % number) for number in range(200)]
    for atomicity in (1, 2):
        codes = rig.write(*batch, string_entry(rig, 3, b"nobody", b"red"), atomicity=atomicity)
        assert codes == [Code.ABORTED] * 200 + [Code.NOT_FOUND]
        assert room(rig) == (1, 1)
    # the same in another order: every string has another number than it would have had
    assert rig.write(*reversed(batch), atomicity=1) == [Code.OK] * 200
    assert room(rig) == (201, 201)
    for number in range(200):
        (entry,) = rig.read(asking(rig, b"a%d" % number)[0])
        assert entry.table_entry.action.action.params[0].value == b"b%d" % number


def test_strings_that_others_may_have_used_stay():
    """A batch that is taken back leaves them where somebody else has written in the meantime."""
    translations = types("t", None)
    sdn = translations.sdn("t", 9)
    assert sdn is not None and sdn.names is not None
    names = sdn.names
    batch = translations.begin()
    translations.begin()
    names.to_wire(b"of the batch", "x")
    translations.begin()  # somebody else's
    names.to_wire(b"somebody else's", "x")
    translations.begin()
    assert not translations.roll_back(batch, within=2)
    assert names.count == 2
    batch = translations.begin()
    translations.begin()
    names.to_wire(b"another", "x")
    assert translations.roll_back(batch, within=1)
    assert names.count == 2
    assert names.to_wire(b"one more", "x") == 3


def test_reads_and_refused_writes_leave_room_for_strings(strings, monkeypatch):
    """The room is that of all types together."""
    rig = strings
    types = rig.device._live.state.schema.types
    monkeypatch.setattr(types._quota, "remaining", 4)
    for number in range(20):
        assert rig.read(*asking(rig, b"%d" % number)) == []
        bad = string_entry(rig, 1, b"x%d" % number, b"y%d" % number)
        bad.entity.table_entry.priority = 0
        assert rig.write(bad) == [Code.INVALID_ARGUMENT]
    good = [string_entry(rig, 1, b"x%d" % number, b"y%d" % number) for number in range(3)]
    assert rig.write(*good) == [Code.OK, Code.OK, Code.RESOURCE_EXHAUSTED]


def test_strings_keep_their_numbers_when_a_pipeline_is_reconciled(strings):
    """The new pipeline reads the same strings, though others were written first, and removed."""
    rig = strings
    for name in (b"first", b"second", b"third"):
        assert rig.write(string_entry(rig, 1, name, b"red")) == [Code.OK]
    assert rig.write(string_entry(rig, 3, b"first", b"red")) == [Code.OK]
    string_keys(rig, action=5)
    values = [entry.match[0].optional.value for entry in read(rig, "optional_match")]
    assert sorted(values) == [b"second", b"third"]
    names = rig.device._live.state.schema.types.sdn("name_t", 24).names
    assert [names.to_wire(name, "x") for name in (b"first", b"second", b"third")] == [1, 2, 3]


def test_strings_have_no_prefixes(make_rig):
    """Such a P4Info is refused as a whole."""
    rig = make_rig()
    rig.primary()
    request = rig.config_request("match_kinds")
    translate(request.config.p4info, "name_t", None)
    table = next(t for t in request.config.p4info.tables if t.preamble.alias == "lpm_match")
    table.match_fields[0].type_name.name = "name_t"
    table.match_fields[0].bitwidth = 0
    with pytest.raises(grpc.RpcError) as caught:
        rig.stub.SetForwardingPipelineConfig(request, timeout=60)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "a string field must be exact or optional" in caught.value.details()


@given(st.lists(st.one_of(st.binary(max_size=4), st.integers(0, 40).map(lambda n: b"%d" % n)), max_size=80))
def test_strings_and_numbers_are_one_to_one(given_names):
    """Whatever comes in whatever order; decimal numbers keep their own where they come first."""
    names = SdnStrings("t", 5)
    numbers: dict[bytes, int] = {}
    for name in given_names:
        try:
            number = names.to_wire(name, "x")
        except P4RtError as error:
            if error.code == Code.RESOURCE_EXHAUSTED:
                assert len(numbers) == 32
                assert name not in numbers
            else:
                assert error.code == Code.INVALID_ARGUMENT
                with pytest.raises(UnicodeDecodeError):
                    name.decode()
            continue
        assert 0 <= number < 32
        assert numbers.setdefault(name, number) == number
        assert names.to_sdn(number) == name
    assert len(set(numbers.values())) == len(numbers)


def test_the_longest_string():
    assert SdnStrings("t", 9).to_wire(b"x" * MAX_NAME, "x") == 1
    with pytest.raises(P4RtError):
        SdnStrings("t", 9).to_wire(b"x" * (MAX_NAME + 1), "x")


def test_strings_do_not_stand_for_very_wide_numbers():
    """Decimal numbers of thousands of digits take Python long, or it refuses them."""
    widest = types("t", None).sdn("t", MAX_BITS)
    assert widest is not None
    assert widest.to_sdn((1 << MAX_BITS) - 1).isdigit()
    with pytest.raises(P4RtError, match="512 at most"):
        types("t", None).sdn("t", MAX_BITS + 1)


def test_one_type_has_one_width_in_the_program():
    translations = types("t", None)
    assert translations.sdn("t", 9) is not None
    with pytest.raises(P4RtError, match="has 9 and 10 bits"):
        translations.sdn("t", 10)


@given(data=st.data(), bits=st.integers(1, 40), above=st.integers(0, 40))
def test_a_narrower_number_is_the_wide_one(data, bits, above):
    """A field of fewer bits in P4Info packs as the same number in all bits of the program, and comes back."""
    wire = bits + above
    value = data.draw(st.integers(0, (1 << bits) - 1))
    prefix = data.draw(st.integers(1, bits))
    value_bytes = value.to_bytes((wire + 7) // 8, "big")
    high = data.draw(st.integers(value, (1 << bits) - 1))
    for kind in (MatchKind.EXACT, MatchKind.OPTIONAL, MatchKind.LPM, MatchKind.RANGE):
        narrow = key_plan("t", [MatchField(1, "f", bits, 0, kind, wire)])
        wide = key_plan("t", [MatchField(1, "f", wire, 0, kind)])
        match, same = p4r.FieldMatch(field_id=1), p4r.FieldMatch(field_id=1)
        if kind is MatchKind.LPM:
            kept = value >> bits - prefix << bits - prefix
            match.lpm.value = same.lpm.value = kept.to_bytes((wire + 7) // 8, "big")
            match.lpm.prefix_len, same.lpm.prefix_len = prefix, prefix + above
        elif kind is MatchKind.RANGE:
            if value == 0 and high == (1 << bits) - 1:
                continue
            match.range.low = same.range.low = value_bytes
            match.range.high = same.range.high = high.to_bytes((wire + 7) // 8, "big")
        else:
            part = match.exact if kind is MatchKind.EXACT else match.optional
            part.value = value_bytes
            same.CopyFrom(match)
        packed = narrow.pack([match])
        assert packed == wide.pack([same])
        back, again = p4r.TableEntry(), p4r.TableEntry()
        narrow.unpack(packed, back.match)
        again.match.extend(back.match)
        assert narrow.pack(again.match) == packed


@given(bits=st.integers(1, 40), above=st.integers(1, 40), data=st.data())
def test_a_number_beyond_the_narrower_width_is_refused(bits, above, data):
    plan = key_plan("t", [MatchField(1, "f", bits, 0, MatchKind.EXACT, bits + above)])
    value = data.draw(st.integers(1 << bits, (1 << bits + above) - 1))
    match = p4r.FieldMatch(field_id=1)
    match.exact.value = value.to_bytes((value.bit_length() + 7) // 8, "big")
    with pytest.raises(P4RtError) as caught:
        plan.pack([match])
    assert caught.value.code == Code.OUT_OF_RANGE
