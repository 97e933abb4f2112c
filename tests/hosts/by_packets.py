# SPDX-License-Identifier: Apache-2.0
"""NICs that are told of packets by numbers alone: no frame is read, so what a frame says cannot matter."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.codec.templates import ip_number
from tailrace.hosts.flows.observation import Observation
from tailrace.hosts.nic.nic import Nic
from tests.codec.frames import Frame

# Written without codec.calls, so that a mistake there cannot hide here.
RAW, DATA, PAYLOAD, ACK, NIC_ACK = 0, 1, 2, 3, 4
FIRST_OR_ONLY = (0x06, 0x0A)
RETH_BYTES, ICRC_BYTES = 16, 4
PLAIN_BYTES, SHIMMED_BYTES = 54, 62


@dataclass
class Numbers:
    """The packet behind every frame, by the frame's identity; all NICs of a network share it."""

    packets: dict[int, tuple[Frame, ByPackets, tuple, bytes, int]] = field(default_factory=dict)


@dataclass
class ByPackets:
    """A NIC that notes each packet it gives, and is told of packets only."""

    nic: Nic
    numbers: Numbers

    def __post_init__(self) -> None:
        self.ip = self.nic.ip
        self.counters = self.nic.counters
        self.add_flow, self.expect_flow = self.nic.add_flow, self.nic.expect_flow
        self.template = self.nic.template
        self.given: tuple = ()

    @property
    def idle(self) -> bool:
        return self.nic.idle

    def records(self) -> list[Observation]:
        return self.nic.records()

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        raise AssertionError("a frame is read")

    def next_packet(self, now_ns: int) -> tuple | int | None:
        packet = self.nic.next_packet(now_ns)
        assert packet is None or isinstance(packet, tuple) or packet > now_ns
        if isinstance(packet, tuple):
            self.given = packet
        return packet

    def note(self, now_ns: int, frame: Frame) -> None:
        """The frame is that of the packet which it gave last."""
        template_id = self.given[0]
        # now, for its end of the flow may have gone when the frame arrives
        headers = b"" if template_id == RAW else self.nic.template(template_id)[0]
        self.numbers.packets[id(frame)] = frame, self, self.given, headers, now_ns

    def on_packet_of(self, now_ns: int, frame: Frame) -> None:
        """The frame has arrived: tells the NIC of its packet as it was sent, hops and marks being zero."""
        _, sender, packet, headers, sent_ns = self.numbers.packets[id(frame)]
        nic, source = self.nic, ip_number(sender.ip)
        template_id, psn_fields, rest = packet[:3]
        if template_id == RAW:
            # a CNP, which only differs by its queue pair
            nic.on_cnp(now_ns, source * 2**24 + int.from_bytes(frame.data[47:50], "big"))
            return
        qpn = int.from_bytes(headers[-7:-4], "big")
        peer = source * 2**24 + qpn
        if template_id % 8 == ACK:
            nic.on_ack(now_ns, peer, psn_fields, rest)
        elif template_id % 8 == NIC_ACK:
            orig_sport = int.from_bytes(headers[42:44], "big")
            nic.on_nic_ack(now_ns, source * 2**16 + orig_sport, psn_fields, rest)
        else:
            assert template_id % 8 in (DATA, PAYLOAD)
            payload, opcode = rest % 2**16, rest // 2**16 % 2**8
            length = len(headers) + (RETH_BYTES if opcode in FIRST_OR_ONLY else 0)
            length += payload + -payload % 4 + ICRC_BYTES
            shimmed = len(headers) == SHIMMED_BYTES
            assert shimmed or len(headers) == PLAIN_BYTES
            left = rest // 2**24 % 2**7
            data_fields = rest - left * 2**24 + length * 2**41
            nic.on_data(now_ns, peer, psn_fields, data_fields, sent_ns % 2**32 if shimmed else -1)
