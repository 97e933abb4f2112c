# SPDX-License-Identifier: Apache-2.0
"""The egress switch: the host gets the frame as it was sent, and the ACK goes back, byte by byte (Flowcut
§II-A, §III-A1).

Run one case: scripts/run_ptf.py --target native test_flowcut_ack_format.BytesTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import HOST, HOST_PORT, REMOTE, UPLINKS
from ptf_tests.flowcut import FlowcutTest
from ptf_tests.frames import Flow, mac_of, roce, shimmed

FLOW = Flow(REMOTE, HOST, sport=0xABCD)
STAMPS = [(0x01020304 + i, 0x0A0B + i) for i in range(7)]


@group("flowcut")
class BytesTest(FlowcutTest):
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
class NothingToAcknowledgeTest(FlowcutTest):
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
