# SPDX-License-Identifier: Apache-2.0
"""The codec in C against Scapy: what every frame says, and every byte of every packet."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from tailrace.codec import calls
from tailrace.codec.calls import ACK, DATA, KIND_BITS, NIC_ACK, PAYLOAD, RAW, Packet
from tailrace.codec.layers.dscp import DSCP_SHIFT, Dscp
from tailrace.codec.layers.local import FlowPause, LocalHeader
from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.layout import HeaderLayout
from tailrace.codec.numbers import ROCE_PORT, Opcode, Subtype, Syndrome
from tailrace.codec.templates import HostAddress, ack_headers, data_headers, ip_number, nic_ack_headers, reth
from tests.codec.frames import Frame, build
from tests.codec.oracle import DATA as DATA_OPCODES
from tests.codec.oracle import ack_frame, call_of, data_frame, nic_ack_frame, restored
from tests.hosts.trimming import trim
from tests.sim.network.host_rig import Rig

FULL = settings(max_examples=400)
QUICK = settings(max_examples=120)
"""So that `make test` has them, too."""

bits = st.integers
HERE = HostAddress("02:00:0a:00:00:01", "02:00:00:00:00:fe", "10.0.0.1", "10.0.1.2")


@dataclass
class PacketNic:
    """Sends packets one after the other, notes what it is told."""

    packets: list[Packet] = field(default_factory=list)
    templates: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    received: list[tuple[object, ...]] = field(default_factory=list)
    address: int = ip_number(HERE.dst)
    idle: bool = True

    def on_data(self, now_ns: int, peer: int, psn_fields: int, data_fields: int, ticks: int) -> None:
        self.received.append(("data", now_ns, peer, psn_fields, data_fields, ticks))

    def on_trimmed(self, now_ns: int, peer: int, psn_fields: int, data_fields: int) -> None:
        self.received.append(("trimmed", now_ns, peer, psn_fields, data_fields))

    def on_ack(self, now_ns: int, peer: int, psn_fields: int, aeth: int) -> None:
        self.received.append(("ack", now_ns, peer, psn_fields, aeth))

    def on_cnp(self, now_ns: int, peer: int) -> None:
        self.received.append(("cnp", now_ns, peer))

    def on_nic_ack(self, now_ns: int, flow: int, count: int, ticks: int) -> None:
        self.received.append(("nic_ack", now_ns, flow, count, ticks))

    def on_flow_pause(self, now_ns: int, *numbers: int) -> None:
        self.received.append(("flow_pause", now_ns, *numbers))

    def on_pfc(self, now_ns: int, quanta: Sequence[int]) -> None:
        self.received.append(("pfc", now_ns, tuple(quanta)))

    def on_discard(self, now_ns: int, reason: int) -> None:
        self.received.append(("junk", now_ns, calls.DISCARD_REASONS[reason]))

    def next_packet(self, now_ns: int) -> Packet | int | None:
        return self.packets.pop(0) if self.packets else None

    def template(self, template_id: int) -> tuple[bytes, bytes]:
        return self.templates[template_id >> KIND_BITS]


def call_in_c(frame: bytes, virtual_bytes: int, now_ns: int) -> tuple[object, ...]:
    """The call of a NIC that the host port makes for a frame."""
    nic = PacketNic()
    host = Rig(nic)
    host.arrive(now_ns * 1000 + 999, frame, virtual_bytes)
    host.run()
    (call,) = nic.received
    return call


def call_by_scapy(frame: bytes, virtual_bytes: int, now_ns: int) -> tuple[object, ...]:
    return call_of(frame, virtual_bytes, now_ns, HERE.dst)


@dataclass(frozen=True)
class Given:
    """A packet to send, when, what it is built from, and the frame that Scapy makes of it."""

    now_ns: int
    packet: Packet
    template: tuple[bytes, bytes]
    by_scapy: Callable[[], Frame] | None = None

    def build(self) -> Frame:
        return build(self.packet, self.template, self.now_ns)


ports = bits(0, 0xFFFF)
words24 = bits(0, 2**24 - 1)
words32 = bits(0, 2**32 - 1)
macs = bits(0, 2**48 - 1).map(lambda number: ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big")))
ips = st.sampled_from([HERE.dst, "10.255.0.9", "255.255.255.255", "0.0.0.0"])
dscps = st.sampled_from(2 * [Dscp.DEFAULT, Dscp.STEERED] + [Dscp.TRIMMED, Dscp.TRIMMED_STEERED])
vlans = st.sampled_from(6 * [0] + [1, calls.VLAN_MASK])
addresses = st.builds(HostAddress, macs, macs, ips, ips)


@st.composite
def data_packets(draw):
    virtual = draw(st.booleans())
    payload = draw(bits(0, 65000) | st.sampled_from([1, 4096, 9000])) if virtual else draw(bits(0, 90))
    opcode = draw(st.sampled_from(DATA_OPCODES))
    psn_fields = draw(ports) << calls.SPORT_SHIFT | draw(words24)
    data_fields = payload | opcode << calls.OPCODE_SHIFT | draw(bits(0, calls.LEFT_MASK)) << calls.LEFT_SHIFT
    data_fields |= draw(bits(0, 1)) << calls.RETRANSMISSION_SHIFT | draw(bits(0, 1)) << calls.ACKREQ_SHIFT
    data_fields |= draw(vlans) << calls.VLAN_SHIFT
    address, length, now_ns = draw(addresses), draw(words32), draw(bits(0, 2**40))
    fields = {
        "sport": draw(ports),
        "qpn": draw(words24),
        "ecn": draw(st.booleans()),
        "shimmed": draw(st.booleans()),
        "dscp": draw(dscps),
    }
    template_id = draw(bits(0, 50)) << KIND_BITS | (DATA if virtual else PAYLOAD)
    packet = (
        (template_id, psn_fields, data_fields)
        if virtual
        else (template_id, psn_fields, data_fields, draw(st.binary(min_size=payload, max_size=payload)))
    )
    template = data_headers(address, **fields), reth(length)
    made = functools.partial(data_frame, address, packet, now_ns, length_bytes=length, **fields)
    return Given(now_ns, packet, template, made)


@st.composite
def ack_packets(draw):
    address, qpn, dscp = draw(addresses), draw(words24), draw(dscps)
    psn_fields = draw(bits(0, 1)) << calls.BECN_SHIFT | draw(ports) << calls.SPORT_SHIFT | draw(words24)
    packet = draw(bits(0, 50)) << KIND_BITS | ACK, psn_fields, draw(words32)
    template = ack_headers(address, sport=draw(ports), qpn=qpn, dscp=dscp), b""
    made = functools.partial(ack_frame, address, packet, qpn=qpn, dscp=dscp)
    return Given(draw(bits(0, 9)), packet, template, made)


@st.composite
def nic_ack_packets(draw):
    address, sport, orig_sport = draw(addresses), draw(ports), draw(ports)
    packet = draw(bits(0, 50)) << KIND_BITS | NIC_ACK, draw(words32), draw(words32)
    template = nic_ack_headers(address, sport=sport, orig_sport=orig_sport, orig_dport=ROCE_PORT), b""
    made = functools.partial(nic_ack_frame, address, packet, sport=sport, orig_sport=orig_sport)
    return Given(draw(bits(0, 9)), packet, template, made)


def tagged(given: Given) -> bool:
    """Whether the packet has a VLAN tag, so that no host reads it."""
    kind = given.packet[0] % (1 << KIND_BITS)
    return kind in (DATA, PAYLOAD) and bool(given.packet[2] >> calls.VLAN_SHIFT)


packets = data_packets() | ack_packets() | nic_ack_packets()


@st.composite
def control_frames(draw):
    """Pauses, PFC, CNPs and packets with other opcodes, by Scapy, with odd numbers."""
    kind = draw(st.sampled_from(["pause", "local", "pfc", "cnp"]))
    if kind == "pfc":
        quanta = draw(st.dictionaries(bits(0, 7), ports))
        return bytes(pfc_frame("02:00:00:00:00:01", quanta))
    if kind == "local":
        return bytes(
            Ether(type=0x88B5) / LocalHeader(subtype=draw(bits(0, 9))) / Raw(draw(st.binary(max_size=40)))
        )
    if kind == "pause":
        fields = {"sport": draw(ports), "dport": draw(ports), "protocol": draw(bits(0, 255))}
        body = FlowPause(
            op=draw(bits(0, 5)), credit_bytes=draw(words32), src=HERE.src, dst=HERE.dst, **fields
        )
        return bytes(Ether() / LocalHeader(subtype=int(Subtype.FLOW_PAUSE)) / body)
    bth = BTH(
        opcode=draw(st.sampled_from([int(Opcode.CNP), 0, 0x11, 255])), dqpn=draw(words24), fecn=1, becn=1
    )
    packet = Ether() / IP(src=HERE.src, dst=draw(ips)) / UDP(sport=1, dport=ROCE_PORT, chksum=0) / bth
    return bytes(packet / Raw(bytes(draw(bits(0, 20)))))


@st.composite
def mutated(draw, frame: bytes):
    """The frame with some bits flipped, or shorter, or longer."""
    changed = bytearray(frame)
    for _ in range(draw(bits(0, 3))):
        if changed:
            changed[draw(bits(0, len(changed) - 1))] ^= 1 << draw(bits(0, 7))
    if draw(st.booleans()):
        del changed[draw(bits(0, len(changed))) :]
    return bytes(changed) + draw(st.binary(max_size=6))


@QUICK
@given(packets)
def test_packets_are_built_as_by_scapy(given):
    """Every byte, and the length of a virtual payload."""
    nic = PacketNic([given.packet], {given.packet[0] >> KIND_BITS: given.template})
    host = Rig(nic)
    host.poll(given.now_ns * 1000 + 1)
    host.run(given.now_ns * 1000 + 2)
    ((_, _, data, virtual_bytes),) = host.sent
    assert given.by_scapy() == Frame(data, virtual_bytes)
    assert given.build() == Frame(data, virtual_bytes)


@QUICK
@given(packets)
def test_frames_are_read_as_by_scapy(given):
    """What our own NICs send."""
    frame = given.build()
    call = call_in_c(frame.data, frame.virtual_bytes, given.now_ns)
    assert call_by_scapy(frame.data, frame.virtual_bytes, given.now_ns) == call


@QUICK
@given(packets.filter(lambda given: not tagged(given)), st.data())
def test_frames_are_read_as_switches_leave_them(given, data):
    """TTL, ECN, path tag and notifications are written on the way; padding of Ethernet comes behind."""
    frame = given.build()
    packet = Ether(frame.data)
    ip = packet[IP]
    ip.ttl, ip.chksum = data.draw(bits(1, 255)), None
    ip.tos = data.draw(dscps) << DSCP_SHIFT | data.draw(bits(0, 3))
    del ip.len
    changed = bytearray(frame.data)
    headers = bytes(packet)[14:34]
    changed[14:16], changed[22:26] = headers[0:2], headers[8:12]
    place = HeaderLayout("Ether", "IP", "UDP", "BTH").span("BTH.fecn", "BTH.resv6").byte
    if given.packet[0] % (1 << KIND_BITS) != NIC_ACK:
        shim = (
            HeaderLayout("NicShim").size_bytes
            if len(given.template[0]) > HeaderLayout("Ether", "IP", "UDP", "BTH").size_bytes
            else 0
        )
        changed[place + shim] = data.draw(bits(0, 255))
    padded = bytes(changed) + bytes(data.draw(bits(0, 9)))
    assert call_by_scapy(padded, frame.virtual_bytes, 7) == call_in_c(padded, frame.virtual_bytes, 7)


@FULL
@given(packets, st.data())
def test_broken_frames_are_read_as_by_scapy(given, data):
    """Whatever is changed, cut off or added, and whatever length the virtual payload is said to have."""
    frame = given.build()
    broken = data.draw(mutated(frame.data))
    lengths = st.just(frame.virtual_bytes) | bits(0, 8) | bits(0, 1 << 17)
    virtual_bytes = data.draw(lengths)
    assert call_by_scapy(broken, virtual_bytes, 7) == call_in_c(broken, virtual_bytes, 7)


@QUICK
@given(data_packets(), st.booleans(), st.data())
def test_trimmed_packets_are_read_as_by_scapy(given, steered, data):
    """Whole, and with anything changed, cut off or added, a virtual payload too."""
    frame = trim(given.build().data, steered=steered)
    for changed, virtual_bytes in ((frame, 0), (data.draw(mutated(frame)), data.draw(bits(0, 8)))):
        assert call_by_scapy(changed, virtual_bytes, 7) == call_in_c(changed, virtual_bytes, 7)


@QUICK
@given(control_frames(), st.data())
def test_control_frames_are_read_as_by_scapy(frame, data):
    """Pauses, PFC, CNPs, and what comes near them."""
    for changed in (frame, data.draw(mutated(frame))):
        assert call_by_scapy(changed, 0, 3) == call_in_c(changed, 0, 3)


@FULL
@given(st.binary(max_size=90), st.sampled_from(["0800", "88b5", "8808", "86dd"]), bits(0, 4000))
def test_noise_is_read_as_by_scapy(noise, ether_type, virtual_bytes):
    """Any bytes behind an Ethernet header, or fewer."""
    frame = noise[:12] + bytes.fromhex(ether_type) + noise[12:] if len(noise) > 20 else noise
    assert call_by_scapy(frame, virtual_bytes, 0) == call_in_c(frame, virtual_bytes, 0)


def test_every_kind_of_packet_is_read():
    """None of the comparisons above is empty: data with and without shim, answers, control, and each junk."""
    data = Given(
        5,
        (
            1 << KIND_BITS | DATA,
            77 << calls.SPORT_SHIFT | 9,
            4096 | Opcode.WRITE_MIDDLE << calls.OPCODE_SHIFT,
        ),
        (data_headers(HERE, sport=77, qpn=3, ecn=True, shimmed=True), reth(1)),
    ).build()
    roce = restored(data.data)
    ack = Given(
        5, (ACK, 1 << calls.BECN_SHIFT, Syndrome.ACK << 24), (ack_headers(HERE, sport=1, qpn=2), b"")
    ).build()
    count = Given(
        5, (NIC_ACK, 9 << 8, 1), (nic_ack_headers(HERE, sport=1, orig_sport=2, orig_dport=3), b"")
    ).build()
    other = Given(
        5,
        (ACK, 0, 0),
        (ack_headers(HostAddress(HERE.src_mac, HERE.dst_mac, HERE.dst, HERE.src), sport=1, qpn=2), b""),
    ).build()
    cnp = (
        Ether()
        / IP(src=HERE.src, dst=HERE.dst)
        / UDP(dport=ROCE_PORT, chksum=0)
        / BTH(opcode=int(Opcode.CNP))
    )
    pause = Ether() / LocalHeader(subtype=int(Subtype.FLOW_PAUSE)) / FlowPause()
    frames = [
        (data.data, 4096, "data"),
        (roce, 4096, "data"),
        (trim(roce), 0, "trimmed"),
        (trim(roce, steered=True), 0, "trimmed"),
        (trim(ack.data), 0, "other"),
        (roce[:12] + b"\x81\0\0\1" + roce[12:], 4096, "other"),
        (ack.data, 0, "ack"),
        (count.data, 0, "nic_ack"),
        (bytes(cnp), 0, "cnp"),
        (bytes(pause), 0, "flow_pause"),
        (bytes(pfc_frame("02:00:00:00:00:01", {3: 4})), 0, "pfc"),
        (other.data, 0, "not_ours"),
        (data.data, 4095, "malformed"),
        (ack.data[:-1] + bytes([ack.data[-1] ^ 1]), 0, "bad_icrc"),
        (bytes(14), 0, "other"),
    ]
    results = [call_in_c(frame, virtual_bytes, 1) for frame, virtual_bytes, _ in frames]
    assert [name for _, _, name in frames] == [what[2] if what[0] == "junk" else what[0] for what in results]


@settings(max_examples=60)
@given(data_packets().filter(lambda given: not tagged(given)))
def test_long_virtual_payloads_count_as_zeros(given):
    """The ICRC over a virtual payload is that over as many real zeros."""
    frame = given.build()
    at = len(frame.data) - 4
    real = frame.data[:at] + bytes(frame.virtual_bytes) + frame.data[at:]
    assert call_in_c(frame.data, frame.virtual_bytes, 1) == call_in_c(real, 0, 1)


def test_raw_frames_are_sent_as_they_are():
    """And a NIC may use its packets again."""
    packet = (RAW, b"anything at all", 5)
    host = Rig(PacketNic([packet, packet]))
    host.poll()
    host.run()
    assert [(b"anything at all", 5)] * 2 == [sent[2:] for sent in host.sent]


def test_a_time_instead_of_a_packet():
    """The NIC is asked again then; None: when something arrives."""

    class Later(PacketNic):
        def next_packet(self, now_ns: int) -> Packet | int | None:
            self.received.append(("asked", now_ns))
            return 40 if now_ns < 40 else None

    nic = Later()
    host = Rig(nic)
    host.poll()
    host.run()
    host.arrive(90_500, bytes(14))
    host.run()
    assert [("asked", 0), ("asked", 40), ("junk", 90, "other"), ("asked", 90)] == nic.received


PLAIN_HEADERS = data_headers(HERE, sport=1, qpn=2, ecn=False, shimmed=False)
ONLY = Opcode.WRITE_ONLY << calls.OPCODE_SHIFT


@pytest.mark.parametrize(
    ("packet", "template", "error"),
    [
        ((DATA,), (PLAIN_HEADERS, reth(1)), TypeError),
        ((DATA, 0, -1), (PLAIN_HEADERS, reth(1)), OverflowError),
        ((DATA, "0", 0), (PLAIN_HEADERS, reth(1)), TypeError),
        ((7, 0, 0), (PLAIN_HEADERS, reth(1)), ValueError),
        ((DATA, 0, ONLY | 0xFFFF), (PLAIN_HEADERS, reth(1)), ValueError),
        ((DATA, 0, ONLY), (PLAIN_HEADERS[:-1], reth(1)), ValueError),
        ((DATA, 0, ONLY), (PLAIN_HEADERS, b""), ValueError),
        ((DATA, 0, ONLY), (bytes(500), bytes(500)), ValueError),
        ((DATA, 0, ONLY), None, TypeError),
        ((ACK, 0, 0), (PLAIN_HEADERS, reth(1)), ValueError),
        ((NIC_ACK, 0, 0), (PLAIN_HEADERS, reth(1)), ValueError),
        ((PAYLOAD, 0, ONLY), (PLAIN_HEADERS, reth(1)), TypeError),
        ((PAYLOAD, 0, ONLY | 3, b"four"), (PLAIN_HEADERS, reth(1)), ValueError),
        ((PAYLOAD, 0, ONLY | 0xFFFF, bytes(0xFFFF)), (PLAIN_HEADERS, reth(1)), ValueError),
        ((RAW, "text", 0), None, TypeError),
        ("packet", None, TypeError),
    ],
)
def test_packets_that_are_none_are_refused(packet, template, error):
    """Each with an exception that comes out of the run; nothing is sent."""

    class Careless(PacketNic):
        def template(self, template_id: int) -> Any:
            return template

    host = Rig(Careless([packet]))
    host.poll()
    with pytest.raises(error):
        host.run()
    assert [] == host.sent


@pytest.mark.parametrize(
    "name", ["on_data", "on_ack", "on_cnp", "on_nic_ack", "on_flow_pause", "on_pfc", "on_discard"]
)
def test_exceptions_of_packet_calls_come_out(name):
    """Every call's, as they are."""

    class Angry(PacketNic):
        def __getattribute__(self, wanted: str) -> object:
            if wanted != name:
                return super().__getattribute__(wanted)

            def fail(*numbers: object) -> None:
                raise LookupError(name)

            return fail

    frames = {
        "on_data": Given(1, (DATA, 0, ONLY), (PLAIN_HEADERS, reth(1))).build().data,
        "on_ack": Given(1, (ACK, 0, 0), (ack_headers(HERE, sport=1, qpn=2), b"")).build().data,
        "on_nic_ack": nic_ack_headers(HERE, sport=1, orig_sport=2, orig_dport=3),
        "on_cnp": bytes(
            Ether()
            / IP(src=HERE.src, dst=HERE.dst)
            / UDP(dport=ROCE_PORT, chksum=0)
            / BTH(opcode=int(Opcode.CNP))
        ),
        "on_flow_pause": bytes(Ether() / LocalHeader(subtype=int(Subtype.FLOW_PAUSE)) / FlowPause()),
        "on_pfc": bytes(pfc_frame("02:00:00:00:00:01", {0: 1})),
        "on_discard": b"",
    }
    host = Rig(Angry())
    host.arrive(0, frames[name])
    with pytest.raises(LookupError, match=name):
        host.run()
