# SPDX-License-Identifier: Apache-2.0
"""The egress switch: the host gets the frame as it was sent, and the ACK goes back, byte by byte (Flowcut
§II-A, §III-A1).

Run one case: scripts/run_ptf.py --target native test_flowcut_ack_format.BytesTest
"""

from __future__ import annotations

from functools import partial

from ptf.testutils import group
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from ptf_tests.fabric import DOWNLINK, HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, REMOTE, UPLINKS
from ptf_tests.flowcut import FlowcutTest
from ptf_tests.frames import Flow, flowcut_ack, mac_of, roce, shimmed

FLOW = Flow(REMOTE, HOST, sport=0xABCD)
STAMPS = [(0x01020304 + i, 0x0A0B + i) for i in range(7)]


class EgressTest(FlowcutTest):
    """This is the switch of the data's destination."""

    def arrive(
        self, flow: Flow, frame: Packet, hops: int, stamps: list[tuple[int, int]], in_port: int
    ) -> None:
        """A frame with a shim comes in; the host gets it without, and the ACK leaves where it came in."""
        out_port = {HOST: HOST_PORT, OTHER_HOST: OTHER_HOST_PORT}[flow.dst]
        delivered = frame.copy()
        delivered[Ether].dst = mac_of(flow.dst)
        delivered[IP].ttl -= 1
        del delivered[IP].chksum
        self.send(in_port, shimmed(frame, hops, stamps))
        self.expect(out_port, delivered)
        self.expect(in_port, flowcut_ack(flow, frame_bytes=len(frame), hops=hops, stamps=stamps))


@group("flowcut")
class BytesTest(EgressTest):
    """Every byte of one ACK, written out."""

    def runTest(self) -> None:
        frame = roce(FLOW)
        self.send(UPLINKS[1], shimmed(frame, 3, STAMPS[:2]))
        self.receive(HOST_PORT)
        ack = self.receive(UPLINKS[1])[1]
        expected = (
            "02000a000202 02000a000102 88b5"  # to the data's source, from its destination
            "02"  # subtype: Flowcut ACK
            "0a000202 0a000102 abcd 12b7 11"  # the data's 5-tuple
            f"{len(frame):06x}"  # its length as its host sent it
            "32"  # 3 hops, 2 stamps
            "00"  # nothing reserved, no link back yet, no congestion
            "01020304 0a0b"  # the newest stamp
            "01020305 0a0c"
        )
        self.assertEqual(bytes.fromhex(expected).hex(), ack.hex())
        self.expect_count("acks_made", 1)
        self.nothing_else()


@group("flowcut")
class StampsTest(EgressTest):
    """One stamp or as many as fit: they come back as they were, whatever the size of the packet."""

    def runTest(self) -> None:
        most = self.number("stamps")
        self.assertEqual(len(STAMPS), most)
        for count in range(1, most + 1):
            self.arrive(FLOW, roce(FLOW), count, STAMPS[:count], UPLINKS[count % len(UPLINKS)])
        for size in (0, 1, 1000, 1400):
            self.arrive(FLOW, roce(FLOW, payload=bytes(size)), 15, STAMPS[:2], DOWNLINK)
        self.expect_count("acks_made", most + 4)
        # Data and ACKs are off the accounts again.
        for port in (HOST_PORT, DOWNLINK, *UPLINKS, self.number("mirror_port")):
            self.eventually((0, 0), partial(self.port_queues, port))
        self.expect_drops()


@group("flowcut")
class NothingToAcknowledgeTest(EgressTest):
    """Data that came without a shim (from a switch that does not track) is delivered, and no ACK is made."""

    def runTest(self) -> None:
        self.send(UPLINKS[0], roce(FLOW))
        self.expect(HOST_PORT, roce(FLOW, ttl=63, dst_mac=mac_of(HOST)))
        self.expect_count("acks_made", 0)
        self.expect_drops()


@group("flowcut")
class EgressWhereOffTest(BytesTest):
    """A switch that tracks nothing still serves those that do."""

    mode = "OFF"
