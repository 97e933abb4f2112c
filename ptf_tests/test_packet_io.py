# SPDX-License-Identifier: Apache-2.0
"""Packet-in and packet-out with their metadata headers (packet_io.p4).

Run one case: scripts/run_ptf.py --target native test_packet_io.PacketInTest
"""

from __future__ import annotations

import ptf.testutils as testutils
from p4.v1 import p4runtime_pb2
from ptf.testutils import group

from ptf_tests.base import P4RuntimeTest, octets

FRAME = bytes.fromhex("0000000000020000000000aa88b5") + b"payload" * 7


class PacketIoTest(P4RuntimeTest):
    program = "packet_io"

    def metadata_ids(self, header: str) -> dict[str, int]:
        """Ids of the fields of a controller header by name."""
        for header_info in self.p4info.controller_packet_metadata:
            if header_info.preamble.name == header:
                return {field.name: field.id for field in header_info.metadata}
        raise KeyError(header)

    def packet_out(self, payload: bytes, **fields: int) -> None:
        """Send a packet-out; fields not named are zero."""
        packet = p4runtime_pb2.PacketOut(payload=payload)
        for name, field_id in self.metadata_ids("packet_out").items():
            packet.metadata.add(metadata_id=field_id, value=octets(fields.get(name, 0)))
        self.send_message(packet=packet)


@group("packetio")
class PacketInTest(PacketIoTest):
    """The controller gets the frame and the port it came by."""

    def runTest(self) -> None:
        for port in (0, 7):
            testutils.send_packet(self, port, FRAME)
            packet = self.receive_message("packet")
            self.assertEqual(FRAME, packet.payload)
            ids = {value: key for key, value in self.metadata_ids("packet_in").items()}
            values = {ids[item.metadata_id]: int.from_bytes(item.value, "big") for item in packet.metadata}
            self.assertEqual({"ingress_port": port, "reason": 42}, values)
        testutils.verify_no_other_packets(self)


@group("packetio")
class PacketOutTest(PacketIoTest):
    """A packet-out leaves by the port in its metadata, or is handled as a frame received."""

    def runTest(self) -> None:
        self.packet_out(FRAME, egress_port=5)
        testutils.verify_packet(self, FRAME, 5)
        plain = FRAME[:12] + bytes.fromhex("1234") + FRAME[14:]
        self.packet_out(plain, egress_port=5, handle_as_received=1)
        testutils.verify_packet(self, plain, 2)
        testutils.verify_no_other_packets(self)
