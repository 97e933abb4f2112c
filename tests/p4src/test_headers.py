# SPDX-License-Identifier: Apache-2.0
"""The formats of tailrace/codec/layers are those of p4src/common/headers.p4: the same fields in the same bits, and what
Scapy builds the compiled parser reads, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

from tailrace.codec.layers.bth import BTH
from tailrace.codec.layers.local import (
    Cnm,
    DataShim,
    Detour,
    FlowcutAck,
    FlowPause,
    LocalHeader,
    PathProbe,
    Stamp,
)
from tailrace.codec.layers.nic_shim import NicShim
from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.numbers import PFC_OPCODE, PauseOp
from tailrace.switch.compiler.model import HeaderType
from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import ack_of, roce, shim_of, shimmed
from tests.p4src.rig import DOWNLINK, HOST, OTHER_HOST_PORT, REMOTE, UPLINKS, Rig, address_number, program

# Scapy's name of a field, where it is another one than the P4 source's; of several fields, where Scapy joins them.
RENAMED: dict[str, dict[str, tuple[str, ...]]] = {
    "ethernet_t": {"type": ("ether_type",)},
    "vlan_t": {"prio": ("pcp",), "vlan": ("vid",), "type": ("next_ether_type",)},
    "tailrace_t": {},
    "detour_t": {"next_type": ("next_ether_type",)},
    "shim_t": {"next_type": ("next_ether_type",)},
    "stamp_t": {},
    "flowcut_ack_t": {},
    "flow_pause_t": {},
    "cnm_t": {},
    "path_probe_t": {"next_type": ("next_ether_type",)},
    "ipv4_header_t": {
        "tos": ("dscp", "ecn"),
        "len": ("total_len",),
        "id": ("identification",),
        "flags": ("reserved_flag", "do_not_fragment", "more_fragments"),
        "frag": ("fragment_offset",),
        "proto": ("protocol",),
        "chksum": ("checksum",),
    },
    "tcp_ports_t": {},
    "udp_t": {"len": ("length",), "chksum": ("checksum",)},
    "nic_shim_t": {"orig_sport": ("sport",), "orig_dport": ("dport",)},
    "bth_t": {
        "padcount": ("pad_count",),
        "resv6": ("path_tag",),
        "ackreq": ("ack_request",),
        "resv7": ("left",),
    },
}
LAYERS: dict[str, type[Packet]] = {
    "ethernet_t": Ether,
    "vlan_t": Dot1Q,
    "tailrace_t": LocalHeader,
    "detour_t": Detour,
    "shim_t": DataShim,
    "stamp_t": Stamp,
    "flowcut_ack_t": FlowcutAck,
    "flow_pause_t": FlowPause,
    "cnm_t": Cnm,
    "path_probe_t": PathProbe,
    "ipv4_header_t": IP,
    "tcp_ports_t": TCP,
    "udp_t": UDP,
    "nic_shim_t": NicShim,
    "bth_t": BTH,
}
NOT_ON_LINKS = {
    "packet_out_t",
    "packet_in_t",
    "bucket_t",
    "flow_entry_t",
    "port_queues_t",
    "path_state_t",
    "rlb_port_t",
}
"""Only between a switch and its controller."""

OF_PFC = {"pfc_t", "pfc_padding_t"}
"""Scapy has a field for each bit of the classes: see test_pauses_are_as_scapy_has_them."""


def headers() -> dict[str, HeaderType]:
    """Every header of the Flowcut program, which has all of them, by its type."""
    model = program("flowcut").model
    types = {header.type for header in model.headers if not header.metadata}
    return {model.header_types[index].name: model.header_types[index] for index in types}


def scapy_number(value: object) -> int:
    """A field's value as a number: addresses are text in Scapy."""
    if isinstance(value, str):
        return int(value.replace(":", ""), 16) if ":" in value else address_number(value)
    assert isinstance(value, int) or hasattr(value, "__int__")
    return int(value)


def split(kind: HeaderType, data: bytes) -> dict[str, int]:
    """The fields of a header as P4 reads them: most significant bits first."""
    rest = int.from_bytes(data, "big")
    fields = {}
    for field in reversed(kind.fields):
        fields[field.name] = rest & ((1 << field.bits) - 1)
        rest >>= field.bits
    return fields


def test_every_header_has_a_layer():
    """No header of the P4 source is without its Scapy layer, and none is checked that is not there."""
    assert set(headers()) == set(LAYERS) | NOT_ON_LINKS | OF_PFC


@settings(max_examples=40)
@given(quanta=st.dictionaries(st.integers(0, 7), st.integers(0, 0xFFFF)))
def test_pauses_are_as_scapy_has_them(quanta: dict[int, int]) -> None:
    """The classes that the frame speaks of, and their times; with the padding it is Ethernet's shortest."""
    kinds = headers()
    ether_bytes = sum(field.bits for field in kinds["ethernet_t"].fields) // 8
    lengths = [sum(field.bits for field in kinds[name].fields) // 8 for name in ("pfc_t", "pfc_padding_t")]
    frame = bytes(pfc_frame("02:00:00:00:00:01", quanta))
    fields = split(kinds["pfc_t"], frame[ether_bytes : ether_bytes + lengths[0]])
    assert ether_bytes + sum(lengths) == len(frame)
    other_quanta = sum(quanta.get(priority, 0) << 16 * (7 - priority) for priority in range(1, 8))
    assert fields == {
        "opcode": PFC_OPCODE,
        "classes": sum(1 << priority for priority in quanta),
        "quanta_of_data": quanta.get(0, 0),
        "quanta_of_others": other_quanta,
    }


@pytest.mark.parametrize("name", LAYERS)
@settings(max_examples=40)
@given(data=st.data())
def test_scapy_reads_and_writes_what_p4_does(name, data):
    """Random bytes: both see the same number in each field; and Scapy, given the numbers, writes the bytes back."""
    kind = headers()[name]
    raw = bytearray(data.draw(st.binary(min_size=kind.fixed_bits // 8, max_size=kind.fixed_bits // 8)))
    if name in ("ethernet_t", "vlan_t"):
        raw[-2] |= 0x08  # a type, not a length
    if name == "ipv4_header_t":
        raw[0] = 0x45
    if name in ("shim_t", "flowcut_ack_t"):
        at = 0 if name == "shim_t" else 16
        raw[at] &= 0xF0  # no stamp follows
    tail = bytes(16) if name == "tcp_ports_t" else bytes(4) if name == "bth_t" else b""
    layer = LAYERS[name](bytes(raw) + tail)
    expected = split(kind, bytes(raw))
    widths = {field.name: field.bits for field in kind.fields}
    seen = {}
    for field in layer.fields_desc:
        p4_names = RENAMED[name].get(field.name, (field.name,))
        if not set(p4_names) <= set(widths):
            continue
        value = scapy_number(layer.getfieldval(field.name))
        for p4_name in reversed(p4_names):
            seen[p4_name] = value & ((1 << widths[p4_name]) - 1)
            value >>= widths[p4_name]
        assert value == 0, f"{field.name} is wider in Scapy"
    assert seen == expected
    rebuilt = LAYERS[name](**layer.fields)
    assert bytes(rebuilt)[: len(raw)] == bytes(raw)


stamp_lists = st.lists(
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1)), min_size=1, max_size=7
)
addresses = st.integers(0, 255).map(lambda low: f"10.0.2.{low}")
ports = st.integers(0, 0xFFFF)


@pytest.fixture(scope="module")
def transit() -> Iterator[Rig]:
    """A switch of the ingress variant that data and ACKs pass through."""
    with Rig("flowcut") as rig:
        rig.flowcut("INGRESS")
        yield rig


@settings(max_examples=80)
@given(
    stamp_lists,
    st.integers(0, 15),
    addresses,
    ports,
    st.integers(2, 255),
    st.integers(0, 63),
    st.binary(max_size=60),
)
def test_data_with_a_shim(transit, stamps, hops, dst, sport, ttl, tag, payload):
    """The parser finds IPv4, UDP and BTH behind any number of stamps; the deparser puts all of it back."""
    frame = roce(sport, src=HOST, dst=dst, payload=payload, ttl=ttl, resv6=tag)
    output = transit.forward(DOWNLINK, shimmed(frame, hops, stamps), 1)
    port = UPLINKS[flow_hash(frame) % len(UPLINKS)]
    expected = roce(sport, src=HOST, dst=dst, payload=payload, ttl=ttl - 1, resv6=(tag * 13 + port) % 64)
    assert (output.port, output.data.hex()) == (
        port,
        bytes(shimmed(expected, min(hops + 1, 15), stamps)).hex(),
    )


@settings(max_examples=80)
@given(
    stamp_lists,
    st.integers(0, 15),
    addresses,
    ports,
    st.integers(0, 0xFFFFFF),
    st.integers(0, 14),
    st.integers(0, 1),
    st.integers(0, 7),
)
def test_ack_on_its_route(transit, stamps, more_hops, src, sport, nbytes, hops_back, congested, reserved):
    """Every field of an ACK comes through as Scapy wrote it; the way is that of the flow it names."""
    hops = min(len(stamps) + more_hops, 15)
    frame = roce(sport, src=src, dst=HOST)
    fields = {"bytes": nbytes, "congested": congested, "reserved": reserved}
    output = transit.forward(DOWNLINK, ack_of(frame, hops, stamps, hops_back=hops_back, **fields), 1)
    port = UPLINKS[flow_hash(frame) % len(UPLINKS)]
    expected = ack_of(frame, hops, stamps, hops_back=hops_back + 1, **fields)
    assert (output.port, output.data.hex()) == (port, bytes(expected).hex())


@pytest.fixture(scope="module")
def source() -> Iterator[Rig]:
    """A switch of the full variant with the data's source."""
    with Rig("flowcut") as rig:
        rig.flowcut()
        yield rig


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), ports, st.integers(1, 0xFFFF), st.integers(1, 2**32 - 1))
def test_ack_where_it_is_read(source, ticks, sport, nbytes, credit):
    """Key, bytes, ticks, port and mark of an ACK mean the same here as in Scapy; so does the pause that follows."""
    source.reset()
    source.drain()
    source.credit(credit)
    now, frame = 1 << 33, roce(sport)
    sent = source.forward(OTHER_HOST_PORT, frame, now, virtual_bytes=0xFFFF)
    (stamp,) = shim_of(sent.data).stack
    assert (stamp.ticks, stamp.in_port) == (now % 2**32, OTHER_HOST_PORT)
    ack = ack_of(frame, 2, [(ticks, OTHER_HOST_PORT)], bytes=nbytes, congested=1)
    pause = source.forward(sent.port, ack, now)
    in_flight = sum(source.register("flow_in_flight_bytes", way) for way in range(4))
    assert in_flight == len(frame) + 0xFFFF - nbytes
    assert source.register("rtt_min_ticks", 2) == max((now - ticks) % 2**32, 1)
    assert pause.port == OTHER_HOST_PORT
    header = Ether(pause.data)[FlowPause]
    assert (header.src, header.dst, header.sport, header.dport, header.protocol) == (
        HOST,
        REMOTE,
        sport,
        4791,
        17,
    )
    assert (header.op, header.credit_bytes) == (PauseOp.XOFF_CREDIT, credit)
    assert bytes(FlowPause(**header.fields)) == bytes(header)
